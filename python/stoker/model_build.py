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


MOST_VALUES = 4096  # of a tensor of whole numbers that is remembered
_CONSTANTS = (torch.zeros, torch.ones, torch.full, torch.arange, torch.tensor)


def _on_host(func, args, kwargs):
    """The tensor with its values; None where it is made from tensors that have none."""
    try:
        with torch._C.DisableTorchFunction():
            return func(*args, **{**kwargs, "device": "cpu"})
    except (RuntimeError, TypeError, ValueError):
        return None


def initial_value(tensor):
    """What a small tensor of whole numbers or truth values was made with, where its maker said so: a counter, a flag."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() > MOST_VALUES:
        return None
    return tensor if tensor.device.type == "cpu" else getattr(tensor, "stoker_value", None)


def _mark(tensor):
    tensor.stoker_on_gpu = True
    return tensor


def asked_for_gpu(tensor) -> bool:
    """Whether the code that made the tensor put it on a GPU by name."""
    return getattr(tensor, "stoker_on_gpu", False)


class _NoGpu(TorchFunctionMode):
    """Code that asks for a GPU by name (`.cuda()`, `device="cuda"`) gets the device that is being built on."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return _mark(args[0])
        asked = False
        if func is torch.Tensor.to:
            asked = any(not isinstance(a, bool) and _is_gpu(a) for a in args[1:])
            args = (args[0], *(a for a in args[1:] if isinstance(a, bool) or not _is_gpu(a)))
        if "device" in kwargs and _is_gpu(kwargs["device"]):
            del kwargs["device"]
            asked = True
        if func is torch.Tensor.to and len(args) == 1 and not kwargs.get("dtype") and kwargs.get("other") is None \
                and kwargs.get("device") is None:
            return _mark(args[0]) if asked else args[0]
        out = func(*args, **kwargs)
        if func in _CONSTANTS and out.is_meta and not out.is_floating_point() and out.numel() <= MOST_VALUES:
            out.stoker_value = _on_host(func, args, kwargs)
        return _mark(out) if asked and isinstance(out, torch.Tensor) else out


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
