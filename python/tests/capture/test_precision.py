"""Autocast and pure half precision."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators
from stoker import Capture


def model():
    return Capture(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)), torch.empty(4, 16))


@pytest.mark.parametrize("precision, dtype", [("amp-fp16", "f16"), ("amp-bf16", "bf16")])
def test_autocast(on_cuda, precision, dtype):
    doc = check(capture(model(), precision=precision))
    assert {t["dtype"] for row in operators(doc, "aten::addmm") for t in row["inputs"]} == {dtype}
    loss = operators(doc, "aten::nll_loss_forward")[0]
    assert loss["inputs"][0]["dtype"] == "f32", "autocast computes the loss in full precision"
    norm = operators(doc, "aten::native_layer_norm")[0]
    assert norm["inputs"][0]["dtype"] == "f32"
    gradients = {doc["types"][p["type"]][0] for p in doc["parameters"]}
    assert gradients == {"f32"}
    casts = [r for r in operators(doc, "aten::_to_copy") if r["inputs"][0]["storage"] in
             {p["storage"] for p in doc["parameters"]}]
    assert len(casts) == 4, "each weight and bias is cast once"


def test_what_the_cache_of_casts_holds_is_freed_when_autocast_ends(on_cuda):
    """A bias's cast is needed by nothing but the cache; it goes between the loss and the backward."""
    doc = check(capture(model(), precision="amp-fp16"))
    biases = {p["storage"] for p in doc["parameters"] if p["name"].endswith("0.bias")}
    cast = next(r for r in operators(doc, "aten::_to_copy") if r["inputs"][0]["storage"] in biases)
    freed = doc["events"].index(["f", cast["outputs"][0]["storage"]])
    phases = {e[1]: i for i, e in enumerate(doc["events"]) if e[0] == "p"}
    last_of_loss = max(i for i, e in enumerate(doc["events"]) if e[0] == "o" and i < phases["backward"])
    assert last_of_loss < freed < phases["backward"]


@pytest.mark.parametrize("precision, dtype", [("bf16", "bf16"), ("fp16", "f16")])
def test_pure_half_precision_casts_model_and_inputs(on_cuda, precision, dtype):
    doc = check(capture(model(), precision=precision))
    assert {doc["types"][p["type"]][0] for p in doc["parameters"] + doc["inputs"][:1]} == {dtype}
    assert "aten::_to_copy" not in {row["name"] for row in operators(doc)}


def test_tf32_is_the_fp32_step(on_cuda):
    assert capture(model(), precision="tf32") == capture(model(), precision="fp32")
