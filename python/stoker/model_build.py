"""Builds a model without filling its weights: on the meta device, or for real with the initialisers switched off."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode

from . import training
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
    """torch.nn.init and the random fillers of tensors do nothing inside: what nobody writes is never paged in."""
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


def _is_gpu(device) -> bool:
    if isinstance(device, int):
        return True
    return isinstance(device, (str, torch.device)) and torch.device(device).type == "cuda"


class _NoGpu(TorchFunctionMode):
    """Code that asks for a GPU by name (`.cuda()`, `device="cuda"`) gets the device that is being built on."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = (args[0], *(a for a in args[1:] if isinstance(a, bool) or not _is_gpu(a)))
        if "device" in kwargs and _is_gpu(kwargs["device"]):
            del kwargs["device"]
        if func is torch.Tensor.to and len(args) == 1 and not kwargs.get("dtype") and kwargs.get("other") is None \
                and kwargs.get("device") is None:
            return args[0]
        return func(*args, **kwargs)


def without_gpu() -> TorchFunctionMode:
    """A context in which code that asks for a GPU by name gets the CPU."""
    return _NoGpu()


def build(make):
    """Calls make() on the meta device; what cannot be built there (it computes with values) is built for real."""
    with without_initialisers(), training.scalers_stay_enabled():
        try:
            with torch.device("meta"), _NoGpu():
                return make()
        except CaptureError:
            raise
        except Exception:  # any error: if it is the user's own it comes again below
            with _NoGpu():
                return make()


def split_inputs(inputs) -> tuple:
    """Positional and keyword arguments of forward()."""
    if isinstance(inputs, dict) or (hasattr(inputs, "keys") and hasattr(inputs, "__getitem__")):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}
