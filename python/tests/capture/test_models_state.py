"""A capture leaves the model as it was, and models without parameters or with caches of their own are captured."""

import copy

import pytest
import torch
from torch import nn

from steps import capture, check, operators
from stoker import Capture
from stoker.errors import CaptureError


class Functional(nn.Module):
    """Operations and no parameter."""

    def forward(self, x):
        return torch.relu(x @ x.transpose(1, 2)).mean(1)


class Caching(nn.Module):
    """Makes a table at its first call and keeps it, as rotary embeddings and causal masks often do."""

    def __init__(self):
        super().__init__()
        self.linear, self.table, self.by_size = nn.Linear(8, 8), None, {}

    def forward(self, x):
        if self.table is None:
            self.table = torch.ones(32, 8, device=x.device)
        if x.shape[0] not in self.by_size:
            self.by_size[x.shape[0]] = torch.ones(x.shape[0], 1, device=x.device)
        return self.linear(x) * self.by_size[x.shape[0]] + self.table.sum(0)


def test_without_parameters_inference_is_captured_and_training_needs_an_input_that_does(on_cuda):
    inference = check(capture(Capture(Functional(), torch.empty(4, 8, 8)), mode="inference"))
    assert inference["parameters"] == []
    with pytest.raises(CaptureError, match="no training step: capture with --mode inference, or set requires_grad"):
        capture(Capture(Functional(), torch.empty(4, 8, 8)))
    pictures = torch.empty(4, 8, 8, requires_grad=True)  # an adversarial example
    doc = check(capture(Capture(Functional(), pictures, lambda out: out.sum())))
    kinds = [kind for _, kind in doc["storages"]]
    assert doc["parameters"] == [] and kinds.count("gradient") == 0
    last = [s for s in doc["storages"] if s[1] == "output"][-1]
    assert last == [{"batch": 4 * 64}, "output"], "the input's gradient goes with the input"


def test_what_a_model_caches_in_its_first_step_stays(on_cuda):
    doc = check(capture(Capture(Caching(), torch.empty(4, 8))))
    assert [s for s in doc["storages"] if s[1] == "persistent"] == [[4 * 32 * 8, "persistent"], [{"batch": 4}, "persistent"]]


def test_a_captured_model_can_be_trained_afterwards(on_cuda):
    model = Caching().eval()
    before = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture(Capture(model, torch.empty(4, 8), optimizer=optimizer))
    assert all(p is before[name] for name, p in model.named_parameters())
    assert optimizer.param_groups[0]["params"] == list(model.parameters())
    assert model.table is None and model.by_size == {} and not model.training
    assert model(torch.ones(2, 8)).shape == (2, 8)


def test_a_capture_that_fails_leaves_the_model_as_well(on_cuda):
    model = Caching()
    weight = model.linear.weight
    with pytest.raises(CaptureError):
        capture(Capture(model, torch.empty(4, 8), lambda out: out))
    assert model.linear.weight is weight and model.by_size == {}


class Teaching(nn.Module):
    """Copies itself at its first call, and learns from the copy, which follows it slowly."""

    def __init__(self):
        super().__init__()
        self.net, self.held = nn.Linear(64, 32), []

    def forward(self, x):
        if not self.held:
            self.held.append(copy.deepcopy(self.net).requires_grad_(False))
        with torch.no_grad():
            for mean, weight in zip(self.held[0].parameters(), self.net.parameters()):
                mean.lerp_(weight, 0.01)
            told = self.held[0](x)
        return nn.functional.mse_loss(self.net(x), told)


def test_views_of_a_copy_made_within_the_step_take_no_memory(on_cuda):
    doc = check(capture(lambda: (Teaching(), torch.randn(8, 64))))
    names = [row["name"] for row in operators(doc)]
    assert names.count("aten::lerp_.Scalar") == 2 and names.count("aten::addmm") == 2
    assert "aten::t" not in names
