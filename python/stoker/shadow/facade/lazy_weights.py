"""Weights that get their shape in the first forward (torch.nn.LazyLinear and its like), on the fake device.

PyTorch keeps an empty tensor on the device and puts the weight's data there later. A fake tensor cannot take that place, so the
device is written down instead, and the weight is made there once its shape is known.
"""

from __future__ import annotations

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin


class _Placed:
    """Says that it is on the device that was written down for it."""

    @property
    def device(self):
        return self._stoker_device

    @property
    def is_cuda(self) -> bool:
        return self._stoker_device.type == "cuda"


class _PlacedParameter(_Placed, UninitializedParameter):
    pass


class _PlacedBuffer(_Placed, UninitializedBuffer):
    pass


def install(swap) -> None:
    """`swap(old, new)` gives one Python object the other's tensor."""
    materialize, make = UninitializedTensorMixin.materialize, UninitializedParameter.__new__

    def materialize_there(self, shape, device=None, dtype=None) -> None:
        device = torch.device(device or self.device)
        if device.type != "cuda":
            return materialize(self, shape, device=device, dtype=dtype)
        data = torch.empty(shape, device=device, dtype=dtype or self.dtype)
        is_parameter = isinstance(self, torch.nn.Parameter)
        swap(self, torch.nn.Parameter(data, requires_grad=self.requires_grad) if is_parameter else data)

    def made(cls, requires_grad=True, device=None, dtype=None):
        """One that is made on the device at once: LazyLinear(10, device="cuda")."""
        there = torch.empty(0, device=device, dtype=dtype)
        lazy = make(cls, requires_grad, device="cpu", dtype=there.dtype)
        _place(lazy, there)
        return lazy

    def made_buffer(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        lazy = made(UninitializedBuffer, requires_grad, device, dtype)
        lazy.persistent, lazy._is_buffer = persistent, True
        return lazy

    UninitializedTensorMixin.materialize = materialize_there
    UninitializedParameter.__new__ = made
    UninitializedBuffer.__new__ = made_buffer


def _place(lazy, there) -> None:
    if lazy.dtype != there.dtype:
        lazy.data = lazy.data.to(there.dtype)
    if there.device.type == "cuda":
        lazy.__class__ = _PlacedParameter if isinstance(lazy, torch.nn.Parameter) else _PlacedBuffer
        lazy._stoker_device = there.device
    elif isinstance(lazy, _Placed):
        lazy.__class__ = UninitializedParameter if isinstance(lazy, torch.nn.Parameter) else UninitializedBuffer


def is_placed(tensor) -> bool:
    """Whether it has no shape yet, and is to be on the fake device."""
    return isinstance(tensor, _Placed)


def move(lazy, function) -> None:
    """What module.cuda() or .half() does to it: `function` tells of an empty tensor where it is to be."""
    _place(lazy, function(torch.empty(0, device=lazy.device, dtype=lazy.dtype)))
