"""Which of the user's files a capture was made from, and which libraries: whoever keeps it can tell when it is out of date."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import stat
import sys
import sysconfig
import zlib

LARGEST = 64 << 20  # bytes; of a larger file (weights) only the size is written down
_PACKAGE = str(pathlib.Path(__file__).resolve().parent)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/run/")
_CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
_NOT_USERS = (*_SYSTEM, _PACKAGE, sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"],
              os.path.join(sys.prefix, "lib"), os.path.join(sys.base_prefix, "lib"), os.path.join(_CACHE, ""))
_opened: set | None = None  # paths that this process has opened for reading, since watch()
_asked: set = set()  # environment variables that the user's code has read, since watch()


def _hook(event: str, arguments: tuple) -> None:
    if event != "open" or _opened is None:
        return
    path, mode, flags = arguments
    if isinstance(path, (str, bytes)) and not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
        _opened.add(os.fsdecode(path) if os.path.isabs(path) else os.path.join(os.getcwd(), os.fsdecode(path)))


def watch() -> None:
    """Notes from now on, until this process ends, every file that is read and every environment variable that the user's
    code asks for: a configuration decides as much as code does."""
    global _opened
    if _opened is None:
        _opened = set()
        sys.addaudithook(_hook)
        _watch_environment(type(os.environ))


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
    return not (any(part in path for part in _PACKAGES) or path.startswith(_NOT_USERS))


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


def _users_files() -> set:
    modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    paths = {_source_of(path) for path in modules | (_opened or set()) if isinstance(path, str)}
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


def rows(model) -> list:
    """What the capture of this model depends on, by path: the user's files, and one file of each library's version."""
    paths = _users_files() | {path for path in map(version_file, libraries_of(model)) if path}
    return [row for row in map(described, sorted(paths)) if row]
