"""When a repetition of a training counts."""

from __future__ import annotations

from ..measure import contention
from ..plain import percent

AGREEMENT = 0.05  # between the two best repetitions of a run
NEEDED = 2  # good repetitions of a run
# Share of the reference kernel's best speed in the whole file. Steps of 36 runs agreed within 5 % while it ran at 0.79 to 1 of that.
SLOWEST = 0.75
MAX_DRIFT = 0.10  # between the medians of a repetition's first and second half: clocks that change, memory that fills
RULE = (f"A repetition is thrown away when other processes used more than {percent(contention.MAX_OTHERS)} of the cores' time while "
        f"its steps were timed, when the hypervisor took more than {percent(contention.MAX_STEAL)}, when the reference kernel ran "
        f"slower than {percent(SLOWEST)} of its best in this file, when the second half of its steps took {percent(MAX_DRIFT)} more or "
        "less than the first, or when others were on the GPU. A run needs "
        f"{NEEDED} good repetitions whose median steps agree within {percent(AGREEMENT)}. Of these the fastest step counts, "
        "and the median of the peaks.")
SETTLED = 1.035 / SLOWEST  # times the best reading: no repetition begins while the kernel takes longer, for a while


def objections(row: dict, others_on_gpu: bool) -> list:
    """Why a repetition does not count, by RULE; empty: it does."""
    found = contention.objections(row["foreign_share"], row["steal_share"])
    if row["speed"] < SLOWEST:
        found.append(f"the reference kernel ran at {row['speed']:.3f} of its best speed")
    if abs(row["drift"]) > MAX_DRIFT:
        found.append(f"the second half of its steps took {'+' if row['drift'] > 0 else ''}{percent(row['drift'])} of the first's time")
    return found + (["other processes were on the GPU"] if others_on_gpu else [])


def judge(file: dict) -> None:
    """Judges every repetition by the fastest reading so far: the machine may have been slow when the file was begun."""
    for run in file["runs"]:
        for row in run["repetitions"]:
            row["speed"] = round(file["reference_ms"] / row["reference_ms"], 4)
            reasons = objections(row, row["others_on_gpu"])
            row.update(good=not reasons, why="; ".join(reasons))


def good(run: dict) -> list:
    return [r for r in run["repetitions"] if r["good"]]


def settled(run: dict, needed: int) -> bool:
    """Nothing more is to be measured: failed, out of memory, or enough good repetitions that agree."""
    if run["status"] in ("oom", "failed"):
        return True
    steps = sorted(r["step_ms"] for r in good(run))
    return len(steps) >= needed and steps[needed - 1] <= steps[0] * (1 + AGREEMENT)
