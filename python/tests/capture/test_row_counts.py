"""Numbers of rows that the data decides: detectors, distinct values, counts; answered place by place or all at once."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators
from stoker import places
from stoker.errors import CaptureError, DataDependentError, UserCodeError

CHANNELS, ANCHORS, MOST = 8, 3, 20


class Detector(nn.Module):
    """A small two-stage detector: proposals by score, those too small left out, a sample of them, boxes that carry a loss."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Conv2d(3, CHANNELS, 3, stride=4, padding=1)
        self.score = nn.Conv2d(CHANNELS, ANCHORS, 1)
        self.delta = nn.Conv2d(CHANNELS, 4 * ANCHORS, 1)
        self.head = nn.Linear(4, 5)

    def forward(self, images, targets):
        losses = []
        for image, target in zip(images, targets):
            features = self.backbone(image[None])
            scores, deltas = self.score(features).flatten(), self.delta(features).permute(0, 2, 3, 1).reshape(-1, 4)
            best = scores.topk(min(MOST, scores.numel())).indices
            boxes = deltas[best]
            kept = torch.where((boxes[:, 2] > 0) & (boxes[:, 3] > 0))[0]
            boxes = boxes[kept]
            near = torch.cdist(boxes.detach(), target["boxes"]).min(1).values < 1
            positive = torch.where(near)[0]
            chosen = positive[torch.randperm(positive.numel(), device=positive.device)[:min(positive.numel(), 8)]]
            losses.append(self.head(boxes[chosen]).sum() + scores[best].mean())
        return torch.stack(losses).sum()


def detector(batch=2, sides=((64, 64), (64, 96)), boxes=5):
    images = [torch.rand(3, height, width) for height, width in sides]
    return Detector(), (images, [{"boxes": torch.rand(boxes, 4)} for _ in sides])


def larger(batch=2):
    return detector(batch, sides=((64, 64), (128, 128)), boxes=7)


def rows_of_head(doc):
    """Rows that reach the head, of each image."""
    return [row["outputs"][0]["shape"][0] for row in operators(doc, "aten::addmm")]


@pytest.mark.parametrize("said, kept, words", [("all", 8, "all rows"), ("6", 6, "at most 6 rows"), ("25%", 2, "25 % of the rows")])
def test_a_detector_is_captured_with_stated_row_counts(said, kept, words):
    with pytest.raises(DataDependentError, match="--assume rows=all"):
        capture(detector, fixed={"batch": 2})
    doc = check(capture(detector, fixed={"batch": 2}, assume=[f"rows={said}"]))
    assert rows_of_head(doc) == [kept, kept]  # of 20 boxes; at most 8 are sampled; a quarter of a quarter are two
    reads = doc["diagnostics"]["reads"]
    assert list(reads.values()) == [words, words], reads  # both torch.where
    assert sum(e == ["s", "nonzero"] for e in doc["events"]) == 4, "the host waits for each number of rows"


def test_what_is_said_of_a_place_goes_before_what_is_said_of_all():
    places_said = capture(detector, fixed={"batch": 2}, assume=["rows=all"])["diagnostics"]["reads"]
    first = min(places_said, key=lambda place: int(place.rpartition(":")[2]))
    doc = capture(detector, fixed={"batch": 2}, assume=["rows=all", f"{first}=3"])
    assert rows_of_head(doc) == [3, 3]


def test_images_of_several_sizes_and_the_number_of_boxes_are_what_the_function_returns():
    large = capture(larger, fixed={"batch": 2}, assume=["rows=all"])
    maps = [row["outputs"][0]["shape"] for row in operators(large, "aten::convolution")]
    sides = [tuple(shape[2:]) for shape in maps if shape[1] == CHANNELS]
    assert sides == [(16, 16), (32, 32)]
    assert {row["outputs"][0]["shape"][-1] for row in operators(large) if row["name"].startswith("aten::_cdist_forward")} == {7}


class Counting(nn.Module):
    """A linear layer and a count of its output."""

    def __init__(self, count):
        super().__init__()
        self.linear, self.count = nn.Linear(4, 4), count

    def forward(self, x):
        y = self.linear(x)
        return y.sum() + self.count(y).sum()


def distinct(y):
    return torch.unique((y > 0).sum(1))


def repeated(y):
    return torch.repeat_interleave(y, (y[:, 0] > 0).long(), dim=0)


def binned(y):
    return torch.bincount(y.argmax(1))


@pytest.mark.parametrize("count", [distinct, repeated, binned])
def test_distinct_values_and_counts_are_stated_at_their_place(count):
    with pytest.raises(DataDependentError, match=r"test_row_counts.py:\d+ in the model .*=NUMBER") as refused:
        capture((Counting(count), torch.empty(4, 4)), assume=["rows=all"])
    place = str(refused.value).partition("--assume ")[2].partition("=")[0]
    doc = check(capture((Counting(count), torch.empty(4, 4)), assume=[f"{place}=3"]))
    assert doc["diagnostics"]["reads"] == {place: "3 rows"}
    name = {distinct: "aten::_unique2", repeated: "aten::repeat_interleave.Tensor", binned: "aten::bincount"}[count]
    assert [row["outputs"][0]["shape"] for row in operators(doc, name)] == [[3]]


def test_classes_that_a_count_names_need_no_word():
    doc = check(capture((Counting(lambda y: torch.bincount(y.argmax(1), minlength=9)), torch.empty(4, 4))))
    assert [row["outputs"][0]["shape"] for row in operators(doc, "aten::bincount")] == [[9]]


@pytest.mark.parametrize("item, words", [
    ("rows=many", "is no value"), ("rows=true", "no number of rows"), ("rows=-1", "no number of rows"), ("rows=120%", "is no value")])
def test_a_number_of_rows_that_is_none_is_refused(item, words):
    with pytest.raises(CaptureError, match=words):
        places.Assumptions([item])


def test_a_word_for_all_rows_may_find_nothing_to_answer():
    assert "reads" not in capture((nn.Linear(4, 4), torch.empty(4, 4)), assume=["rows=all"])["diagnostics"]


def test_torchvision_detectors(on_cuda):
    detection = pytest.importorskip("torchvision.models.detection")

    def step(name):
        def build(batch=2):
            target = {"boxes": torch.tensor([[10., 10., 60., 90.]] * 4), "labels": torch.ones(4, dtype=torch.int64)}
            images = [torch.rand(3, 160, 224), torch.rand(3, 200, 160)]
            model = getattr(detection, name)(weights=None, weights_backbone=None).train()
            return model, (images, [target, target]), lambda losses: sum(losses.values())
        return build

    for name in ("fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large"):
        doc = check(capture(step(name), fixed={"batch": 2}, assume=["rows=all"]))
        assert all("gradient" in p for p in doc["parameters"] if p["requires_grad"])


class Runs(nn.Module):
    """The mean over each run of equal values: the lengths of the runs add up to the batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        _, lengths = torch.unique_consecutive(x[:, 0].long(), return_counts=True)
        return torch.stack([run.mean(0) for run in self.layer(x).split(lengths.tolist())])


def test_values_that_suit_one_size_are_held_at_it():
    def runs():
        return Runs(), torch.rand(6, 4)

    lines = [f"test_row_counts.py:{Runs.forward.__code__.co_firstlineno + n}" for n in (1, 2)]
    said = [f"{lines[0]}=2", f"{lines[1]}=5"]
    with pytest.raises(UserCodeError, match=r"give other values with --assume, and hold the size .* \(--fixed batch=N\)"):
        capture(runs, assume=said)
    check(capture(runs, assume=said, fixed={"batch": 10}))
    with pytest.raises(UserCodeError, match="give other values with --assume$"):
        capture(runs, assume=said, fixed={"batch": 9})


class Chosen(nn.Module):
    """An expert that runs where a row chooses it."""

    def __init__(self):
        super().__init__()
        self.expert = nn.Linear(4, 4)

    def forward(self, x):
        chosen, out = x[:, 0] > 0, torch.zeros_like(x)
        if chosen.any():
            out = out + self.expert(x)
        return out


def test_a_loss_without_gradient_names_the_branch_that_was_left_out():
    def chosen():
        return Chosen(), torch.rand(6, 4), lambda out: out.mean()

    line = f"test_row_counts.py:{Chosen.forward.__code__.co_firstlineno + 2}"
    with pytest.raises(CaptureError, match=f"--assume [^ ]*{line}=true"):
        capture(chosen)
    assert operators(check(capture(chosen, assume=[f"{line}=true"])), "aten::addmm")
