"""The folder of what can be made again (captures, probes, models given as objects, the library of fake CUDA), and how it stays small.

Whoever writes there prunes it: what nobody has used for LONGEST_UNUSED_S goes, and what was used longest ago as long as all of it
takes more than MOST_BYTES. What was used within the last SAFE_S stays, and so does what a running process holds.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import pathlib
import stat
import time
from dataclasses import dataclass, field

try:
    import fcntl
except ImportError:  # not a Unix: nothing can be held there, and SAFE_S has to do
    fcntl = None  # type: ignore[assignment]

MOST_BYTES = 2 << 30
LONGEST_UNUSED_S = 90 * 86_400.0
SAFE_S = 3_600.0
# What lies there, by folder; any other file is somebody else's. Captures and libraries that were not written to their end are
# temporary files of such names.
_KINDS = {"": ("fake-cuda-*.so", "tmp*.so"), "steps": ("*.step.gz", ".*.step.gz.*"), "scripts": ("*.step.gz", ".*.step.gz.*"),
          "objects": ("*.py", "*.pickle", "*_*.[0-9]*"), "probes": ("*.json",)}
_MOST_HELD = 64  # open files; what was held before them was used a while ago
_held: dict[str, int] = {}  # path -> file descriptor with a lock, which goes with this process


def base() -> pathlib.Path:
    """$XDG_CACHE_HOME, else ~/.cache, else the user's own folder in /tmp: the binary's rule (src/base/files.h)."""
    given, home = os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME")
    return pathlib.Path(given or (os.path.join(home, ".cache") if home else f"/tmp/cache-{os.getuid()}"))


def folder() -> pathlib.Path:
    return base() / "stoker"


def not_ours(path) -> str:
    """A sentence where somebody else can have written the file or can replace it, else the empty string: libraries and pickles of
    the cache are run. Asked of the file, where it is there, and of the folders above it up to the cache's own."""
    if not hasattr(os, "geteuid"):
        return ""
    path, top = pathlib.Path(path), base()
    for place in (path, *(parent for parent in path.parents if parent == top or top in parent.parents)):
        with contextlib.suppress(FileNotFoundError):
            owners = {os.lstat(place).st_uid}  # whoever has made a link can point it elsewhere
            facts = os.stat(place)
            owners.add(facts.st_uid)
            others = facts.st_mode & stat.S_IWOTH or facts.st_mode & stat.S_IWGRP and facts.st_gid != os.getegid()
            if not owners <= {os.geteuid(), 0} or others and not (stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX):
                return (f"others can write {place}, and what lies there is run: make it yours alone (chown, chmod go-w), or set "
                        "XDG_CACHE_HOME to a folder that is")
    return ""


def hold(path: str) -> bool:
    """Marks the file as used, and keeps it from being pruned while this process runs. False: it is not there."""
    if path in _held:
        if _is_file(_held[path], path):
            return True
        os.close(_held.pop(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
    if not _is_file(descriptor, path):  # it was pruned meanwhile
        os.close(descriptor)
        return False
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), os.fstat(descriptor).st_mtime_ns))
    _held[path] = descriptor
    while len(_held) > _MOST_HELD:
        os.close(_held.pop(next(iter(_held))))
    return True


def _is_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


@dataclass
class _Entry:
    """Files that are of use together alone."""

    paths: list = field(default_factory=list)
    bytes: int = 0
    used: float = 0.0  # s since 1970


def _entries() -> list:
    found: dict[str, _Entry] = {}
    for kind, patterns in _KINDS.items():
        place = folder() / kind
        try:
            files = list(os.scandir(place))
        except OSError:
            continue
        for file in files:
            if not any(fnmatch.fnmatchcase(file.name, pattern) for pattern in patterns):
                continue
            with contextlib.suppress(OSError):
                if not file.is_file(follow_symlinks=False):
                    continue
                facts = file.stat(follow_symlinks=False)
                entry = found.setdefault(file.path.rpartition(".")[0] if kind == "objects" else file.path, _Entry())
                entry.paths.append(file.path)
                entry.bytes += facts.st_size
                entry.used = max(entry.used, facts.st_atime, facts.st_mtime)
    return sorted(found.values(), key=lambda entry: entry.used)


def prune(now: float | None = None, most_bytes: int = MOST_BYTES, longest_unused_s: float = LONGEST_UNUSED_S) -> list:
    """Removes what is too old or too much; the paths that went. `now` is a time in s since 1970."""
    now = time.time() if now is None else now
    entries, gone = _entries(), []
    total = sum(entry.bytes for entry in entries)
    for entry in entries:  # what was used longest ago first
        unused_s = now - entry.used
        if unused_s < SAFE_S or unused_s <= longest_unused_s and total <= most_bytes:
            break
        if _removed(entry):
            total -= entry.bytes
            gone += entry.paths
    return gone


def _removed(entry: _Entry) -> bool:
    """Removes the files of an entry, if no process holds one of them."""
    with contextlib.ExitStack() as opened:
        for path in entry.paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            except OSError:
                return False
            opened.callback(os.close, descriptor)
            if fcntl is None:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # a file system without locks: SAFE_S has to do
        try:
            for path in entry.paths:
                os.unlink(path)
        except OSError:
            return False
    return True


def wrote(path) -> None:
    """After a file was written: prunes the folder if the file lies in it."""
    if os.path.abspath(os.fspath(path)).startswith(os.path.join(os.path.abspath(folder()), "")):
        prune()
