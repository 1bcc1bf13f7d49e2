"""Models that are objects of Python's, for the command: what a process of its own rebuilds them from, without their weights."""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import pickle
import sys
from typing import Any

from . import caches
from .protocol import Capture

MOST_VALUES = 1024  # small tensors keep their values: models read tables of offsets and flags from them

REBUILDS = '''"""Written by stoker.predict and plan for a model that was given as an object; may be deleted."""

import pathlib
import pickle
import sys

sys.path.extend(path for path in {paths!r} if path not in sys.path)


def {name}():
    with open(pathlib.Path(__file__).with_suffix(".pickle"), "rb") as file:
        return pickle.load(file)
'''


class ObjectError(Exception):
    """An object that no other process can rebuild; the message says why, and the cure."""


def empty(size: tuple, stride: tuple, dtype: Any, requires_grad: bool) -> Any:
    """A tensor of that shape whose values nobody reads."""
    import torch

    made = torch.empty_strided(size, stride, dtype=dtype)
    return made.requires_grad_() if requires_grad else made


def parameter(size: tuple, stride: tuple, dtype: Any, requires_grad: bool) -> Any:
    import torch

    return torch.nn.Parameter(empty(size, stride, dtype, False), requires_grad)


def function_spec(what: Any) -> str | None:
    """FILE.py:FUNCTION of a plain function that a fresh process can import."""
    if not inspect.isfunction(what) or what.__qualname__ != what.__name__ or what.__name__ == "<lambda>":
        return None
    if what.__module__ == "__main__":
        return None  # importing the script again would run it again
    file = inspect.getsourcefile(what)
    return f"{file}:{what.__name__}" if file and file.endswith(".py") and os.path.exists(file) else None


def spec_of(model: Any, settings: dict) -> Any:
    """What the command takes for the model. `settings` lose what belongs to an object: inputs, a loss, an optimizer object."""
    inputs = settings.pop("inputs", None)
    if isinstance(model, (str, os.PathLike)):
        if inputs is not None:
            raise ObjectError(f"inputs go with a torch.nn.Module, not with the name {str(model)!r}: leave them out")
        return model
    loss = settings.pop("loss") if callable(settings.get("loss")) else None
    optimizer = settings.get("optimizer")
    optimizer = settings.pop("optimizer") if optimizer is not None and not isinstance(optimizer, str) else None
    if not hasattr(model, "named_parameters") and not (inputs is None and loss is None and optimizer is None):
        raise ObjectError(f"inputs, a loss and an optimizer object go with a torch.nn.Module, not with a {type(model).__name__}: give them "
                          "to the stoker.Capture that it is or returns")
    return function_spec(model) or _written(*_described(model, inputs, loss, optimizer))


def _described(model: Any, inputs: Any, loss: Any, optimizer: Any) -> tuple:
    """(what the rebuilding function returns, the model's name)"""
    if isinstance(model, (Capture, tuple)):
        module = model.module if isinstance(model, Capture) else model[0]
        return model, getattr(model, "name", None) or type(module).__name__
    if hasattr(model, "named_parameters"):
        if inputs is None:
            raise ObjectError(f"a {type(model).__name__} needs example inputs, whose shapes count: inputs=torch.empty(32, 3, 224, 224), "
                              "a tuple or a dict")
        wrapped = type(model).__name__ in ("DataParallel", "DistributedDataParallel")
        module = model.module if wrapped else model
        return Capture(module, inputs, loss, optimizer=optimizer), type(module).__name__
    if callable(model):
        return _Called(model), getattr(model, "__name__", "model")
    raise ObjectError(f"a {type(model).__name__} is no model: give a name, a file, a torch.nn.Module with inputs=, or a capture function")


class _Called:
    """A capture function that no file holds: pickled by value, called where it is rebuilt."""

    def __init__(self, function: Any):
        self.function = function

    def __reduce__(self) -> tuple:
        return _call, (self.function,)


def _call(function: Any) -> Any:
    return function()


def _reduced(value: Any) -> Any:
    """How a tensor is pickled: by its shape, its values only where they are few or no real numbers."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return NotImplemented
    told = (tuple(value.shape), tuple(value.stride()), value.dtype, value.requires_grad)
    if type(value) is torch.nn.Parameter:
        return parameter, told
    if type(value) is not torch.Tensor:
        return NotImplemented
    if value.numel() > MOST_VALUES or value.requires_grad or value.device.type in ("meta", "cuda"):
        return empty, told
    # A view would bring along all of its storage.
    return NotImplemented if value.untyped_storage().nbytes() <= MOST_VALUES * value.element_size() else value.clone().__reduce_ex__(4)


def _pickled(described: Any) -> bytes:
    try:
        import cloudpickle  # takes classes of notebooks and scripts by value
    except ImportError:
        cloudpickle = None
    base = cloudpickle.Pickler if cloudpickle else pickle.Pickler

    class ByShape(base):  # type: ignore[misc, valid-type]
        def reducer_override(self, value: Any) -> Any:
            reduced = _reduced(value)
            if reduced is NotImplemented and cloudpickle:
                return super().reducer_override(value)
            return reduced

    main = _of_main(described)
    if main and not cloudpickle:
        raise ObjectError(f"{main} is defined in this script or notebook, which no other process can import: write it to a file and import "
                          "it, or pip install cloudpickle")
    held = io.BytesIO()
    try:
        ByShape(held, protocol=4).dump(described)
    except Exception as error:  # whatever an object's own __reduce__ raises
        raise ObjectError(f"the model cannot be handed to another process ({error}): give FILE.py:FUNCTION, a function that returns "
                          "(module, inputs)") from None
    return held.getvalue()


def _of_main(described: Any) -> str:
    """The name of a class or function in use that only this process knows; empty: there is none."""
    if isinstance(described, _Called):
        return getattr(described.function, "__name__", "") if described.function.__module__ == "__main__" else ""
    module = getattr(described, "module", None) or (described[0] if isinstance(described, tuple) else None)
    for part in module.modules() if hasattr(module, "modules") else ():
        if type(part).__module__ == "__main__":
            return type(part).__name__
    loss = getattr(described, "loss", None)
    return getattr(loss, "__name__", "the loss") if getattr(loss, "__module__", "") == "__main__" else ""


def _written(described: Any, name: str) -> str:
    """The spec of a function that rebuilds it. The same model has the same file, so that its capture is remembered."""
    content = _pickled(described)
    called = "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter == "_")) or "model"
    called = called if called.isidentifier() else f"model_{called}"
    paths = [path for path in sys.path if path and os.path.isdir(path)]
    text = REBUILDS.format(paths=paths, name=called)
    folder = caches.folder() / "objects"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"{called}_{hashlib.sha256(content + text.encode()).hexdigest()[:16]}"
        unsafe = caches.not_ours(stem)
        if unsafe:
            raise ObjectError(unsafe)
        for ending, written in ((".pickle", content), (".py", text.encode())):
            target = stem.with_suffix(ending)
            if caches.not_ours(target) or not caches.hold(str(target)):  # unchanged files keep the capture that was made from them
                part = target.with_suffix(f".{os.getpid()}")
                part.write_bytes(written)
                part.replace(target)
                caches.hold(str(target))
                caches.wrote(target)
    except OSError as error:
        raise ObjectError(f"{folder}: {error.strerror}: set XDG_CACHE_HOME to a folder that can be written") from None
    return f"{stem}.py:{called}"
