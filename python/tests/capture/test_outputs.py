"""What a model may return: the loss is found in it, or its tensors are summed, which the file says."""

import collections
import dataclasses

import pytest
import torch
from torch import nn

import steps

Pair = collections.namedtuple("Pair", "loss logits")


@dataclasses.dataclass
class Fields:
    logits: torch.Tensor
    aux: list


class Attributes:
    def __init__(self, **values):
        self.__dict__.update(values, own=self)


class Returns(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.linear, self.wrap = nn.Linear(8, 3), wrap

    def forward(self, x):
        return self.wrap(self.linear(x))


def parts(out):
    yield out.mean()
    yield out.pow(2)


@pytest.mark.parametrize(("wrap", "summed"), [
    (lambda out: Pair(out.mean(), out), False),
    (lambda out: Attributes(loss=out.mean(), logits=out), False),
    (lambda out: {"loss": out.mean()}, False),
    (lambda out: Fields(out.view(-1, 1, 3), [out]), True),
    (lambda out: Attributes(logits=out, inner=Attributes(more=out)), True),
    (lambda out: {"loss_a": out.mean(), "loss_b": out.pow(2).mean()}, True),
    (parts, True),
])
def test_a_loss_is_found_or_made(wrap, summed):
    doc = steps.check(steps.capture((Returns(wrap), torch.empty(4, 8))))
    assert all("gradient" in p for p in doc["parameters"])
    assert any("the sum of the outputs stands in" in text for text in doc["diagnostics"].get("unfaithful", [])) == summed


def test_a_generator_that_a_loss_consumes_runs_there():
    doc = steps.check(steps.capture((Returns(parts), torch.empty(4, 8), lambda out: sum(part.sum() for part in out))))
    assert all("gradient" in p for p in doc["parameters"]) and "unfaithful" not in doc["diagnostics"]
