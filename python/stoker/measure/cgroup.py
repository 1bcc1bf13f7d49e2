"""Limits that control groups of version 1 or 2 put on this process (cgroups(7)): cores and memory.

`files` gives the text of a path, "" where it cannot be read, so that tests need no control groups.
"""

from __future__ import annotations

_NO_LIMIT = 1 << 60  # version 1 writes about 2^63 when there is none


def read_file(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _mounts(mountinfo: str) -> list:
    """(version, controllers, root, mount point) of each line of /proc/self/mountinfo that mounts control groups (proc(5))."""
    found = []
    for line in mountinfo.splitlines():
        left, dash, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if dash and len(fields) >= 6 and len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            version = 2 if kind[0] == "cgroup2" else 1
            found.append((version, kind[2].split(",") if version == 1 else [], fields[3], fields[4]))
    return found


def _own_path(groups: str, controller: str) -> str | None:
    """This process's path in a hierarchy: lines "ID:CONTROLLERS:PATH", of the unified one "0::PATH"."""
    for line in groups.splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controller in controllers.split(",") if controller else not controllers:
            return path
    return None


def _folders(controller: str, files) -> tuple:
    """(version, folders from the process's own up to the mount point) of the hierarchy that holds the controller."""
    mounts, groups = _mounts(files("/proc/self/mountinfo")), files("/proc/self/cgroup")
    for version in (1, 2):  # on mixed systems the controller sits in its version-1 hierarchy, and the unified one is empty
        path = _own_path(groups, controller if version == 1 else "")
        if path is None:
            continue
        for mounted, controllers, root, point in mounts:
            if mounted == version and (version == 2 or controller in controllers):
                return version, [point + part for part in _upwards(path, "" if root == "/" else root)]
    return 0, []


def _upwards(path: str, root: str):
    """From the path within what is mounted up to "". A container may see one outside of it: then the mount point is its own."""
    path = path[len(root):] if path == root or path.startswith(root + "/") else ""
    path = "" if "/.." in path else path.rstrip("/")
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None  # "max", or no such file


def quota_in(folder: str, version: int, files=read_file) -> float | None:
    """Cores that one folder grants; None where it sets no limit."""
    if version == 2:
        quota, period = map(_number, (files(folder + "/cpu.max").split() + ["", ""])[:2])
    else:
        quota, period = (_number(files(f"{folder}/cpu.cfs_{name}_us")) for name in ("quota", "period"))
    return quota / period if quota and period and quota > 0 and period > 0 else None


def quota_cores(files=read_file) -> float | None:
    """Cores that the CPU quota leaves, the least on the way up; None without one."""
    version, folders = _folders("cpu", files)
    return min(filter(None, (quota_in(folder, version, files) for folder in folders)), default=None)


def memory_limit(files=read_file) -> tuple | None:
    """(limit, bytes in use) of the folder that limits memory most; None without a limit."""
    version, folders = _folders("memory", files)
    limit_name, used_name = (("memory.max", "memory.current") if version == 2
                             else ("memory.limit_in_bytes", "memory.usage_in_bytes"))
    found = []
    for folder in folders:
        limit = _number(files(f"{folder}/{limit_name}"))
        if limit is not None and 0 < limit < _NO_LIMIT:
            found.append((limit, _number(files(f"{folder}/{used_name}")) or 0))
    return min(found, default=None)
