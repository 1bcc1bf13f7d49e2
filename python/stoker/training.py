"""What the capture function declares about the loop around the step: its optimizer, clipping, averaging, loss scaling."""

from __future__ import annotations

import contextlib
import math

import torch

from .errors import CaptureError

FLAGS = ("clip", "ema", "grad_scaler")  # fields of protocol.Capture, and keys of the step file's `training`


@contextlib.contextmanager
def scalers_stay_enabled():
    """torch.amp.GradScaler switches itself off where there is no GPU; on the user's machine there is one."""
    common = torch.cuda.amp.common
    original = common.amp_definitely_not_available
    common.amp_definitely_not_available = lambda: False
    try:
        yield
    finally:
        common.amp_definitely_not_available = original


def training(capture) -> dict | None:
    """The step file's `training`: what was declared; None without any."""
    declared = {name: _flag(name, getattr(capture, name)) for name in FLAGS if getattr(capture, name) is not None}
    return declared or None


def _flag(name: str, value) -> bool:
    if isinstance(value, bool):
        return value
    if name == "grad_scaler" and callable(getattr(value, "is_enabled", None)):
        return bool(value.is_enabled())
    scaler = " or a torch.amp.GradScaler" if name == "grad_scaler" else ""
    raise CaptureError(f"{name}={value!r} is not possible: give True, False{scaler}, or leave it out")


def _check(optimizer, module) -> None:
    """Refuses what is no optimizer, and one that was made for another model."""
    groups = getattr(optimizer, "param_groups", None)
    if not isinstance(groups, list):
        raise CaptureError(f"optimizer is a {type(optimizer).__name__}, which has no param_groups: give one "
                           "torch.optim optimizer (or a class derived from it), or leave it out")
    own = {id(p) for p in module.parameters()}
    if not any(id(p) in own for group in groups for p in group["params"]):
        raise CaptureError("the optimizer updates none of the model's parameters: make it from the parameters of the "
                           "model that is returned, after the last .to() or .half()")


def optimizer(capture) -> tuple:
    """The step file's `optimizer`, and a sentence when it is taken for something that it may not be (or "")."""
    made = capture.optimizer
    if made is None:
        return None, ""
    _check(made, capture.module)
    kind = type(made)
    name, note = kind.__name__.lower(), ""
    base = next((c for c in kind.__mro__ if c.__module__.startswith("torch.optim")), None)
    if base not in (None, torch.optim.Optimizer) and kind.step is base.step:
        name = base.__name__.lower()  # the user's class adds nothing to the step itself
    elif base is not kind and any(known.lower() == name for known in dir(torch.optim)):
        note = (f"the optimizer {kind.__module__}.{kind.__name__} is taken for PyTorch's {name}: its temporaries and "
                "kernels may differ")
    if getattr(getattr(made, "args", None), "optim_bits", None) == 8 and not name.endswith("8bit"):
        name, note = name + "8bit", ""  # bitsandbytes: AdamW(optim_bits=8) is AdamW8bit
    described = {"name": name, "groups": [_numbers(group) for group in made.param_groups]}
    if base is not kind:
        described["class"] = f"{kind.__module__}.{kind.__qualname__}"
    return described, note


def group_of(optimizer) -> dict | None:
    """id of a parameter -> index of its group; None without an optimizer."""
    if optimizer is None:
        return None
    return {id(p): i for i, group in enumerate(optimizer.param_groups) for p in group["params"]}


def follow(optimizer, replacement) -> None:
    """Makes the optimizer refer to the parameters that took the place of its own, as the model does."""
    for group in optimizer.param_groups if optimizer is not None else ():
        moved = [(p, replacement(p)) for p in group["params"]]
        group["params"] = [old if new is None else new for old, new in moved]


def _numbers(group: dict) -> dict:
    """Every setting of a parameter group that is a number, a flag or a few numbers."""
    found = {}
    for key, value in group.items():
        if isinstance(value, (tuple, list)) and key != "params" and all(_plain(v) or v is None for v in value):
            found[key] = list(value)
        elif _plain(value):
            found[key] = value
    return found


def _plain(value) -> bool:
    return isinstance(value, bool) or isinstance(value, (int, float)) and math.isfinite(value)
