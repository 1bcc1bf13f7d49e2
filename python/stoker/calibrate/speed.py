"""How fast the machine is at the moment, by a fixed piece of work, and what else it does meanwhile."""

from __future__ import annotations

import os
import time

import torch

from ..loader_runs import machine

_GRAIN = 32768        # elements, from which on PyTorch gives work to another thread (at::internal::GRAIN_SIZE, ATen/TensorIterator.h)
_TIMES = 10
_READINGS = 3         # of which the least counts
_LEAST_READINGS = 5   # before any of them says what is usual
_MOST_KEPT = 2000
MAX_SLOWER = 0.08     # of the usual speed: clocks vary by a few per cent from one moment to the next, neighbours cost 20 and more


class Speed:
    """Readings of the reference work, which keeps as many threads busy as what is measured: it is as fast as the slowest core. A
    neighbour on the same physical core slows it by half or more, and no other clock of the machine shows that."""

    def __init__(self, usual_ms: dict | None = None):
        self._usual_before = {int(threads): ms for threads, ms in (usual_ms or {}).items()}
        self._tensors, self._seen = {}, {}

    def _once(self, threads: int) -> float:
        if threads not in self._tensors:
            self._tensors[threads] = torch.rand(threads * _GRAIN) + 0.5, torch.empty(threads * _GRAIN)
        (values, target), total = self._tensors[threads], 0
        start = time.perf_counter()
        for _ in range(_TIMES):  # operators that no library parallelises in its own way
            torch.div(values, values, out=target)
            torch.add(values, target, out=target)
        for i in range(1500):
            total += i ^ (total & 255)
        return 1e3 * (time.perf_counter() - start)

    def reading(self, threads: int = 1) -> float:
        """Milliseconds of the work just now; PyTorch has to be at so many threads."""
        found = min(self._once(threads) for _ in range(_READINGS))
        seen = self._seen.setdefault(threads, [])
        if len(seen) < _MOST_KEPT:
            seen.append(found)
        return found

    def usual(self, threads: int = 1) -> float:
        """The lower quartile of all readings, of an earlier run's too: the speed when no neighbour is on the same cores."""
        ordered, before = sorted(self._seen.get(threads, [])), self._usual_before.get(threads)
        if len(ordered) < _LEAST_READINGS:
            return before or (ordered[0] if ordered else 0.0)
        found = ordered[len(ordered) // 4]
        return min(found, before) if before else found

    def all_usual(self) -> dict:
        """By number of threads, for the file."""
        return {str(threads): round(self.usual(threads), 5) for threads in sorted({*self._seen, *self._usual_before})}

    def is_slow(self, reading_ms: float, threads: int = 1) -> bool:
        return reading_ms > self.usual(threads) * (1 + MAX_SLOWER)


def cpu_seconds(pid: int) -> float:
    """CPU time of a living process; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Load:
    """Shares of the cores' time that other processes and the hypervisor took, over the whole run and earlier ones. `helper` tells the
    process id of a child that measures for this process: its time is no other's, also while it lives; 0 where there is none."""

    def __init__(self, before: dict | None = None, helper=lambda: 0):
        before, self._helper = before or {}, helper
        self._seconds = before.get("seconds", 0.0)
        self._foreign = before.get("foreign_share", 0.0) * self._seconds
        self._steal = before.get("steal_share", 0.0) * self._seconds
        self.mark = self._usage()

    def _usage(self) -> dict:
        now = machine.usage()
        return {**now, "own": now["own"] + cpu_seconds(self._helper())}

    def lap(self) -> tuple:
        """(share of others, share stolen) since the last lap."""
        now = self._usage()
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
