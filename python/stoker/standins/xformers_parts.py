"""What Stoker stands in for of xFormers: memory-efficient attention without a mask of numbers."""

from __future__ import annotations

from ..errors import CaptureError
from . import kernels


class LowerTriangularMask:
    """Says that a query sees what came before it."""


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, op=None, output_dtype=None):
    causal = isinstance(attn_bias, LowerTriangularMask)
    if attn_bias is not None and not causal:
        raise CaptureError("xformers.ops.memory_efficient_attention: Stoker stands in for no attn_bias but LowerTriangularMask")
    if query.dim() == 3:
        out = kernels.fused_attention(*(t.unsqueeze(2) for t in (query, key, value)), p, scale, causal)
        return out.squeeze(2)
    return kernels.fused_attention(query, key, value, p, scale, causal)


_OPS = {"memory_efficient_attention": memory_efficient_attention, "LowerTriangularMask": LowerTriangularMask}
MODULES = {"xformers": {"__version__": "0.0.0+stoker"}, "xformers.ops": _OPS,
           "xformers.ops.fmha.attn_bias": {"LowerTriangularMask": LowerTriangularMask}}
