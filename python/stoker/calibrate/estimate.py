"""One figure and its spread out of repeated readings."""

from __future__ import annotations

import statistics

_NORMAL_QUARTILES = 1.349  # quartiles of a normal distribution lie so many standard deviations apart


def better_half(values: list) -> float:
    """The median of the smaller half: what disturbs a time only ever adds to it, and the least alone would be luck."""
    ordered = sorted(values)
    return statistics.median(ordered[:(len(ordered) + 1) // 2])


def spread(values: list) -> float:
    """Standard deviation over median, estimated from the quartiles, which a few disturbed readings leave alone."""
    if len(values) < 3:
        return 0.0 if len(values) < 2 else (max(values) - min(values)) / (2 * statistics.median(values))
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / (_NORMAL_QUARTILES * middle) if middle > 0 else 0.0
