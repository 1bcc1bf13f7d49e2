"""A loss may bring weights, networks and tensors of its own: they lie on the device and count, and are as they were afterwards."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

import stoker
from steps import capture, check, operators, peak_bytes
from stoker.tracing import loss_parts


def model():
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


class ArcFace(nn.Module):
    """A loss with weights that are trained."""

    def __init__(self):
        super().__init__()
        self.centres = nn.Parameter(torch.empty(1000, 4))

    def forward(self, features, targets):
        return functional.cross_entropy(functional.linear(functional.normalize(features), functional.normalize(self.centres)), targets)


def test_weights_of_a_loss_are_parameters_of_the_step(on_cuda):
    loss = ArcFace()
    doc = capture(lambda: stoker.Capture(model(), torch.empty(8, 16), loss=loss, targets=torch.zeros(8, dtype=torch.long)))
    check(doc)
    found = {p["name"]: p for p in doc["parameters"]}
    assert "loss.centres" in found and "gradient" in found["loss.centres"]
    assert isinstance(loss.centres, nn.Parameter) and loss.centres.device.type == "cpu", "the user's loss is as it was"
    assert any(row["module"] == "loss" for row in operators(doc))


def test_class_weights_are_on_the_device(on_cuda):
    doc = capture(lambda: (model(), torch.empty(8, 16), nn.CrossEntropyLoss(weight=torch.ones(4))))
    assert [b["name"] for b in doc["buffers"]] == ["loss.weight"]


def perceptual(way):
    frozen = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).requires_grad_(False)
    mean = torch.zeros(1, 3, 1, 1)
    if way == "closure":
        def loss(out, target):
            return functional.l1_loss(frozen(out - mean), frozen(target - mean))
    elif way == "partial":
        loss = functools.partial(_perceptual, frozen)
    else:
        loss = _Holder(frozen).loss
    return stoker.Capture(nn.Conv2d(3, 3, 3, padding=1), torch.empty(4, 3, 8, 8), loss=loss, targets=torch.empty(4, 3, 8, 8))


def _perceptual(frozen, out, target):
    return functional.l1_loss(frozen(out), frozen(target))


class _Holder:
    def __init__(self, frozen):
        self.parts = {"net": frozen}

    def loss(self, out, target):
        return _perceptual(self.parts["net"], out, target)


@pytest.mark.parametrize("way", ["closure", "partial", "method"])
def test_a_frozen_network_in_a_loss_counts_and_is_not_trained(on_cuda, way):
    doc = capture(lambda: perceptual(way))
    check(doc)
    frozen = [p for p in doc["parameters"] if p["name"].endswith("2.weight")]
    assert len(frozen) == 1 and not frozen[0]["requires_grad"]
    weights = 4 * (8 * 3 * 9 + 8 + 8 * 8 * 9 + 8)
    alone = capture(lambda: stoker.Capture(nn.Conv2d(3, 3, 3, padding=1), torch.empty(4, 3, 8, 8), loss=functional.l1_loss,
                                           targets=torch.empty(4, 3, 8, 8)))
    assert peak_bytes(doc, batch=8) >= peak_bytes(alone, batch=8) + weights


def test_a_loss_that_holds_the_model_moves_it_once(on_cuda):
    class Whole(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.scale = inner, nn.Parameter(torch.ones(1))

        def forward(self, out):
            return (out * self.scale).mean() + sum(p.pow(2).sum() for p in self.inner.parameters())

    def build():
        net = model()
        return net, torch.empty(8, 16), Whole(net)

    names = [p["name"] for p in capture(build)["parameters"]]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias", "loss.scale"]


def test_places_that_hold_tensors_are_put_back():
    class Mover:
        def fake(self, tensor):
            return tensor.to("meta")

    weight, listed = torch.ones(3), [torch.ones(2)]

    def loss(out, scale=2.0):
        return (out * weight).sum() * scale + listed[0].sum()

    parts = loss_parts.of(loss, model())
    assert not parts.modules and len(parts.slots) == 2
    parts.move(Mover())
    assert weight.device.type == listed[0].device.type == "meta"
    parts.put_back()
    assert weight.device.type == listed[0].device.type == "cpu"
