"""What Stoker stands in for of Liger: cross entropy, with and without the product before it, RMSNorm, SwiGLU, GEGLU, RoPE."""

from __future__ import annotations

import torch
from torch import nn

from . import kernels


class LigerCrossEntropyLoss(nn.Module):
    """Computes the gradient over the scores in the forward already; the backward scales it."""

    def __init__(self, weight=None, ignore_index=-100, lse_square_scale=0.0, label_smoothing=0.0, reduction="mean", **more):
        super().__init__()
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, _input, target):
        loss = kernels.CrossEntropy.apply(_input, target, True)
        return loss.sum() if self.reduction != "none" else loss


def pieces_of(vocabulary: int, hidden: int) -> int:
    """Chunks that Liger parts the rows into (fused_linear_cross_entropy.py: cdiv, next_power_of_2), for as many rows as a
    power of two."""
    return 1 << ((vocabulary + hidden - 1) // hidden).bit_length() - 1


class _LinearCrossEntropy(torch.autograd.Function):
    """Scores of one chunk at a time. Liger's chunks are of rows; here they are of classes, as many and as large, since the
    number of rows is not known while capturing. The sums and the bytes are the same."""

    @staticmethod
    def forward(ctx, x, weight, target):
        rows, hidden = x.shape
        classes = weight.shape[0]
        grad_x = torch.zeros_like(x)
        grad_weight = torch.zeros_like(weight) if weight.requires_grad else None
        loss = x.new_zeros(rows, dtype=torch.float32)
        count = pieces_of(classes, hidden)
        for first in range(0, classes, -(-classes // count)):
            part = weight[first:first + -(-classes // count)]
            scores = x @ part.t()
            ones, numbers = kernels.ops.cross_entropy(scores, target)
            kernels.ops.cross_entropy_backward(scores, numbers, ones)
            grad_x.addmm_(scores, part)
            if grad_weight is not None:
                grad_weight[first:first + part.shape[0]].addmm_(scores.t(), x)
        ctx.save_for_backward(grad_x, grad_weight)
        return loss.sum()

    @staticmethod
    def backward(ctx, grad):
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x, grad_weight, None


class LigerFusedLinearCrossEntropyLoss(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, lin_weight, _input, target, bias=None):
        if torch.is_autocast_enabled("cuda"):
            dtype = torch.get_autocast_dtype("cuda")
            lin_weight, _input = lin_weight.to(dtype), _input.to(dtype)
        return _LinearCrossEntropy.apply(_input, lin_weight, target)


class LigerSwiGLUMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, wide = config.hidden_size, config.intermediate_size
        self.gate_proj, self.up_proj = nn.Linear(hidden, wide, bias=False), nn.Linear(hidden, wide, bias=False)
        self.down_proj = nn.Linear(wide, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(kernels.Gated.apply(self.gate_proj(x), self.up_proj(x)))


def liger_silu_mul(a, b):
    return kernels.Gated.apply(a, b)


def liger_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
    return tuple(kernels.Rotary.apply(t.transpose(1, 2).contiguous(), cos, sin, True).transpose(1, 2) for t in (q, k))


_LAYERS = {c.__name__: c for c in (LigerCrossEntropyLoss, LigerFusedLinearCrossEntropyLoss, LigerSwiGLUMLP)}
_LAYERS |= {"LigerGEGLUMLP": LigerSwiGLUMLP, "LigerRMSNorm": kernels.RMSNorm, "liger_rotary_pos_emb": liger_rotary_pos_emb}
MODULES = {
    "liger_kernel.transformers": _LAYERS,
    "liger_kernel.transformers.cross_entropy": _LAYERS,
    "liger_kernel.transformers.fused_linear_cross_entropy": _LAYERS,
    "liger_kernel.transformers.rms_norm": _LAYERS,
    "liger_kernel.transformers.swiglu": _LAYERS,
    "liger_kernel.transformers.rope": _LAYERS,
    "liger_kernel.transformers.functional": {"liger_swiglu": liger_silu_mul,
                                             "liger_rms_norm": lambda X, W, *others, **more: kernels.RmsNorm.apply(X, W)},
}
