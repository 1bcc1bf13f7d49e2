"""What Stoker stands in for of Transformer Engine: linear layers and normalisations in the model's own precision; no FP8."""

from __future__ import annotations

import contextlib

import torch
from torch import nn

from ..errors import CaptureError
from . import kernels


class Linear(nn.Linear):
    def __init__(self, in_features, out_features, bias=True, *, params_dtype=None, device=None, **more):
        super().__init__(in_features, out_features, bias, device=None if device == "cuda" else device, dtype=params_dtype)


class LayerNorm(nn.LayerNorm):
    def __init__(self, hidden_size, eps=1e-5, *, params_dtype=None, **more):
        super().__init__(hidden_size, eps, dtype=params_dtype)

    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            return nn.functional.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


def fp8_autocast(enabled=True, *others, **more):
    if enabled:
        raise CaptureError("transformer_engine: FP8 is not modelled: capture with fp8_autocast(enabled=False)")
    return contextlib.nullcontext()


MODULES = {"transformer_engine.pytorch": {"Linear": Linear, "LayerNorm": LayerNorm, "RMSNorm": kernels.RMSNorm,
                                          "fp8_autocast": fp8_autocast}}
