"""The reference kernel: a fixed piece of work whose time tells how fast the machine is at the moment.

Neighbours on the same physical core slow it by half or more, and show on no other clock.
"""

from __future__ import annotations

import dataclasses
import os
import time

_GRAIN = 32768  # elements from which on PyTorch gives work to another thread (at::internal::GRAIN_SIZE, ATen/TensorIterator.h)
_LEAST = 8      # readings, before any of them says what is usual
_PAUSE_S = 0.05
_SEED = 7


@dataclasses.dataclass(frozen=True)
class Work:
    """The parts of the work; those of 0 are left out. Files compare their readings, so a work stays as it is."""

    loops: int               # additions in the interpreter
    sorted: int = 0          # numbers that are copied and sorted
    product: int = 0         # side of two matrices that are multiplied
    moved: int = 0           # numbers that are increased in place ...
    moves: int = 0           # ... so often
    divided: int = 0         # divisions and additions of whole tensors, a grain of numbers for each thread
    with_numpy: bool = False # makes no threads, so that a process that forks others may do it


# A worker's mixture: interpreter, arithmetic and memory traffic, 10 ms.
LOADING = Work(loops=60_000, sorted=200_000, moved=1 << 20, moves=4, with_numpy=True)
# The mixture of LOADING in 3 ms, for use between batches.
SAMPLES = Work(loops=12_000, sorted=40_000, moved=1 << 18, moves=4)
# A training step's: a product of matrices of about a millisecond, and memory traffic.
TRAINING = Work(loops=10_000, product=320, moved=1 << 20, moves=3)
# An operator's, which keeps all threads busy, in well under a millisecond. No library parallelises these in its own way.
OPERATORS = Work(loops=1500, divided=10)


def interpreter(loops: int) -> int:
    """Additions that no compiler takes apart."""
    total = 0
    for i in range(loops):
        total += i ^ (total & 255)
    return total


class Kernel:
    """The work on operands of its own, made once. Its time is CPU time of this thread, or wall time with several threads."""

    def __init__(self, work: Work, threads: int = 1):
        self._work = work
        self._clock = time.perf_counter if work.divided else time.thread_time
        self._parts = list(_numpy_parts(work) if work.with_numpy else _torch_parts(work, threads))

    def once(self) -> float:
        """Milliseconds of the work, done once."""
        start = self._clock()
        interpreter(self._work.loops)
        for part in self._parts:
            part()
        return (self._clock() - start) * 1e3

    def milliseconds(self, times: int = 5) -> float:
        """The least of a few: whatever disturbs it only adds."""
        return min(self.once() for _ in range(times))

    def usual(self, seconds: float = 2.0) -> float:
        """The lower quartile over some time: the speed when no neighbour is on the same physical core."""
        until, found = time.monotonic() + seconds, []
        while time.monotonic() < until or len(found) < _LEAST:
            found.append(self.milliseconds(3))
            time.sleep(_PAUSE_S)
        return sorted(found)[len(found) // 4]

    def settle(self, most_ms: float, patience_s: float = 4.0) -> bool:
        """Waits until the work takes no more than `most_ms` again: neighbours on the same physical cores come and go.
        False: it did not within `patience_s`."""
        until = time.monotonic() + patience_s
        while self.milliseconds(3) > most_ms:
            if time.monotonic() > until:
                return False
            time.sleep(2 * _PAUSE_S)
        return True


class OnEachCore(Kernel):
    """The work on each of a few cores in turn; the slowest one tells."""

    _MOST = 4  # cores that are looked at

    def __init__(self, work: Work):
        super().__init__(work)
        usable = sorted(os.sched_getaffinity(0))
        self.cores = usable[::max(1, len(usable) // self._MOST)][:self._MOST]

    def milliseconds(self, times: int = 5) -> float:
        allowed, slowest = os.sched_getaffinity(0), 0.0
        try:
            for core in self.cores:
                os.sched_setaffinity(0, {core})
                slowest = max(slowest, super().milliseconds(times))
        finally:
            os.sched_setaffinity(0, allowed)
        return slowest


def _numpy_parts(work: Work):
    import numpy as np

    values, large = np.random.default_rng(_SEED).random(work.sorted), np.zeros(work.moved)

    def move():
        nonlocal large
        for _ in range(work.moves):
            large += 1.0

    yield lambda: values.copy().sort()
    yield move


def _torch_parts(work: Work, threads: int):
    import torch

    made = torch.Generator().manual_seed(_SEED)
    if work.sorted:
        values = torch.rand(work.sorted, generator=made)
        yield values.sort
    if work.product:
        left, right = (torch.rand(work.product, work.product, generator=made) for _ in range(2))
        product = torch.empty(work.product, work.product)
        multiply = torch.mm  # bound here: a test's spy on torch.mm is not called
        yield lambda: multiply(left, right, out=product)
    if work.moved:
        large = torch.zeros(work.moved)
        yield lambda: [large.add_(1.0) for _ in range(work.moves)]
    if work.divided:
        positive, target = torch.rand(threads * _GRAIN, generator=made) + 0.5, torch.empty(threads * _GRAIN)

        def divide():
            for _ in range(work.divided):
                torch.div(positive, positive, out=target)
                torch.add(positive, target, out=target)

        yield divide
