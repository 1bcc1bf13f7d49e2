"""Hooks of gradients: an optimizer that steps in one runs within the backward, and is captured with it.

Such code finds its optimizer by the parameter (`optimizers[parameter].step()`), so the parameter has to stay the same object:
the fake tensor takes its place inside of it, and gives it back afterwards.
"""

from __future__ import annotations

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

_OF_FUNCTION = "_in_backward_optimizers"  # torch.distributed.optim._apply_optimizer_in_backward


def has_hooks(parameter) -> bool:
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None) or parameter._backward_hooks
                or getattr(parameter, _OF_FUNCTION, None))


def _step_all(optimizers):
    def hook(parameter):
        for optimizer in optimizers:
            optimizer.step()
        parameter.grad = None
    return hook


class Exchanged:
    """`parameter` holds what `fake` was, with its hooks, until undo()."""

    def __init__(self, parameter, fake):
        self._parameter, self._fake = parameter, fake
        self._after = dict(parameter._post_accumulate_grad_hooks or {})
        self._on_gradient = dict(parameter._backward_hooks or {})
        in_backward = getattr(parameter, _OF_FUNCTION, None)
        self._swap()
        for hook in self._after.values():
            parameter.register_post_accumulate_grad_hook(hook)
        for hook in self._on_gradient.values():
            parameter.register_hook(hook)
        if in_backward:  # its own hook hangs on a node of the graph that the original had
            parameter.register_post_accumulate_grad_hook(_step_all(in_backward))

    def _swap(self) -> None:
        one, other = self._parameter, self._fake
        one.__class__, other.__class__ = other.__class__, one.__class__
        states = dict(one.__dict__), dict(other.__dict__)
        for tensor, state in zip((other, one), states):
            tensor.__dict__.clear()
            tensor.__dict__.update(state)
        torch._C._swap_tensor_impl(one, other)
        one._post_accumulate_grad_hooks = None
        one._backward_hooks = None

    def undo(self) -> None:
        self._swap()
        for hook in self._after.values():
            self._parameter.register_post_accumulate_grad_hook(hook)
        for hook in self._on_gradient.values():
            self._parameter.register_hook(hook)


class Steps:
    """Which optimizers step while this is entered, by their class; forget() takes back the state that they have made."""

    def __init__(self):
        self.names: set[str] = set()
        self._before: dict = {}

    def __enter__(self):
        def before(optimizer, args, kwargs):
            self.names.add(type(optimizer).__name__.lower())
            self._before.setdefault(id(optimizer), (optimizer, dict(optimizer.state)))

        self._handle = register_optimizer_step_pre_hook(before)
        return self

    def __exit__(self, *exception):
        self._handle.remove()

    def forget(self) -> None:
        for optimizer, state in self._before.values():
            optimizer.state.clear()
            optimizer.state.update(state)
