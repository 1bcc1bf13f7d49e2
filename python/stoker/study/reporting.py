"""stoker.report(): one line for each report, in the file that the trial's runner reads."""

from __future__ import annotations

import json
import math
import os
import time

REPORTS = "STOKER_REPORTS"  # set by the runner of a trial: the file that reports are added to


def in_trial() -> bool:
    """Whether this process belongs to a trial of `stoker sweep`."""
    return bool(os.environ.get(REPORTS))


def report(*, step=None, epoch=None, samples=None, **metrics) -> None:
    """Reports what a training loop has reached; outside of a trial it does nothing.

    step, epoch  where the loop is, both may be left out
    samples      how many samples were processed since the last report: throughput comes from it
    metrics      loss=0.3, accuracy=0.9: numbers, or tensors and arrays of one element

    Of several ranks the first alone reports (RANK, SLURM_PROCID). A report costs some ten microseconds, never raises and never
    waits for the disk; reading a tensor on a GPU waits for that GPU, so report every few steps.
    """
    path = os.environ.get(REPORTS)
    if not path or os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) not in ("", "0"):
        return
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


def _plain(value):
    """A number that JSON has; what it has not ("nan", "inf") and what is no number as text."""
    try:
        number = float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        return str(value)[:100]
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return number if math.isfinite(number) else str(number)
