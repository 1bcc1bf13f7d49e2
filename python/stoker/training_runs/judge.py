"""When a repetition counts: the rule, and the piece of work that tells how fast the machine is."""

from __future__ import annotations

import os
import time

from ..loader_runs import machine

AGREEMENT = 0.05  # between the two best repetitions of a run
NEEDED = 2  # good repetitions of a run
# Of the fastest reading of the reference kernel in the whole file. Steps of 36 runs agreed within 5 % while it ran at 0.79 to 1 of that.
SLOWEST = 0.75
MAX_DRIFT = 0.10  # between the medians of a repetition's first and second half: clocks that change, memory that fills
RULE = (f"A repetition is thrown away when other processes used more than {machine.MAX_FOREIGN:.0%} of the cores' time while "
        f"its steps were timed, when the hypervisor took more than {machine.MAX_STEAL:.0%}, when the reference kernel ran "
        f"slower than {SLOWEST:.0%} of its best in this file, when the second half of its steps took {MAX_DRIFT:.0%} more or less "
        "than the first, or when others were on the GPU. A run needs "
        f"{NEEDED} good repetitions whose median steps agree within {AGREEMENT:.0%}. The best good repetition's step counts, "
        "and the median of the peaks.")
_SIDE = 320  # of the matrices: about a millisecond of arithmetic
_MOST_CORES = 4  # that are looked at


class Reference(machine.Reference):
    """The interpreter, a product of matrices and memory traffic, on each of a few cores; the slowest one tells."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        made = torch.Generator().manual_seed(7)
        self.left, self.right = (torch.rand(_SIDE, _SIDE, generator=made) for _ in range(2))
        self.product = torch.empty(_SIDE, _SIDE)
        self.large = torch.zeros(1 << 20)
        self._multiply = torch.mm
        usable = sorted(os.sched_getaffinity(0))
        self.cores = usable[::max(1, len(usable) // _MOST_CORES)][:_MOST_CORES]

    def _once(self) -> float:
        start = time.thread_time()
        total = 0
        for i in range(10_000):
            total += i ^ (total & 255)
        self._multiply(self.left, self.right, out=self.product)
        for _ in range(3):
            self.large.add_(1.0)
        return (time.thread_time() - start) * 1e3

    def milliseconds(self, times: int = 5) -> float:
        allowed = os.sched_getaffinity(0)
        slowest = 0.0
        try:
            for core in self.cores:
                os.sched_setaffinity(0, {core})
                slowest = max(slowest, min(self._once() for _ in range(times)))
        finally:
            os.sched_setaffinity(0, allowed)
        return slowest


def objections(row: dict, others_on_gpu: bool) -> list:
    """Why a repetition does not count, by RULE; empty: it does."""
    found = machine.objections(row["foreign_share"], row["steal_share"], 1.0)
    if row["speed"] < SLOWEST:
        found.append(f"the reference kernel ran at {row['speed']:.3f} of its best speed")
    if abs(row["drift"]) > MAX_DRIFT:
        found.append(f"the second half of its steps took {row['drift']:+.0%} of the first's time")
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
