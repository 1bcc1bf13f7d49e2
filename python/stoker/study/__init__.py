"""What a trial of a study tells the study that runs it: stoker.report. Needs nothing but Python."""

from __future__ import annotations

from .reporting import checkpoint_dir, in_trial, report, share

__all__ = ["checkpoint_dir", "in_trial", "report", "share"]
