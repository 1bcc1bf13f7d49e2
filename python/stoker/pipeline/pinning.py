"""What of a batch DataLoader(pin_memory=True) reaches: the rules of torch.utils.data._utils.pin_memory, without a GPU.

Tensors are looked for in mappings and sequences; anything else is asked for its own pin_memory(), and left as it is without
one: a dataclass comes unpinned, and its copy to the GPU then waits for the host whatever non_blocking says.
"""

from __future__ import annotations

import collections.abc
import contextlib

import torch


@contextlib.contextmanager
def _noted(pinned: dict):
    """Tensor.pin_memory notes the storage and gives the tensor back: pinning itself needs a GPU's driver."""
    before = torch.Tensor.pin_memory

    def pin_memory(self, *args, **kwargs):
        with contextlib.suppress(RuntimeError, NotImplementedError):
            storage = self.untyped_storage()
            pinned[storage._cdata] = storage
        return self

    torch.Tensor.pin_memory = pin_memory
    try:
        yield
    finally:
        torch.Tensor.pin_memory = before


def _pin(thing) -> None:
    """Walks where DataLoader walks; what it would build anew is not built."""
    if isinstance(thing, torch.Tensor) or hasattr(thing, "pin_memory"):
        thing.pin_memory()
    elif isinstance(thing, (str, bytes)):
        pass
    elif isinstance(thing, collections.abc.Mapping):
        for part in thing.values():
            _pin(part)
    elif isinstance(thing, collections.abc.Sequence):
        for part in thing:
            _pin(part)


def _left_type(thing, pinned: dict) -> str:
    """The type of the outermost part that is neither walked nor asked."""
    if isinstance(thing, collections.abc.Mapping):
        parts = list(thing.values())
    elif isinstance(thing, collections.abc.Sequence) and not isinstance(thing, (str, bytes)):
        parts = list(thing)
    elif isinstance(thing, torch.Tensor):
        return ""
    else:
        return type(thing).__name__
    return next((name for name in (_left_type(part, pinned) for part in parts if not _is_plain(part)) if name), "")


def _is_plain(thing) -> bool:
    return thing is None or isinstance(thing, (bool, int, float, complex, str, bytes))


def left_unpinned(batch, storages: list) -> dict | None:
    """{bytes, type, error}: bytes of the batch's `storages` that pin_memory=True leaves pageable, the type of what holds them,
    and what the batch's own pin_memory() raised; None: all is pinned."""
    pinned: dict = {}
    error = None
    with _noted(pinned):
        try:
            _pin(batch)
        except Exception as raised:
            error = f"{type(raised).__name__}: {str(raised).strip().splitlines()[0] if str(raised).strip() else ''}".rstrip(": ")
    count = sum(storage.nbytes() for storage in storages if storage._cdata not in pinned)
    if count == 0 and error is None:
        return None
    return {"bytes": count, "type": _left_type(batch, pinned), "error": error}
