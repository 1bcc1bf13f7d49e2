"""Fresh processes for cases, one of them always importing PyTorch ahead of its turn."""

import time

from ...measure import fresh


class Pool:
    """run() gives the row of one case; a child that dies or takes too long is a row as well."""

    def __init__(self):
        self._spare = self._start()

    @staticmethod
    def _start():
        return fresh.Child("stoker.surveys.memory.child")

    def run(self, case, timeout):
        child, self._spare = self._spare, self._start()
        with child:
            try:
                child.tell(case)
                return child.hear(time.monotonic() + timeout)
            except fresh.TimeUp:
                return {"status": "failed", "note": f"took longer than {timeout:.0f} s"}
            except fresh.Died:
                return {"status": "failed", "note": child.why()[:300]}

    def close(self):
        self._spare.close()
