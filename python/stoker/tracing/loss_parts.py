"""What a loss function brings along besides the model: a criterion's weights, a frozen network that it compares features
with, tensors in its closure. On the user's machine they lie on the device, too."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field

import torch

DEPTH = 4  # functions that call functions


@dataclass
class LossParts:
    """`modules` are (name, module) and none of the model's; `slots` are (read, write) of each place that holds a tensor."""

    modules: list = field(default_factory=list)
    slots: list = field(default_factory=list)
    _kept: list = field(default_factory=list)

    def move(self, mover) -> None:
        """Modules and tensors onto the mover's device."""
        for _, module in self.modules:
            mover.move(module)
        for read, write in self.slots:
            self._kept.append((write, read()))
            write(mover.fake(read()))

    def put_back(self) -> None:
        while self._kept:
            write, value = self._kept.pop()
            write(value)

    def named_parameters(self) -> list:
        return [(f"{name}.{inner}", p) for name, module in self.modules for inner, p in module.named_parameters()]

    def named_buffers(self) -> list:
        return [(f"{name}.{inner}", b) for name, module in self.modules for inner, b in module.named_buffers()]


def of(loss, model) -> LossParts:
    """What `loss` refers to, through closures, defaults, partial arguments, attributes and global names."""
    parts = LossParts()
    if loss is not None:
        _Search(parts, {id(part) for part in model.modules()}).visit("loss", loss, None, 0)
    return parts


def _holds_tensors(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None or next(module.buffers(), None) is not None


class _Search:
    def __init__(self, parts: LossParts, known: set):
        self._parts, self._known, self._seen = parts, known, set()

    def visit(self, name: str, value, slot, depth: int) -> None:
        """`slot` is (read, write) of where the value is kept, None where it cannot be replaced."""
        if isinstance(value, torch.Tensor):
            if slot is not None and not isinstance(value, torch.nn.Parameter):
                self._parts.slots.append(slot)
            return
        if id(value) in self._seen or depth > DEPTH:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            if id(value) not in self._known and _holds_tensors(value):
                self._parts.modules.append((name, value))
        elif isinstance(value, functools.partial):
            self.visit(name, value.func, None, depth + 1)
            self._all([*value.args, *value.keywords.values()], depth)
        elif inspect.ismethod(value):
            self.visit(name, value.__func__, None, depth + 1)
            owner = value.__self__
            if isinstance(owner, torch.nn.Module):
                self.visit(name, owner, None, depth + 1)
            else:
                self._holder(getattr(owner, "__dict__", {}), depth)
        elif inspect.isfunction(value):
            self._function(value, depth)
        elif isinstance(value, dict):
            self._holder(value, depth)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                self.visit(name, item, (functools.partial(value.__getitem__, i), functools.partial(value.__setitem__, i)), depth + 1)
        elif isinstance(value, tuple):
            self._all(value, depth)
        elif callable(value) and not inspect.isclass(value) and not inspect.isbuiltin(value):
            self._holder(getattr(value, "__dict__", {}), depth)

    def _all(self, values, depth: int) -> None:
        for value in values:
            self.visit("loss", value, None, depth + 1)

    def _holder(self, holder: dict, depth: int) -> None:
        for key, value in list(holder.items()):
            self.visit(str(key), value, (functools.partial(holder.__getitem__, key), functools.partial(holder.__setitem__, key)), depth + 1)

    def _function(self, function, depth: int) -> None:
        if (function.__module__ or "").partition(".")[0] == "torch":
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            def read(cell=cell):
                return cell.cell_contents

            def write(value, cell=cell):
                cell.cell_contents = value

            try:
                self.visit(name, read(), (read, write), depth + 1)
            except ValueError:  # a cell that nothing has filled yet
                pass
        self._all(function.__defaults__ or (), depth)
        self._holder(function.__kwdefaults__ or {}, depth)
        names = function.__globals__
        for name in function.__code__.co_names:
            if name in names and not inspect.ismodule(names[name]):
                slot = (functools.partial(names.__getitem__, name), functools.partial(names.__setitem__, name))
                self.visit(name, names[name], slot, depth + 1)
