"""The layers: a frozen one in four bits, and a frozen one with an adapter beside it."""

from __future__ import annotations

import torch
from torch import nn

from ..standins.bitsandbytes_parts import Linear4bit, LinearNF4


def four_bit(inputs: int, outputs: int, bias: torch.Tensor | None, compute: torch.dtype) -> Linear4bit:
    """A frozen linear layer in NF4 with doubly quantised scales, 0.516 bytes a weight, as bitsandbytes holds it."""
    layer = LinearNF4(inputs, outputs, bias=False, compute_dtype=compute)
    if bias is not None:
        layer.bias = nn.Parameter(torch.empty(outputs, dtype=compute), requires_grad=False)
    return layer


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
        if isinstance(self.base_layer, Linear4bit):
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
