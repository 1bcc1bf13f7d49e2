"""Counters and flags that a model holds before its first step: read as they were made, reported, and overruled by --assume."""

import torch
from torch import nn

import steps
from stoker import model_build


class ActNorm(nn.Module):
    """Initialises itself in its first step."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("done", torch.tensor(0, dtype=torch.uint8))

    def forward(self, x):
        if self.done.item() == 0:
            x = x - x.detach().mean(0, keepdim=True)
            self.done.fill_(1)
        return self.linear(x)


class Queue(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("queue", torch.zeros(4, 64))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        out, at = self.linear(x), int(self.at)
        self.queue[:, at:at + len(x)] = out.detach().T
        self.at[0] = (at + len(x)) % 64
        return out @ self.queue.clone()


def subtracts(doc):
    return any(row["name"] == "aten::sub.Tensor" for row in steps.operators(doc))


def test_a_flag_is_what_it_was_made_with_and_the_other_branch_can_be_asked_for():
    first = steps.check(steps.capture(lambda: (ActNorm(), torch.empty(4, 8))))
    (place, value), = first["diagnostics"]["reads"].items()
    assert value == 0 and "test_counters.py:" in place and subtracts(first)
    later = steps.check(steps.capture(lambda: (ActNorm(), torch.empty(4, 8)), assume=[f"{place}=1"]))
    assert not subtracts(later) and later["diagnostics"]["reads"] == {place: 1}


def test_a_place_in_a_queue_is_the_first():
    doc = steps.check(steps.capture(lambda: (Queue(), torch.empty(4, 8))))
    assert list(doc["diagnostics"]["reads"].values()) == [0]


def test_batch_norm_that_averages_all_batches_needs_no_word():
    doc = steps.capture(lambda: (nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=None)), torch.empty(4, 8)))
    assert "reads" not in doc["diagnostics"] or list(doc["diagnostics"]["reads"].values()) == [1.0]


def test_values_are_kept_of_small_tensors_of_whole_numbers_alone():
    def make():
        return torch.full((2,), 7), torch.zeros(5000, dtype=torch.long), torch.ones(2), torch.arange(3, device="cuda")

    seven, large, floats, counted = model_build.build(make)
    assert all(t.is_meta for t in (seven, large, floats, counted))
    assert model_build.initial_value(seven).tolist() == [7, 7] and model_build.initial_value(counted).tolist() == [0, 1, 2]
    assert model_build.initial_value(large) is None and model_build.initial_value(floats) is None
