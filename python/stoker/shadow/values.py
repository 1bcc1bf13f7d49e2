"""What a script reads of tensors that have no data: plausible constants that keep its loop going.

A number is 1, a tensor that is copied to the host holds ones (numbers with a point) or zeros (all others). A comparison is
made with these numbers, so that `loss > 1e6` does not hold and `loss > 1e-3` does; what asks for NaN finds none. Tensors that
were filled with a number keep it until something is written into them.
"""

from __future__ import annotations

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten

_COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "lt": operator.lt, "ge": operator.ge,
                "le": operator.le}
_SAME = {"detach", "alias", "view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "expand", "clone", "select",
         "any", "all", "_to_copy", "lift_fresh", "mean", "max", "min", "amax", "amin", "permute", "t", "slice"}
_FIXED = {"isnan": False, "isinf": False, "isneginf": False, "isposinf": False, "isfinite": True}
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FILL_POSITION = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1, "scalar_tensor": 0}


def default(dtype: torch.dtype):
    """The number that a read gives where nothing better is known."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 1


def known(tensor):
    """The number that all elements of a tensor are taken for, or None."""
    if not isinstance(tensor, FakeTensor):
        return None
    kept = tensor.__dict__.get("_stoker_value")
    return kept[0] if kept is not None and kept[1] == tensor._version else None


def assumed(value):
    """The number that stands for an argument of an operator."""
    if isinstance(value, torch.Tensor):
        found = known(value)
        return default(value.dtype) if found is None else found
    return value


def remember(tensor, value) -> None:
    tensor.__dict__["_stoker_value"] = (value, tensor._version)


def follow(func, args, out) -> None:
    """Keeps the number of `out`, where the operator that made it says one."""
    if type(out) is not FakeTensor:
        return
    name = func._opname
    if name in _FIXED:
        remember(out, _FIXED[name])
    elif name in _COMPARISONS and len(args) > 1:
        remember(out, bool(_COMPARISONS[name](assumed(args[0]), assumed(args[1]))))
    elif name in _FILLED:
        remember(out, _FILLED[name])
    elif name in _FILL_POSITION:
        number = args[_FILL_POSITION[name]] if len(args) > _FILL_POSITION[name] else None
        if isinstance(number, (int, float, bool)):
            remember(out, number)
    elif name == "logical_not" or name == "bitwise_not" and out.dtype is torch.bool:
        remember(out, not assumed(args[0]))
    elif name in _SAME and args and isinstance(args[0], torch.Tensor):
        found = known(args[0])
        if found is not None:
            remember(out, found)


def scalar(tensor):
    """(what `tensor.item()` gives, what is said about it)."""
    value = assumed(tensor)
    if tensor.dtype is torch.bool:
        return bool(value)
    return float(value) if tensor.dtype.is_floating_point else int(value)


def on_host(shape, dtype: torch.dtype, tensor) -> torch.Tensor:
    """The tensor that a copy to the host gives."""
    found = known(tensor)
    if found is None:
        found = 1 if dtype.is_floating_point else 0
    return torch.full(tuple(shape), found, dtype=dtype)
