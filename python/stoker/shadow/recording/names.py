"""What the script's models, their parents and their parameters are called."""

from __future__ import annotations

import sys
import weakref

import torch

from .. import sites

_modules: dict[int, weakref.ref] = {}  # every module that was made, by id
TRANSPARENT: set = set()  # classes of wrappers whose inner module is the model


def made(module) -> None:
    number = id(module)
    _modules[number] = weakref.ref(module, lambda _: _modules.pop(number, None))


def _parents() -> dict:
    """id of a module -> the modules that hold it."""
    found: dict[int, list] = {}
    for reference in list(_modules.values()):
        module = reference()
        if module is None or type(module) in TRANSPARENT:
            continue
        for child in module.__dict__.get("_modules", {}).values():
            if child is not None:
                found.setdefault(id(child), []).append(module)
    return found


def top_of(module) -> torch.nn.Module:
    """The outermost module that holds this one; wrappers that only pass calls on do not count."""
    parents, seen = _parents(), set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module = parents[id(module)][0]
    return module


def prefixes(roots: list) -> list:
    """What stands before the names of each model's parts: nothing for a single one."""
    if len(roots) <= 1:
        return [""] * len(roots)
    names: list[str] = []
    for i, root in enumerate(roots):
        name = _variable(root) or f"model{i or ''}"
        names.append(name if name not in names else f"{name}_{i}")
    return names


def _variable(module) -> str | None:
    """The variable of the script that holds it."""
    frame = sys._getframe(1)
    while frame is not None:
        for values in (frame.f_locals, frame.f_globals) if sites.is_users(frame.f_code.co_filename) else ():
            for name, value in list(values.items()):
                if value is module and name != "self":
                    return name
        frame = frame.f_back
    main = sys.modules.get("__main__")
    return next((n for n, v in vars(main).items() if v is module), None) if main else None


def bare(tensors: list) -> list:
    """(name, tensor) of parameters that no module holds: by the script's variables."""
    found: list = []
    for tensor in tensors:
        name = _variable(tensor) or f"parameter{len(found)}"
        found.append((name if all(name != other for other, _ in found) else f"{name}_{len(found)}", tensor))
    return found


def groups(optimizers: list) -> dict | None:
    """id of a parameter -> number of its group among those of all optimizers; None without one."""
    if not optimizers:
        return None
    found, number = {}, 0
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                found.setdefault(id(parameter), number)
            number += 1
    return found


def unwrapped(tensor):
    """The tensor beneath those of torch.func's transforms, which have no storage."""
    wrapping = torch._C._functorch
    while wrapping.is_functorch_wrapped_tensor(tensor):
        tensor = wrapping.get_unwrapped(tensor)
    return tensor
