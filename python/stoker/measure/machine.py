"""What this machine is: processor, cores, memory. Whatever this package's Python says of them comes from here.

What stays as it is while the process lives is asked once of the binary (`stoker machine --json`), so that what is measured
and what is forecast mean one machine; where there is no binary the same facts are read here. What changes (free memory,
/dev/shm) is read at each call.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import platform
import re
import subprocess

from ..binary import StokerError, find_binary
from . import cgroup
from .cgroup import read_file

SHARED_MEMORY = "/dev/shm"
_CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
_AVAILABLE_GUESS = 4e9  # bytes, where Linux does not tell
_PATIENCE_S = 10.0      # for the binary, on a busy machine


@dataclasses.dataclass(frozen=True)
class Machine:
    """Facts that stay as they are while this process lives."""

    cpu_name: str
    clock_mhz: float            # the highest present one; 0 where it is not told
    online_cores: int           # the whole machine's, which clocks such as /proc/stat count
    affinity_cores: int         # that this process may run on
    quota_cores: float | None   # that its control group grants; None without a quota
    memory_bytes: int           # that processes here may use: the machine's, or the control group's limit

    @property
    def usable_cores(self) -> float:
        """Cores that this process may use: its affinity, cut by the quota of its control group."""
        return min(float(self.affinity_cores), self.quota_cores or float("inf"))

    @property
    def whole_cores(self) -> int:
        """Threads that keep the usable cores busy."""
        return max(1, int(self.usable_cores + 0.5))


@functools.lru_cache(maxsize=1)
def this() -> Machine:
    """This machine as this process may use it."""
    return asked() or read()


def asked() -> Machine | None:
    """The facts as the binary has them; None where there is no binary that tells them."""
    try:
        done = subprocess.run([find_binary(), "machine", "--seconds", "0", "--json"], capture_output=True, text=True,
                              timeout=_PATIENCE_S)
        return from_json(json.loads(done.stdout)) if done.returncode == 0 else None
    except (StokerError, OSError, subprocess.TimeoutExpired, ValueError):
        return None


def from_json(document: dict) -> Machine | None:
    """The facts in an answer of `stoker machine --json`; None where it lacks those that all else rests on."""
    try:
        cores, memory = int(document["affinity_cores"]), int(document["memory_bytes"])
        return Machine(cpu_name=document["cpu_name"] or cpu_name_in(""), clock_mhz=float(document["clock_mhz"] or 0.0),
                       online_cores=int(document["logical_cores"] or online_cores()), affinity_cores=cores,
                       quota_cores=document["quota_cores"], memory_bytes=memory)
    except (KeyError, TypeError, ValueError):
        return None


def read(files=read_file) -> Machine:
    """The facts out of the system's files; `files` gives the text of a path, "" where there is none."""
    online = count_cpus(files("/sys/devices/system/cpu/online")) or os.cpu_count() or 1
    total = _field(files("/proc/meminfo"), "MemTotal")
    limit = cgroup.memory_limit(files)
    clocks = _values(files("/proc/cpuinfo"), "cpu MHz")
    return Machine(cpu_name=cpu_name_in(files("/proc/cpuinfo")), clock_mhz=max(map(_mhz, clocks), default=0.0),
                   online_cores=online,
                   affinity_cores=count_cpus(next(_values(files("/proc/self/status"), "Cpus_allowed_list"), "")) or online,
                   quota_cores=cgroup.quota_cores(files), memory_bytes=min(total, limit[0]) if limit else total)


def _values(text: str, key: str):
    """The values of the lines "KEY : VALUE"."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            yield value.strip()


def _field(text: str, key: str) -> int:
    """Bytes of a line "KEY: N kB"; 0 without one."""
    value = next(_values(text, key), "0").split()[0]
    return int(value) * 1024 if value.isdigit() else 0


def _mhz(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def cpu_name_in(cpuinfo: str) -> str:
    """The processor's name in the text of /proc/cpuinfo; what Python knows where it has none, as on many Arm machines."""
    for key in ("model name", "Processor", "Hardware"):
        for value in _values(cpuinfo, key):
            if value:
                return value
    return platform.processor() or platform.machine()


def count_cpus(text: str) -> int:
    """How many a list such as "0-3,8" names; 0 where it is none."""
    count = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return 0
        count += int(last or first) - int(first) + 1
    return count


# -- one fact each -------------------------------------------------------------------------------------------------------


def cpu_name() -> str:
    return this().cpu_name


def usable_cores() -> float:
    """Cores that this process may use; a quota may leave one and a half."""
    return round(this().usable_cores, 3)


def whole_cores() -> int:
    return this().whole_cores


@functools.lru_cache(maxsize=1)
def online_cores() -> int:
    """Cores of the whole machine, which clocks such as /proc/stat count. Read here: a process that is being measured asks
    for it too, and should start none."""
    return count_cpus(read_file("/sys/devices/system/cpu/online")) or os.cpu_count() or 1


def memory_bytes() -> int:
    return this().memory_bytes


# -- what changes --------------------------------------------------------------------------------------------------------


def available_memory() -> float:
    """Bytes that can be had without swapping; the control group's limit counts."""
    available = float(_field(read_file("/proc/meminfo"), "MemAvailable")) or _AVAILABLE_GUESS
    limit = cgroup.memory_limit()
    return min(available, max(0.0, float(limit[0] - limit[1]))) if limit else available


def _shared_memory(folder: str):
    try:
        return os.statvfs(folder)
    except OSError:
        return None


def shared_memory_free(folder: str = SHARED_MEMORY) -> int | None:
    """Free bytes of /dev/shm; None where there is none."""
    facts = _shared_memory(folder)
    return facts.f_bavail * facts.f_frsize if facts else None


def shared_memory_used(folder: str = SHARED_MEMORY) -> int:
    """Bytes in use in /dev/shm, by whomever; 0 where there is none."""
    facts = _shared_memory(folder)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize if facts else 0


# -- caches --------------------------------------------------------------------------------------------------------------


def _cache_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0


def caches(folder: pathlib.Path = _CACHES) -> dict:
    """Bytes of the first and second level of one core, and of the third of all cores; 0 where the system does not tell."""
    found = {"l1_bytes": 0, "l2_bytes": 0, "l3_bytes": 0}
    for index in sorted(folder.glob("index*")):
        level, kind, size, shared = (read_file(str(index / name)).strip() for name in ("level", "type", "size", "shared_cpu_list"))
        if kind == "Instruction" or level not in ("1", "2", "3"):
            continue
        copies = max(1, online_cores() // max(1, count_cpus(shared))) if level == "3" else 1
        found[f"l{level}_bytes"] = _cache_bytes(size) * copies
    return found
