"""The layers: a frozen one with an adapter beside it, and a frozen one in four bits."""

from __future__ import annotations

import torch
from torch import nn

from .. import attention  # noqa: F401  (defines the library that these operators join)

BLOCK = 64  # weights that share a scale (bitsandbytes' blocksize)
NESTED_BLOCK = 256  # scales that share a scale of their own (double quantisation)

_library = torch.library.Library("stoker", "FRAGMENT")
_library.define("nf4_scales(Tensor scales, Tensor nested, Tensor code) -> Tensor")
_library.define("nf4_weight(Tensor packed, Tensor scales, Tensor code, int rows, int columns, Tensor like) -> Tensor")


@torch.library.register_fake("stoker::nf4_scales", lib=_library)
def _(scales, nested, code):
    return torch.empty_like(scales, dtype=torch.float32)


@torch.library.register_fake("stoker::nf4_weight", lib=_library)
def _(packed, scales, code, rows, columns, like):
    return like.new_empty((rows, columns))


class _Product(torch.autograd.Function):
    """x W^T with W unpacked for the forward and once more for the backward; neither x nor W is kept."""

    @staticmethod
    def forward(ctx, x, bias, layer):
        ctx.layer, ctx.dtype = layer, x.dtype
        return nn.functional.linear(x, layer.unpacked(x), bias)

    @staticmethod
    def backward(ctx, grad):
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return torch.matmul(grad, ctx.layer.unpacked(grad)), None, None


class FourBitLinear(nn.Module):
    """A frozen linear layer in NF4 with doubly quantised scales: 0.516 bytes a weight."""

    def __init__(self, inputs: int, outputs: int, bias: torch.Tensor | None, compute: torch.dtype):
        super().__init__()
        self.in_features, self.out_features, self.compute = inputs, outputs, compute
        count = inputs * outputs
        blocks = -(-count // BLOCK)
        self.weight = nn.Parameter(torch.empty(-(-count // 2), 1, dtype=torch.uint8), requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(torch.empty(outputs, dtype=compute), requires_grad=False)
        for name, size, dtype in (("scales", blocks, torch.uint8), ("nested", -(-blocks // NESTED_BLOCK), torch.float32),
                                  ("code", 16, torch.float32), ("nested_code", 256, torch.float32)):
            self.register_buffer(name, keeping_its_type(torch.empty(size, dtype=dtype)))

    def unpacked(self, like: torch.Tensor) -> torch.Tensor:
        scales = torch.ops.stoker.nf4_scales(self.scales, self.nested, self.nested_code)
        return torch.ops.stoker.nf4_weight(self.weight, scales, self.code, self.out_features, self.in_features, like)

    def forward(self, x):
        asked = x.dtype
        x = x.to(self.compute)
        return _Product.apply(x, self.bias, self).to(asked)


def keeping_its_type(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that stays in its floating-point type when a capture in bf16 or fp16 casts the model as a whole."""
    tensor.keeps_type = True
    return tensor


class Adapted(nn.Module):
    """A frozen layer plus B(A(x)) * alpha / r. A and B are FP32, as peft holds them beside weights in half precision."""

    def __init__(self, base: nn.Module, inputs: int, outputs: int, rank: int, dropout: float):
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.Linear(inputs, rank, bias=False, dtype=torch.float32)
        self.lora_B = nn.Linear(rank, outputs, bias=False, dtype=torch.float32)
        self.lora_dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        for layer in (self.lora_A, self.lora_B):
            keeping_its_type(layer.weight)

    def forward(self, x):
        result = self.base_layer(x)
        if isinstance(self.base_layer, FourBitLinear):
            return self._beside_four_bits(x, result)
        before = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(self.lora_dropout(x))) * 2.0
        return result.to(before)

    def _beside_four_bits(self, x, result):
        result = result.clone()
        before, casts = result.dtype, not torch.is_autocast_enabled(x.device.type)
        if casts:
            x = x.to(self.lora_A.weight.dtype)
        more = self.lora_B(self.lora_A(self.lora_dropout(x))) * 2.0
        return result + (more.to(before) if casts else more)
