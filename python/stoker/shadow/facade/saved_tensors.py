"""Files of safetensors and folders of save_pretrained: weights are written by code that no overlay reaches, and are nobody's.

A file holds the mark that torch.save writes (files.py), and whoever opens it finds the tensors by their shapes.
"""

from __future__ import annotations

import os

import torch

from .. import sites
from . import files


def install(world, module) -> None:
    """Functions of safetensors.torch."""
    original = {name: getattr(module, name) for name in ("load_file", "load", "load_model", "safe_open") if hasattr(module, name)}

    def save_file(tensors, filename, metadata=None):
        _write(world, filename, tensors, metadata)

    def save_model(model, filename, metadata=None, force_contiguous=True):
        _write(world, filename, model.state_dict(), metadata)

    def save(tensors, metadata=None):
        return files.kept((dict(tensors), metadata))

    def load_file(filename, device="cpu"):
        found = files.remembered(filename)
        if found is None:
            return original["load_file"](filename, device)
        return {name: files.made(world, leaf, device) for name, leaf in found[0][0].items()}

    def load(data):
        found = files.of_bytes(data)
        return original["load"](data) if found is None else {name: files.made(world, leaf, "cpu") for name, leaf in found[0][0].items()}

    def load_model(model, filename, strict=True, device="cpu"):
        if files.remembered(filename) is None:
            return original["load_model"](model, filename, strict, device)
        result = model.load_state_dict(load_file(filename, device), strict=False)
        return set(result.missing_keys), list(result.unexpected_keys)

    for name, answer in (("save_file", save_file), ("save_model", save_model), ("save", save), ("load_file", load_file), ("load", load),
                         ("load_model", load_model)):
        if hasattr(module, name):
            setattr(module, name, answer)


def _write(world, filename, tensors, metadata) -> None:
    world.found("checkpoint-writes", True, "writes checkpoints", sites.here(3))
    with open(filename, "wb") as file:
        file.write(files.kept((dict(tensors), metadata)))


def opened(world, module) -> None:
    """safetensors.safe_open, which reads a file tensor by tensor."""
    original = module.safe_open

    def safe_open(filename, framework="pt", device="cpu", **kwargs):
        found = files.remembered(filename)
        return original(filename, framework, device, **kwargs) if found is None else _Opened(world, *found[0], device)

    module.safe_open = safe_open


class _Opened:
    """A file of safetensors that the script wrote."""

    def __init__(self, world, tensors: dict, metadata, device):
        self._world, self._tensors, self._metadata, self._device = world, tensors, metadata, device

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def keys(self):
        return list(self._tensors)

    offset_keys = keys

    def metadata(self):
        return self._metadata

    def get_tensor(self, name):
        device = torch.device("cuda" if isinstance(self._device, int) else self._device)
        return files.made(self._world, self._tensors[name], device)

    get_slice = get_tensor


_folders: dict = {}  # folder that save_pretrained was given -> the model's configuration


def pretrained(world, module) -> None:
    """transformers' save_pretrained, and from_pretrained of a folder that it has written: the model without its weights."""
    cls = module.PreTrainedModel
    original = cls.from_pretrained.__func__

    def save_pretrained(self, save_directory, *args, **kwargs):
        world.found("checkpoint-writes", True, "writes checkpoints", sites.here(2))
        os.makedirs(save_directory, exist_ok=True)
        self.config.save_pretrained(save_directory)
        _folders[os.path.abspath(save_directory)] = self.config

    def from_pretrained(cls, name=None, *args, **kwargs):
        known = _folders.get(os.path.abspath(name)) if isinstance(name, (str, os.PathLike)) else None
        return original(cls, name, *args, **kwargs) if known is None else cls(known)

    cls.save_pretrained, cls.from_pretrained = save_pretrained, classmethod(from_pretrained)
