"""Whose code a file is: this package's, Python's own, an installed library's, or the user's.

One owner of these places: each part of the package asks its own question (a line to show, a file to watch, a frame to pass over)
by these answers.
"""

from __future__ import annotations

import functools
import os
import sysconfig


def _folders(*paths: str) -> tuple:
    """The folders with a separator behind each, as they are named and as links lead to them."""
    return tuple(dict.fromkeys(os.path.join(form, "") for path in paths for form in (os.path.abspath(path), os.path.realpath(path))))


OURS = _folders(os.path.dirname(os.path.abspath(__file__)))
STANDARD_LIBRARY = _folders(*(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")))
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_ours(filename: str) -> bool:
    return filename.startswith(OURS)


def is_packaged(filename: str) -> bool:
    """Whether it was installed by pip or by a distribution."""
    return any(part in filename for part in PACKAGES)


def is_pythons(filename: str) -> bool:
    """Whether it is a module of Python's own; folders of packages may lie among these."""
    return filename.startswith(STANDARD_LIBRARY) and not is_packaged(filename)


def is_library(filename: str) -> bool:
    """Whether it is Python's or installed, or no file at all: "<frozen importlib>", "<string>"."""
    return filename.startswith("<") or is_pythons(filename) or is_packaged(filename)


@functools.lru_cache(maxsize=8192)
def is_users(filename: str) -> bool:
    """Whether it is the user's own: neither ours nor a library's."""
    return not (is_ours(filename) or is_library(filename))
