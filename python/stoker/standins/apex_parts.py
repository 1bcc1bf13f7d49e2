"""What Stoker stands in for of Apex: FusedLayerNorm, FusedRMSNorm, and the fused optimizers as PyTorch's own."""

from __future__ import annotations

import torch
from torch import nn

from . import kernels


def _half_under_autocast(*tensors):
    """Apex casts to autocast's type, where PyTorch computes normalisations in FP32."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(None if t is None else t.to(dtype) for t in tensors)


class FusedLayerNorm(nn.LayerNorm):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
        super().__init__(normalized_shape, eps, elementwise_affine)

    def forward(self, input):
        x, weight, bias = _half_under_autocast(input, self.weight, self.bias)
        with torch.autocast("cuda", enabled=False):
            return nn.functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class FusedRMSNorm(kernels.RMSNorm):
    def forward(self, input):
        return kernels.RmsNorm.apply(*_half_under_autocast(input, self.weight))


def _fused(optimizer, **own):
    """The optimizer of PyTorch with one kernel for all tensors, without temporaries, as Apex's have."""

    def make(params, lr=1e-3, **given):
        known = {k: v for k, v in given.items() if k in ("betas", "eps", "weight_decay", "momentum", "nesterov", "amsgrad")}
        decoupled = given.get("adam_w_mode", True)
        made = torch.optim.AdamW if optimizer is torch.optim.Adam and decoupled else optimizer
        result = made(params, lr=lr, **{**own, **known})
        for group in result.param_groups:
            group["fused"], group["foreach"] = True, False
        return result

    return make


MODULES = {
    "apex.normalization": {"FusedLayerNorm": FusedLayerNorm, "FusedRMSNorm": FusedRMSNorm},
    "apex.optimizers": {"FusedAdam": _fused(torch.optim.Adam, weight_decay=0.0), "FusedSGD": _fused(torch.optim.SGD)},
}
