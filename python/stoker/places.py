"""Where in the user's code a capture stands, and what the user said of such places: --assume FILE:LINE=VALUE."""

from __future__ import annotations

import os
import pathlib
import sys
import sysconfig

from .errors import CaptureError

_OURS = str(pathlib.Path(__file__).resolve().parent)
_STDLIB = sysconfig.get_paths()["stdlib"]
_TORCH = f"{os.sep}torch{os.sep}"
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def _is_between(filename: str) -> bool:
    """Whether frames of this file stand between the model's code and the recorder."""
    packaged = any(part.rstrip(os.sep) + _TORCH in filename for part in _PACKAGES)
    return filename.startswith((_OURS, "<")) or packaged or (
        filename.startswith(_STDLIB) and not any(part in filename for part in _PACKAGES))


def shown(filename: str) -> str:
    """The path as people know it: from the working directory, or from the folder of packages."""
    for part in _PACKAGES:
        if part in filename:
            return filename.rpartition(part)[2]
    inside = os.path.relpath(filename)
    return filename if inside.startswith("..") else inside


def here() -> str | None:
    """"net.py:12": the innermost line of the model's code that is running; None in PyTorch's own backward."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _is_between(frame.f_code.co_filename):
            return f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _value(text: str, item: str):
    words = {"true": True, "false": False, "all": "all"}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    raise CaptureError(f"--assume {item}: '{text}' is no value: write true, false, a number, or all (rows of a mask)")


class Assumptions:
    """What --assume says, by place. `used` are those that a read has asked for."""

    def __init__(self, items: list):
        self._values: dict[str, object] = {}
        self.used: set[str] = set()
        for item in items:
            place, separator, value = item.rpartition("=")
            file, colon, line = place.rpartition(":")
            if not (separator and colon and file and line.isdigit()):
                raise CaptureError(f"--assume {item}: write --assume FILE:LINE=VALUE, as a capture names the place")
            self._values[place] = _value(value, item)

    def at(self, place: str | None):
        """The value for "folder/net.py:12", or None; a path may be given by its end."""
        for named, value in self._values.items():
            if place is not None and (place == named or place.endswith(os.sep + named) or named.endswith(os.sep + place)):
                self.used.add(named)
                return value
        return None

    def check_used(self) -> None:
        """Refuses a place at which nothing was read: it would be taken for one that was obeyed."""
        unused = [place for place in self._values if place not in self.used]
        if unused:
            raise CaptureError(f"--assume {unused[0]}: the model reads no value at that line; a capture lists the lines where it does")
