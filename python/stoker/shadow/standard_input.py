"""The standard input of a script that is run by itself: it is empty, and who reads it is remembered."""

from __future__ import annotations

import io
import os

from . import sites


def install(world) -> io.TextIOBase:
    """An empty stream in the place of descriptor 0, for sys.stdin."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return _Empty(world)


class _Empty(io.TextIOWrapper):
    def __init__(self, world):
        super().__init__(open(0, "rb", closefd=False))
        self._world = world

    def _noted(self) -> None:
        if self._world.read_input is None:
            self._world.read_input = sites.here()

    def read(self, *args):
        self._noted()
        return super().read(*args)

    def readline(self, *args):
        self._noted()
        return super().readline(*args)

    def readlines(self, *args):
        self._noted()
        return super().readlines(*args)

    def __next__(self):
        self._noted()
        return super().__next__()
