"""What several families share: activations, norms, rotary positions, attention, the language model's loss."""

from __future__ import annotations

import math

import torch
from torch import nn

IGNORED_LABEL = -100


class NewGelu(nn.Module):
    """The tanh approximation written out, as GPT-2 computes it: eight kernels where nn.GELU has one."""

    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


_ACTIVATIONS = {
    "silu": nn.SiLU, "swish": nn.SiLU, "gelu": nn.GELU, "relu": nn.ReLU, "tanh": nn.Tanh, "gelu_new": NewGelu,
    "gelu_fast": NewGelu, "gelu_pytorch_tanh": lambda: nn.GELU(approximate="tanh"),
}


def activation(name: str) -> nn.Module:
    if name not in _ACTIVATIONS:
        raise ValueError(f"the activation '{name}' is none of {', '.join(_ACTIVATIONS)}: install transformers")
    return _ACTIVATIONS[name]()


class RmsNorm(nn.Module):
    """Computed in FP32 and cast back before (Llama) or after (Gemma) the weight."""

    def __init__(self, size: int, eps: float, gemma: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps, self.gemma = eps, gemma

    def forward(self, x):
        wide = x.to(torch.float32)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        if self.gemma:
            return (scaled * (1.0 + self.weight.float())).type_as(x)
        return self.weight * scaled.to(x.dtype)


class Rotary(nn.Module):
    """Cosines and sines of all positions, made once a step."""

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("inv_freq", torch.empty(size // 2), persistent=False)
        self.register_buffer("original_inv_freq", torch.empty(size // 2), persistent=False)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
        angles = positions[..., None].float() * self.inv_freq.to(device=x.device, dtype=torch.float)
        both = torch.cat((angles, angles), dim=-1)
        return (both.cos() * 1.0).to(x.dtype), (both.sin() * 1.0).to(x.dtype)


def _half_turned(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def turned(x, cos, sin):
    """Queries or keys [batch, heads, length, size] at their positions; what lies beyond the rotary part stays."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    size = cos.shape[-1]
    if size == x.shape[-1]:
        return (x * cos) + (_half_turned(x) * sin)
    part, rest = x[..., :size], x[..., size:]
    return torch.cat([(part * cos) + (_half_turned(part) * sin), rest], dim=-1)


def attention(query, key, value, *, causal: bool, dropout: float, grouped: bool = False, scale: float | None = None):
    """[batch, length, heads * size] of [batch, heads, length, size]."""
    out = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=causal, scale=scale,
                                                     enable_gqa=grouped)
    out = out.transpose(1, 2).contiguous()
    return out.reshape(*out.shape[:2], -1).contiguous()


def next_word_loss(scores, labels):
    """Each position against the next word, in FP32."""
    scores = scores.float()
    labels = nn.functional.pad(labels, (0, 1), value=IGNORED_LABEL)[..., 1:].contiguous()
    return nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1), ignore_index=IGNORED_LABEL)


class Output(dict):
    """What a model with a head returns; `loss` is what a step trains."""

    @property
    def loss(self):
        return self["loss"]
