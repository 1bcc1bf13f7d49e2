"""Polynomials in named dimensions: exact where the model follows them, refused where it does not."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators, shape, value
from stoker import Capture, Dimension
from stoker.errors import CaptureError, NotAffineError
from stoker.polynomial import Fitter, NotPolynomial


class SelfProduct(nn.Module):
    """Scores of all pairs of positions: quadratic in the length."""

    def __init__(self, width=8):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, width), nn.Linear(width, 2)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.head((x @ x.transpose(1, 2)) @ x).mean(1)


def pairs(batch=4, seq_len=16):
    return SelfProduct(), torch.zeros(batch, seq_len, dtype=torch.long)


def test_fitter_finds_integer_polynomials_and_nothing_else():
    dimensions = [Dimension("batch", 4, captured=(3, 5), verified=8),
                  Dimension("side", 64, degree=2, unit=32, captured=(64, 96, 128), verified=160)]
    fitter = Fitter(dimensions)
    grid = fitter.grid()
    assert len(grid) == 7 and grid[-1] == {"batch": 8, "side": 160}

    def at(function):
        return tuple(function(p["batch"], p["side"] // 32) for p in grid)

    fitted = fitter.fit(at(lambda b, s: 7 + 2 * b * s * s + s))
    assert fitter.to_json(fitted) == {"": 7, "side": 1, "batch*side^2": 2}
    assert fitter.fit(at(lambda b, s: 5)) == 5
    for wrong in (lambda b, s: b * b, lambda b, s: s ** 3, lambda b, s: b * s // 2, lambda b, s: 2 ** b):
        with pytest.raises(NotPolynomial):
            fitter.fit(at(wrong))


def test_quadratic_in_the_length(on_cuda):
    doc = check(capture(pairs))
    assert [d["name"] for d in doc["dimensions"]] == ["batch", "seq_len"]
    scores = operators(doc, "aten::bmm")[0]["outputs"][0]
    assert shape(scores, batch=3, seq_len=50) == [3, 50, 50]
    assert value(doc["storages"][scores["storage"]][0], {"batch": 3, "seq_len": 50}) == 4 * 3 * 50 * 50


def test_a_capture_at_other_sizes_gives_the_same_file(on_cuda):
    def other(batch=4, seq_len=16):
        return Capture(*pairs(batch, seq_len), dimensions=[
            Dimension("batch", 4, captured=(6, 9), verified=4),
            Dimension("seq_len", 16, degree=2, captured=(20, 31, 47), verified=11)])

    first, second = capture(pairs), capture(other)
    for part in ("types", "storages", "events", "parameters"):
        assert first[part] == second[part]


def test_an_image_side_needs_its_unit(on_cuda):
    def pictures(unit):
        def make(batch=4, side=64):
            model = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            dimension = Dimension("side", side, degree=2, unit=unit, min=unit)
            return Capture(model, torch.empty(batch, 3, side, side), dimensions=[dimension])
        return make

    doc = check(capture(pictures(4)))
    first = operators(doc, "aten::convolution")[0]["outputs"][0]
    assert shape(first, batch=2, side=256 // 4) == [2, 4, 128, 128]
    with pytest.raises(NotAffineError, match="aten::convolution in 0"):
        capture(pictures(1))


def test_what_depends_on_the_batch_otherwise_is_refused_with_its_operator(on_cuda):
    class Repeats(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            x = self.first(x)
            for _ in range(x.shape[0] // 3):
                x = torch.tanh(self.second(x))
            return x

    with pytest.raises(NotAffineError, match=r"aten::tanh.*--fixed"):
        capture(Capture(Repeats(), torch.empty(4, 4)))
    doc = check(capture(Capture(Repeats(), torch.empty(4, 4)), fixed={"batch": 9}))
    assert len(operators(doc, "aten::tanh")) == 3 and doc["dimensions"][0]["captured"] == [9]


def test_verification_catches_what_two_points_cannot(on_cuda):
    class Squares(nn.Module):
        def forward(self, x):
            return x.new_zeros(x.shape[0] ** 2).sum() + x

    with pytest.raises(NotAffineError, match="9, 25, 64"):
        capture(Capture(Squares(), torch.empty(4, 2)), mode="inference")


def test_a_dimension_without_room_is_refused(on_cuda):
    def narrow(batch=4, seq_len=16):
        return Capture(*pairs(batch, seq_len), dimensions=[Dimension("seq_len", 16, degree=2, min=15, max=16)])

    with pytest.raises(CaptureError, match="seq_len: 4 different sizes"):
        capture(narrow)
