"""What the attributes of a model's modules hold from step to step, besides parameters: buffers, caches, lists of activations."""

from __future__ import annotations

import collections

import torch

DEPTH = 3  # containers within containers
_NOT_HELD = ("_parameters", "_modules")


def held_bytes(model) -> dict:
    """{"encoder.kept": bytes of the tensors in it, each storage once}."""
    found, seen = {}, set()
    for name, part in model.named_modules():
        for attribute, value in part.__dict__.items():
            if attribute in _NOT_HELD:
                continue
            held = value.items() if attribute == "_buffers" else ((attribute, value),)
            for inner, one in held:
                size = sum(_bytes(tensor, seen) for tensor in _tensors(one, DEPTH))
                if size:
                    found[f"{name}.{inner}" if name else inner] = size
    return found


def growth(before: dict, after: dict) -> str | None:
    """A sentence of what holds more after another forward than before it; None where nothing does."""
    more = {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}
    if not more:
        return None
    largest = max(more, key=more.get)
    others = f" and {len(more) - 1} other attributes" if len(more) > 2 else " and another attribute" if len(more) == 2 else ""
    return (f"'{largest}'{others} of the model holds more after each step, and memory grows with the number of steps: what is said here "
            "is of the first; empty it in each step, or keep numbers in place of tensors")


def _bytes(tensor, seen: set) -> int:
    storage = tensor.untyped_storage()
    if storage._cdata in seen:
        return 0
    seen.add(storage._cdata)
    return storage.nbytes()


def _tensors(value, depth: int):
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif depth and not (isinstance(value, collections.deque) and value.maxlen):  # that one is full one day
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set, collections.deque)) else ()
        for item in list(items):
            yield from _tensors(item, depth - 1)
