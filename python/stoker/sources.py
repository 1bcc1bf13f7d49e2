"""Which of the user's files a capture was made from, and which libraries: whoever keeps it can tell when it is out of date."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import stat
import sys
import types
import zlib

from . import caches, whose

LARGEST = 64 << 20  # bytes; of a larger file (weights) only the size is written down
# What distributions install; people do work in /usr/src/app and on disks below /run/media.
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/lib/", "/lib64/", "/bin/",
           *(f"/usr/{local}{part}" for local in ("", "local/") for part in ("lib", "share/", "bin/", "include/")))
_CACHE = str(caches.base())
# Models' own code and configurations are kept there, and others come with an update.
_KEPT_MODELS = tuple(os.path.join(_CACHE, *parts, "") for parts in (("huggingface",), ("torch", "hub")))
MOST_NAMES = 20_000  # of a folder whose listing is noted
_NOT_USERS = (*_SYSTEM, *whose.OURS, *whose.STANDARD_LIBRARY,
              os.path.join(sys.prefix, "lib"), os.path.join(sys.base_prefix, "lib"), os.path.join(_CACHE, ""))
_opened: set | None = None  # paths that this process has opened for reading, since watch()
_missed: set = set()  # paths that the user's code has looked for in vain
_listed: set = set()  # folders whose names the user's code has asked for
_asked: set = set()  # environment variables that the user's code has read, since watch()


def _hook(event: str, arguments: tuple) -> None:
    if _opened is None or event not in ("open", "os.listdir", "os.scandir"):
        return
    path = "." if arguments[0] is None else arguments[0]
    if not isinstance(path, (str, bytes)):
        return
    try:
        path = os.path.abspath(os.fsdecode(path))
    except OSError:
        return  # the working directory is gone; what is raised here would be raised by the user's call
    if event != "open":
        if _users_code_asks():
            _listed.add(path)
    elif not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        _opened.add(path)
        if not os.path.exists(path) and _users_code_asks():
            _missed.add(path)


def _users_code_asks() -> bool:
    """Whether the running call comes from the user's code, be it through a library, and is not part of an import."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_filename.startswith(os.sep) and _is_users(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


class _NotFound:
    """The last of the finders is asked for what no other has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(("<frozen importlib", *whose.STANDARD_LIBRARY)):
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.startswith(os.sep) and _is_users(frame.f_code.co_filename):
            last = name.rpartition(".")[2]
            for folder in {os.path.abspath(f) for f in (sys.path if path is None else path)}:
                if os.path.isdir(folder) and not os.path.join(folder, "").startswith((*whose.STANDARD_LIBRARY, *_SYSTEM)):
                    _missed.update(os.path.join(folder, last + end) for end in ("", *importlib.machinery.all_suffixes()))
        return None


def watch() -> None:
    """Notes from now on, until this process ends, every file that is read, and what the user's code asks for: environment
    variables, the names in a folder, files and modules that are not there. A configuration decides as much as code does."""
    global _opened
    if _opened is None:
        _opened = set()
        sys.addaudithook(_hook)
        sys.meta_path.append(_NotFound)
        _watch_environment(type(os.environ))
        _watch_stat()


def _watch_stat() -> None:
    """os.path.exists and its like raise no audit event: what the user's code asks for decides, there or not."""
    original = os.stat

    def asked(path, *args, **kwargs):
        try:
            found = original(path, *args, **kwargs)
        except OSError:
            if isinstance(path, (str, bytes, os.PathLike)) and not kwargs.get("dir_fd") and _users_code_asks():
                _missed.add(os.path.abspath(os.fsdecode(path)))
            raise
        if isinstance(path, (str, bytes, os.PathLike)) and stat.S_ISREG(found.st_mode) and _users_code_asks():
            _opened.add(os.path.abspath(os.fsdecode(path)))
        return found

    accessible = os.access

    def may(path, *args, **kwargs):
        found = accessible(path, *args, **kwargs)
        if not found and isinstance(path, (str, bytes, os.PathLike)) and not kwargs.get("dir_fd") and _users_code_asks():
            _missed.add(os.path.abspath(os.fsdecode(path)))
        return found

    for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        able.update(ours for theirs, ours in ((original, asked), (accessible, may)) if theirs in able)
    os.stat, os.access = asked, may


def _watch_environment(kind) -> None:
    original = kind.__getitem__

    def asked(environment, name):
        frame, depth = sys._getframe(1), 0
        while frame is not None and depth < 3:  # os.environ.get and os.getenv stand between
            if frame.f_code.co_filename.startswith(os.sep) and _is_users(frame.f_code.co_filename):
                _asked.add(name)
            frame, depth = frame.f_back, depth + 1
        return original(environment, name)

    kind.__getitem__ = asked


def environment() -> dict:
    """{name: checksum of its value, or None where it is not set} of the variables that the user's code has read."""
    values = {name: os.environ.get(name) for name in sorted(map(str, _asked))}
    return {name: None if value is None else zlib.crc32(os.fsencode(value)) for name, value in values.items()}


def _is_users(path: str) -> bool:
    if path.startswith(_KEPT_MODELS):
        return True
    return not (whose.is_packaged(path) or path.startswith(_NOT_USERS))


def _source_of(path: str) -> str:
    """The .py file of a compiled one."""
    if path.endswith(".pyc"):
        try:
            return importlib.util.source_from_cache(path)
        except ValueError:
            return path
    return path


def described(path: str) -> dict | None:
    """{"file", "bytes", "crc32"} of a regular file; None of anything else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        size = os.path.getsize(path)
        row = {"file": path, "bytes": size}
        if size <= LARGEST:
            with open(path, "rb") as file:
                row["crc32"] = zlib.crc32(file.read())
        return row
    except OSError:
        return None


def _listing(folder: str) -> dict | None:
    """{"file", "entries", "crc32"} of a folder's names, but for what Python keeps there itself; None where there are too many."""
    try:
        names = sorted(os.fsencode(name) + b"\n" for name in os.listdir(folder) if name != "__pycache__")
    except OSError:
        return None
    if len(names) > MOST_NAMES:
        return None
    return {"file": folder, "entries": len(names), "crc32": zlib.crc32(b"".join(names))}


def _users_files() -> set:
    modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    paths = {_source_of(path) for path in modules | set(_opened or ()) if isinstance(path, str)}
    return {os.path.abspath(path) for path in paths if _is_users(os.path.realpath(path))}


def libraries_of(model) -> list:
    """Top-level packages outside of the user's own code that define a class of the model, torch first."""
    found = {cls.__module__.partition(".")[0] for part in model.modules() for cls in type(part).__mro__}
    installed = [name for name in sorted(found) if name != "torch" and not _is_users(_file_of(name)) and _file_of(name)]
    own = {"stoker", "builtins", *getattr(sys, "stdlib_module_names", ())}
    return ["torch", *(name for name in installed if name not in own)]


def _file_of(package: str) -> str:
    return os.path.realpath(getattr(sys.modules.get(package), "__file__", None) or "")


def version_of(package: str) -> str:
    return str(getattr(sys.modules.get(package), "__version__", None) or _installed_version(package) or "unknown")


def _installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_file(package: str) -> str | None:
    """A file that is another one, or gone, once another version of the package is installed."""
    folder = os.path.dirname(_file_of(package))
    for candidate in (os.path.join(folder, "version.py"), os.path.join(folder, "_version.py"), _file_of(package)):
        if os.path.isfile(candidate):
            return candidate
    return None


def _libraries_of_users() -> set:
    """Top-level packages from which a module of the user's has taken something."""
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not _is_users(os.path.realpath(file)):
            continue
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            if isinstance(name, str):
                found.add(name.partition(".")[0])
    own = {"stoker", "builtins", *getattr(sys, "stdlib_module_names", ())}
    return {name for name in found - own if _file_of(name) and not _is_users(_file_of(name))}


def rows(model) -> list:
    """What the capture of this model depends on, by path: the user's files, one file of each library's version, the names in
    folders that the user's code listed, and what it looked for in vain."""
    paths = _users_files() | {path for path in map(version_file, {*libraries_of(model), *_libraries_of_users()}) if path}
    found = [*map(described, sorted(paths)), *map(_listing, sorted(path for path in list(_listed) if _is_users(os.path.realpath(path))))]
    missed = sorted(path for path in list(_missed) if not os.path.exists(path) and not path.startswith(_SYSTEM))
    return [row for row in found if row] + [{"file": path, "absent": True} for path in missed]
