"""Operators whose result has a size that depends on values: the largest possible one is taken, and said."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten


def _is_mask(tensor) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.bool, torch.uint8)


def _positions(shadow, mask):
    """One index for each dimension of a mask, as if all of it were true."""
    if not isinstance(mask, FakeTensor):
        return [part for part in mask.nonzero().unbind(1)] if mask.dim() else [mask.nonzero().flatten()]
    with shadow._world.fake_mode:
        return [torch.empty(mask.numel(), dtype=torch.int64, device=mask.device) for _ in range(max(1, mask.dim()))]


def _nonzero(shadow, args, kwargs):
    tensor = args[0]
    shadow.note_bounded(aten.nonzero.default, tensor)
    shadow._world.watcher.synchronises("nonzero")
    with shadow._world.fake_mode:
        out = torch.empty((tensor.dim(), tensor.numel()), dtype=torch.int64, device=tensor.device).t()
    return args, shadow._world.watcher.made(aten.nonzero.default, args, kwargs, out)


def _masked_select(shadow, args, kwargs):
    tensor, mask = args[0], args[1]
    shadow.note_bounded(aten.masked_select.default, tensor)
    shadow._world.watcher.synchronises("nonzero")
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    with shadow._world.fake_mode:
        out = torch.empty(shape.numel(), dtype=tensor.dtype, device=tensor.device)
    return args, shadow._world.watcher.made(aten.masked_select.default, args, kwargs, out)


def _index(shadow, args, kwargs):
    """Masks among the indices become positions."""
    indices = args[1]
    if not any(_is_mask(i) for i in indices):
        return args, None
    shadow.note_bounded(aten.index.Tensor, args[0])
    shadow._world.watcher.synchronises("nonzero")
    replaced: list = []
    for index in indices:
        if _is_mask(index):
            replaced.extend(_positions(shadow, index))
        else:
            replaced.append(index)
    return (args[0], replaced, *args[2:]), None


def _unique(shadow, args, kwargs):
    tensor = args[0]
    shadow.note_bounded(aten._unique2.default, tensor)
    with shadow._world.fake_mode:
        count = tensor.numel()
        out = tensor.new_empty(count)
        inverse = torch.empty(tensor.shape, dtype=torch.int64, device=tensor.device)
        counts = torch.empty(count, dtype=torch.int64, device=tensor.device)
    return args, (out, inverse, counts)


def _bincount(shadow, args, kwargs):
    least = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    shadow.note_bounded(aten.bincount.default, args[0])
    with shadow._world.fake_mode:
        return args, torch.empty(max(1, least), dtype=torch.int64, device=args[0].device)


BOUNDED = {aten.nonzero.default: _nonzero, aten.masked_select.default: _masked_select, aten.index.Tensor: _index,
           aten.index_put.default: _index, aten.index_put_.default: _index, aten._unique2.default: _unique,
           aten.bincount.default: _bincount}
