"""Operators whose output has as many rows as the data decides: from real values, or as --assume says."""

from __future__ import annotations

import torch

OPERATORS = {"aten::nonzero", "aten::masked_select", "aten::index.Tensor", "aten::index_put_", "aten::index_put",
             "aten::_index_put_impl_", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"}
_MASKS = (torch.bool, torch.uint8)


def waits(func) -> bool:
    """Whether the host waits for the device to learn the number of rows."""
    return "put" not in func.name()


def answer(func, args, kwargs, values, assumed):
    """The output; None: the number of rows is not known; NotImplemented: it does not depend on data here."""
    name = func.name()
    if "index" in name:
        return _index(func, args, kwargs, values, assumed, name)
    subject = args[1] if name == "aten::masked_select" else args[0]
    real = values.real(subject)
    if real is not None:
        return _as_real(func, args, kwargs, real, subject, values)
    count = _count(assumed(), subject.numel())
    if count is None:
        return None
    if name == "aten::nonzero":
        return subject.new_empty((count, subject.dim()), dtype=torch.int64)
    if name == "aten::masked_select":
        return args[0].new_empty((count,))
    return NotImplemented  # unique: its three outputs are PyTorch's to make


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
    return all_of_them if said == "all" else int(said)


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
