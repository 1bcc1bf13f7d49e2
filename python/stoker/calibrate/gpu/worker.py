"""Runs cases in a process of its own, so that one that crashes the GPU's context or hangs costs itself only."""

import time

from ...measure import fresh

IMPORT_LIMIT_S = 180


class NoStart(Exception):
    """The process did not come up."""


class Worker:
    """A process that measures (child.py); one that dies or hangs costs its case and is replaced."""

    def __init__(self, module="stoker.calibrate.gpu.child", folder=None):
        self._child, self._module, self._folder = None, module, folder

    def start(self, limit_s=IMPORT_LIMIT_S):
        """Waits until PyTorch is imported, so that no case pays for it; NoStart after `limit_s` seconds."""
        if self._child is not None and self._child.lives():
            return
        self.close()
        self._child = fresh.Child(self._module, folder=self._folder)
        try:
            self._child.hear(time.monotonic() + limit_s)
        except fresh.TimeUp:
            self.close()
            raise NoStart(f"importing PyTorch takes longer than {limit_s:.0f} s here") from None
        except fresh.Died:
            pass  # the first case says so

    def run(self, case, timeout):
        """The rows of a case; none when it was not finished within `timeout` seconds, its process's start among them."""
        end = time.monotonic() + timeout
        try:
            self.start(min(IMPORT_LIMIT_S, timeout))
        except NoStart:
            return []
        try:
            self._child.tell(case)
            return self._child.hear(end)
        except fresh.TimeUp:
            self.close()
            return []
        except fresh.Died:
            why = self._child.why()
            self.close()
            return [{"status": "failed", "note": why}]

    def pid(self):
        """The id of the process that measures at the moment; 0 where there is none."""
        return self._child.pid if self._child is not None else 0

    def close(self):
        if self._child is not None:
            self._child.close()
            self._child = None
