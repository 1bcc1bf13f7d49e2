"""torch.save and torch.load as the script finds them: what it saved is there, without weights, and what is read needs no GPU.

A file holds a mark in place of what was saved, so that it may be renamed, copied, or read from memory. Tensors without data are
pickled as their shapes, whoever pickles them.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from .. import sites

_MOST_ELEMENTS = 1 << 20  # of a tensor of the host whose values are kept
_MARK = b"saved while captured by stoker: "
_DIGITS = 12
_saved: list = []  # what the script has saved, without weights


@dataclass(frozen=True)
class _Shape:
    """A tensor whose values are nobody's."""

    size: tuple
    stride: tuple
    dtype: torch.dtype
    device: torch.device
    is_parameter: bool = False
    requires_grad: bool = False


def install(world) -> None:
    def save(obj, f, *args, **kwargs):
        world.found("checkpoint-writes", True, "writes checkpoints", sites.here(2))
        mark = kept(obj)
        if isinstance(f, (str, os.PathLike)):
            with open(f, "wb") as file:  # in the scratch folder: it is there for whoever looks
                file.write(mark)
        else:
            f.write(mark)

    original = torch.load

    def load(f, map_location=None, *args, **kwargs):
        found = remembered(f)
        if found is not None:
            return pytree.tree_map(lambda leaf: made(world, leaf, map_location), found[0])
        loaded = original(f, "cpu", *args, **kwargs)
        if not world.on_gpu or map_location is None or callable(map_location):
            return loaded
        return pytree.tree_map(lambda leaf: leaf.to("cuda") if isinstance(leaf, torch.Tensor) and _is_gpu(map_location) else leaf, loaded)

    def save_scripted(module, f, *args, **kwargs):
        save(module, f)

    load_scripted = torch.jit.load

    def load_traced(f, map_location=None, *args, **kwargs):
        return load_scripted(f, map_location, *args, **kwargs) if remembered(f) is None else load(f, map_location)

    torch.jit.save, torch.jit.load = save_scripted, load_traced
    torch.save, torch.load = save, load
    torch.serialization.save, torch.serialization.load = save, load
    if world.on_gpu:
        FakeTensor.__reduce_ex__ = _reduced


def kept(obj) -> bytes:
    """Remembers what is saved; what a file of it holds."""
    _saved.append(pytree.tree_map(_without_values, obj))
    return _MARK + str(len(_saved) - 1).zfill(_DIGITS).encode()


def remembered(f) -> tuple | None:
    """(what was saved,) where `f`, a path or a file that is open, holds a mark; None where it holds something else."""
    length = len(_MARK) + _DIGITS
    if isinstance(f, (str, os.PathLike)):
        try:
            with open(f, "rb") as file:
                return of_bytes(file.read(length))
        except OSError:
            return None  # the loader says why
    try:
        at = f.tell()
        head = f.read(length)
        found = of_bytes(head)
        if found is None:
            f.seek(at)
        return found
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


def of_bytes(head) -> tuple | None:
    head = bytes(head[:len(_MARK) + _DIGITS]) if isinstance(head, (bytes, bytearray, memoryview)) else b""
    if not head.startswith(_MARK):
        return None
    with contextlib.suppress(ValueError, IndexError):
        return (_saved[int(head[len(_MARK):])],)
    return None


def _without_values(leaf):
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if not isinstance(leaf, FakeTensor) and leaf.numel() <= _MOST_ELEMENTS:
        return leaf.detach().clone()
    return shape_of(leaf)


def shape_of(tensor) -> _Shape:
    return _Shape(tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, isinstance(tensor, torch.nn.Parameter),
                  tensor.requires_grad and tensor.is_leaf)


def _copied(module):
    """A whole model that is loaded is another than the one that was saved."""
    try:
        return copy.deepcopy(module)
    except Exception:  # whatever it holds that cannot be copied
        return module


def made(world, leaf, map_location):
    """What a leaf of what was saved is once it is loaded."""
    if isinstance(leaf, torch.nn.Module):
        module = _copied(leaf)
        return module.to("cuda") if world.on_gpu and _is_gpu(map_location) else module
    if isinstance(leaf, torch.Tensor):
        return leaf.to("cuda") if world.on_gpu and _is_gpu(map_location) else leaf.clone()
    if not isinstance(leaf, _Shape):
        return leaf
    device = leaf.device.type
    if map_location is not None and not callable(map_location):
        device = "cuda" if _is_gpu(map_location) else "cpu"
    return _tensor(leaf, "cuda" if device == "cuda" and world.on_gpu else "cpu")


def _tensor(shape: _Shape, device: str):
    if device == "cuda":
        tensor = torch.empty_strided(shape.size, shape.stride, dtype=shape.dtype, device="cuda")
    else:
        tensor = torch.zeros(shape.size, dtype=shape.dtype)
    return torch.nn.Parameter(tensor, requires_grad=shape.requires_grad) if shape.is_parameter else tensor


def _reduced(tensor, protocol):
    """How pickle writes a tensor without data."""
    return _tensor, (shape_of(tensor), tensor.device.type)


def _is_gpu(map_location) -> bool:
    if map_location is None or callable(map_location):
        return False
    try:
        return isinstance(map_location, dict) or torch.device(map_location).type == "cuda"
    except (TypeError, RuntimeError):
        return False
