"""One step: bytes, FLOPs, lifetimes, module names and links, against figures that come from elsewhere."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from steps import capture, check, operators, peak_bytes, shape, value
from stoker import Capture, step_file


def mlp(batch=4):
    model = nn.Sequential(nn.Linear(100, 200, bias=False), nn.ReLU(), nn.Linear(200, 10, bias=False))
    return model, torch.empty(batch, 100)


def small_cnn(batch=4):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2, groups=4),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), torch.empty(batch, 3, 24, 24)


def test_peak_of_an_mlp_is_what_a_hand_computes(on_cuda):
    doc = check(capture(mlp))
    for batch in (4, 64, 1000):
        weights = 4 * (100 * 200 + 200 * 10)
        held = weights + 4 * batch * 100 + 8 * batch  # parameters, pictures, targets
        # At the peak, the backward of the first layer: hidden activations (relu's input and output), logits, loss (4),
        # the unit gradient of the loss (4), second weight's gradient, both gradients of the hidden activation,
        # and before that the softmax; sum them per moment and take the larger.
        hidden, logits = 4 * batch * 200, 4 * batch * 10
        at_relu = held + 2 * hidden + logits + 4 + 4 + 4 * 200 * 10 + 2 * hidden
        at_weight = held + hidden + logits + 4 + 4 + 4 * 200 * 10 + hidden + 4 * 100 * 200
        at_relu -= hidden  # Linear does not keep its own output, and ReLU keeps only its result
        at_weight -= hidden
        assert peak_bytes(doc, batch=batch) == max(at_relu, at_weight), batch


def test_parameters_are_counted_once_and_get_gradients(on_cuda):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
            self.head.weight = self.embedding.weight
            self.frozen = nn.Linear(8, 8).requires_grad_(False)

        def forward(self, ids):
            return self.head(self.frozen(self.embedding(ids)))[:, 0]

    doc = check(capture(Capture(Tied(), torch.zeros(4, 3, dtype=torch.long))))
    names = [p["name"] for p in doc["parameters"]]
    assert names == ["embedding.weight", "frozen.weight", "frozen.bias"]
    sizes = [value(doc["storages"][p["storage"]][0], {"batch": 4}) for p in doc["parameters"]]
    assert sizes == [50 * 8 * 4, 8 * 8 * 4, 8 * 4]
    assert "gradient" in doc["parameters"][0] and "gradient" not in doc["parameters"][1]
    assert doc["storages"][doc["parameters"][0]["gradient"]][1] == "gradient"


def forward_flops(doc, batch):
    """Two per multiply-add, from shapes and attributes alone."""
    total = 0
    for row in operators(doc):
        outputs = [shape(t, batch=batch) for t in row["outputs"]]
        inputs = [shape(t, batch=batch) for t in row["inputs"]]
        if row["name"] == "aten::convolution":
            weight = inputs[1]
            per_output = weight[1] * weight[2] * weight[3]
            total += 2 * per_output * torch.Size(outputs[0]).numel()
        elif row["name"] == "aten::addmm":
            total += 2 * torch.Size(outputs[0]).numel() * inputs[1][1]
    return total


def test_forward_flops_agree_with_pytorchs_counter(on_cuda):
    doc = check(capture(small_cnn))
    for batch in (2, 7):
        model, pictures = small_cnn(batch)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros_like(pictures))
        assert forward_flops(doc, batch) == counter.get_total_flops()


def test_convolution_attributes_modules_and_links(on_cuda):
    doc = capture(small_cnn)
    forward = operators(doc, "aten::convolution")
    backward = operators(doc, "aten::convolution_backward")
    assert [row["module"] for row in forward] == ["0", "3"] and [row["module"] for row in backward] == ["3", "0"]
    assert [row["link"] for row in forward] == [row["link"] for row in reversed(backward)]
    assert all(row["link"] > 0 for row in forward)
    assert forward[1]["attributes"]["stride"] == [2, 2] and forward[1]["attributes"]["groups"] == 4
    assert backward[1]["attributes"]["mask"] == [False, True, True], "pictures need no gradient"
    norm = operators(doc, "aten::cudnn_batch_norm")
    assert norm and norm[0]["attributes"]["train"] is True
    assert all(row["attributes"].get("n", 1) == 1 for row in operators(doc))


def test_storage_kinds(on_cuda):
    doc = capture(mlp)
    kinds = [kind for _, kind in doc["storages"]]
    assert kinds.count("parameter") == 2 and kinds.count("input") == 2
    assert kinds.count("gradient") == 2 and kinds.count("output") == 2 and kinds.count("persistent") == 0


def test_views_are_counted_and_not_written(on_cuda):
    class Views(nn.Module):
        def forward(self, x):
            return torch.relu(x.view(-1, 2, 3).transpose(1, 2)[:, :2])

    doc = capture(Capture(Views(), torch.empty(4, 6)), mode="inference")
    rows = operators(doc)
    assert [row["name"] for row in rows] == ["aten::relu"]
    assert rows[0]["attributes"]["v"] >= 3 and rows[0]["inputs"][0]["order"] == "strided"


def test_a_transposed_matrix_says_so(on_cuda):
    doc = capture(mlp)
    product = operators(doc, "aten::mm")[0]
    assert product["inputs"][1]["order"] == [1, 0], "Linear multiplies with its weight transposed"


def test_inference_has_no_backward_and_keeps_its_output(on_cuda):
    doc = check(capture(small_cnn, mode="inference"))
    assert [e[1] for e in doc["events"] if e[0] == "p"] == ["load", "forward", "end"]
    assert [kind for _, kind in doc["storages"]].count("output") == 1
    assert all(row["attributes"]["train"] is False for row in operators(doc) if "batch_norm" in row["name"])
    assert not any(row["link"] for row in operators(doc))


def test_checkpointing_runs_the_forward_again(on_cuda):
    from torch.utils.checkpoint import checkpoint

    class Layers(nn.Module):
        def __init__(self, use):
            super().__init__()
            self.use = use
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(lambda t, layer=layer: torch.relu(layer(t)).sigmoid(), x, use_reentrant=False) if self.use \
                    else torch.relu(layer(x)).sigmoid()
            return x

    plain, saved = (check(capture(Capture(Layers(use), torch.empty(4, 64)))) for use in (False, True))
    assert len(operators(plain, "aten::addmm")) == 4 and len(operators(saved, "aten::addmm")) == 8
    assert peak_bytes(saved, batch=4096) < peak_bytes(plain, batch=4096)


def test_silu_and_mish_keep_one_backward_operator(on_cuda):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return nn.functional.mish(nn.functional.silu(self.linear(x)))

    doc = check(capture(Capture(Both(), torch.empty(4, 8))))
    names = [row["name"] for row in operators(doc)]
    assert names.count("aten::silu_backward") == 1 and names.count("aten::mish_backward") == 1
    assert "aten::sigmoid" not in names and "decomposed" not in doc["diagnostics"]


def test_item_is_answered_and_counted(on_cuda):
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x)
            if torch.isnan(y).any():
                raise ValueError("not a number")
            return y * y.abs().max().item()

    doc = check(capture(Capture(Reads(), torch.empty(4, 4))))
    assert doc["diagnostics"]["item_calls"] == 2
    assert [e for e in doc["events"] if e[0] == "s"] == [["s", "item"], ["s", "item"]]


def test_optimizer_groups(on_cuda):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW([{"params": [model.bias], "weight_decay": 0.0}, {"params": [model.weight]}], lr=1e-3)
    doc = capture(Capture(model, torch.empty(4, 4), loss=nn.MSELoss(), optimizer=optimizer))
    assert doc["optimizer"]["name"] == "adamw"
    assert [g["weight_decay"] for g in doc["optimizer"]["groups"]] == [0.0, 0.01]
    assert {p["name"]: p["group"] for p in doc["parameters"]} == {"bias": 0, "weight": 1}


def test_the_same_capture_is_the_same_bytes(on_cuda):
    assert step_file.encode(capture(small_cnn)) == step_file.encode(capture(small_cnn))
