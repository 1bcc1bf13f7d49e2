"""How fast the machine is at this moment. Neighbours on the same physical core slow it down and show on no clock."""

from __future__ import annotations

import time

import torch

_EVERY_S = 0.1  # at most that often
_LOOPS, _SORTED, _MOVED = 12_000, 40_000, 1 << 18  # each part takes about a millisecond
SLOWED = 1.05  # times the usual: a batch made then does not count
_FEWEST = 0.4  # share of the batches that counts in any case


class Kernel:
    """A fixed piece of work, mixed of interpreter, arithmetic and memory traffic, about 3 ms of CPU time."""

    def __init__(self):
        self._values = torch.rand(_SORTED, generator=torch.Generator().manual_seed(7))
        self._large = torch.zeros(_MOVED)
        self._last, self._ms = 0.0, None

    def ms(self) -> float:
        """CPU time now, measured anew at most ten times a second."""
        if self._ms is None or time.monotonic() - self._last > _EVERY_S:
            self._ms = min(self._once(), self._once())
            self._last = time.monotonic()
        return self._ms

    def _once(self) -> float:
        start = time.thread_time()
        total = 0
        for i in range(_LOOPS):
            total += i ^ (total & 255)
        self._values.sort()
        for _ in range(4):
            self._large.add_(1.0)
        return (time.thread_time() - start) * 1e3


def undisturbed(batches: list) -> list:
    """The batches made while the machine was as fast as usual (the lower quartile of the kernel's times).

    At least two in five: on a machine that is slow most of the time, that is what it is.
    """
    known = sorted(batch["kernel_ms"] for batch in batches if batch.get("kernel_ms"))
    if len(known) < 4:
        return batches
    limit = max(SLOWED * known[len(known) // 4], known[min(len(known) - 1, int(_FEWEST * len(known)))])
    return [batch for batch in batches if not batch.get("kernel_ms") or batch["kernel_ms"] <= limit]


def with_every_sample(counted: list, batches: list) -> list:
    """`counted`, and of the other batches those with a sample that no counted one holds.

    A sample that waits is longer in the way of a slow moment: left out with its batch, it would make the data set look faster.
    Samples of a stream have no index (-1), so nothing is known of them.
    """
    held = {row[0] for batch in counted for row in batch["rows"]}
    left_out = [batch for batch in batches if not any(batch is other for other in counted)]
    return counted + [batch for batch in left_out if any(row[0] != -1 and row[0] not in held for row in batch["rows"])]
