"""FLOPs of whole steps against PyTorch's own counter (torch.utils.flop_counter), which counts products by other code.

The counter runs the same model, loss and backward on meta tensors. It knows matrix products, convolutions and
attention; only those are compared. Where it counts otherwise, DIFFERENCES says why and by how much, to the last FLOP.
"""

import functools
import gzip
import json
import subprocess

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from steps import capture
from stoker import Capture

COUNTED = {"gemm", "convolution", "depthwise_convolution", "attention", "rnn"}
BATCH = 6  # none that a capture looks at


class Apply(nn.Module):
    """A module around a function of its layers and the input."""

    def __init__(self, function, *layers):
        super().__init__()
        self.layers, self.function = nn.ModuleList(layers), function

    def forward(self, *inputs):
        return self.function(self.layers, *inputs)


def of_layers(*layers):
    return nn.Sequential(*layers, nn.Flatten())


def attention(layers, x, causal=False):
    q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in layers[0](x).chunk(3, -1))
    out = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return layers[1](out.transpose(1, 2).flatten(2)).flatten(1)


def cross_attention(layers, x, memory):
    q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in (layers[0](x), layers[1](memory), layers[2](memory)))
    return functional.scaled_dot_product_attention(q, k, v).flatten(1)


def plain_attention(layers, x):
    """With bmm and baddbmm, as models had it before there was an operator."""
    q, k, v = layers[0](x).chunk(3, -1)
    bias = torch.zeros(1, 1, x.shape[1], device=x.device)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=1, alpha=0.1)
    return layers[1](torch.bmm(scores.softmax(-1), v)).flatten(1)


def tied(layers, tokens):
    """A language model's head that is its embedding."""
    return functional.linear(layers[1](layers[0](tokens)), layers[0].weight).flatten(1)


def frozen(layers, x):
    with torch.no_grad():
        x = layers[0](x)
    return layers[1](x)


def unet(layers, x):
    down = layers[0](x)
    return layers[3](torch.cat([down, layers[2](layers[1](down))], 1)).flatten(1)


def last_state(layers, x):
    return layers[0](x)[0].flatten(1)


def einsum(layers, x):
    return torch.einsum("bik,jk->bij", layers[0](x), layers[1].weight).flatten(1)


X2, X1, X3 = (4, 16, 16), (8, 50), (3, 6, 8, 10)
CASES = {
    "mlp": (of_layers(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10)), (20,)),
    "linear on three dimensions": (of_layers(nn.Linear(20, 30, bias=False)), (7, 20)),
    "convolution, strided and padded": (of_layers(nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.Conv2d(8, 6, 1)), X2),
    "convolution, dilated": (of_layers(nn.Conv2d(4, 8, 3, dilation=2), nn.Conv2d(8, 4, (1, 5))), X2),
    "convolution, 1-d": (of_layers(nn.Conv1d(8, 12, 5, dilation=3, padding=2), nn.Conv1d(12, 4, 4, stride=4)), X1),
    "convolution, 3-d": (of_layers(nn.Conv3d(3, 8, (1, 3, 3), padding=1), nn.Conv3d(8, 4, 3, stride=2)), X3),
    "convolution, transposed": (of_layers(nn.Conv2d(4, 8, 2, stride=2), nn.ConvTranspose2d(8, 5, 4, stride=2)), X2),
    "convolution, transposed 1-d": (
        of_layers(nn.Conv1d(8, 4, 3), nn.ConvTranspose1d(4, 6, 4, stride=2, padding=1)), X1),
    "residual block": (of_layers(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), X2),
    "u-net": (Apply(unet, nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(6, 8, 2, stride=2), nn.ConvTranspose2d(8, 6, 2, 2),
                    nn.Conv2d(12, 3, 1)), X2),
    "first layer frozen": (Apply(frozen, nn.Linear(20, 30), nn.Linear(30, 5)), (20,)),
    "embedding with its own head": (Apply(tied, nn.Embedding(50, 16), nn.Linear(16, 16)), "tokens"),
    "attention of bmm and baddbmm": (Apply(plain_attention, nn.Linear(16, 48), nn.Linear(16, 8)), (9, 16)),
    "einsum": (Apply(einsum, nn.Linear(16, 12), nn.Linear(12, 5)), (9, 16)),
    "convolution, grouped and depthwise": (of_layers(nn.Conv2d(4, 8, 3, groups=2), nn.Conv2d(8, 8, 3, groups=8)), X2),
    "convolution, depthwise 1-d": (of_layers(nn.Conv1d(8, 8, 5, groups=8), nn.Conv1d(8, 2, 3)), X1),
    "attention": (Apply(attention, nn.Linear(16, 48), nn.Linear(16, 8)), (9, 16)),
    "attention, causal": (
        Apply(functools.partial(attention, causal=True), nn.Linear(16, 48), nn.Linear(16, 8)), (9, 16)),
    "attention to another length": (Apply(cross_attention, *(nn.Linear(16, 16) for _ in range(3))), ((9, 16), (5, 16))),
    "lstm": (Apply(last_state, nn.LSTM(10, 12, num_layers=2, batch_first=True)), (9, 10)),
    "gru, bidirectional": (Apply(last_state, nn.GRU(10, 12, batch_first=True, bidirectional=True)), (9, 10)),
}


# What we count and the counter does not, or the reverse: name -> forward, backward, and why.
POSITIONS = BATCH * 14 * 14  # of the grouped convolution's output
SCORES = BATCH * 4 * 9 * 9  # of the attention over its own sequence
MASKED = BATCH * 4 * (9 * 9 - 9 * 10 // 2)  # of these, those that a causal mask takes away
DIFFERENCES = {
    # The counter multiplies a grouped weight's gradient by the number of groups.
    "convolution, grouped and depthwise": (
        0, -2 * (POSITIONS * 9 * 8 * 2 * (2 - 1) + BATCH * 12 * 12 * 9 * 8 * (8 - 1))),
    "convolution, depthwise 1-d": (0, -2 * BATCH * 46 * 5 * 8 * (8 - 1)),
    # On the meta device attention is two products forward and four backward; a fused backward makes the scores again.
    "attention": (0, 2 * SCORES * 4),
    "attention to another length": (0, 2 * BATCH * 2 * 9 * 5 * 8),
    # A causal mask leaves n (n + 1) / 2 of n^2 scores, which the counter does not take off.
    "attention, causal": (-2 * 2 * MASKED * 4, -4 * 2 * MASKED * 4 + 2 * (SCORES - MASKED) * 4),
    # cuDNN makes the gradients of the input and of the first state, wanted or not; autograd leaves them out.
    "lstm": (0, 2 * 48 * (BATCH * 9 * 10 + 2 * BATCH * 12)),
    "gru, bidirectional": (0, 2 * 2 * 36 * (BATCH * 9 * 10 + BATCH * 12)),
}


def inputs_of(shapes, device=None):
    if shapes == "tokens":
        return (torch.zeros(BATCH, 9, dtype=torch.long, device=device),)
    shapes = shapes if isinstance(shapes[0], tuple) else (shapes,)
    return tuple(torch.empty(BATCH, *shape, device=device) for shape in shapes)


def loss(output, *_):
    return output.square().mean()


def ours(with_binary, tmp_path, model, inputs):
    """FLOPs by pass, of what PyTorch's counter counts too."""
    doc = capture(Capture(model, inputs, loss))
    path = tmp_path / "model.step.gz"
    path.write_bytes(gzip.compress(json.dumps(doc).encode()))
    answer = subprocess.run([with_binary, "models", str(path), "--batch", str(BATCH), "--json"], capture_output=True,
                            text=True, check=True)
    found = {"forward": 0, "backward": 0}
    for row in json.loads(answer.stdout)["operators"]:
        if row["class"] in COUNTED:
            found[row["pass"]] += row["flops"]
    return found


def theirs(model, inputs):
    model = model.to("meta")
    inputs = [x.to("meta") for x in inputs]
    with FlopCounterMode(display=False) as forward:
        value = loss(model(*inputs))
    with FlopCounterMode(display=False) as backward:
        value.backward()
    return {"forward": forward.get_total_flops(), "backward": backward.get_total_flops()}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_pytorchs_counter(on_cuda, with_binary, tmp_path, name):
    model, shapes = CASES[name]
    expected = theirs(model, inputs_of(shapes))
    assert expected["forward"] > 0 and expected["backward"] > 0
    forward, backward = DIFFERENCES.get(name, (0, 0))
    assert ours(with_binary, tmp_path, model, inputs_of(shapes)) == {
        "forward": expected["forward"] + forward, "backward": expected["backward"] + backward}
