"""What an observation file holds, shared by the recorder and the reader: docs/reference/observation-file.md in code."""

from __future__ import annotations

FORMAT = "stoker-observation"
SCHEMA_VERSION = (1, 0)

# Where a loop's time can be. "other" takes what no phase covers, "own" what the recording itself costs between steps.
OTHER, WAIT, H2D, FORWARD, LOSS, BACKWARD, OPTIMIZER, OWN = range(8)
PHASES = ("other", "wait", "h2d", "forward", "loss", "backward", "optimizer", "own")

TRAIN, VALIDATION = "train", "validation"
KINDS = (TRAIN, VALIDATION)

OK, EXCEPTION, UNCLOSED, SKIPPED, CLOCK = "ok", "exception", "unclosed", "skipped", "clock"
ENDS = (OK, EXCEPTION, UNCLOSED, SKIPPED, CLOCK)

COUNTS = ("samples", "forwards", "backwards", "optimizer_steps")
TEXTS = ("kind", "end")


class ObservationError(Exception):
    """Bad input. One sentence: what is wrong, where, and the cure."""


def phase_names(extra) -> tuple:
    """The built-in phases, then the user's own."""
    names = tuple(extra)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name in PHASES or names.count(name) > 1:
            raise ObservationError(f"phases={list(extra)!r}: each further phase needs a name of its own that is an "
                                   f"identifier and none of {', '.join(PHASES)}")
    return PHASES + names


def columns(phases, on_device: bool) -> list:
    """The names of a row's values, in order; the header repeats them."""
    names = ["step", "epoch", "kind", "end", "start_ns", "gap_ns", "total_ns"]
    names += [f"{phase}_ns" for phase in phases]
    names += COUNTS
    if on_device:
        names += ["device_gap_ns", "device_total_ns"] + [f"device_{phase}_ns" for phase in phases]
    return names
