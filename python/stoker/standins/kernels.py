"""Kernels that several libraries have in common, as operators without arithmetic, and their autograd."""

from __future__ import annotations

import torch

from ..tracing import attention  # defines the library that these operators join

_library = torch.library.Library("stoker", "FRAGMENT")
for _schema in ("cross_entropy(Tensor scores, Tensor classes) -> (Tensor, Tensor)",
                "cross_entropy_backward(Tensor(a!) scores, Tensor numbers, Tensor grad) -> Tensor(a!)",
                "cross_entropy_over_backward(Tensor scores, Tensor numbers, Tensor grad) -> Tensor",
                "rms_norm(Tensor x, Tensor? weight) -> (Tensor, Tensor)",
                "rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, Tensor numbers) -> (Tensor, Tensor?)",
                "gated_activation(Tensor gate, Tensor up) -> Tensor",
                "gated_activation_backward(Tensor grad, Tensor(a!) gate, Tensor(b!) up) -> (Tensor(a!), Tensor(b!))",
                "rotary(Tensor x, Tensor cos, Tensor sin) -> Tensor",
                "rotary_(Tensor(a!) x, Tensor cos, Tensor sin) -> Tensor(a!)"):
    _library.define(_schema)



def define(schema: str, fake) -> None:
    """One more operator without arithmetic; `fake` makes its outputs. Once in a process."""
    name = schema.partition("(")[0]
    if not hasattr(torch.ops.stoker, name):
        _library.define(schema)
        torch.library.register_fake(f"stoker::{name}", fake, lib=_library)


_fake = lambda name: torch.library.register_fake(f"stoker::{name}", lib=_library)  # noqa: E731
ops = torch.ops.stoker


@_fake("cross_entropy")
def _(scores, classes):
    return tuple(scores.new_empty(scores.shape[:-1], dtype=torch.float32) for _ in range(2))


@_fake("cross_entropy_backward")
def _(scores, numbers, grad):
    return scores


@_fake("cross_entropy_over_backward")
def _(scores, numbers, grad):
    return torch.empty_like(scores)


@_fake("rms_norm")
def _(x, weight):
    return torch.empty_like(x), x.new_empty(x.shape[:-1], dtype=torch.float32)


@_fake("rms_norm_backward")
def _(grad, x, weight, numbers):
    return torch.empty_like(x), None if weight is None else torch.empty_like(weight)


@_fake("gated_activation")
def _(gate, up):
    return torch.empty_like(gate)


@_fake("gated_activation_backward")
def _(grad, gate, up):
    return gate, up


@_fake("rotary")
def _(x, cos, sin):
    return torch.empty_like(x)


@_fake("rotary_")
def _(x, cos, sin):
    return x


class CrossEntropy(torch.autograd.Function):
    """Loss of each row, in FP32. The gradient lies over the scores, or beside them."""

    @staticmethod
    def forward(ctx, scores, classes, in_place):
        loss, numbers = ops.cross_entropy(scores, classes)
        ctx.save_for_backward(scores, numbers)
        ctx.in_place = in_place
        return loss

    @staticmethod
    def backward(ctx, grad):
        scores, numbers = ctx.saved_tensors
        kernel = ops.cross_entropy_backward if ctx.in_place else ops.cross_entropy_over_backward
        return kernel(scores, numbers, grad), None, None


def reduced(loss, classes, reduction, ignore_index):
    if reduction == "mean":
        return loss.sum() / (classes != ignore_index).sum()
    return loss.sum() if reduction == "sum" else loss


class RmsNorm(torch.autograd.Function):
    """Keeps its input and one number a row."""

    @staticmethod
    def forward(ctx, x, weight):
        out, numbers = ops.rms_norm(x, weight)
        ctx.save_for_backward(x, weight, numbers)
        return out

    @staticmethod
    def backward(ctx, grad):
        return ops.rms_norm_backward(grad.contiguous(), *ctx.saved_tensors)


class Gated(torch.autograd.Function):
    """activation(gate) * up in one kernel, whose gradients lie over both."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return ops.gated_activation(gate, up)

    @staticmethod
    def backward(ctx, grad):
        return ops.gated_activation_backward(grad, *ctx.saved_tensors)


class Rotary(torch.autograd.Function):
    """Positions turned into queries or keys, beside them or in place; so the gradient."""

    @staticmethod
    def forward(ctx, x, cos, sin, in_place):
        ctx.save_for_backward(cos, sin)
        ctx.in_place = in_place
        if not in_place:
            return ops.rotary(x, cos, sin)
        ctx.mark_dirty(x)
        ops.rotary_(x, cos, sin)
        return x

    @staticmethod
    def backward(ctx, grad):
        kernel = ops.rotary_ if ctx.in_place else ops.rotary
        return kernel(grad.contiguous(), *ctx.saved_tensors), None, None, None


def fused_attention(q, k, v, dropout, scale, causal, window=(-1, -1)):
    """Attention over tensors [batch, length, heads, head_dim], which is how flash-attn and xFormers lay them. `window`: keys that a query
    sees before and after its place, -1 for all."""
    turned = (t.transpose(1, 2) for t in (q, k, v))
    return attention.Attention.apply(*turned, None, float(dropout), bool(causal), scale, *map(int, window)).transpose(1, 2)


class RMSNorm(torch.nn.Module):
    """A layer of several libraries, whose other arguments change neither memory nor time."""

    def __init__(self, hidden_size, eps=1e-6, *others, device=None, dtype=None, **more):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))

    def forward(self, x):
        return RmsNorm.apply(x, self.weight)
