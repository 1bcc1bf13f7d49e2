"""Where in the user's code a capture stands, and what the user said of such places: --assume FILE:LINE=VALUE, rows=VALUE."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass

from . import whose
from .errors import CaptureError

ROWS = "rows"  # in place of FILE:LINE: all places whose number of rows depends on the data
_CALLS_MODEL = ("_train", "_forward", "_infer", "_replaced")  # of tracing/one_step.py
_TORCH = f"{os.sep}torch{os.sep}"


@functools.lru_cache(maxsize=4096)
def _is_between(filename: str) -> bool:
    """Whether frames of this file stand between the model's code and the recorder."""
    pytorch = any(part.rstrip(os.sep) + _TORCH in filename for part in whose.PACKAGES)
    return filename.startswith("<") or whose.is_ours(filename) or pytorch or whose.is_pythons(filename)


def shown(filename: str) -> str:
    """The path as people know it: from the working directory, or from the folder of packages."""
    for part in whose.PACKAGES:
        if part in filename:
            return filename.rpartition(part)[2]
    inside = os.path.relpath(filename)
    return filename if inside.startswith("..") else inside


def line() -> tuple | None:
    """(file name, line) of the innermost line of the model's code that is running; None in PyTorch's own backward."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not _is_between(code.co_filename):
            return code.co_filename, frame.f_lineno
        if code.co_name in _CALLS_MODEL and whose.is_ours(code.co_filename):
            return None  # whoever asked for the capture stands above
        frame = frame.f_back
    return None


def words(line: tuple) -> str:
    """"net.py:12": `line` as people know it."""
    return f"{shown(line[0])}:{line[1]}"


def here() -> str | None:
    """Where the model's code stands, as people know it."""
    found = line()
    return words(found) if found else None


@dataclass(frozen=True)
class Share:
    """A share of the rows that there could be."""

    of_all: float


@dataclass(frozen=True)
class AtMost:
    """A number of rows, where there could be as many."""

    rows: int


def _value(text: str, item: str):
    words = {"true": True, "false": False, "all": "all"}
    if text.lower() in words:
        return words[text.lower()]
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            share = -1.0
        if 0 <= share <= 1:
            return Share(share)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    raise CaptureError(f"--assume {item}: '{text}' is no value: write true, false, a number, all (rows of a mask), "
                       "or a share of them (25%)")


def _rows(text: str, item: str):
    value = _value(text, item)
    if value == "all" or isinstance(value, Share):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return AtMost(value)
    raise CaptureError(f"--assume {item}: '{text}' is no number of rows: write all, a number, or a share (25%)")


class Assumptions:
    """What --assume says, by place. `used` are those that a read has asked for."""

    def __init__(self, items: list):
        self._values: dict[str, object] = {}
        self.used: set[str] = set()
        self._rows = None
        for item in items:
            place, separator, value = item.rpartition("=")
            file, colon, line = place.rpartition(":")
            if separator and place == ROWS:
                self._rows = _rows(value, item)
                continue
            if not (separator and colon and file and line.isdigit()):
                raise CaptureError(f"--assume {item}: write --assume FILE:LINE=VALUE, as a capture names the place, "
                                   "or --assume rows=all (or a number) for all places whose number of rows depends on the data")
            self._values[place] = _value(value, item)

    def at(self, place: str | None):
        """The value for "folder/net.py:12", or None; a path may be given by its end."""
        for named, value in self._values.items():
            if place is not None and (place == named or place.endswith(os.sep + named) or named.endswith(os.sep + place)):
                self.used.add(named)
                return value
        return None

    def rows(self, place: str | None):
        """How many rows the data leaves at a place: what is said of it, else what is said of all."""
        value = self.at(place)
        if value is not None or self._rows is None:
            return value
        self.used.add(ROWS)
        return self._rows

    def check_used(self) -> None:
        """Refuses a place at which nothing was read: it would be taken for one that was obeyed."""
        unused = [place for place in self._values if place not in self.used]
        if unused:
            raise CaptureError(f"--assume {unused[0]}: the model reads no value at that line; a capture lists the lines where it does")
