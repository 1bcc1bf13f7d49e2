"""What can be captured: torchvision:NAME, timm:NAME, hf:ORG/NAME, FILE.py:FUNCTION, or a Python function."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import inspect
import pathlib
import sys

import torch
from torch.utils import _pytree as pytree

from . import imports, model_build, protocol, spec_words
from .errors import CaptureError
from .polynomial import Dimension
from .tracing import compiled
from .user_code import user_code

KNOWN_BY_NAME = ("seq_len",)  # a parameter of this name is a dimension without being declared


class Source:
    """A capture function with its options. build(point) gives a fresh model at these sizes.

    `change` turns each Capture that the function returns into the one that is captured (adapters); `note` is a sentence that
    the step file has to say of how the model was made.
    """

    def __init__(self, spec: str, name: str, function, options: dict, batch: int | None = None, change=None,
                 note: str | None = None):
        self.spec, self.name, self._options = spec, name, options
        self._change, self.note = change or (lambda capture: capture), note
        self._function = function
        try:
            self._parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            self._parameters = {}
        self._check_options()
        if batch is not None and "batch" in self._parameters:
            self._options = {**options, "batch": batch}
        self.first = self._call({})
        self._example_batch = self._first_size(self.first.inputs)
        self.dimensions = self._dimensions(batch)

    def _check_options(self) -> None:
        if any(p.kind is p.VAR_KEYWORD for p in self._parameters.values()):
            return
        for option in self._options:
            if option not in self._parameters:
                known = ", ".join(self._parameters) or "none"
                raise CaptureError(f"{self.spec} takes no option '{option}' (it takes: {known})")

    def _call(self, point: dict) -> protocol.Capture:
        arguments = {**self._options, **{k: v for k, v in point.items() if k in self._parameters}}
        with user_code(f"{self.spec} could not be built"):
            return model_build.build(lambda: self._change(protocol.from_result(self._function(**arguments))))

    @staticmethod
    def _first_size(inputs) -> int | None:
        for leaf in pytree.tree_leaves(model_build.split_inputs(inputs)):
            if isinstance(leaf, torch.Tensor) and leaf.dim():
                return leaf.shape[0]
        return None

    # -- dimensions ----------------------------------------------------------------------------------------------

    def _default(self, name: str):
        if name in self._options:
            return self._options[name]
        parameter = self._parameters.get(name)
        return parameter.default if parameter is not None and isinstance(parameter.default, int) else None

    def _dimensions(self, batch: int | None) -> list:
        stated = {d.name: d for d in protocol.declared(self.first.dimensions)}
        default = batch or self._default("batch") or protocol.BATCH_DEFAULT
        first = stated.pop("batch", Dimension("batch", default))
        if batch:
            first = dataclasses.replace(first, default=batch)
        result = [first]
        for name in KNOWN_BY_NAME:
            size = self._default(name)
            if name not in stated and size is not None:
                stated[name] = Dimension(name, size, degree=protocol.SEQUENCE_DEGREE)
        for dimension in stated.values():
            if dimension.name not in self._parameters:
                raise CaptureError(f"{self.spec} declares the dimension '{dimension.name}' but its function has no "
                                   f"parameter of that name: add one, with the default size")
            size = self._default(dimension.name)
            if size is not None:
                dimension = dataclasses.replace(dimension, default=size)
            result.append(self._with_limit(dimension))
        return result

    def _with_limit(self, dimension: Dimension) -> Dimension:
        """The longest sequence, where the model's Hugging Face configuration states one."""
        config = getattr(self.first.module, "config", None)
        if dimension.name != "seq_len" or dimension.max is not None or config is None:
            return dimension
        for key in ("max_position_embeddings", "n_positions"):
            limit = getattr(config, key, None)
            if isinstance(limit, int) and limit > 0:
                return dataclasses.replace(dimension, max=limit)
        return dimension

    # -- building ------------------------------------------------------------------------------------------------

    def build(self, point: dict) -> model_build.Built:
        capture = self._call(point)
        self._check(capture)
        given = capture.targets
        inputs, targets = capture.inputs, (given,) if isinstance(given, torch.Tensor) else tuple(given or ())
        if "batch" not in self._parameters:
            inputs, targets = (self._resized(part, point["batch"]) for part in (inputs, targets))
        args, kwargs = model_build.split_inputs(inputs)
        module = compiled.unwrapped(capture.module)
        return model_build.Built(module, args, kwargs, capture.loss, targets, capture.optimizer)

    def _check(self, capture) -> None:
        if not isinstance(capture.module, torch.nn.Module):
            raise CaptureError(f"{self.spec} returned a {type(capture.module).__name__} "
                               "where a torch.nn.Module belongs: return (module, inputs)")

    def _resized(self, tree, batch: int):
        """Every tensor whose first dimension is the example's batch, with another batch."""
        def one(leaf):
            if isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.shape[0] == self._example_batch:
                return torch.empty((batch, *leaf.shape[1:]), dtype=leaf.dtype, device="meta",
                                   requires_grad=leaf.requires_grad)
            return leaf

        return pytree.tree_map(one, tree)


def _near(name: str, names) -> str:
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def resolve(spec: str, options: dict, batch: int | None, image_size: int | None, change=None) -> Source:
    """The source that `spec` names; raises CaptureError with the cure."""
    note = None
    with model_build.without_initialisers():  # for what a file makes when it is imported
        if spec.startswith("hf:"):
            from . import hub
            name, function, note = hub.capture_function(spec.removeprefix("hf:"))
        else:
            name, function = find(spec, image_size)
    return Source(spec, name, function, options, batch, change, note)


def find(spec: str, image_size: int | None = None) -> tuple:
    """(name, capture function) of a spec; raises CaptureError with the cure."""
    if spec.startswith("hf:"):
        from . import hub
        return hub.capture_function(spec.removeprefix("hf:"))[:2]
    spec_words.check(spec)
    kind, _, rest = spec.rpartition(":")
    if kind == "torchvision":
        return rest, _torchvision(spec, rest, image_size)
    if kind == "timm":
        return rest, _timm(spec, rest, image_size)
    return rest, function_of(spec, kind, rest)


def _library(name: str, spec: str):
    try:
        return __import__(name)
    except ImportError as error:
        raise CaptureError(f"{spec} needs {name}, which cannot be imported ({error}): pip install {name}") from None


def _torchvision(spec, name, image_size):
    torchvision = _library("torchvision", spec)
    names = torchvision.models.list_models()
    if name not in names:
        raise CaptureError(f"torchvision has no model '{name}'{_near(name, names)}")
    video = name in torchvision.models.list_models(module=torchvision.models.video)
    side = image_size or (112 if video else 299 if name == "inception_v3" else 224)
    builder = inspect.signature(torchvision.models.get_model_builder(name)).parameters
    no_weights = {key: None for key in ("weights", "weights_backbone") if key in builder}
    shape = (3, 16, side, side) if video else (3, side, side)

    def torchvision_model(batch=protocol.BATCH_DEFAULT, **arguments):
        model = torchvision.models.get_model(name, **{**no_weights, **arguments})
        return protocol.Capture(model, torch.empty(batch, *shape), sample={"what": "clip" if video else "image"})

    return torchvision_model


def _timm(spec, name, image_size):
    timm = _library("timm", spec)
    if not timm.is_model(name.split(".")[0]):
        raise CaptureError(f"timm has no model '{name}'{_near(name, timm.list_models())}")

    def timm_model(batch=protocol.BATCH_DEFAULT, **arguments):
        if image_size and "img_size" not in arguments and "vit" in name:
            arguments["img_size"] = image_size
        model = timm.create_model(name, pretrained=False, **arguments)
        channels, height, width = model.pretrained_cfg.get("input_size", (3, 224, 224))
        if image_size:
            height = width = image_size
        return protocol.Capture(model, torch.empty(batch, channels, height, width), sample={"what": "image"})

    return timm_model


def function_of(spec, path, function_name):
    """A function of a Python file, which is imported."""
    file = pathlib.Path(path)
    spec_words.check_file(path, spec)
    module_spec = importlib.util.spec_from_file_location(file.stem, file.absolute())
    module = importlib.util.module_from_spec(module_spec)
    sys.modules.setdefault(file.stem, module)
    imports.make_importable(str(file.resolve().parent))
    with user_code(f"{path} could not be imported"):
        module_spec.loader.exec_module(module)
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise CaptureError(f"{path} has no function '{function_name}'{_near(function_name, names)}")
    return function
