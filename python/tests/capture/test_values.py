"""What a model reads on the host: real where it follows from no data, within the operator's range where it does, as --assume says."""

import random

import pytest
import torch
from torch import nn

import steps
from stoker import places
from stoker.errors import CaptureError, DataDependentError
from stoker.tracing import recorder, rows, values


class Model(nn.Module):
    """A linear layer and what `after` does with its output."""

    def __init__(self, after):
        super().__init__()
        self.linear, self.after = nn.Linear(8, 8), after

    def forward(self, x):
        return self.after(self.linear(x))


def capture(after, **settings):
    return steps.capture((Model(after), torch.empty(4, 8)), **settings)


def reads(doc):
    return list(doc["diagnostics"].get("reads", {}).values())


def test_random_choices_are_choices_that_there_are():
    seen = []

    def after(x):
        one = ["only"]
        seen.append(one[int(torch.empty(1).uniform_(0., float(len(one))).item())])
        seen.append(one[int(torch.rand(1, device=x.device) * len(one))])
        seen.append(list(range(3))[torch.randint(0, 3, (1,)).item()])
        assert sorted(torch.randperm(3).tolist()) == [0, 1, 2]
        assert 0 <= torch.multinomial(torch.tensor([0.2, 0.8]), 1).item() <= 1
        return x

    found = capture(after)
    assert len(reads(found)) == 5 and {type(value) for value in reads(found)} == {int, float}, "another step draws others: each is named"
    assert seen[:3] == seen[3:6] == seen[6:9], "each of the captures chooses the same"


def test_a_random_layer_is_named_and_another_can_be_asked_for():
    def after(x):
        return x.exp() if torch.randint(0, 2, (1,)).item() else x.tanh()

    found = capture(after)
    (place, drawn), = found["diagnostics"]["reads"].items()
    other = capture(after, assume=[f"{place}={1 - drawn}"])
    assert other["diagnostics"]["reads"] == {place: 1 - drawn}
    assert bool(steps.operators(found, "aten::exp")) == bool(drawn) and bool(steps.operators(other, "aten::exp")) != bool(drawn)


def test_what_is_written_down_is_read_as_it_is():
    def after(x):
        lengths = torch.tensor([5, 2, 7])
        assert lengths.max().item() == 7 and int(lengths.sum()) == 14 and (lengths > 4).tolist() == [True, False, True]
        steps_done = torch.zeros(())
        steps_done += 2
        assert steps_done.item() == 2
        return x[:, :lengths[1]]

    capture(after)


def test_what_depends_on_data_lies_within_the_operators_range():
    def after(x):
        assert 0 < torch.sigmoid(x.mean()).item() < 1
        assert torch.softmax(x, 1).max().item() <= 1
        assert torch.clamp(x.mean(), 0, 0.25).item() <= 0.25
        assert 0 <= x.sum(0).argmax().item() < 8
        assert 0 <= (x.argmax(1)[0] + 1).item() <= 8
        return x

    assert reads(capture(after)) == [0.5, 0.5, 0.25, 0, 1]


def test_a_write_of_unknown_data_makes_a_value_unknown():
    def after(x):
        counter = torch.zeros((), device=x.device)
        counter += x.sum()
        return x * counter.item()

    assert reads(capture(after)) == [1.0]


def branching(x):
    if torch.all(x == 1):
        return x
    return x.exp().relu()


def place_of(doc):
    (place,) = doc["diagnostics"]["reads"]
    return place


def test_the_branch_that_was_taken_is_named_and_the_other_can_be_asked_for():
    doc = capture(branching)
    place = place_of(doc)
    line = branching.__code__.co_firstlineno + 1
    assert place.endswith(f"test_values.py:{line}") and reads(doc) == [True]
    assert not steps.operators(doc, "aten::exp")
    other = capture(branching, assume=[f"test_values.py:{line}=false"])
    assert steps.operators(other, "aten::exp") and reads(other) == [False]


@pytest.mark.parametrize("item, words", [
    ("test_values.py:1=false", "reads no value at that line"), ("x.py=1", "write --assume FILE:LINE=VALUE"),
    ("x.py:3=perhaps", "is no value")])
def test_assumptions_that_mean_nothing_are_refused(item, words):
    with pytest.raises(CaptureError, match=words):
        capture(branching, assume=[item])


def test_an_integer_of_the_data_is_refused_with_a_place_and_a_cure_that_works():
    def after(x):
        return x[:, :(x.long()[0, 0]).item()]

    with pytest.raises(DataDependentError, match=r"at .*test_values.py:\d+ .*--assume .*=NUMBER") as refused:
        capture(after)
    place = str(refused.value).partition("--assume ")[2].partition("=")[0]
    doc = capture(after, assume=[f"{place}=5"])
    assert reads(doc) == [5]


# -- rows that depend on data ----------------------------------------------------------------------------------------------


def masked(x):
    return x[x > 0] * 2


def test_rows_of_a_mask_are_refused_with_a_place_and_a_cure_that_works():
    with pytest.raises(DataDependentError, match=r"--assume .*test_values.py:\d+=all") as refused:
        capture(masked)
    place = str(refused.value).partition("--assume ")[2].partition("=")[0]
    for said, shape in (("all", [64]), ("5", [5])):
        doc = capture(masked, assume=[f"{place}={said}"])
        (row,) = [r for r in steps.operators(doc, "aten::mul.Tensor") if not r["link"] or r["outputs"]][:1]
        assert steps.shape(row["outputs"][0], batch=8) == shape


def test_one_value_for_a_mask_needs_no_number_of_rows():
    def after(x):
        y = x.clone()
        y[x > 0] = 0.5
        y[x.sum(1) > 0] = 0.0
        return y

    doc = capture(after)
    assert len(steps.operators(doc, "aten::index_put_")) == 2 and "reads" not in doc["diagnostics"]


def test_rows_of_a_mask_that_the_code_wrote_down_are_counted():
    def after(x):
        return x[:, torch.tensor([True, False, True, True, False, False, False, True])]

    doc = steps.check(capture(after))
    assert any(steps.shape(r["outputs"][0], batch=8) == [8, 4] for r in steps.operators(doc, "aten::index.Tensor"))


def test_random_states_are_as_they_were():
    random.seed(7)
    torch.manual_seed(7)
    expected = random.Random(7).random(), torch.get_rng_state()
    with values.seeded():
        first = random.random(), torch.rand(1).item()
    with values.seeded():
        assert (random.random(), torch.rand(1).item()) == first
    assert random.random() == expected[0] and torch.equal(torch.get_rng_state(), expected[1])


def test_places_are_named_by_their_ends():
    said = places.Assumptions(["net.py:12=3"])
    assert said.at("src/net.py:12") == 3 and said.at("my_net.py:12") is None and said.at(None) is None
    assert rows._count("all", 7) == 7 and rows._count(2, 7) == 2 and rows._count(True, 7) is None


def test_a_loop_that_waits_for_a_value_is_refused_with_a_cure_that_works(monkeypatch):
    monkeypatch.setattr(recorder, "MOST_READS", 50)

    def settle(x):
        while True:
            x = torch.tanh(x)
            if x.norm().item() < 1e-4:
                return x

    with pytest.raises(DataDependentError, match=r"test_values.py:\d+ .*more than 50 times.*never ends") as refusal:
        capture(settle)
    place = str(refusal.value).rpartition("--assume ")[2].partition("=")[0]
    assert reads(capture(settle, assume=[f"{place}=0"])) == [0.0]
