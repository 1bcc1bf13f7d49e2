"""What a script reads of tensors that have no data: plausible constants that keep its loop going.

A number is 1, a tensor that is copied to the host holds ones (numbers with a point) or zeros (all others). A comparison is
made with these numbers, so that `loss > 1e6` does not hold and `loss > 1e-3` does; what asks for NaN finds none. Tensors that
were filled with a number keep it until something is written into them. Small tensors whose values follow from the host's data
alone (labels, boxes, lengths, masks) are computed for real beside the fake ones, by the table of a capture (stoker.tracing.values).
"""

from __future__ import annotations

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...tracing.values import MOST_ELEMENTS, Values

aten = torch.ops.aten

table = Values()  # what is known of the tensors of this run
moving_parameters = False  # parameters are on their way to the device: their values mean nothing
_MOST_FLOATS = 1024  # of a tensor with points that is kept when it is copied to the device: no images

_COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "lt": operator.lt, "ge": operator.ge,
                "le": operator.le}
_TRUTH = {"logical_and": operator.and_, "bitwise_and": operator.and_, "__and__": operator.and_, "logical_or": operator.or_,
          "bitwise_or": operator.or_, "__or__": operator.or_, "logical_xor": operator.xor, "bitwise_xor": operator.xor}
_SAME = {"detach", "alias", "view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "expand", "clone", "select",
         "any", "all", "_is_all_true", "_is_any_true", "_to_copy", "lift_fresh", "mean", "max", "min", "amax", "amin", "permute", "t",
         "slice"}
_FIXED = {"isnan": False, "isinf": False, "isneginf": False, "isposinf": False, "isfinite": True}
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FILL_POSITION = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1, "scalar_tensor": 0}


def default(dtype: torch.dtype):
    """The number that a read gives where nothing better is known."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 1


def real(tensor):
    """The tensor with its values where they are known, or None."""
    return table.real(tensor) if tensor.layout is torch.strided and tensor.numel() <= MOST_ELEMENTS else None


def keep(fake, tensor) -> None:
    """Remembers what a small tensor of the host held when it was copied to the device."""
    if moving_parameters:
        return
    most = MOST_ELEMENTS if not tensor.is_floating_point() else _MOST_FLOATS
    if tensor.numel() <= most and tensor.layout is torch.strided and not tensor.is_complex() and not tensor.requires_grad:
        table.set_real(fake, tensor.to(fake.dtype))


def known(tensor):
    """The number that all elements of a tensor are taken for, or None."""
    if not isinstance(tensor, FakeTensor):
        return None
    if tensor.numel() == 1 and (found := real(tensor)) is not None:
        return table.on_host(found.item)
    if (guess := table.guess(tensor)) is not None:
        return guess
    kept = tensor.__dict__.get("_stoker_value")
    return kept[0] if kept is not None and kept[1] == version(tensor) else None


def assumed(value):
    """The number that stands for an argument of an operator."""
    if isinstance(value, torch.Tensor):
        found = known(value)
        return default(value.dtype) if found is None else found
    return value


def remember(tensor, value) -> None:
    tensor.__dict__["_stoker_value"] = (value, version(tensor))


def version(tensor) -> int:
    """How often it was written into; tensors of inference mode do not count that."""
    return 0 if tensor.is_inference() else tensor._version


def follow(func, args, kwargs, out, followed: bool) -> None:
    """Keeps what is known of `out`, where the operator that made it says something; `followed`: the table was told."""
    if not followed:
        table.follow(func, args, kwargs, out)
    name = func._opname
    if name == "_softmax" and type(out) is FakeTensor and out.dim() and real(out) is None:
        table.set_guess(out, 1 / max(1, out.shape[args[1]]))  # shares of classes that add up, as metrics check
    if type(out) is not FakeTensor or real(out) is not None or table.guess(out) is not None:
        return
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
    elif name in _TRUTH and out.dtype is torch.bool and len(args) > 1:
        remember(out, bool(_TRUTH[name](bool(assumed(args[0])), bool(assumed(args[1])))))
    elif torch.Tag.pointwise in func.tags and not out.dtype.is_floating_point and not out.dtype.is_complex:
        found = _of_one(func, args)
        if found is not None:
            remember(out, found)
    elif name in _SAME and args and isinstance(args[0], torch.Tensor):
        found = known(args[0])
        if found is None and name in ("all", "_is_all_true"):
            found = True  # checks pass
        if found is not None:
            remember(out, found)


def _of_one(func, args):
    """A pointwise operator of whole numbers on the one that each operand is taken for."""
    def one(value):
        return torch.tensor(assumed(value), dtype=value.dtype) if isinstance(value, torch.Tensor) else value

    try:
        return table.on_host(lambda: func(*map(one, args)).item())
    except (RuntimeError, TypeError, ZeroDivisionError):
        return None


def scalar(tensor):
    """(what `tensor.item()` gives, what is said about it)."""
    value = assumed(tensor)
    if tensor.dtype is torch.bool:
        return bool(value)
    return float(value) if tensor.dtype.is_floating_point else int(value)


def on_host(shape, dtype: torch.dtype, tensor) -> torch.Tensor:
    """The tensor that a copy to the host gives."""
    if (values := real(tensor)) is not None:
        return table.on_host(lambda: values.to(dtype).clone())
    found = known(tensor)
    if found is None:
        found = 1 if dtype.is_floating_point else 0
    return torch.full(tuple(shape), found, dtype=dtype)
