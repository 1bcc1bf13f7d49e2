"""What Stoker stands in for of flash-attn 2: attention, cross entropy, rotary positions, RMSNorm."""

from __future__ import annotations

import torch

from ..errors import CaptureError
from . import kernels


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), *others,
                    return_attn_probs=False, **more):
    if return_attn_probs:
        raise CaptureError("flash_attn: return_attn_probs is for tests and has no stand-in: leave it out")
    return kernels.fused_attention(q, k, v, dropout_p, softmax_scale, causal, window_size)


def flash_attn_kvpacked_func(q, kv, *args, **kwargs):
    return flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], *args, **kwargs)


def flash_attn_qkvpacked_func(qkv, *args, **kwargs):
    return flash_attn_func(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], *args, **kwargs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *args, **kwargs):
    """Sequences of one length, one after the other; of mixed lengths only the data knows."""
    count = cu_seqlens_q.shape[0] - 1
    if count * max_seqlen_q != q.shape[0] or count * max_seqlen_k != k.shape[0]:
        raise CaptureError("flash_attn_varlen_func: sequences of mixed lengths depend on the data, and a capture has none: capture "
                           "with sequences of the largest length, as many as their tokens fill")
    q, k, v = (t.unflatten(0, (count, -1)) for t in (q, k, v))
    return flash_attn_func(q, k, v, *args, **kwargs).flatten(0, 1)


def cross_entropy_loss(logits, labels, precomputed_lse=None, label_smoothing=0.0, logit_scale=1.0, lse_square_scale=0.0,
                       ignore_index=-100, inplace_backward=False, process_group=None):
    loss = kernels.CrossEntropy.apply(logits, labels, inplace_backward)
    return loss, torch.zeros_like(loss)


class CrossEntropyLoss(torch.nn.Module):
    def __init__(self, ignore_index=-100, reduction="mean", label_smoothing=0.0, logit_scale=1.0, lse_square_scale=0.0,
                 inplace_backward=False, process_group=None, return_z_loss=False):
        super().__init__()
        if process_group is not None or return_z_loss:
            raise CaptureError("flash_attn's CrossEntropyLoss: Stoker's stand-in knows neither process_group nor return_z_loss")
        self.ignore_index, self.reduction, self.in_place = ignore_index, reduction, inplace_backward

    def forward(self, input, target):
        loss = kernels.CrossEntropy.apply(input, target, self.in_place)
        return kernels.reduced(loss, target, self.reduction, self.ignore_index)


def apply_rotary_emb(x, cos, sin, interleaved=False, inplace=False, *others, **more):
    return kernels.Rotary.apply(x, cos, sin, inplace)


def rms_norm_fn(x, weight, bias=None, residual=None, *others, prenorm=False, residual_in_fp32=False, **more):
    if residual is not None:
        x = x + residual
        x = x.float() if residual_in_fp32 else x
    out = kernels.RmsNorm.apply(x, weight)
    return (out, x) if prenorm else out


_ATTENTION = {f.__name__: f for f in (flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func, flash_attn_varlen_func)}
MODULES = {
    "flash_attn": {**_ATTENTION, "__version__": "2.0.0+stoker"},
    "flash_attn.flash_attn_interface": _ATTENTION,
    "flash_attn.losses.cross_entropy": {"CrossEntropyLoss": CrossEntropyLoss},
    "flash_attn.ops.triton.cross_entropy": {"cross_entropy_loss": cross_entropy_loss},
    "flash_attn.layers.rotary": {"apply_rotary_emb": apply_rotary_emb, "apply_rotary_emb_func": apply_rotary_emb},
    "flash_attn.ops.rms_norm": {"RMSNorm": kernels.RMSNorm, "rms_norm": lambda x, weight, epsilon: rms_norm_fn(x, weight)},
    "flash_attn.ops.triton.layer_norm": {"RMSNorm": kernels.RMSNorm, "rms_norm_fn": rms_norm_fn},
}
