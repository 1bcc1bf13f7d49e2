"""stoker.report(): one line for each report, in the file that the trial's runner reads."""

from __future__ import annotations

import json
import math
import os
import pathlib
import time
from typing import Any

REPORTS = "STOKER_REPORTS"  # set by the runner of a trial: the file that reports are added to
CHECKPOINTS = "STOKER_CHECKPOINT_DIR"  # set by the runner of a trial
SHARE = "STOKER_SHARE"  # set by `stoker tune`, as those below
LAST_STEP = "STOKER_LAST_STEP"  # 0 or none: to the trial's own end
METRIC = "STOKER_METRIC"


def in_trial() -> bool:
    """Whether this process belongs to a trial of `stoker sweep`."""
    return bool(os.environ.get(REPORTS))


def report(*, step: float | None = None, epoch: float | None = None, samples: float | None = None, **metrics: Any) -> bool:
    """Reports what a training loop has reached, and says whether the study wants it to end; outside of a trial it does nothing.

    step, epoch  where the loop is, both may be left out
    samples      how many samples were processed since the last report: throughput comes from it
    metrics      loss=0.3, accuracy=0.9: numbers, or tensors and arrays of one element

    True: enough is known of these settings (`stoker tune`). Save what is to be saved and leave the loop; one that goes on is
    sent SIGTERM. Of several ranks the first alone reports (RANK, SLURM_PROCID), and the answer to it is what all have to
    follow: broadcast it. A report costs some ten microseconds, never raises and never waits for the disk; reading a tensor
    on a GPU waits for that GPU, so report every few steps.
    """
    path = os.environ.get(REPORTS)
    if not path or os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) not in ("", "0"):
        return False
    line = {"monotonic": time.monotonic()}
    for name, value in (("step", step), ("epoch", epoch), ("samples", samples), *metrics.items()):
        if value is not None:
            line[name] = _plain(value)
    data = (json.dumps(line) + "\n").encode()
    try:
        # One write to a file opened for appending: lines of several processes do not mix.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError:
        pass  # a full disk must not end the training
    return _enough(epoch if step is None else step, metrics) or os.path.exists(os.path.join(os.path.dirname(path), "stop"))


def checkpoint_dir() -> pathlib.Path | None:
    """Where a trial may keep what it needs to go on later, or finds what an earlier run of the same settings left; else None."""
    path = os.environ.get(CHECKPOINTS)
    if not path:
        return None
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def share() -> float:
    """The part of the data that this trial is to learn from, 1 for all of it."""
    try:
        return min(max(float(os.environ.get(SHARE) or 1), 0.0), 1.0) or 1.0
    except ValueError:
        return 1.0


def _enough(place, metrics: dict) -> bool:
    """Whether this report is the one that the trial was started for: of the study's metric, at the step where it is to pause."""
    try:
        last = float(os.environ.get(LAST_STEP) or 0)
        return 0 < last <= float(place) and os.environ.get(METRIC, "") in ("", *metrics)
    except (TypeError, ValueError):
        return False


def _plain(value):
    """A number that JSON has; what it has not ("nan", "inf") and what is no number as text."""
    try:
        number = float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        return str(value)[:100]
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return number if math.isfinite(number) else str(number)
