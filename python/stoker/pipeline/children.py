"""The children in which a probe measures, and the time that is left for them."""

from __future__ import annotations

import time

from ..measure import forked

_KEEP_S = 0.3  # for putting it all together


class Children:
    """Runs work in children of this process, within a budget."""

    def __init__(self, budget_s: float, progress, warden):
        self.warden, self.budget, self._progress = warden, budget_s, progress
        self._start = time.monotonic()
        self._deadline = self._start + budget_s - min(_KEEP_S, 0.1 * budget_s)
        self.kept_s = 0.0  # of the budget, for what comes last

    def end(self) -> float:
        """The time.monotonic() by which everything but what comes last must be over."""
        return self._deadline - self.kept_s

    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.end() - time.monotonic())

    def share(self, share: float) -> float:
        """Seconds that a pass may take: that share of the budget, as far as it is left."""
        return min(share * self.budget, self.left())

    def tell(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, min(1.0, (time.monotonic() - self._start) / self.budget))

    def run(self, what: str, work, seconds: float, *, daemon: bool = True, grace: float = 0.5):
        """Runs work(send) in a child for at most `seconds` and a little more; how it ended."""
        return self._collected(what, [forked.Child(work, self.warden, daemon=daemon)], seconds + grace)[0]

    def run_at_once(self, what: str, works: list, seconds: float) -> list:
        """Runs each work(send) in a child, all at the same time; how they ended."""
        return self._collected(what, [forked.Child(work, self.warden, daemon=True) for work in works], seconds + 0.5)

    def _collected(self, what: str, children: list, seconds: float) -> list:
        self.tell(what)
        until = time.monotonic() + seconds
        return [child.collect(until, tick=lambda: self.tell(what)) for child in children]
