"""How fast the machine is at the moment, by a fixed piece of work, and what else it does meanwhile."""

from __future__ import annotations

import time

import torch

from ..loader_runs import machine

_ELEMENTS = 16384     # below PyTorch's grain of 32,768, and of operators that no library parallelises: one thread, whatever their number
_TIMES = 20
_READINGS = 3         # of which the least counts
_LEAST_READINGS = 5   # before any of them says what is usual
_MOST_KEPT = 2000
MAX_SLOWER = 0.08     # of the usual speed: clocks vary by a few per cent from one moment to the next, neighbours cost 20 and more


class Speed:
    """Readings of the reference work. A neighbour on the same physical core slows it by half or more, and no other clock of the
    machine shows it."""

    def __init__(self, usual_ms: float | None = None):
        self._values = torch.rand(_ELEMENTS) + 0.5
        self._target = torch.empty(_ELEMENTS)
        self._seen, self._usual_before = [], usual_ms
        self._once()

    def _once(self) -> float:
        values, target, total = self._values, self._target, 0
        start = time.perf_counter()
        for i in range(_TIMES):
            torch.div(values, values, out=target)
            torch.add(values, target, out=target)
        for i in range(1500):
            total += i ^ (total & 255)
        return 1e3 * (time.perf_counter() - start)

    def reading(self) -> float:
        """Milliseconds of the work just now."""
        found = min(self._once() for _ in range(_READINGS))
        if len(self._seen) < _MOST_KEPT:
            self._seen.append(found)
        return found

    def usual(self) -> float:
        """The lower quartile of all readings, of an earlier run's too: the speed when no neighbour is on the same core."""
        ordered = sorted(self._seen)
        found = ordered[len(ordered) // 4] if len(ordered) >= _LEAST_READINGS else None
        if found is None:
            return self._usual_before or (ordered[0] if ordered else 0.0)
        return min(found, self._usual_before) if self._usual_before else found

    def is_slow(self, reading_ms: float) -> bool:
        return reading_ms > self.usual() * (1 + MAX_SLOWER)

    def settle(self, patience_s: float) -> None:
        """Waits until the machine runs at its usual speed, or for so long."""
        until = time.monotonic() + patience_s
        while self.is_slow(self.reading()) and time.monotonic() < until:
            time.sleep(0.05)


class Load:
    """Shares of the cores' time that other processes and the hypervisor took, over the whole run and earlier ones."""

    def __init__(self, before: dict | None = None):
        before = before or {}
        self._seconds = before.get("seconds", 0.0)
        self._foreign = before.get("foreign_share", 0.0) * self._seconds
        self._steal = before.get("steal_share", 0.0) * self._seconds
        self.mark = machine.usage()

    def lap(self) -> tuple:
        """(share of others, share stolen) since the last lap."""
        now = machine.usage()
        foreign, steal = machine.foreign_between(self.mark, now)
        elapsed = now["wall"] - self.mark["wall"]
        self._seconds += elapsed
        self._foreign += foreign * elapsed
        self._steal += steal * elapsed
        self.mark = now
        return foreign, steal

    def shares(self) -> dict:
        total = max(self._seconds, 1e-9)
        return {"foreign_share": round(self._foreign / total, 4), "steal_share": round(self._steal / total, 4),
                "seconds": round(self._seconds, 1)}
