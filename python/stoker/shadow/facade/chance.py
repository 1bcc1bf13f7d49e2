"""Random numbers of a loader, apart from those of the loop.

Workers draw their own, so that how many samples make a batch changes nothing that the loop decides by chance, as which of mixup and
cutmix a step has. Here the loader runs in the loop's process: its numbers are put in place for as long as it makes a batch. All runs
of a capture begin with the same numbers.
"""

from __future__ import annotations

import contextlib
import threading

from ...tracing import random_state


class Chance:
    def __init__(self):
        self._numbers: tuple | None = None

    @contextlib.contextmanager
    def own(self):
        """Inside, the loader's numbers are drawn."""
        if threading.current_thread() is not threading.main_thread():
            yield  # the loop draws meanwhile
            return
        of_the_loop = random_state.now()
        if self._numbers is not None:
            random_state.put(self._numbers)
        try:
            yield
        finally:
            self._numbers = random_state.now()
            random_state.put(of_the_loop)
