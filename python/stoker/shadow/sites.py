"""Where in the user's own files something happened."""

from __future__ import annotations

import pathlib
import sys
import traceback
from dataclasses import dataclass

from .. import whose

is_users = whose.is_users


@dataclass(frozen=True)
class Site:
    """A line of a file; line 0 where it is not known."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{pathlib.Path(self.file).name} line {self.line}" if self.line else pathlib.Path(self.file).name


def here(skip: int = 1) -> Site:
    """The nearest line of the user's code among the frames that are running."""
    frame = sys._getframe(skip)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return Site(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Site()


def starter(skip: int = 2) -> Site | None:
    """The line that calls one of Python's own functions, where it is the user's; None where a library calls it."""
    frame = sys._getframe(skip)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            return Site(name, frame.f_lineno)
        if whose.is_packaged(name) and not whose.is_ours(name):
            return None  # our own functions in the place of Python's may be installed among the libraries
        frame = frame.f_back
    return None


def of_error(error: BaseException) -> str:
    """"train.py line 12": the innermost line of the user's that an error came through; "" where there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    return str(Site(frames[-1].filename, frames[-1].lineno or 0)) if frames else ""
