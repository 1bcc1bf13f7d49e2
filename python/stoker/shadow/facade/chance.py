"""Random numbers of a loader, apart from those of the loop.

Workers draw their own, so that how many samples make a batch changes nothing that the loop decides by chance, as which of mixup and
cutmix a step has. Here the loader runs in the loop's process: its numbers are put in place for as long as it makes a batch. All runs
of a capture begin with the same numbers.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading

import torch


def begin() -> None:
    """From here on this process draws what every run draws that seeds nothing itself."""
    random.seed(0)
    torch.random.default_generator.manual_seed(0)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(0)


class Chance:
    def __init__(self):
        self._numbers: tuple | None = None

    @contextlib.contextmanager
    def own(self):
        """Inside, the loader's numbers are drawn."""
        if threading.current_thread() is not threading.main_thread():
            yield  # the loop draws meanwhile
            return
        of_the_loop = _now()
        if self._numbers is not None:
            _put(self._numbers)
        try:
            yield
        finally:
            self._numbers = _now()
            _put(of_the_loop)


def _now() -> tuple:
    numpy = sys.modules.get("numpy.random")
    return random.getstate(), torch.random.default_generator.get_state(), numpy.get_state() if numpy is not None else None


def _put(numbers: tuple) -> None:
    random.setstate(numbers[0])
    torch.random.default_generator.set_state(numbers[1])
    if numbers[2] is not None:
        sys.modules["numpy.random"].set_state(numbers[2])
