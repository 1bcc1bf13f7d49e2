"""Synthetic inputs: floating-point ones uniform in 0 to 1, whole numbers within what the model looks up with them."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

# What gives on a tensor's numbers unchanged: the result is looked up in the stead of what it was made of.
_KEEPS_VALUES = {"pad", "contiguous", "clone", "to", "long", "int", "cuda", "cpu", "cat", "stack", "roll", "masked_fill",
                 "flatten", "reshape", "view", "transpose", "permute", "expand", "repeat", "squeeze", "unsqueeze",
                 "__getitem__", "detach", "split", "chunk", "unbind"}


def whole(value) -> bool:
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex() or value.dtype is torch.bool)


def usable(tensor) -> bool:
    """Whether somebody chose these whole numbers: memory that nobody wrote is all zeros, or holds absurd ones."""
    tensor = tensor.long()  # a narrow type cannot be compared with what it cannot hold
    return bool((tensor != 0).any() and (tensor >= 0).all() and (tensor < 1 << 31).all())


def filled(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with values that a step can run on; whole numbers begin as they are or as zeros (see Lookups)."""
    with torch.no_grad():
        if tensor.is_floating_point():
            tensor.uniform_(0, 1)
        elif whole(tensor) and not usable(tensor):
            tensor.zero_()
    return tensor


def resized(tensor: torch.Tensor, batch: int) -> torch.Tensor:
    """`tensor` with another first size, its rows repeated or cut."""
    with torch.no_grad():
        rows = torch.arange(batch, device=tensor.device) % tensor.shape[0]
        return tensor.detach()[rows].requires_grad_(tensor.requires_grad)


class Lookups(TorchFunctionMode):
    """Around a first step: fills inputs of whole numbers at random when it shows what they are looked up in.

    Zeros are valid for any table, and would take another time: all rows of a gradient would meet in one.
    `follow(tensor, source)` says that `tensor` holds the numbers of `source`, which is what is filled.
    """

    def __init__(self):
        super().__init__()
        self._sources = {}  # address of a storage -> the tensors that it was made of
        self._limits = {}  # id of a source -> numbers have to stay below this
        self._kept = []  # storages and ids stay what they are while this lives

    def follow(self, tensor: torch.Tensor, source: torch.Tensor) -> None:
        self._add(tensor, [source])

    def _add(self, tensor, sources) -> None:
        known = self._sources.setdefault(tensor.untyped_storage().data_ptr(), [])
        known += [source for source in sources if not any(source is one for one in known)]
        self._kept.append(tensor)

    def _of(self, tensor) -> list:
        return self._sources.get(tensor.untyped_storage().data_ptr(), []) if whole(tensor) else []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        index, limit = _lookup(name, args, kwargs)
        if limit is not None and self._of(index):
            self._fill(index, limit)
        out = func(*args, **kwargs)
        if name in _KEEPS_VALUES:
            sources = [source for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
                       for source in self._of(leaf)]
            for made in pytree.tree_leaves(out) if sources else ():
                if whole(made):
                    self._add(made, sources)
        return out

    def _fill(self, index, limit: int) -> None:
        with torch.no_grad():
            for source in self._of(index):
                before = self._limits.get(id(source))
                self._limits[id(source)] = limit if before is None else min(limit, before)
                chosen = before is None and usable(source) and int(source.max()) < limit
                if not chosen and (before is None or limit < before):
                    source.random_(0, limit)
                    self._kept.append(source)
            if not any(index is source for source in self._of(index)) and not _fits(index, limit):
                index.random_(0, limit)  # what was made of it before the fill: right from the next step on


def _fits(index, limit: int) -> bool:
    return bool((index < limit).all() and (index >= 0).all())


def _argument(args, kwargs, position: int, name: str):
    return args[position] if position < len(args) else kwargs.get(name)


def _lookup(name: str, args, kwargs) -> tuple:
    """(tensor of whole numbers, how many there are to choose from) of a call that looks something up; else (None, None)."""
    if name in ("embedding", "embedding_bag"):  # nn.functional's, or the operator with the table first
        given = [a for a in (_argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "weight"),
                             kwargs.get("indices")) if isinstance(a, torch.Tensor)]
        index = next((a for a in given if whole(a)), None)
        table = next((a for a in given if a.is_floating_point()), None)
        return (index, table.shape[0]) if index is not None and table is not None else (None, None)
    if name in ("cross_entropy", "nll_loss"):
        scores, target = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "target")
        if isinstance(scores, torch.Tensor) and whole(target):
            return target, scores.shape[1 if scores.dim() > 1 else 0]
    if name in ("gather", "index_select"):
        table, dim, index = (_argument(args, kwargs, i, n) for i, n in enumerate(("input", "dim", "index")))
        if isinstance(table, torch.Tensor) and isinstance(dim, int) and whole(index):
            return index, table.shape[dim]
    if name == "__getitem__" and whole(args[1]) and args[0].dim():
        return args[1], args[0].shape[0]
    if name == "one_hot":
        index, classes = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "num_classes")
        if whole(index) and isinstance(classes, int) and classes > 0:
            return index, classes
    return None, None
