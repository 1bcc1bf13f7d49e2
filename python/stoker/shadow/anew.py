"""Why a capture begins anew, in another way."""

from __future__ import annotations

from ..errors import UserCodeError


class WantsRanks(Exception):
    """The script wants the variables that torchrun sets."""


class TrainsElsewhere(Exception):
    """The script trains in a process that it starts itself."""


class LoopsOverSamples(Exception):
    """Its operators grow in number with the batch: no file can answer for other batches."""


_MORE_A_SAMPLE = 0.05  # share of the operators of the smallest batch that another sample adds
_STRAIGHT = 1.5  # of the two slopes of a line the steeper one is less times the other


def check_loop(points, outcomes: list) -> None:
    """LoopsOverSamples where operators grow in number along a straight line with the batch, as those of a detector do."""
    low, high, check = (sum(event[0] == "o" for event in outcome.raw.events) for outcome in outcomes)
    a, b = (high - low) / (points[1] - points[0]), (check - high) / (points[2] - points[1])
    if min(a, b) > _MORE_A_SAMPLE * low and max(a, b) < _STRAIGHT * min(a, b):
        raise LoopsOverSamples


class NotCompiled(UserCodeError):
    """torch.compile failed: the script is tried without."""

    def __init__(self, site: str, error: str):
        super().__init__(error, "")
        self.site = site


class OnCpu(Exception):
    """The script trains on the CPU."""
