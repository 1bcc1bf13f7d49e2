"""Libraries of fused kernels that are not installed: what is allocated in their place, and what is refused by name."""

import importlib.util
import pathlib

import pytest
import torch
from torch import nn

from steps import capture, check, operators, peak_bytes
from stoker import Capture, standins
from stoker.errors import CaptureError

pytestmark = pytest.mark.skipif(any(importlib.util.find_spec(name) for name in standins.LIBRARIES),
                                reason="a library that is stood in for is installed")
ROWS, CLASSES, WIDTH = 32, 1000, 64


@pytest.fixture(autouse=True)
def installed():
    standins.install()


class Head(nn.Module):
    def __init__(self, loss, joined=False):
        super().__init__()
        self.body, self.head, self.loss, self.joined = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES, bias=False), loss, joined

    def forward(self, x, classes):
        x = self.body(x)
        return self.loss(self.head.weight, x, classes) if self.joined else self.loss(self.head(x), classes)


def with_loss(loss, joined=False):
    inputs = (torch.empty(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.int64))
    return check(capture(Capture(Head(loss, joined), inputs, loss=lambda value: value), precision="bf16"))


def scores_peak(doc):
    """Largest sum of what lives at once and grows with rows times classes, in scores of half precision."""
    return peak_bytes(doc, batch=4096) / (4096 * CLASSES * 2)


def test_cross_entropy_writes_over_the_scores(on_cuda):
    from flash_attn.losses.cross_entropy import CrossEntropyLoss

    over, beside = with_loss(CrossEntropyLoss(inplace_backward=True)), with_loss(CrossEntropyLoss())
    plain = with_loss(nn.CrossEntropyLoss())
    assert [len(operators(over, f"stoker::cross_entropy{end}")) for end in ("", "_backward")] == [1, 1]
    assert len(operators(beside, "stoker::cross_entropy_over_backward")) == 1
    assert scores_peak(over) < scores_peak(beside) < scores_peak(plain)
    assert 0.85 < scores_peak(beside) - scores_peak(over) <= 1, "a tenth less where the largest moment lies elsewhere"


def test_the_product_before_it_holds_a_piece_of_the_scores_at_a_time(on_cuda):
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    from stoker.standins.liger_kernel_parts import pieces_of

    assert [pieces_of(*shape) for shape in ((32_000, 4096), (128_256, 4096), (1000, 64), (1000, 1000))] == [8, 32, 16, 1]
    joined = with_loss(LigerFusedLinearCrossEntropyLoss(), joined=True)
    assert len(operators(joined, "stoker::cross_entropy")) == 16
    assert scores_peak(joined) < 0.5


def test_normalisation_and_gate_keep_what_the_kernels_keep(on_cuda):
    from apex.normalization import FusedRMSNorm
    from flash_attn.ops.rms_norm import RMSNorm
    from liger_kernel.transformers import LigerSwiGLUMLP

    class Sizes:
        hidden_size, intermediate_size = WIDTH, 4 * WIDTH

    model = nn.Sequential(RMSNorm(WIDTH), LigerSwiGLUMLP(Sizes), FusedRMSNorm(WIDTH))
    doc = check(capture(Capture(model, torch.empty(ROWS, WIDTH)), precision="bf16"))
    assert len(operators(doc, "stoker::rms_norm")) == len(operators(doc, "stoker::rms_norm_backward")) == 2
    gate, = operators(doc, "stoker::gated_activation_backward")
    written = [t["storage"] for t in gate["outputs"]]
    assert written == [t["storage"] for t in gate["inputs"][1:]], "gradients of gate and value lie over both"


def test_attention_of_both_libraries_is_the_one_operator(on_cuda):
    from flash_attn import flash_attn_func, flash_attn_qkvpacked_func
    from xformers.ops import LowerTriangularMask, memory_efficient_attention

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x):
            qkv = self.qkv(x).view(x.shape[0], x.shape[1], 3, 4, -1)
            q, k, v = qkv.unbind(2)
            return (flash_attn_func(q, k, v, causal=True) + flash_attn_qkvpacked_func(qkv, causal=True)
                    + memory_efficient_attention(q, k, v, attn_bias=LowerTriangularMask()))

    doc = check(capture(Capture(Model(), torch.empty(2, 16, WIDTH)), precision="bf16"))
    forward = operators(doc, "stoker::attention")
    assert [row["attributes"]["causal"] for row in forward] == [True] * 3
    assert len(operators(doc, "stoker::attention_backward")) == 3


def test_what_has_no_stand_in_is_refused_by_name():
    import flash_attn
    from transformer_engine.pytorch import fp8_autocast

    with pytest.raises(CaptureError, match="flash_attn.bert_padding"):
        import flash_attn.bert_padding  # noqa: F401
    with pytest.raises(CaptureError, match="flash_attn.flash_attn_with_kvcache"):
        getattr(flash_attn, "flash_attn_with_kvcache")  # noqa: B009
    with pytest.raises(CaptureError, match="FP8 is not modelled"):
        fp8_autocast(enabled=True)
    lengths = torch.zeros(3, dtype=torch.int32)
    with pytest.raises(CaptureError, match="mixed lengths"):
        flash_attn.flash_attn_varlen_func(*(torch.empty(30, 4, 16),) * 3, lengths, lengths, 20, 20)


def test_libraries_that_ask_for_others_are_not_answered(tmp_path, monkeypatch):
    library = tmp_path / "site-packages" / "asking_library.py"
    library.parent.mkdir()
    library.write_text("try:\n    import apex_like_nothing\nexcept ImportError:\n    pass\n"
                       "import importlib.util\nfound = importlib.util.find_spec('xformers') is not None\n")
    monkeypatch.syspath_prepend(str(library.parent))
    monkeypatch.setattr(standins, "used", set())
    for name in [name for name in list(__import__("sys").modules) if name.partition(".")[0] == "xformers"]:
        monkeypatch.delitem(__import__("sys").modules, name)
    import asking_library

    assert not asking_library.found


def test_the_example_captures(on_cuda):
    from stoker import front

    example = pathlib.Path(__file__).resolve().parents[3] / "examples" / "fused_decoder.py"
    doc = front.here(f"{example}:decoder", None, precision="bf16", mode="train", name=None, batch=None, options={}, fixed={})
    assert doc["provenance"]["libraries"]["flash_attn"] == doc["provenance"]["libraries"]["liger_kernel"] == "a stand-in"
    assert {"stoker::rotary", "stoker::rms_norm", "stoker::attention", "stoker::gated_activation"} <= {
        row["name"] for row in operators(doc)}
