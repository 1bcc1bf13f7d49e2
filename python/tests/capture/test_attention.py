"""Attention is one operator, whatever the model reached it by."""

import torch
from torch import nn

from steps import capture, check, operators, peak_bytes, shape
from stoker import Capture


class Block(nn.Module):
    def __init__(self, heads=4, width=32, mask=None, causal=False, dropout=0.0):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mask, self.causal, self.dropout = mask, causal, dropout

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mask = None if self.mask is None else torch.zeros(length, length, dtype=self.mask, device=x.device)
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask, self.dropout, self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)).mean(1)


def block(**settings):
    return Capture(Block(**settings), torch.empty(4, 10, 32))


def test_forward_and_backward_are_one_operator_each(on_cuda):
    doc = check(capture(block(causal=True, dropout=0.1)))
    forward, = operators(doc, "stoker::attention")
    backward, = operators(doc, "stoker::attention_backward")
    assert [shape(t, batch=7) for t in forward["inputs"]] == [[7, 4, 10, 8]] * 3
    assert forward["attributes"]["causal"] is True and forward["attributes"]["dropout"] == 0.1
    assert forward["attributes"]["mask_kind"] == "none"
    assert forward["link"] == backward["link"] > 0
    assert len(backward["inputs"]) == 5 and len(backward["outputs"]) == 3
    names = {row["name"] for row in operators(doc)}
    assert not names & {"aten::bmm", "aten::_softmax"}
    assert "math_attention" not in doc["diagnostics"]


def test_the_output_lies_as_flash_attention_leaves_it(on_cuda):
    """[batch, length, heads, head_dim] in memory: merging the heads afterwards costs no copy."""
    doc = capture(block())
    forward, = operators(doc, "stoker::attention")
    assert forward["outputs"][0]["order"] == [0, 2, 1, 3]
    before_loss = doc["events"][:doc["events"].index(["p", "loss"])]
    assert "aten::clone" not in {row["name"] for row in operators({**doc, "events": before_loss})}


def test_masks(on_cuda):
    for dtype, kind in ((torch.bool, "bool"), (torch.float32, "float")):
        doc = check(capture(block(mask=dtype)))
        forward, = operators(doc, "stoker::attention")
        assert forward["attributes"]["mask_kind"] == kind and len(forward["inputs"]) == 4


def test_autocast_reaches_attention(on_cuda):
    doc = check(capture(block(), precision="amp-bf16"))
    forward, = operators(doc, "stoker::attention")
    assert {t["dtype"] for t in forward["inputs"] + forward["outputs"]} == {"bf16"}


def test_inference_has_a_link_too(on_cuda):
    forward, = operators(capture(block(), mode="inference"), "stoker::attention")
    assert forward["link"] > 0


def test_multi_head_attention_module_takes_the_same_path(on_cuda):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0].mean(1)

    doc = check(capture(Capture(Module(), torch.empty(4, 10, 32))))
    assert len(operators(doc, "stoker::attention")) == 1


def test_unusual_shapes_are_left_to_the_math_path_and_counted(on_cuda):
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            x = self.linear(x)
            return nn.functional.scaled_dot_product_attention(x, x, x).mean(1)

    doc = check(capture(Capture(Flat(), torch.empty(4, 10, 8))))
    assert doc["diagnostics"]["math_attention"] == 1 and operators(doc, "stoker::attention") == []


def test_nothing_quadratic_is_kept(on_cuda):
    """Doubling the length doubles the peak: no probabilities are held between forward and backward."""
    def make(batch=4, seq_len=64):
        return Block(), torch.empty(batch, seq_len, 32)

    doc = check(capture(make))
    first, second, third = (peak_bytes(doc, batch=4, seq_len=n) for n in (1000, 2000, 3000))
    assert third - second == second - first
