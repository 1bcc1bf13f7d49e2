"""What a trial of a study tells the study that runs it: stoker.report. Needs nothing but Python."""

from __future__ import annotations

from .reporting import in_trial, report

__all__ = ["in_trial", "report"]
