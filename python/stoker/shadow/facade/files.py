"""torch.save and torch.load as the script finds them: what it saved is there, without weights, and what is read needs no GPU."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from .. import sites

_MOST_ELEMENTS = 1 << 20  # of a tensor of the host whose values are kept


@dataclass(frozen=True)
class _Shape:
    """A tensor whose values are nobody's."""

    size: tuple
    stride: tuple
    dtype: torch.dtype
    device: torch.device


def install(world) -> None:
    saved: dict = {}  # by path, or by id of a file object

    def save(obj, f, *args, **kwargs):
        world.found("checkpoint-writes", True, "writes checkpoints", sites.here(2))
        saved[_key(saved, f)] = pytree.tree_map(_without_values, obj)
        if isinstance(f, (str, os.PathLike)):
            with open(f, "wb"):  # in the scratch folder: it is there for whoever looks
                pass

    original = torch.load

    def load(f, map_location=None, *args, **kwargs):
        kept = saved.get(_key(None, f))
        if kept is not None:
            return pytree.tree_map(lambda leaf: _made(world, leaf, map_location), kept)
        loaded = original(f, "cpu", *args, **kwargs)
        if not world.on_gpu or map_location is None or callable(map_location):
            return loaded
        return pytree.tree_map(lambda leaf: leaf.to("cuda") if isinstance(leaf, torch.Tensor) and _is_gpu(map_location) else leaf, loaded)

    torch.save, torch.load = save, load


def _key(saved, f):
    if isinstance(f, (str, os.PathLike)):
        return os.path.abspath(os.fspath(f))
    if saved is not None:
        weakref.finalize(f, saved.pop, id(f), None)
    return id(f)


def _without_values(leaf):
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if not isinstance(leaf, FakeTensor) and leaf.numel() <= _MOST_ELEMENTS:
        return leaf.detach().clone()
    return _Shape(tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device)


def _made(world, leaf, map_location):
    if isinstance(leaf, torch.Tensor):
        return leaf.to("cuda") if world.on_gpu and _is_gpu(map_location) else leaf.clone()
    if not isinstance(leaf, _Shape):
        return leaf
    device = leaf.device.type
    if map_location is not None and not callable(map_location):
        device = "cuda" if _is_gpu(map_location) else "cpu"
    if device == "cuda" and world.on_gpu:
        return torch.empty_strided(leaf.size, leaf.stride, dtype=leaf.dtype, device="cuda")
    return torch.zeros(leaf.size, dtype=leaf.dtype)


def _is_gpu(map_location) -> bool:
    if map_location is None or callable(map_location):
        return False
    try:
        return isinstance(map_location, dict) or torch.device(map_location).type == "cuda"
    except (TypeError, RuntimeError):
        return False
