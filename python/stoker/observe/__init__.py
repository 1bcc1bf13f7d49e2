"""Records where the time of a training loop goes: stoker.Observer, stoker.observe_step, stoker.read_observation.

Needs neither the stoker binary nor, for a loop without it, PyTorch.
"""

from __future__ import annotations

from .layout import ObservationError
from .observer import Observer, observe_step
from .reader import Observation, read_observation
from .summary import Summary, summarise

__all__ = ["Observation", "ObservationError", "Observer", "Summary", "observe_step", "read_observation", "summarise"]
