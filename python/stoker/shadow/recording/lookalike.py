"""What an operator without a fake implementation gives: its kernel for the CPU is run on zeros of the same sizes."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils import _pytree as pytree

from . import values

_MOST_BYTES = 1 << 28  # of tensors that are made for real


def of(func, args, kwargs, fake_mode):
    """Its outputs as fake tensors; NotImplemented where the CPU has no kernel either, or it writes into its arguments."""
    if func._schema.is_mutable or any(r.alias_info is not None for r in func._schema.returns):
        return NotImplemented
    inputs = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    if sum(t.numel() * t.element_size() for t in inputs) > _MOST_BYTES:
        return NotImplemented

    def real(leaf):
        if isinstance(leaf, FakeTensor):
            known = values.real(leaf)
            return known if known is not None else torch.zeros(tuple(leaf.shape), dtype=leaf.dtype)
        return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

    device = next((t.device for t in inputs if isinstance(t, FakeTensor)), torch.device("cuda", 0))
    try:
        with unset_fake_temporarily(), torch.no_grad():
            out = func(*pytree.tree_map(real, args), **pytree.tree_map(real, kwargs))
    except (NotImplementedError, RuntimeError):
        return NotImplemented

    def fake(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        with fake_mode:
            if leaf.layout is not torch.strided:  # a dense one stands for it
                return torch.empty(tuple(leaf.shape), dtype=leaf.dtype, device=device)
            return torch.empty_strided(tuple(leaf.shape), leaf.stride(), dtype=leaf.dtype, device=device)

    return pytree.tree_map(fake, out)
