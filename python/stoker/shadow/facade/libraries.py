"""Libraries that write files or ask the GPU beneath Python: each is given its stand-ins when the script imports it."""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import os
import pathlib
import shutil
import sys

from .. import sites
from ..settings import batch_names
from . import distributed_parts, downloads, kernels, loggers, nvidia, saved_tensors, unmodelled

# Functions that write a file beneath Python, where no overlay sees it.
_BENEATH = {"torchvision.io": ("write_png", "write_jpeg", "write_video", "write_file"), "soundfile": ("write",), "torchaudio": ("save",),
            "faiss": ("write_index",), "torch.onnx": ("export",), "torch.export": ("save",)}
_MOST_COPIED = 256 << 20  # bytes of a file that a script opens to change it


def install(world, overlay) -> None:
    hooks = {"torch.utils.tensorboard.writer": lambda m: _no_graph(world, m.SummaryWriter),
             "tensorboardX.writer": lambda m: _no_graph(world, m.SummaryWriter),
             "safetensors": lambda m: saved_tensors.opened(world, m),
             "safetensors.torch": lambda m: saved_tensors.install(world, m),
             "transformers.modeling_utils": lambda m: saved_tensors.pretrained(world, m),
             "torch.distributed.checkpoint": lambda m: _no_saving(world, m, ("save", "async_save", "save_state_dict", "load",
                                                                            "load_state_dict")),
             **{name: lambda m, names=names: _no_writing(world, m, names) for name, names in _BENEATH.items()},
             "transformers.tokenization_utils_base": lambda m: _no_saving(world, m.PreTrainedTokenizerBase, ("save_pretrained",)),
             "h5py._hl.files": lambda m: _hdf5(overlay, m.File),
             "sqlite3": lambda m: _database(overlay, m),
             "pyarrow": lambda m: _arrow(overlay, m),
             "cv2": lambda m: _first_is_written(overlay, m, ("imwrite", "VideoWriter")),
             "lmdb": lambda m: _first_is_written(overlay, m, ("open", "Environment"), unless="readonly")}
    if world.on_gpu:
        hooks |= {"pynvml": lambda m: nvidia.nvml(world, m), "triton.runtime.jit": lambda m: kernels.launches(world, m),
                  "triton.runtime.autotuner": lambda m: kernels.untuned(m)}
        kernels.install(world)
    hooks |= downloads.hooks(world) | loggers.hooks(world) | unmodelled.hooks(world) | distributed_parts.hooks(world)
    batch_names.install(world, hooks)
    for name in [name for name in hooks if name in sys.modules]:
        hooks.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _After(hooks))
    loggers.install(world)


class _After(importlib.abc.MetaPathFinder):
    """Calls a function with a module once it is imported."""

    def __init__(self, hooks: dict):
        self._hooks = hooks
        self._asking: set = set()  # names that the other finders are being asked for

    def find_spec(self, fullname, path=None, target=None):
        """Many libraries ask whether another is installed and import it later, so that a hook waits for the import itself."""
        if fullname not in self._hooks or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(fullname)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            hook = self._hooks.pop(fullname, None) if module.__name__ == fullname else None
            if hook is not None:
                with contextlib.suppress(AttributeError):  # another version of the library, which stays as it is
                    hook(module)

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader whose methods are fixed: the library stays as it is
        return spec


def _no_graph(world, writer) -> None:
    """The drawing of a model traces it with values."""
    def add_graph(self, *args, **kwargs):
        return None

    writer.add_graph = add_graph


def _no_saving(world, owner, names: tuple) -> None:
    """Weights are written by code that no overlay reaches, and are nobody's: not at all."""
    def save(*args, **kwargs):
        world.found("checkpoint-writes", True, "writes checkpoints", sites.here(2))
        return ()

    for name in names:
        if hasattr(owner, name):
            setattr(owner, name, save)


def _no_writing(world, module, names: tuple) -> None:
    def write(*args, **kwargs):
        world.note(f"{sites.here(2)}: what {module.__name__} writes is not written")

    for name in names:
        if hasattr(module, name):
            setattr(module, name, write)


def _copied(overlay, path):
    """Where a file lies that is opened to be changed: a copy of it, if it is there and not large."""
    target = overlay.to_write(path)
    if target is not path and not os.path.lexists(target):
        source = os.path.abspath(os.fsdecode(path))
        if os.path.isfile(source):
            if os.path.getsize(source) > _MOST_COPIED:
                return path
            shutil.copyfile(source, target)
    return target


def _too_large(overlay, path) -> bool:
    """Whether a file of the user's is not copied to be changed: it is read, and no more."""
    return _copied(overlay, path) is path and overlay.is_outside(path) and os.path.isfile(path)


def _hdf5(overlay, File) -> None:
    original = File.__init__

    @functools.wraps(original)
    def __init__(self, name, mode="r", *args, **kwargs):
        if isinstance(name, (str, bytes, os.PathLike)):
            if mode in ("a", "r+") and _too_large(overlay, name):
                mode = "r"
            name = overlay.to_read(name) if mode == "r" else overlay.to_write(name) if mode in ("w", "w-", "x") else _copied(overlay, name)
        original(self, name, mode, *args, **kwargs)

    File.__init__ = __init__


def _database(overlay, module) -> None:
    original = module.connect

    def connect(database, *args, **kwargs):
        if isinstance(database, (str, os.PathLike)) and os.fspath(database) not in ("", ":memory:") and not kwargs.get("uri"):
            if _too_large(overlay, database):
                return original(f"{pathlib.Path(os.path.abspath(database)).as_uri()}?mode=ro", *args, **{**kwargs, "uri": True})
            database = _copied(overlay, database)
        return original(database, *args, **kwargs)

    module.connect = connect
    if hasattr(module, "dbapi2"):
        module.dbapi2.connect = connect  # what SQLAlchemy calls


def _arrow(overlay, module) -> None:
    """What Hugging Face's datasets read and write their tables with."""
    file, mapped = module.OSFile, module.memory_map
    module.OSFile = lambda path, mode="r", *args, **kwargs: file(
        overlay.to_read(path) if mode in ("r", "rb") else overlay.to_write(path), mode, *args, **kwargs)
    module.memory_map = lambda path, mode="r", *args, **kwargs: mapped(overlay.to_read(path), mode, *args, **kwargs) if mode in (
        "r", "rb") else mapped(_copied(overlay, path), "r" if _too_large(overlay, path) else mode, *args, **kwargs)


def _first_is_written(overlay, module, names: tuple, unless: str = "") -> None:
    def leading(original):
        def function(*args, **kwargs):
            if args:
                where = overlay.to_read if unless and kwargs.get(unless) else overlay.to_write
                args = (where(args[0]), *args[1:])
            return original(*args, **kwargs)

        if isinstance(original, type):  # VideoWriter.fourcc
            function.__dict__.update((key, getattr(original, key)) for key in dir(original) if not key.startswith("__"))
        return function

    for name in names:
        if hasattr(module, name):
            setattr(module, name, leading(getattr(module, name)))
