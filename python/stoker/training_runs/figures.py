"""From the recording of a repetition to its figures."""

from __future__ import annotations

import statistics

from ..observe import read_observation
from ..observe.layout import OK, SKIPPED
from ..observe.summary import percentile

# The rows' names of the observer's phases; "other" is what none covers: zero_grad, and the loop itself.
PHASES = {"forward": "forward_ms", "loss": "loss_ms", "backward": "backward_ms", "optimizer": "optimizer_ms", "h2d": "h2d_ms",
          "wait": "data_ms", "other": "other_ms"}
_COPIED = ("steps", "timed_s", "resident_peak_bytes", "resident_before_bytes", "resident_after_bytes", "faults_per_step",
           "allocated_peak_bytes", "reserved_peak_bytes", "device_peak_bytes", "context_bytes", "foreign_share", "steal_share")


def _milliseconds(values: list) -> float:
    return round(statistics.median(values) / 1e6, 6)


def of(path: str, answer: dict) -> dict:
    """The repetition's row. The steps of the warm-up are left out; what the recording itself took is taken off."""
    found = read_observation(path)
    timed = [row for row in found.rows if row["step"] >= answer["warm_up"] and row["end"] in (OK, SKIPPED)]
    on_device = found.on_device and all(row["device_total_ns"] is not None for row in timed)
    prefix = "device_" if on_device else ""
    whole = [row[f"{prefix}gap_ns"] + row[f"{prefix}total_ns"] - row[f"{prefix}own_ns"] for row in timed]
    half = len(whole) // 2
    drift = statistics.median(whole[half:]) / statistics.median(whole[:half]) - 1 if half else 0.0
    return {"step_ms": _milliseconds(whole), "step_ms_p95": round(percentile(whole, 0.95) / 1e6, 6),
            "phases": {name: _milliseconds([row[f"{prefix}{phase}_ns"] for row in timed]) for phase, name in PHASES.items()},
            "clock": "device" if on_device else "host", "drift": round(drift, 4),
            **{name: answer[name] for name in _COPIED if name in answer}}
