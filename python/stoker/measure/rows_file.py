"""Rows files: JSON documents that measuring verbs write, whole or not at all, and go on with."""

from __future__ import annotations

import json
import os

from ..errors import CaptureError


def is_descriptor(path: str) -> bool:
    """A file that the caller keeps to itself and that has no name."""
    return path.startswith("/dev/fd/")


def check_place(path: str) -> None:
    """Refuses an --out that could not be written, before anything is measured."""
    folder = os.path.dirname(os.path.abspath(path))
    if not is_descriptor(path) and not os.access(folder, os.W_OK):
        raise CaptureError(f"--out {path}: there is no folder {folder} that can be written to")
    if os.path.isdir(path):
        raise CaptureError(f"--out {path} is a folder: name a file in it")


def begun(path: str) -> bool:
    """Whether there is something to go on with; an empty file is a new one."""
    return not is_descriptor(path) and os.path.exists(path) and not (os.path.isfile(path) and os.path.getsize(path) == 0)


def read(path: str, kind: str, form: str, schema: list) -> dict:
    """The document at `path`, which errors call a `kind`; refuses another format and another major version."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path} cannot be read as a {kind} ({error}); move it away to begin anew") from None
    if not isinstance(found, dict) or found.get("format") != form or found.get("schema_version", [0])[0] != schema[0]:
        raise CaptureError(f"{path} is no {kind} of this version; move it away to begin anew")
    return found


def write_text(text: str, path: str) -> None:
    """Whole or not at all; in place into a descriptor that the caller gave."""
    try:
        if is_descriptor(path):
            with open(path, "w") as file:
                file.write(text)
            return
        partial = f"{path}.{os.getpid()}.partial"
        try:
            with open(partial, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # a disk may refuse as late as here
            os.replace(partial, path)
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
    except OSError as error:
        raise CaptureError(f"{path} cannot be written ({error.strerror}): give --out a file in a folder with room that "
                           "you may write to") from None


def interrupted(path: str) -> str:
    """What Ctrl-C is answered with once something is measured."""
    return "interrupted" if is_descriptor(path) else f"interrupted; what was measured so far is in {path}"
