"""The first samples: what they are, what they take, and which the loader asks for."""

from __future__ import annotations

import dataclasses
import statistics

from ..errors import ProbeError, UserCodeError
from . import findings as finding
from . import passes

_MOST = 0.5  # share of the budget: a slow first sample is a cold file or a lazy import
_SLOW_FIRST = 0.2  # share of the budget in which a first sample comes that is no measure of others


@dataclasses.dataclass
class FirstLook:
    """What the later passes go by."""

    plan: list | None  # batches of indices as the loader asks for them; None of an IterableDataset
    order: dict | None  # where they lie in the epoch, where that is the same in every epoch
    sampler_ms: float  # until the sampler gives its first batch
    sample: dict  # what a sample is: "output" for people, "bytes"
    walls: list  # ms of samples anywhere in the data set
    samples: int | None  # of an epoch

    @property
    def wall_ms(self) -> float:
        return statistics.fmean(self.walls)


def look(source, children, findings) -> FirstLook:
    """Raises ProbeError where there is nothing to measure, UserCodeError where the user's own code fails."""
    outcome = children.run("first sample", lambda send: passes.first_look(
        source, send, slow_s=_SLOW_FIRST * children.budget), children.budget * _MOST)
    speed, failures = outcome.last("speed"), outcome.last("failures")
    if outcome.end == "error":
        raise UserCodeError(f"{source.name}: making its first batch failed ({outcome.error['message']}); correct "
                            "the code named in the traceback above", outcome.error["traceback"])
    if any(kind == "no batches" for kind, _ in outcome.messages):
        raise ProbeError(f"{source.name}: its sampler gives no index: check the sampler of the DataLoader")
    if speed is None:
        refuse(source, outcome, failures, children.budget)
    found = FirstLook(outcome.last("plan"), outcome.last("order"), outcome.last("sampler") or 0.0, outcome.last("sample"),
                      speed["walls"], outcome.last("sampled") or source.epoch_samples)
    if source.own_batches and not isinstance(getattr(source.sampler, "batch_size", None), int):
        source.batch = max(1, round(statistics.fmean(len(batch) for batch in found.plan)))
    findings.sampler(source, found.sampler_ms)
    findings.effects(outcome, source)
    findings.first_sample(found.sample["first_wall_ms"], found.wall_ms)
    return found


def refuse(source, outcome, failures, budget_s: float) -> None:
    """Not one sample: says why."""
    if failures is not None and failures[0]:
        first = failures[1]
        raise UserCodeError(
            f"{source.name}: none of {failures[0]} samples could be made; index {first['index']} raised "
            f"{first['error']}; correct the code named in the traceback above", first["traceback"])
    if outcome.end == "time":
        raise ProbeError(f"{source.name}: one sample took more than {budget_s * _MOST:.0f} s, half of the "
                         f"budget: give --budget {4 * budget_s:.0f}s, or make samples cheaper")
    if outcome.end in ("signal", "exit"):
        raise ProbeError(f"{source.name}: the process that made the first sample did not come back: "
                         f"{outcome.why()}{finding.advice_for_death(outcome)}")
    raise ProbeError(f"{source.name} gives no sample: check the list or stream that it reads")
