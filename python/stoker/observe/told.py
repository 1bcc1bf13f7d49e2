"""What stoker.observe_step recorded, told to the study that this process is a trial of."""

from __future__ import annotations

from ..study.reporting import report


def tell(path: str) -> None:
    """Reports step time, throughput and the share of each phase, all without the warm-up, from the recording's file.

    A recording that cannot be read costs its figures and never the training."""
    from .layout import ObservationError
    from .reader import read_observation
    from .summary import summarise

    try:
        summary = summarise(read_observation(path))
    except (ObservationError, OSError, ValueError):
        return
    if summary.step is None:
        return
    figures = {"step_ms": summary.step.median}
    if summary.samples_per_s is not None:
        figures["samples_per_s"] = summary.samples_per_s
    for phase in summary.phases:
        figures[f"{phase.name}_percent"] = 100 * phase.share
    report(**figures)
