"""Builds a model without filling its weights: on the meta device, or for real with the initialisers switched off."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch

from .errors import CaptureError

_RANDOM_METHODS = ("normal_", "uniform_", "random_", "exponential_", "geometric_", "log_normal_", "cauchy_")


@dataclass
class Built:
    """One fresh model with its inputs, for one run. Tensors may be on meta: only shapes count."""

    module: torch.nn.Module
    args: tuple
    kwargs: dict
    loss: object = None
    targets: tuple = ()
    optimizer: object = None


def _first_argument(tensor, *args, **kwargs):
    return tensor


@contextlib.contextmanager
def without_initialisers():
    """torch.nn.init and the random fillers of tensors do nothing inside: memory that nobody writes is never paged in."""
    init = torch.nn.init
    names = [n for n in dir(init) if n.endswith("_") and not n.startswith("_") and callable(getattr(init, n))]
    saved = [(init, n, getattr(init, n)) for n in names]
    saved += [(torch.Tensor, n, getattr(torch.Tensor, n)) for n in _RANDOM_METHODS]
    for owner, name, _ in saved:
        setattr(owner, name, _first_argument)
    try:
        yield
    finally:
        for owner, name, original in saved[:len(names)]:
            setattr(owner, name, original)
        for _, name, _ in saved[len(names):]:
            delattr(torch.Tensor, name)  # inherited from TensorBase


def build(make):
    """Calls make() on the meta device; what cannot be built there (it computes with values) is built for real."""
    with without_initialisers():
        try:
            with torch.device("meta"):
                return make()
        except CaptureError:
            raise
        except Exception:  # any error: if it is the user's own it comes again below
            return make()


def split_inputs(inputs) -> tuple:
    """Positional and keyword arguments of forward()."""
    if isinstance(inputs, dict) or (hasattr(inputs, "keys") and hasattr(inputs, "__getitem__")):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}
