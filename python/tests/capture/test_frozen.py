"""Frozen parameters, adapters beside frozen layers, and checkpointed blocks: kept is what autograd keeps."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from places import REPOSITORY
from steps import capture, check, operators, peak_bytes, shape, value
from stoker import Capture

WIDTH, LAYERS, RANK, BATCH = 64, 4, 2, 512
ACTIVATION = 4 * WIDTH * BATCH


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down, self.up = nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


def chain(*parts):
    return Capture(nn.Sequential(*parts), torch.empty(4, WIDTH), lambda out: out.sum())


def alive_at_loss(doc):
    """Bytes of activations that wait for the backward when the loss begins."""
    live = set()
    for event in doc["events"]:
        if event[:2] == ["p", "loss"]:
            break
        (live.add if event[0] == "a" else live.discard if event[0] == "f" else id)(event[1])
    return sum(value(doc["storages"][s][0], {"batch": BATCH}) for s in live)


def gradients(doc):
    return [p["name"] for p in doc["parameters"] if "gradient" in p]


def test_a_frozen_backbone_keeps_nothing_and_gets_no_backward(on_cuda):
    backbone = [nn.Linear(WIDTH, WIDTH).requires_grad_(False) for _ in range(LAYERS)]
    doc = check(capture(chain(*backbone, nn.Linear(WIDTH, WIDTH))))
    assert gradients(doc) == [f"{LAYERS}.weight", f"{LAYERS}.bias"]
    assert [p["requires_grad"] for p in doc["parameters"]] == 2 * LAYERS * [False] + [True, True]
    backward = operators(doc)[[row["name"] for row in operators(doc)].index("aten::sum") + 1:]
    assert {row["module"] for row in backward} <= {"", str(LAYERS)}, "the backward ends at the head"
    assert alive_at_loss(doc) == 2 * ACTIVATION, "the head's input and its output"


def test_a_frozen_layer_in_the_middle_passes_gradients_and_keeps_no_input(on_cuda):
    first, middle, last = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
    trained = check(capture(chain(first, middle, last)))
    frozen = check(capture(chain(nn.Linear(WIDTH, WIDTH, bias=False),
                                 nn.Linear(WIDTH, WIDTH, bias=False).requires_grad_(False),
                                 nn.Linear(WIDTH, WIDTH, bias=False))))
    assert gradients(frozen) == ["0.weight", "2.weight"]
    assert len(operators(trained, "aten::mm")) - len(operators(frozen, "aten::mm")) == 1, "no product for its weight"
    assert alive_at_loss(trained) - alive_at_loss(frozen) == ACTIVATION, "its input serves its weight's gradient only"


def test_adapters_train_and_their_layers_do_not(on_cuda):
    def model(kind):
        return nn.Sequential(*(part for _ in range(LAYERS) for part in (kind(), nn.ReLU())))

    def step(made):
        trained = [p for p in made.parameters() if p.requires_grad]
        return Capture(made, torch.empty(4, WIDTH), lambda out: out.sum(), optimizer=torch.optim.AdamW(trained))

    full = check(capture(step(model(lambda: nn.Linear(WIDTH, WIDTH)))))
    lora = check(capture(step(model(Adapter))))
    assert len(gradients(full)) == 2 * LAYERS
    assert gradients(lora) == [f"{2 * i}.{name}.weight" for i in range(LAYERS) for name in ("down", "up")]
    for parameter in lora["parameters"]:
        assert parameter.get("updated", True) is parameter["requires_grad"]
    sizes = [value(lora["storages"][p["gradient"]][0], {}) for p in lora["parameters"] if "gradient" in p]
    assert sum(sizes) == LAYERS * 2 * 4 * RANK * WIDTH
    # The thin product is kept for the gradient of `up`; the wide input, for that of `down`, is kept as without adapters.
    assert alive_at_loss(lora) - alive_at_loss(full) == LAYERS * 4 * RANK * BATCH


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointed_blocks_run_twice_and_keep_their_inputs(on_cuda, use_reentrant):
    def block():
        return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    class Layers(nn.Module):
        def __init__(self, use):
            super().__init__()
            self.first, self.use = nn.Linear(WIDTH, WIDTH), use
            self.blocks = nn.ModuleList(block() for _ in range(LAYERS))

        def forward(self, x):
            x = self.first(x)
            for part in self.blocks:
                x = checkpoint(part, x, use_reentrant=use_reentrant) if self.use else part(x)
            return x

    plain, saved = (check(capture(Capture(Layers(use), torch.empty(4, WIDTH), lambda out: out.sum())))
                    for use in (False, True))
    assert len(gradients(saved)) == len(gradients(plain)) == 2 + 4 * LAYERS
    assert len(operators(plain, "aten::gelu")) == LAYERS and len(operators(saved, "aten::gelu")) == 2 * LAYERS
    assert len(operators(saved, "aten::gelu_backward")) == LAYERS
    assert alive_at_loss(saved) == (LAYERS + 1) * ACTIVATION, "each block's input and the last output"
    assert alive_at_loss(plain) == (LAYERS + 1 + LAYERS * 2 * 4) * ACTIVATION
    saving = peak_bytes(plain, batch=BATCH) - peak_bytes(saved, batch=BATCH)
    assert (LAYERS - 2) * 8 * ACTIVATION < saving < (LAYERS - 1) * 8 * ACTIVATION, "one block is there at a time, and its gradients"
    names = {row["module"] for row in operators(saved, "aten::gelu")}
    assert names == {f"blocks.{i}.1" for i in range(LAYERS)}, "the second forward carries its own modules"


def test_lora_on_a_language_model_leaves_the_frozen_weights_alone(on_cuda):
    pytest.importorskip("transformers")
    example = REPOSITORY / "examples" / "lora.py"
    small = {"layers": 2, "width": 64, "heads": 4}
    lora = check(capture(f"{example}:lora", options={**small, "rank": 4}))
    full = check(capture(f"{example}:full", options=small))
    assert len(gradients(lora)) == 4 and all("c_attn" in name for name in gradients(lora))
    assert lora["training"] == {"clip": True} and lora["dimensions"][1]["name"] == "seq_len"
    sizes = {"batch": 4, "seq_len": 256}
    weights = sum(value(full["storages"][p["gradient"]][0], sizes) for p in full["parameters"] if "gradient" in p)
    assert peak_bytes(lora, **sizes) < peak_bytes(full, **sizes)
    assert len(gradients(full)) == len(full["parameters"]) and weights > 4 * 50257 * 64
    mm = [shape(t, **sizes) for row in operators(lora, "aten::mm") for t in row["outputs"]]
    assert [4, 64] in mm and [192, 4] in mm, "the adapters' gradients"
