"""How large a part of a mask holds that follows from choices, as a router among experts makes them, or from chance, as one that hides
words: each choice is taken for as likely as any other, so that sizes which follow from the mask are those to be expected.
"""

from __future__ import annotations

import math

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import values

_CHOICES = {"topk": 1, "max": 1, "min": 1, "sort": 1, "argmax": 0, "argmin": 0, "argsort": 0, "multinomial": 0}  # and which result they are
_ROUNDING = 1e-6
_EVEN = ("rand", "rand_like", "uniform")  # numbers between 0 and 1
_KEEP = {"detach", "alias", "view", "_unsafe_view", "reshape", "_reshape_alias", "expand", "clone", "select", "slice", "squeeze",
         "unsqueeze", "permute", "t", "transpose", "_to_copy", "split", "split_with_sizes", "unbind", "lift_fresh", "gt", "ne"}
EXPECTED = "that to be expected is taken"
_FEWEST = 8  # that hold of a sample, from which on they are rounded up for each: sizes then follow the batch


def of(tensor) -> float | None:
    """The share of the elements that hold, or None where nothing is known."""
    return _get(tensor, "share")


def count(mask, batch: int | None) -> int | None:
    """How many elements of the mask hold, at least one."""
    share = of(mask)
    if share is None:
        return None
    if batch and mask.numel() % batch == 0 and share * mask.numel() >= _FEWEST * batch:
        return math.ceil(share * mask.numel() / batch - _ROUNDING) * batch
    return max(1, math.ceil(share * mask.numel() - _ROUNDING))


def follow(func, args, out) -> None:
    """Keeps what an operator's results tell of choices."""
    name = func._opname.rstrip("_")
    if name in _CHOICES:
        _choose(name, args, out)
    elif name in ("eq", "ne") and (among := _get(args[0], "among") or _get(args[1], "among")):
        _set(out, "share", 1 / among if name == "eq" else 1 - 1 / among)
    elif name in _EVEN and (name != "uniform" or args[1:] in ((), (0.0, 1.0))):
        _set(out, "even", True)
    elif name in ("lt", "le", "gt", "ge") and _get(args[0], "even") and isinstance(args[1], (int, float)):
        _set(out, "share", args[1] if name in ("lt", "le") else 1 - args[1])
    elif name == "bernoulli" and out.numel() and isinstance(chance := args[1] if len(args) > 1 else values.known(args[0]), (int, float)):
        _set(out, "share", chance)
    elif name == "scatter" and len(args) > 3 and values.assumed(args[3]) == 1:  # ones among zeros, as one_hot makes them
        _set(out, "share", args[2].numel() / max(1, out.numel()))
    elif name in ("any", "all", "sum") and (share := of(args[0])) is not None:
        _reduce(name, args[0], share, out)
    elif name in ("bitwise_not", "logical_not") and (share := of(args[0])) is not None:
        _set(out, "share", 1 - share)
    elif name in ("bitwise_or", "logical_or") and None not in (shares := (of(args[0]), of(args[1]))):
        _set(out, "share", sum(shares))
    elif name in ("bitwise_and", "logical_and") and None not in (shares := (of(args[0]), of(args[1]))):
        _set(out, "share", math.prod(shares))
    elif name in _KEEP and args and (name not in ("gt", "ne") or not isinstance(args[1], torch.Tensor) and args[1] == 0):
        for kind in ("among", "share", "even"):
            if (value := _get(args[0], kind)) is not None:
                for part in out if isinstance(out, (tuple, list)) else (out,):
                    _set(part, kind, value)


def counts(choices, bins: int) -> int | None:
    """How often each of so many is chosen."""
    return choices.numel() // bins if _get(choices, "among") and bins else None


def _choose(name: str, args, out) -> None:
    """The index of one among as many as the dimension has that is searched."""
    at = 2 if name == "topk" else 1
    dim = args[at] if len(args) > at and isinstance(args[at], int) and name != "multinomial" else -1
    index = out[_CHOICES[name]] if isinstance(out, (tuple, list)) else None if name in ("max", "min") else out
    if isinstance(index, torch.Tensor) and args[0].dim():
        _set(index, "among", args[0].shape[dim])


def _reduce(name: str, mask, share: float, out) -> None:
    """Whether any of a row holds, and how many of it do."""
    width = mask.numel() / max(1, out.numel())
    if name == "sum":
        values.table.set_guess(out, share * width if out.dtype.is_floating_point else int(share * width))
    elif name == "all" or share * width >= 1:
        values.remember(out, name == "any")
    else:
        _set(out, "share", share * width)


def _get(tensor, kind: str):
    kept = tensor.__dict__.get("_stoker_" + kind) if isinstance(tensor, FakeTensor) else None
    return kept[0] if kept is not None and kept[1] == values.version(tensor) else None


def _set(tensor, kind: str, value) -> None:
    if isinstance(tensor, FakeTensor) and not (kind == "share" and not 0 < value < 1):
        tensor.__dict__["_stoker_" + kind] = (value, values.version(tensor))
