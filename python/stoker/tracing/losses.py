"""Which loss a step has: the user's, the model's own, or a default that is reported."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Callable

import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

from ..errors import CaptureError

_CLASS_LOSSES = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
_CLASS_FUNCTIONS = (functional.cross_entropy, functional.nll_loss)


@dataclass
class LossPlan:
    """`run(output, targets)` gives a scalar; `targets` are the tensors (name, shape, dtype) that it starts from."""

    run: Callable
    targets: list = field(default_factory=list)
    note: str = ""


def choose(built, output) -> LossPlan:
    """The loss for this output. `built` is a specs.Built with `loss` and `targets` as the user gave them."""
    if built.loss is not None:
        return _users(built, output)
    if built.targets:
        raise CaptureError("the capture has targets and no loss: give loss=, a function of (output, *targets)")
    own = getattr(output, "loss", None)
    if own is None and isinstance(output, dict):
        own = output.get("loss")
    if isinstance(own, torch.Tensor) and own.dim() == 0:
        return LossPlan(lambda out, _: out["loss"] if isinstance(out, dict) else out.loss)
    if isinstance(output, torch.Tensor) and output.dim() == 2 and output.is_floating_point():
        return LossPlan(lambda out, targets: functional.cross_entropy(out, targets[0]),
                        [("target", (output.shape[0],), torch.int64)])
    if isinstance(output, torch.Tensor) and output.dim() == 0:
        return LossPlan(lambda out, _: out)
    return _sum(output)


def check(loss, reads=None) -> None:
    """Refuses what no backward can begin from. `reads`: what the model was told where it reads what depends on data."""
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        shape = list(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise CaptureError(f"the loss is {shape} and has to be one number: reduce it with .mean() or .sum()")
    if not loss.requires_grad:
        left_out = next((place for place, told in (reads or {}).items() if told is False), None)
        branch = f"take the branch that was left out where a value was read, --assume {left_out}=true, " if left_out else ""
        raise CaptureError(f"the loss needs no gradient of any parameter, so there is no training step: {branch}"
                           "capture with --mode inference, or set requires_grad of parameters or inputs")


def _sum(output) -> LossPlan:
    def differentiable(out):
        return [t for t in pytree.tree_leaves(_plain(out)) if isinstance(t, torch.Tensor) and t.requires_grad]

    if not differentiable(output):
        raise CaptureError("nothing in the model's output needs a gradient, so there is no training step: "
                           "capture with --mode inference, or give a loss")

    def run(out, _):
        return sum(t.float().sum() for t in differentiable(out))

    return LossPlan(run, note="no loss was given and the output is not (N, classes): the sum of the outputs stands in")


def _plain(output, depth: int = 2):
    """Containers that pytree may not know: ordered dicts of Hugging Face, data classes, objects with attributes."""
    if isinstance(output, dict) and type(output) is not dict:
        return dict(output)
    if isinstance(output, (torch.Tensor, torch.nn.Module, dict, list, tuple, type)) or not depth:
        return output
    return {name: _plain(value, depth - 1) for name, value in getattr(output, "__dict__", {}).items()}


def _users(built, output) -> LossPlan:
    loss = built.loss
    if built.targets:
        described = [(f"target{i}" if i else "target", tuple(t.shape), t.dtype) for i, t in enumerate(built.targets)]
        return LossPlan(lambda out, targets: loss(out, *targets), described)
    if not _wants_target(loss):
        return LossPlan(lambda out, _: loss(out))
    if not isinstance(output, torch.Tensor):
        raise CaptureError("the loss takes a target and the model's output is not one tensor: "
                           "give targets=(...) in stoker.Capture, or a loss of the output alone")
    if isinstance(loss, _CLASS_LOSSES) or loss in _CLASS_FUNCTIONS:
        described = ("target", (output.shape[0], *output.shape[2:]), torch.int64)
    else:
        described = ("target", tuple(output.shape), output.dtype if output.is_floating_point() else torch.float32)
    return LossPlan(lambda out, targets: loss(out, targets[0]), [described])


def _wants_target(loss) -> bool:
    function = loss.forward if isinstance(loss, torch.nn.Module) else loss
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) >= 2
