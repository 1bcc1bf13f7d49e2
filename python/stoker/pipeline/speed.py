"""Which batches were made while the machine was as fast as usual."""

from __future__ import annotations

import time

from ..measure import reference

_EVERY_S = 0.1  # the reference kernel runs at most that often
SLOWED = 1.05  # times the usual: a batch made then does not count
_FEWEST = 0.4  # share of the batches that counts in any case


class Recent:
    """The reference kernel's time as it is at the moment, read between batches."""

    def __init__(self):
        self._kernel = reference.Kernel(reference.SAMPLES)
        self._last, self._ms = 0.0, None

    def ms(self) -> float:
        """CPU time now, measured anew at most ten times a second."""
        if self._ms is None or time.monotonic() - self._last > _EVERY_S:
            self._ms = self._kernel.milliseconds(2)
            self._last = time.monotonic()
        return self._ms


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
