"""When a repetition of an epoch counts."""

from __future__ import annotations

from ..measure import contention
from ..plain import percent

# Written into the rows file as text (RULE), with the limits of contention.
MAX_SPEED = 0.05     # reference kernel's speed against that at calibration, either way
AGREEMENT = 0.05     # between a point's two best repetitions: neighbours on the same physical core show on no clock
SETTLED = 1 + 0.7 * MAX_SPEED  # times the reference kernel's time at calibration: no repetition begins above it, for a while
RULE = (f"A repetition is thrown away when other processes used more than {percent(contention.MAX_OTHERS)} of the cores' time, when "
        f"the hypervisor took more than {percent(contention.MAX_STEAL)}, when the reference kernel ran more than {percent(MAX_SPEED)} "
        "slower or faster than at calibration, when others used /dev/shm meanwhile, or when the epoch failed. A point needs two "
        f"good repetitions whose epochs agree within {percent(AGREEMENT)}; without them it is dropped and counted as such. Of the "
        "good ones the fastest counts.")


def objections(others: float, steal: float, speed: float) -> list:
    """Why a repetition does not count, by RULE; empty: it does."""
    reasons = contention.objections(others, steal)
    if abs(speed - 1) > MAX_SPEED:
        reasons.append(f"the reference kernel ran at {speed:.3f} of its usual speed")
    return reasons
