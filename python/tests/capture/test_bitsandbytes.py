"""bitsandbytes and Triton where neither is installed: bytes of weights, temporaries, optimizers by name, launches by name."""

import importlib.util

import pytest
import torch
from torch import nn

from steps import capture, check, operators, value
from stoker import Capture, kernel, standins
from stoker.errors import CaptureError
from stoker.standins import custom_kernels

pytestmark = pytest.mark.skipif(any(importlib.util.find_spec(name) for name in ("bitsandbytes", "triton")),
                                reason="a library that is stood in for is installed")


@pytest.fixture(autouse=True)
def installed():
    standins.install()


def storage_bytes(doc, part, name):
    row = next(row for row in doc[part] if row["name"] == name)
    return value(doc["storages"][row["storage"]][0], {"batch": 4})


@pytest.mark.parametrize("nested, scales", [(True, {"absmax": 512, "absmax_of_absmax": 8, "code_of_absmax": 1024, "offset": 4}),
                                            (False, {"absmax": 2048})])
def test_weights_in_four_bits(on_cuda, nested, scales):
    import bitsandbytes as bnb

    layer = bnb.nn.Linear4bit(128, 256, bias=False, compute_dtype=torch.bfloat16, compress_statistics=nested, quant_type="nf4")
    model = nn.Sequential(nn.Linear(128, 128), layer, nn.Linear(256, 10))
    doc = check(capture(Capture(model, torch.empty(4, 128)), precision="bf16"))
    assert storage_bytes(doc, "parameters", "1.weight") == 128 * 256 // 2
    assert {name: storage_bytes(doc, "buffers", f"1.{name}") for name in scales} == scales
    made = operators(doc, "stoker::dequantize_4bit")
    assert len(made) == 2, "once for the product, once for the gradient of its input"
    assert [value(s, {}) for s in made[0]["outputs"][0]["shape"]] == [256, 128] and made[0]["outputs"][0]["dtype"] == "bf16"
    assert next(row for row in doc["parameters"] if row["name"] == "1.weight").get("gradient") is None


def test_every_linear_but_the_head_is_quantised():
    from stoker.standins.bitsandbytes_parts import Linear4bit, quantize_linears

    model = quantize_linears(nn.ModuleDict({"body": nn.Linear(64, 64), "lm_head": nn.Linear(64, 10)}))
    assert type(model["body"]) is Linear4bit and type(model["lm_head"]) is nn.Linear
    assert model["body"].bias.shape == (64,)


@pytest.mark.parametrize("name, told", [("AdamW8bit", "adamw8bit"), ("PagedAdamW8bit", "pagedadamw8bit"), ("Lion8bit", "lion8bit"),
                                        ("PagedAdamW32bit", "adamw")])
def test_optimizers_are_told_by_name(on_cuda, name, told):
    import bitsandbytes as bnb

    model = nn.Linear(64, 10)
    made = getattr(bnb.optim, name)(model.parameters(), lr=1e-4, weight_decay=0.1)
    doc = check(capture(Capture(model, torch.empty(4, 64), optimizer=made)))
    assert doc["optimizer"]["name"] == told and doc["optimizer"]["groups"][0]["weight_decay"] == 0.1


def test_what_has_no_stand_in_is_refused():
    import bitsandbytes as bnb

    with pytest.raises(CaptureError, match="Linear8bitLt"):
        bnb.nn.Linear8bitLt(8, 8)
    with pytest.raises(CaptureError, match="percentile"):
        bnb.optim.Adam8bit([nn.Parameter(torch.zeros(8))], percentile_clipping=5)


def launching(registered):
    import triton

    def scale_kernel(x_ptr, out_ptr, n, BLOCK=1): ...

    jitted = triton.jit(scale_kernel)
    if registered:
        jitted = kernel(writes="out_ptr", flops=lambda a: 3 * a["x_ptr"].numel())(jitted)

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = torch.empty_like(x)
            jitted[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64, num_warps=4)
            return out

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.head = nn.Linear(16, 32), nn.Linear(32, 10)

        def forward(self, x):
            return self.head(Scale.apply(self.up(x)))

    return Net(), torch.empty(8, 16)


def test_a_triton_kernel_counts_as_it_was_registered(on_cuda):
    custom_kernels.registered.clear()
    doc = check(capture(Capture(*launching(True))))
    (launched,) = operators(doc, "stoker::kernel_")
    flops, moved, read = launched["inputs"]
    assert value(flops["shape"][0], {"batch": 8}) == 3 * 8 * 32 and value(moved["shape"][0], {"batch": 8}) == 2 * 8 * 32 * 4
    assert [value(s, {"batch": 8}) for s in read["shape"]] == [8, 32] == [value(s, {"batch": 8}) for s in launched["outputs"][0]["shape"]]


def test_a_triton_kernel_without_a_registration_is_refused_with_the_cure(on_cuda):
    custom_kernels.registered.clear()
    with pytest.raises(CaptureError, match=r"scale_kernel.*@stoker\.kernel\(writes="):
        capture(Capture(*launching(False)))


@pytest.mark.parametrize("bad", [{"writes": []}, {"writes": [3]}, {"writes": "a", "flops": -1}, {"writes": "a", "bytes": "many"}])
def test_registrations_that_cannot_be_meant(bad):
    with pytest.raises(CaptureError, match="stoker.kernel"):
        kernel("k", **bad)
