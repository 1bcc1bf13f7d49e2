"""Where what can be made again is kept: the folder that the binary uses too, by the same rule (src/base/files.h)."""

from __future__ import annotations

import os
import pathlib


def cache_folder() -> pathlib.Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return pathlib.Path(given if given else os.path.join(os.environ.get("HOME") or "/tmp", ".cache")) / "stoker"
