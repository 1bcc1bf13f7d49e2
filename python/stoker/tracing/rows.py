"""Operators whose output has as many rows as the data decides: from real values, or as --assume says."""

from __future__ import annotations

import math

import torch

from ..places import AtMost, Share

OPERATORS = {"aten::nonzero", "aten::masked_select", "aten::index.Tensor", "aten::index_put_", "aten::index_put",
             "aten::_index_put_impl_", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::repeat_interleave.Tensor",
             "aten::bincount", "torchvision::nms"}
_MASKS = (torch.bool, torch.uint8)


def cure(func, place: str) -> str:
    """How the number of rows of the operator is said."""
    if "unique" in func.name():
        return f"say how many distinct values there are with --assume {place}=NUMBER"
    if func.name() in ("aten::repeat_interleave.Tensor", "aten::bincount"):  # nothing bounds it
        return f"use a size that is known (output_size=, minlength=), or say how many rows it has with --assume {place}=NUMBER"
    return (f"use a mask of fixed size instead, or say how many rows it has with --assume {place}=all (or a number), "
            "or of all such places at once with --assume rows=all (or at most a number)")


def words(said) -> str:
    """What was said of a number of rows."""
    if isinstance(said, Share):
        return f"{100 * said.of_all:g} % of the rows"
    if isinstance(said, AtMost):
        return f"at most {said.rows} rows"
    return "all rows" if said == "all" else f"{said} rows"


def is_a_choice(func) -> bool:
    """Whether the rows are those of a mask or a choice: all of them may then be, which is no bound on distinct values or counts."""
    return "unique" not in func.name() and func.name() not in _OTHERS or func.name() == "torchvision::nms"


def waits(func) -> bool:
    """Whether the host waits for the device to learn the number of rows."""
    return "put" not in func.name()


def answer(func, args, kwargs, values, assumed):
    """The output; None: the number of rows is not known; NotImplemented: it does not depend on data here."""
    name = func.name()
    if "index" in name:
        return _index(func, args, kwargs, values, assumed, name)
    if name in _OTHERS:
        return _OTHERS[name](func, args, kwargs, values, assumed)
    if "unique" in name:
        return _unique(func, args, kwargs, values, assumed)
    subject = args[1] if name == "aten::masked_select" else args[0]
    real = values.real(subject)
    if real is not None:
        return _as_real(func, args, kwargs, real, subject, values)
    count = _count(assumed(), subject.numel())
    if count is None:
        return None
    if name == "aten::nonzero":
        return subject.new_empty((count, subject.dim()), dtype=torch.int64)
    return args[0].new_empty((count,))


def _argument(func, args, kwargs, name):
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            if position < len(args):
                return args[position]
            return kwargs.get(name, argument.default_value if argument.has_default_value() else None)
    return None


def _unique(func, args, kwargs, values, assumed):
    """Distinct values; which of them each was; how many there were of each."""
    real = values.real(args[0])
    if real is not None:
        found = values.on_host(lambda: func(real, *args[1:], **kwargs))
        outs = tuple(args[0].new_empty(tuple(t.shape), dtype=t.dtype) for t in found)
        for out, value in zip(outs, found):
            values.set_real(out, value)
        return outs
    dim = _argument(func, args, kwargs, "dim")
    all_of_them = args[0].numel() if dim is None else args[0].shape[dim]
    count = _count(assumed(), all_of_them)
    if count is None:
        return None
    shape = [count] if dim is None else [count if d == dim % args[0].dim() else side for d, side in enumerate(args[0].shape)]
    inverse = args[0].shape if dim is None else (all_of_them,)
    integers = {"dtype": torch.int64}
    wants = [_argument(func, args, kwargs, n) for n in ("return_inverse", "return_counts")]
    return (args[0].new_empty(shape), args[0].new_empty(inverse if wants[0] else (0,), **integers),
            args[0].new_empty((count,) if wants[1] else (0,), **integers))


def _repeated(func, args, kwargs, values, assumed):
    """Indices, each as often as its count says."""
    if _argument(func, args, kwargs, "output_size") is not None:
        return NotImplemented
    real = values.real(args[0])
    count = values.on_host(lambda: int(real.sum())) if real is not None else _number(assumed())
    return None if count is None else args[0].new_empty((count,), dtype=torch.int64)


def _bins(func, args, kwargs, values, assumed):
    """As many bins as the largest value, and one more."""
    real = values.real(args[0])
    least = _argument(func, args, kwargs, "minlength") or 0
    if real is not None:
        count = values.on_host(lambda: max(int(real.max()) + 1 if real.numel() else 0, least))
    else:
        count = _number(assumed())
        if count is None and least:
            count = least  # who names a least length means the number of classes
    weights = _argument(func, args, kwargs, "weights")
    return None if count is None else args[0].new_empty((count,), dtype=torch.int64 if weights is None else weights.dtype)


def _kept_boxes(func, args, kwargs, values, assumed):
    """Boxes that non-maximum suppression leaves, of those that it was given."""
    count = _count(assumed(), args[0].shape[0])
    return None if count is None else args[0].new_empty((count,), dtype=torch.int64)


_OTHERS = {"aten::repeat_interleave.Tensor": _repeated, "aten::bincount": _bins, "torchvision::nms": _kept_boxes}


def _as_real(func, args, kwargs, real, subject, values):
    if func.name() != "aten::nonzero":
        count = values.on_host(lambda: int(real.sum())) if func.name() == "aten::masked_select" else None
        return NotImplemented if count is None else args[0].new_empty((count,))
    found = values.on_host(real.nonzero)
    out = subject.new_empty(tuple(found.shape), dtype=torch.int64)
    values.set_real(out, found)
    return out


def _count(said, all_of_them: int) -> int | None:
    if said is None or isinstance(said, bool):
        return None
    if isinstance(said, Share):
        return math.ceil(said.of_all * all_of_them)
    if isinstance(said, AtMost):
        return min(said.rows, all_of_them)
    return all_of_them if said == "all" else int(said)


def _number(said) -> int | None:
    """A number of rows that nothing bounds: "all" says nothing of it."""
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def _index(func, args, kwargs, values, assumed, name):
    """x[mask] and x[mask] = v: a mask is as many indices as it has rows that hold."""
    indices = list(args[1])
    masks = [i for i in indices if isinstance(i, torch.Tensor) and i.dtype in _MASKS]
    if not masks:
        return NotImplemented
    if "put" in name and args[2].numel() == 1:
        return _filled(func, args)
    counts = [_rows_of(mask, values, assumed, args[2] if "put" in name else None) for mask in masks]
    if any(count is None for count in counts):
        return None
    wide = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            wide.append(index)
        else:
            rows = index.new_empty((counts.pop(0),), dtype=torch.int64)
            wide += [rows] * index.dim()
    return func(args[0], wide, *args[2:], **kwargs)


def _rows_of(mask, values, assumed, put) -> int | None:
    real = values.real(mask)
    if real is not None:
        return values.on_host(lambda: int(real.sum()))
    if put is not None and put.dim():
        return put.shape[0]  # as many as there are values for
    return _count(assumed(), mask.numel())


def _filled(func, args):
    """One value for all rows of a mask: PyTorch fills in place, and the host waits for nothing."""
    return args[0] if func._schema.is_mutable else torch.empty_like(args[0])
