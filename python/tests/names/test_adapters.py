"""--lora and --qlora: what is frozen, what is trained, and the bytes of four-bit weights."""

import pytest
import torch
from torch import nn

from steps import capture, check, operators, value
from stoker import Capture, CaptureError, adapters

WIDTH, BATCH, RANK = 256, 4, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.v_proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.up(torch.relu(self.q_proj(x) + self.v_proj(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.lm_head = nn.Linear(WIDTH, 10, bias=False)

    def forward(self, x):
        return self.lm_head(self.blocks(x))


def model():
    return Capture(Model(), torch.empty(BATCH, WIDTH), lambda out: out.sum())


def trained(doc):
    return sorted(p["name"] for p in doc["parameters"] if p["requires_grad"])


def weights(doc, *kinds):
    seen = {p["storage"]: p for p in doc["parameters"] if not kinds or doc["types"][p["type"]][0] in kinds}
    return sum(value(doc["storages"][s][0], {}) for s in seen)


@pytest.mark.parametrize("text, wish", [
    ("r=16", adapters.Adapters(16)), ("16", adapters.Adapters(16)), ("lora_r=4", adapters.Adapters(4)),
    ("r=8,targets=q_proj,v_proj,dropout=0.1", adapters.Adapters(8, ("q_proj", "v_proj"), 0.1)),
    ("target_modules=[q_proj,v_proj],alpha=32", adapters.Adapters(8, ("q_proj", "v_proj"))),
    ("r=8,targets=q_proj+v_proj", adapters.Adapters(8, ("q_proj", "v_proj"))),
])
def test_wishes_are_read_as_they_are_written(text, wish):
    assert adapters.parse(text, False) == wish


def test_qlora_alone_is_pefts_default_rank():
    assert adapters.parse(None, True) == adapters.Adapters(8, four_bit=True)
    assert adapters.parse(None, False) is None


@pytest.mark.parametrize("text, words", [
    ("r=0", "rank must be"), ("r=x", "where a number belongs"), ("rang=4", "none of r, targets"), ("r=4,r=8", "twice"),
    ("q_proj", "has no name"), ("r=4,dropout=2", "dropout must be"), ("r=9999999", "rank must be"), ("targets=", "empty"),
])
def test_bad_wishes_are_refused_with_an_example(text, words):
    with pytest.raises(CaptureError, match=words):
        adapters.parse(text, False)


def test_lora_trains_the_adapters_alone(on_cuda):
    doc = check(capture(model, lora=f"r={RANK}"))
    assert trained(doc) == sorted(f"blocks.{i}.{layer}.lora_{part}.weight" for i in range(2) for layer in ("q_proj", "v_proj")
                                  for part in "AB"), "peft's usual targets, since the model has layers of these names"
    assert all(("gradient" in p) == p["requires_grad"] for p in doc["parameters"])
    assert doc["optimizer"]["name"] == "adamw"
    assert doc["name"] == f"model, LoRA r={RANK} on q_proj, v_proj"
    plain = check(capture(model))
    assert weights(doc) == weights(plain) + 4 * 4 * RANK * 2 * WIDTH


def test_all_linear_leaves_the_head_out(on_cuda):
    doc = check(capture(model, lora=f"r={RANK},targets=all-linear"))
    assert len(trained(doc)) == 2 * 3 * 2 and not any(name.startswith("lm_head") for name in trained(doc))


def test_qlora_holds_the_base_in_four_bits(on_cuda):
    doc = check(capture(model, qlora=True, lora=f"r={RANK}", precision="amp-bf16"))
    packed = 2 * 3 * WIDTH * WIDTH // 2
    assert weights(doc, "u8") == packed
    scales = [b for b in doc["buffers"] if b["name"].endswith((".absmax", ".absmax_of_absmax"))]
    assert sum(value(doc["storages"][b["storage"]][0], {}) for b in scales) == 2 * 3 * (WIDTH * WIDTH // 64 + 4 * 4)
    assert weights(doc, "bf16") == 2 * (10 * WIDTH + 2 * 2 * WIDTH), "head and biases are held in what is computed in"
    assert weights(doc, "f32") == 4 * 4 * RANK * 2 * WIDTH, "adapters are FP32"
    unpacked = operators(doc, "stoker::dequantize_4bit")
    # Nothing below the first block is trained: its layers q_proj and v_proj need no gradient of their input.
    assert len(unpacked) == 2 * 3 + (1 + 3)
    assert {row["outputs"][0]["dtype"] for row in unpacked} == {"bf16"}


def test_adapters_stay_in_fp32_beside_weights_cast_as_a_whole(on_cuda):
    doc = check(capture(model, lora=f"r={RANK}", precision="bf16"))
    types = {doc["types"][p["type"]][0] for p in doc["parameters"] if "lora_" in p["name"]}
    assert types == {"f32"}
    assert {doc["types"][p["type"]][0] for p in doc["parameters"] if "lora_" not in p["name"]} == {"bf16"}


def test_targets_that_no_layer_has_are_refused_with_the_models_own(on_cuda):
    with pytest.raises(CaptureError, match="no linear layer is called k_proj; the model's are lm_head, q_proj, up, v_proj"):
        capture(model, lora="r=4,targets=k_proj")
    with pytest.raises(CaptureError, match="no linear layer that could get an adapter"):
        capture(lambda: Capture(nn.Conv2d(3, 3, 3), torch.empty(2, 3, 8, 8), lambda out: out.sum()), lora="r=4")


def test_peft_trains_the_same_and_needs_as_much(on_cuda):
    peft = pytest.importorskip("peft")
    wanted = peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=["q_proj", "v_proj"])

    def by_peft():
        wrapped = peft.get_peft_model(Model(), wanted)
        optimizer = torch.optim.AdamW([p for p in wrapped.parameters() if p.requires_grad])
        return Capture(wrapped, torch.empty(BATCH, WIDTH), lambda out: out.sum(), optimizer=optimizer)

    for precision in ("fp32", "amp-bf16"):
        theirs = check(capture(by_peft, precision=precision))
        ours = check(capture(model, lora=f"r={RANK}", precision=precision))
        from steps import peak_bytes
        assert peak_bytes(ours, batch=64) == peak_bytes(theirs, batch=64)
        assert len(trained(ours)) == len(trained(theirs))
        assert [row["name"] for row in operators(ours)] == [row["name"] for row in operators(theirs)]
