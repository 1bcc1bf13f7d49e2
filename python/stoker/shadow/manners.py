"""Keeps what is outside of the run as it is: files are written to a scratch folder, and no network is reached.

A file that the script writes lies in the scratch folder, where the script finds it again; the folder goes with the run.
"""

from __future__ import annotations

import builtins
import bz2
import contextlib
import io
import os
import pathlib
import signal
import socket
import tarfile
import tempfile

_QUIET = {"WANDB_MODE": "disabled", "WANDB_SILENT": "true", "COMET_MODE": "disabled", "NEPTUNE_MODE": "debug", "CLEARML_OFFLINE_MODE": "1",
          "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
          "TQDM_DISABLE": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "0", "MPLBACKEND": "Agg", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
          "GIT_OPTIONAL_LOCKS": "0"}  # git refreshes no index that it reads
_WRITING = set("wax+")
_ASKED = ("stat", "lstat", "statvfs", "listdir", "scandir", "access", "readlink", "pathconf", "chdir")  # functions of os: no file changes
_CONFIGURATIONS = (".py", ".json", ".yaml", ".yml", ".toml", ".cfg", ".ini")
READ: set = set()  # configurations that the script opened: they decide as much as code does


class Overlay:
    """Paths that the script writes, and where they lie instead."""

    def __init__(self, scratch: str):
        self.scratch = scratch
        self.written: set[str] = set()
        self.removed: set[str] = set()
        self._passes = tuple(os.path.join(os.path.realpath(p), "") for p in (scratch, "/dev", "/proc", "/sys"))

    def _full(self, path) -> str | None:
        if isinstance(path, int) or path is None:
            return None
        full = os.path.abspath(os.fsdecode(path))
        return None if os.path.join(full, "").startswith(self._passes) else full

    def is_outside(self, path) -> bool:
        """Whether a file of this path is the user's, and none of the run's."""
        return self._full(path) is not None

    def inside(self, path) -> str:
        return os.path.join(self.scratch, "written", os.fsdecode(path).lstrip("/"))

    def to_write(self, path):
        """Where `path` is to be written."""
        full = self._full(path)
        if full is None:
            if self._outside(path) is not None:
                _make_folder(os.path.dirname(os.path.abspath(os.fsdecode(path))))
            return path
        inside = self.inside(full)
        _make_folder(os.path.dirname(inside))
        self.written.add(full)
        return inside

    def to_read(self, path):
        """Where `path` lies: in the scratch folder if the script wrote it."""
        full = self._full(path)
        if full is None:
            outside = self._outside(path)
            return outside if outside is not None and not _lies_there(path) and _lies_there(outside) else path
        inside = self.inside(full)
        return inside if _lies_there(inside) else path

    def _outside(self, path) -> str | None:
        """Where the user's file would lie, where the script works in a folder that it has made and asks for what is beside that."""
        if path is None or isinstance(path, int):
            return None
        full, written = os.path.abspath(os.fsdecode(path)), self.inside("")
        return full[len(written) - 1:] if full.startswith(written) else None


_real_lstat, _real_mkdir = os.lstat, os.mkdir


def _make_folder(path: str) -> None:
    if not _lies_there(path):
        _make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            _real_mkdir(path)


def _lies_there(path) -> bool:
    try:
        _real_lstat(path)
    except (OSError, ValueError):
        return False
    return True

# Modules of Python's that have taken a function of builtins, io or os at their import: (module, its name there, the function's owner,
# its name). Until Python 3.11 pathlib hands paths to functions that it keeps in one object.
_KEEPERS = [(tarfile, "bltn_open", builtins, "open"), (bz2, "_builtin_open", builtins, "open")]
_ACCESSOR = getattr(pathlib, "_normal_accessor", None)
if _ACCESSOR is not None:
    _KEEPERS.append((_ACCESSOR, "open", io if _ACCESSOR.open is io.open else os, "open"))
    _KEEPERS += [(_ACCESSOR, name, os, name) for name in ("stat", "lstat", "listdir", "scandir", "chmod", "mkdir", "unlink", "rmdir",
                                                          "rename", "replace", "symlink", "link", "utime") if hasattr(_ACCESSOR, name)]
    _KEEPERS += [(_ACCESSOR, "link_to", os, "link")] if hasattr(_ACCESSOR, "link_to") else []


def install(scratch: str, network: bool) -> Overlay:
    """From here on this process keeps its manners."""
    for name, value in _QUIET.items():
        if not (network and name.endswith("_OFFLINE")):
            os.environ[name] = value
    os.environ["MLFLOW_TRACKING_URI"] = f"file://{os.path.join(scratch, 'mlruns')}"
    overlay = Overlay(scratch)
    tempfile.tempdir = os.environ["TMPDIR"] = scratch
    if not os.path.isdir(os.path.expanduser("~/.cache/torch_extensions")):  # no build of an extension that could serve
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", os.path.join(scratch, "torch_extensions"))
    _files(overlay)
    if not network:
        _network()
    return overlay


@contextlib.contextmanager
def for_a_while(scratch: str):
    """Keeps the process's manners until the end of the `with`, which is given the overlay."""
    places = [(builtins, "open"), (io, "open"), (socket.socket, "connect"), (socket, "getaddrinfo"), *((os, n) for n in (
        "open", *_ASKED, "mkdir", "remove", "unlink", "rmdir", "rename", "replace", "symlink",
        "link", "chmod", "chown", "truncate", "utime")), *((os.path, n) for n in ("exists", "isfile", "isdir", "lexists", "getsize")),
        *((keeper, name) for keeper, name, _, _ in _KEEPERS)]
    before = [(module, name, getattr(module, name)) for module, name in places]
    environment, temporary = dict(os.environ), tempfile.tempdir
    try:
        yield install(scratch, False)
    finally:
        tempfile.tempdir = temporary
        for module, name, value in before:
            setattr(module, name, value)
        os.environ.clear()
        os.environ.update(environment)


def _files(overlay: Overlay) -> None:
    real_open, real_os_open = builtins.open, os.open

    def open_(file, mode="r", *args, **kwargs):
        writes = _WRITING & set(mode)
        if writes and not isinstance(file, int):
            target = overlay.to_write(file)
            if target is not file and ("a" in mode or "+" in mode) and "w" not in mode and not _lies_there(target) \
                    and os.path.exists(file):
                pathlib.Path(target).write_bytes(pathlib.Path(file).read_bytes())
            return real_open(target, mode, *args, **kwargs)
        if isinstance(file, (str, os.PathLike)) and os.fsdecode(file).endswith(_CONFIGURATIONS):
            READ.add(os.path.abspath(os.fsdecode(file)))
        return real_open(overlay.to_read(file), mode, *args, **kwargs)

    def os_open(path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is not None:
            return real_os_open(path, flags, mode, dir_fd=dir_fd)
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return real_os_open(overlay.to_write(path) if writes else overlay.to_read(path), flags, mode)

    builtins.open = io.open = open_
    os.open = os_open
    _changes(overlay)
    for name in _ASKED:
        setattr(os, name, _reading(overlay, getattr(os, name)))
    for name in ("exists", "isfile", "isdir", "lexists", "getsize"):
        setattr(os.path, name, _reading(overlay, getattr(os.path, name)))
    for keeper, name, owner, original in _KEEPERS:
        setattr(keeper, name, getattr(owner, original))


def _reading(overlay, original):
    def read(path=".", *args, **kwargs):
        if kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        return original(overlay.to_read(path), *args, **kwargs)

    return read


def _changes(overlay: Overlay) -> None:
    """Functions of os that change folders: in the scratch folder they do, elsewhere nothing."""
    real = {name: getattr(os, name) for name in ("mkdir", "remove", "unlink", "rmdir", "rename", "replace", "symlink", "link", "chmod",
                                                 "chown", "truncate", "utime")}

    def mkdir(path, mode=0o777, *, dir_fd=None):
        target = overlay.to_write(path)
        if target is not path and os.path.isdir(path):
            raise FileExistsError(17, "File exists", os.fsdecode(path))
        return real["mkdir"](target, mode)

    def one(name):
        def change(path, *args, **kwargs):
            target = overlay.to_read(path)
            if target is path and overlay._full(path) is not None:
                return None
            return real[name](target, *args, **kwargs)

        return change

    def two(name):
        def change(source, target, *args, **kwargs):
            found = overlay.to_read(source)
            if found is source and overlay._full(source) is not None:
                return None
            return real[name](found, overlay.to_write(target))

        return change

    os.mkdir = mkdir
    for name in ("remove", "unlink", "rmdir", "chmod", "chown", "truncate", "utime"):
        setattr(os, name, one(name))
    for name in ("rename", "replace"):
        setattr(os, name, two(name))
    for name in ("symlink", "link"):
        setattr(os, name, lambda source, target, *a, _real=real[name], **k: _real(source, overlay.to_write(target)))


def _network() -> None:
    real = socket.socket.connect

    def connect(self, address):
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and host not in ("127.0.0.1", "::1", "localhost"):
            raise ConnectionRefusedError(111, "stoker lets a script reach no network while it is captured")
        return real(self, address)

    def getaddrinfo(host, *args, **kwargs):
        if host in (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0"):
            return original(host, *args, **kwargs)
        raise socket.gaierror(-2, "stoker lets a script reach no network while it is captured")

    original = socket.getaddrinfo
    socket.socket.connect = connect
    socket.getaddrinfo = getaddrinfo


def die_with_parent() -> None:
    """This process ends when the one that started it does."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass
