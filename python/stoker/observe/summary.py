"""From rows to figures: step time, throughput, where the time goes. One struct, formatted by text.py and the JSON."""

from __future__ import annotations

import dataclasses
import statistics

from . import layout
from .recorded import Recorded

WARM_UP_STEPS = 10
WARM_UP_SHARE = 5  # one in five, where the run is shorter than 50 steps
CLOCK_JUMP_S = 1.0

RULE = (f"the first {WARM_UP_STEPS} training steps are left out, of fewer than {WARM_UP_STEPS * WARM_UP_SHARE} the "
        f"first {100 // WARM_UP_SHARE} %; so are steps that were aborted, not closed or timed by a clock that went back")


@dataclasses.dataclass
class Spread:
    """Milliseconds, over the steps that count."""

    median: float
    p95: float
    mean: float


@dataclasses.dataclass
class PhaseTimes:
    name: str
    ms: Spread
    share: float  # its part of all the time of the steps that count, 0 to 1
    seen: int  # steps in which it was


@dataclasses.dataclass
class Summary:
    """What a recording says. Times are the device's where it has them (`clock`), else the host's."""

    file: str
    rule: str
    clock: str  # "host" or "device"
    recorded: int  # rows of the file
    steps: int  # training steps that count
    warm_up: int
    validation: int
    ends: dict  # how many rows ended otherwise than well, by how
    step: Spread | None  # from the end of one training step to the end of the next: waiting included
    inside: Spread | None  # within the step alone
    host_step: Spread | None
    samples_per_step: float | None
    samples_per_s: float | None
    phases: list
    accumulate: float | None  # forward passes a step
    memory: dict
    own_us: float | None  # what the recording cost a step, writing included
    complete: bool
    lost: int
    damaged: list
    clock_jump_s: float | None
    notes: dict
    exceptions: dict

    def share(self, name: str) -> float:
        return next((phase.share for phase in self.phases if phase.name == name), 0.0)


def percentile(values: list, share: float) -> float:
    """Linear between the two nearest ranks."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(nanoseconds: list) -> Spread | None:
    if not nanoseconds:
        return None
    values = [value / 1e6 for value in nanoseconds]
    return Spread(statistics.median(values), percentile(values, 0.95), statistics.fmean(values))


def warm_up_of(steps: int) -> int:
    return WARM_UP_STEPS if steps >= WARM_UP_STEPS * WARM_UP_SHARE else steps // WARM_UP_SHARE


def summarise(found: Recorded) -> Summary:
    train = [row for row in found.rows if row["kind"] == layout.TRAIN]
    warm_up = warm_up_of(len(train))
    used = [row for row in train[warm_up:] if row["end"] in (layout.OK, layout.SKIPPED)]
    timed = [row for row in used if row["device_total_ns"] is not None] if found.on_device else used
    on_device = found.on_device and len(timed) > 0
    prefix = "device_" if on_device else ""
    rows = timed if on_device else used
    whole = [row[f"{prefix}gap_ns"] + row[f"{prefix}total_ns"] for row in rows]
    samples = [row["samples"] for row in used if row["samples"]]
    elapsed = sum(row["gap_ns"] + row["total_ns"] for row in used)
    forwards = [row["forwards"] for row in used if row["forwards"]]
    ends = {}
    for row in found.rows:
        if row["end"] != layout.OK:
            ends[row["end"]] = ends.get(row["end"], 0) + 1
    exceptions = {}
    for error in found.exceptions:
        exceptions[error["type"]] = exceptions.get(error["type"], 0) + 1
    end = found.end or {}
    return Summary(
        file=found.file, rule=RULE, clock="device" if on_device else "host", recorded=len(found.rows), steps=len(used),
        warm_up=warm_up, validation=sum(row["kind"] == layout.VALIDATION for row in found.rows), ends=ends,
        step=spread(whole),
        inside=spread([row[f"{prefix}total_ns"] for row in rows]),
        host_step=spread([row["gap_ns"] + row["total_ns"] for row in used]) if on_device else None,
        samples_per_step=statistics.fmean(samples) if samples else None,
        samples_per_s=sum(samples) / elapsed * 1e9 if samples and elapsed and len(samples) == len(used) else None,
        phases=_phases(found, rows, prefix, sum(whole)), accumulate=statistics.fmean(forwards) if forwards else None,
        memory=_memory(found), own_us=_own(found, used), complete=found.end is not None,
        lost=max([end.get("lost", 0)] + [block["lost"] for block in found.blocks]), damaged=found.damaged,
        clock_jump_s=_clock_jump(found), notes=dict(end.get("notes", {})), exceptions=exceptions)


def _phases(found: Recorded, rows: list, prefix: str, whole: int) -> list:
    phases = []
    for name in found.phases:
        values = [row.get(f"{prefix}{name}_ns") for row in rows]
        seen = [value for value in values if value]
        over = spread(values)
        if whole and over and (seen or name in ("other", "own")):
            phases.append(PhaseTimes(name, over, sum(seen) / whole, len(seen)))
    return phases


def _memory(found: Recorded) -> dict:
    most = {}
    for reading in found.memory:
        for name, value in reading.items():
            if name != "step" and value is not None:
                most[name] = max(value, most.get(name, 0))
    return most


def _own(found: Recorded, used: list) -> float | None:
    """Microseconds a step between steps; the marks within steps are below what can be told from them."""
    if not used:
        return None
    return sum(row["own_ns"] for row in used) / len(used) / 1e3


def _clock_jump(found: Recorded) -> float | None:
    """How far the wall clock moved against the monotonic one between two blocks: set by hand, or the machine slept."""
    jump = 0.0
    for before, after in zip(found.blocks, found.blocks[1:]):
        if isinstance(before.get("wall_s"), (int, float)) and isinstance(after.get("wall_s"), (int, float)):
            drift = (after["wall_s"] - before["wall_s"]) - (after["clock_ns"] - before["clock_ns"]) / 1e9
            jump = drift if abs(drift) > abs(jump) else jump
    return round(jump, 1) if abs(jump) >= CLOCK_JUMP_S else None
