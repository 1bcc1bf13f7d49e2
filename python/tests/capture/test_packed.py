"""Packed sequences and the CTC loss: the same numbers as PyTorch's own functions on real tensors, and captured for a GPU."""

import contextlib
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from steps import capture, check, operators, shape
from stoker import places
from stoker.errors import DataDependentError
from stoker.tracing import functions, packed
from stoker.tracing.values import Values

WORDS, FEATURES, UNITS = 12, 6, 10


def recorder():
    """A recorder's stand-in that sees real tensors."""
    return SimpleNamespace(values=Values(), assumptions=places.Assumptions([]), reads={})


@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [4, 4, 4], [1]])
@pytest.mark.parametrize("batch_first", [True, False])
def test_the_stand_ins_compute_what_pytorch_does(lengths, batch_first):
    batch, longest = len(lengths), max(lengths)
    sides = (batch, longest) if batch_first else (longest, batch)
    mine, theirs = (torch.arange(batch * longest * 2.).view(*sides, 2).requires_grad_() for _ in range(2))
    expected = pack_padded_sequence(theirs, torch.tensor(lengths), batch_first)
    data, sizes = packed.pack(recorder(), mine, torch.tensor(lengths), batch_first)
    assert torch.equal(data, expected.data) and torch.equal(sizes, expected.batch_sizes)
    weights = torch.rand_like(data)
    (data * weights).sum().backward()
    (expected.data * weights).sum().backward()
    assert torch.equal(mine.grad, theirs.grad)
    for total in (-1, longest + 2):
        padded, back = packed.pad(recorder(), data.detach(), sizes, batch_first, 0.5, total)
        wanted = pad_packed_sequence(expected, batch_first, 0.5, None if total < 0 else total)
        assert torch.equal(padded, wanted[0].detach()) and torch.equal(back, wanted[1])


class Tagger(nn.Module):
    def __init__(self, lengths=None):
        super().__init__()
        self.layer, self.out = nn.LSTM(FEATURES, UNITS, batch_first=True, bidirectional=True), nn.Linear(2 * UNITS, 3)
        self.lengths = lengths

    def forward(self, x, lengths=None):
        lengths = self.lengths or lengths.cpu()
        found, _ = self.layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return self.out(pad_packed_sequence(found, batch_first=True)[0]).sum()


def tagger(batch=4, seq_len=WORDS):
    return Tagger(), (torch.zeros(batch, seq_len, FEATURES), torch.full((batch,), seq_len))


def test_unknown_lengths_are_those_of_the_longest(on_cuda):
    doc = check(capture(tagger))
    (layer,) = operators(doc, "aten::_cudnn_rnn")
    assert shape(layer["inputs"][0], batch=4, seq_len=WORDS) == [4 * WORDS, FEATURES]
    assert shape(layer["outputs"][0], batch=4, seq_len=WORDS) == [4 * WORDS, 2 * UNITS]
    assert list(doc["diagnostics"]["reads"].values()) == ["sequences as long as the longest"]
    assert all("gradient" in p for p in doc["parameters"])


def test_a_length_or_a_share_is_said_at_its_line(on_cuda):
    (place,) = capture(tagger)["diagnostics"]["reads"]
    for said, words in (("5", 5), ("50%", WORDS // 2)):
        doc = capture(tagger, assume=[f"{place}={said}"], fixed={"seq_len": WORDS})
        (layer,) = operators(doc, "aten::_cudnn_rnn")
        assert shape(layer["inputs"][0], batch=4) == [4 * words, FEATURES]
    with pytest.raises(DataDependentError, match="has 1 to 12 words"):
        capture(tagger, assume=[f"{place}={WORDS + 1}"], fixed={"seq_len": WORDS})


def test_lengths_that_the_code_writes_down_are_real(on_cuda):
    doc = check(capture((Tagger([9, 4, 4]), torch.zeros(3, WORDS, FEATURES)), fixed={"batch": 3}))
    (layer,) = operators(doc, "aten::_cudnn_rnn")
    assert layer["inputs"][0]["shape"] == [9 + 4 + 4, FEATURES] and "reads" not in doc["diagnostics"]
    (row,) = [t for o in operators(doc, "aten::addmm") for t in o["outputs"]]
    assert row["shape"] == [3 * 9, 3], "padded to the longest that there is"


@pytest.mark.parametrize("kind, settings", [
    (nn.LSTM, {}), (nn.LSTM, {"proj_size": 3}), (nn.LSTM, {"bias": False}), (nn.GRU, {}), (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu"})])
@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [4, 4, 4]])
def test_layers_over_packed_sequences_on_a_cpu_compute_what_pytorchs_do(kind, settings, lengths):
    torch.manual_seed(1)
    layer = kind(FEATURES, UNITS, num_layers=2, bidirectional=True, batch_first=True, **settings)
    x = torch.randn(len(lengths), max(lengths), FEATURES)
    found = []
    for mode in (contextlib.nullcontext(), functions.PackedFunctions(recorder())):
        given = x.clone().requires_grad_()
        layer.zero_grad()
        with mode:
            out, states = layer(pack_padded_sequence(given, torch.tensor(lengths), batch_first=True))
            out, _ = pad_packed_sequence(out, batch_first=True)
        states = states if isinstance(states, tuple) else (states,)
        (out.sin().sum() + sum(state.cos().sum() for state in states)).backward()
        found.append([out, *states, given.grad, *(p.grad for p in layer.parameters())])
    for theirs, mine in zip(*found, strict=True):
        assert torch.allclose(theirs, mine, atol=1e-5)


def test_packed_sequences_on_a_cpu_go_step_by_step():
    doc = check(capture(tagger, device="cpu", fixed={"seq_len": 3}))
    assert list(doc["diagnostics"]["reads"].values()) == ["sequences as long as the longest"]
    names = [row["name"] for row in operators(doc)]
    # Two directions: the input's part of the gates at once, the states' part at each of three steps; and the last layer.
    assert names.count("aten::addmm") == 2 * (1 + 3) + 1
    assert all("gradient" in p for p in doc["parameters"])
    kinds = [kind for _, kind in doc["storages"]]
    assert {kinds[event[1]] for event in doc["events"] if event[0] == "f"} == {"transient"}, "the reader of the file wants that"


def test_a_constant_that_a_forward_makes_on_a_cpu_is_a_buffer():
    class Picks(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(FEATURES, FEATURES)

        def forward(self, x):
            return self.layer(x)[:, torch.tensor([0, 2, 1], device=x.device)].sum()

    doc = check(capture((Picks(), torch.zeros(4, FEATURES)), device="cpu"))
    kinds = [kind for _, kind in doc["storages"]]
    assert kinds.count("buffer") == 1
    assert {kinds[event[1]] for event in doc["events"] if event[0] == "f"} == {"transient"}


@pytest.mark.parametrize("joined", [False, True])
def test_the_ctc_loss_keeps_two_places_a_letter(joined, on_cuda):
    class Speech(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(FEATURES, 7)

        def forward(self, x):
            batch, time = x.shape[:2]
            targets = torch.ones((batch * 5,) if joined else (batch, 5), dtype=torch.int64, device=x.device)
            probabilities = self.out(x).log_softmax(-1).transpose(0, 1)
            return nn.functional.ctc_loss(probabilities, targets, [time] * batch, [5] * batch, zero_infinity=True)

    doc = check(capture((Speech(), torch.empty(3, WORDS, FEATURES))))
    (forward,), (backward,) = operators(doc, "aten::_ctc_loss"), operators(doc, "aten::_ctc_loss_backward")
    assert [shape(t, batch=4) for t in forward["outputs"]] == [[4], [4, WORDS, 2 * 5 + 1]]
    assert shape(backward["outputs"][0], batch=4) == [WORDS, 4, 7]
    assert all("gradient" in p for p in doc["parameters"])
