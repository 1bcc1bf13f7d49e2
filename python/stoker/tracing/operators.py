"""What is known of single operators: their attributes, memory orders, and answers where fake tensors have none."""

from __future__ import annotations

import functools

import torch

from ..device import CUDA_ONLY_KERNELS

HANDLERS: dict = {}  # OpOverload -> function(*args): answers instead of FakeTensorMode; filled by rnn.py

# Operators with one kernel in CUDA builds, which CPU builds take apart. device.py names a kernel for each in fake CUDA.
ONE_KERNEL_ON_CUDA = {f"aten::{name}" for name in CUDA_ONLY_KERNELS}

# Schema argument -> attribute of the step file, for operators with a sliding window ...
_WINDOW = {"stride": "stride", "padding": "padding", "dilation": "dilation", "transposed": "transposed",
           "output_padding": "output_padding", "groups": "groups", "kernel_size": "kernel", "output_mask": "mask"}
# ... and for all others.
_PLAIN = {"dim": "dim", "training": "train", "train": "train", "output_mask": "mask"}
_ATTENTION = {"dropout": "dropout", "causal": "causal", "scale": "scale"}
_CPU_ATTENTION = {"dropout_p": "dropout", "is_causal": "causal", "scale": "scale"}
_RNN_MODES = {0: "rnn_relu", 1: "rnn_tanh", 2: "lstm", 3: "gru"}  # cuDNN's numbers, as in ATen/native/cudnn/RNN.cpp


def tensors(value) -> list:
    """All tensors in nested tuples, lists and dicts, in order."""
    found: list = []
    _gather(value, found)
    return found


def _gather(value, found: list) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _gather(item, found)
    elif isinstance(value, dict) and value:
        for item in value.values():
            _gather(item, found)


def written_lists(func, args, out):
    """What `func` has made; lists of tensors that it writes into where it returns nothing, as _foreach_lerp_ does."""
    if out is not None:
        return out
    return [given for argument, given in zip(func._schema.arguments, args)
            if isinstance(given, (list, tuple)) and argument.alias_info is not None and argument.alias_info.is_write]


@functools.cache
def is_composite(func, device_type: str) -> bool:
    """Whether `func` is made of other operators on this device and should be recorded as those."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    name = func.name()
    if not has(name, "CompositeImplicitAutograd"):
        return False
    return not has(name, "CUDA" if device_type == "cuda" else "CPU")


@functools.cache
def copies_to_host(func) -> bool:
    return func.name() in ("aten::_to_copy", "aten::copy_")


@functools.lru_cache(maxsize=65536)
def memory_order(shape: tuple, stride: tuple):
    """None for dense row-major, a tuple of dimensions from the largest stride down, or "strided"."""
    if 0 in shape:
        return None
    dense, expected = True, 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if size != 1:
            if step != expected:
                dense = False
                break
            expected *= size
    if dense:
        return None
    wide = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -stride[d])
    expected = 1
    for d in reversed(wide):
        if stride[d] != expected:
            return "strided"
        expected *= shape[d]
    return _with_unit_dimensions(shape, wide)


def _with_unit_dimensions(shape: tuple, wide: list) -> tuple:
    """Puts dimensions of size 1, whose stride means nothing, before the first wide one that follows them."""
    order = list(wide)
    for d in range(len(shape)):
        if shape[d] == 1:
            later = [i for i, w in enumerate(order) if w > d]
            order.insert(min(later) if later else len(order), d)
    return tuple(order)


@functools.cache
def _recipe(func):
    """Which arguments of `func` become which attributes: a list of (position, name, key)."""
    name = func.name()
    if name.startswith("stoker::"):
        table = _ATTENTION
    elif "scaled_dot_product" in name:
        table = _CPU_ATTENTION
    elif "conv" in name or "pool" in name or "im2col" in name or "col2im" in name:
        table = _WINDOW
    else:
        table = _PLAIN
    arguments = func._schema.arguments
    found = [(i, a.name, table[a.name]) for i, a in enumerate(arguments) if a.name in table]
    if "group_norm" in name:
        found += [(i, a.name, "groups") for i, a in enumerate(arguments) if a.name == "group"]
    return [(i, n, k) for i, n, k in found if "Tensor" not in str(arguments[i].type)]


def _value(func, args, kwargs, position: int, name: str):
    if position < len(args):
        return args[position]
    if name in kwargs:
        return kwargs[name]
    argument = func._schema.arguments[position]
    return argument.default_value if argument.has_default_value() else None


def attributes(func, args, kwargs) -> dict:
    """The step file's attributes of this call, without `v`."""
    name = func.name()
    if name.startswith("aten::_cudnn_rnn"):
        return _rnn_attributes(func, args, kwargs)
    found = {}
    for position, argument, key in _recipe(func):
        value = _value(func, args, kwargs, position, argument)
        if isinstance(value, (list, tuple)):
            value = list(value)
        if value is not None and value != []:
            found[key] = value
    if name.startswith("stoker::attention"):
        mask = next((v for a, v in zip(func._schema.arguments, args) if a.name == "mask"), None)
        found["mask_kind"] = "none" if mask is None else "bool" if mask.dtype is torch.bool else "float"
        window = [_value(func, args, kwargs, position, a.name) for position, a in enumerate(func._schema.arguments)
                  if a.name in ("before", "after")]
        if window != [-1, -1]:
            found["window"] = window
    return found


def _rnn_attributes(func, args, kwargs) -> dict:
    def get(wanted):
        for position, argument in enumerate(func._schema.arguments):
            if argument.name == wanted:
                return _value(func, args, kwargs, position, wanted)
        return None

    found = {"mode": _RNN_MODES.get(get("mode"), "rnn"), "layers": get("num_layers"), "hidden": get("hidden_size"),
             "bidirectional": bool(get("bidirectional")), "batch_first": bool(get("batch_first")),
             "dropout": float(get("dropout"))}
    mask = get("output_mask")
    if mask is not None:
        found["mask"] = list(mask)
    return found


def _like_first(first, *args):
    return torch.empty_like(first)


# Random numbers of distributions, and what their gradients take: PyTorch has no fake of these.
for _name in ("_sample_dirichlet", "_dirichlet_grad", "_standard_gamma", "_standard_gamma_grad"):
    if hasattr(torch.ops.aten, _name):
        HANDLERS[getattr(torch.ops.aten, _name).default] = _like_first
