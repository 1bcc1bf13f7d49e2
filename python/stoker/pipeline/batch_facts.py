"""What a collated batch consists of: tensors that travel by file descriptor, and the rest that is pickled."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pickle
import time
from multiprocessing.reduction import ForkingPickler

import torch

_FEW_BYTES = 4096  # below, pickling is part of what any batch costs
_STAND_IN = (int, ())  # what a tensor becomes while the rest is pickled: a few bytes


class _Pickler(ForkingPickler):
    """What a worker's queue pickles with, its protocol too: an older one copies arrays once more."""

    def __init__(self, buffer):
        super().__init__(buffer, None)
        self.storages = {}  # one file descriptor each
        self.other_bytes = 0  # bytes of tensors without a plain storage

    def reducer_override(self, thing):
        if not isinstance(thing, torch.Tensor):
            return NotImplemented
        try:
            storage = thing.untyped_storage()
            self.storages[storage._cdata] = storage
        except (RuntimeError, NotImplementedError):
            self.other_bytes += thing.numel() * thing.element_size()
        return _STAND_IN


@dataclasses.dataclass
class Crossing:
    """What a batch is on its way to the training process."""

    storages: list
    pickled: int = 0  # bytes
    dump_ns: int = 0  # CPU time of pickling and of unpickling what is no tensor
    load_ns: int = 0


def crossing_of(batch) -> Crossing:
    """Raises what pickle raises: such a batch cannot leave a worker."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    start = time.thread_time_ns()
    pickler.dump(batch)
    found = Crossing(list(pickler.storages.values()), buffer.tell() + pickler.other_bytes,
                     time.thread_time_ns() - start)
    if buffer.tell() < _FEW_BYTES:
        return found
    pickler.clear_memo()
    text = bytes(buffer.getbuffer())  # as it comes out of the pipe
    buffer.close()
    start = time.thread_time_ns()
    with contextlib.suppress(Exception):  # what cannot be read again is the training process's to say
        made = pickle.loads(text)
        del text, made  # the receiver lets go of a batch for each that it gets
    found.load_ns = time.thread_time_ns() - start
    return found


def describe(thing, depth: int = 0) -> str:
    """One line for people: "dict(image: float32[3, 224, 224], label: int)"."""
    if isinstance(thing, torch.Tensor):
        return f"{str(thing.dtype).removeprefix('torch.')}{list(thing.shape)}"
    if type(thing).__module__ == "numpy" and hasattr(thing, "dtype"):
        return f"numpy {thing.dtype}{list(getattr(thing, 'shape', []))}"
    if depth > 3:
        return type(thing).__name__
    if isinstance(thing, dict):
        parts = [f"{key}: {describe(value, depth + 1)}" for key, value in list(thing.items())[:8]]
        return f"dict({', '.join(parts)}{', ...' if len(thing) > 8 else ''})"
    if isinstance(thing, (list, tuple)):
        parts = [describe(value, depth + 1) for value in thing[:8]]
        if len(thing) > 3 and len(set(parts)) == 1:
            return f"{type(thing).__name__}({len(thing)} x {parts[0]})"
        return f"{type(thing).__name__}({', '.join(parts)}{', ...' if len(thing) > 8 else ''})"
    if isinstance(thing, (str, bytes)):
        return f"{type(thing).__name__}[{len(thing)}]"
    return type(thing).__name__


def size_of(thing, depth: int = 0) -> int:
    """Bytes of the tensors, arrays and texts of a sample, about."""
    if isinstance(thing, torch.Tensor):
        return thing.numel() * thing.element_size()
    if isinstance(getattr(thing, "nbytes", None), int):
        return thing.nbytes
    if isinstance(thing, (str, bytes, bytearray)):
        return len(thing)
    if depth > 4:
        return 0
    if isinstance(thing, dict):
        return sum(size_of(value, depth + 1) for value in thing.values())
    if isinstance(thing, (list, tuple)):
        return sum(size_of(value, depth + 1) for value in thing)
    return 8


def first_difference(samples: list, indices: list) -> str | None:
    """Why default_collate cannot stack these samples, with the index of the first one that differs."""
    first = _outline(samples[0])
    for sample, index in zip(samples[1:], indices[1:]):
        other = _outline(sample)
        if other != first:
            return f"sample {indices[0]} is {describe(samples[0])}, sample {index} is {describe(sample)}"
    return None


def _outline(thing):
    """Shapes, keys and types, as far as default_collate looks."""
    if isinstance(thing, torch.Tensor):
        return tuple(thing.shape)
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return tuple(thing.shape)
    if isinstance(thing, dict):
        return {key: _outline(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_outline(value) for value in thing]
    return type(thing).__name__
