"""Keeps scaled dot-product attention as one operator, so that each GPU can later be given its own backend.

The outputs lie in memory as flash attention's and memory-efficient attention's do: [batch, length, heads, head_dim].
"""

from __future__ import annotations

import torch

_library = torch.library.Library("stoker", "DEF")
_library.define("attention(Tensor q, Tensor k, Tensor v, Tensor? mask, float dropout, bool causal, float? scale, "
                "int before=-1, int after=-1) -> Tensor")
_library.define("attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, Tensor? mask, "
                "float dropout, bool causal, float? scale, bool mask_gradient, int before=-1, int after=-1) "
                "-> (Tensor, Tensor, Tensor, Tensor?)")


@torch.library.register_fake("stoker::attention", lib=_library)
def _attention_fake(q, k, v, mask, dropout, causal, scale, before=-1, after=-1):
    return q.new_empty((q.shape[0], q.shape[2], q.shape[1], v.shape[3])).transpose(1, 2)


@torch.library.register_fake("stoker::attention_backward", lib=_library)
def _attention_backward_fake(grad_out, q, k, v, out, mask, dropout, causal, scale, mask_gradient, before=-1, after=-1):
    # empty_like keeps dense strides; what is a slice of a packed tensor becomes dense in [batch, length, heads, ...].
    like = [torch.empty_like(t.transpose(1, 2)).transpose(1, 2) for t in (q, k, v)]
    return (*like, torch.empty_like(mask) if mask_gradient else None)


class Attention(torch.autograd.Function):
    """softmax(q k^T * scale + mask) v, with nothing but its inputs and its output kept for the backward."""

    @staticmethod
    def forward(ctx, q, k, v, mask, dropout, causal, scale, before=-1, after=-1):
        out = torch.ops.stoker.attention(q, k, v, mask, dropout, causal, scale, before, after)
        ctx.save_for_backward(q, k, v, out, mask)
        ctx.options, ctx.window = (dropout, causal, scale), (before, after)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, out, mask = ctx.saved_tensors
        grads = torch.ops.stoker.attention_backward(grad_out, q, k, v, out, mask, *ctx.options, ctx.needs_input_grad[3],
                                                         *ctx.window)
        return (*grads, None, None, None, None, None)


def _fits(query, key, value) -> bool:
    """Fused backends take four dimensions only; with others CUDA runs the math path too."""
    return query.dim() == key.dim() == value.dim() == 4 and query.size(0) == key.size(0) == value.size(0)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
              enable_gqa=False):
    """Stands in for torch.nn.functional.scaled_dot_product_attention. Returns NotImplemented to let it run as it is."""
    if not _fits(query, key, value):
        return NotImplemented
    device_type = "cpu" if query.device.type == "cpu" else "cuda"
    if torch.is_autocast_enabled(device_type):
        dtype = torch.get_autocast_dtype(device_type)
        query, key, value = (t.to(dtype) if t.dtype is torch.float32 else t for t in (query, key, value))
        if attn_mask is not None and attn_mask.dtype is torch.float32:
            attn_mask = attn_mask.to(dtype)
    return Attention.apply(query, key, value, attn_mask, float(dropout_p), bool(is_causal), scale)
