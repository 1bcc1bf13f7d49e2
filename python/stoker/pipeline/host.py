"""What the machine has: memory, shared memory, cores."""

from __future__ import annotations

import os
import platform

from .counters import usable_cores as _cores

SHARED_MEMORY = "/dev/shm"


def usable_cores() -> float:
    return round(_cores(), 3)


def available_memory() -> float:
    """Bytes that can be had without swapping; the control group's limit counts."""
    available = 4e9
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    available = int(line.split()[1]) * 1024.0
    except OSError:
        pass
    for limit, used in (("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")):
        try:
            with open(limit) as file, open(used) as file_used:
                text = file.read().strip()
                if text != "max":
                    available = min(available, max(0.0, int(text) - int(file_used.read())))
        except (OSError, ValueError):
            continue
    return available


def shared_memory_free(folder: str = SHARED_MEMORY):
    """Free bytes of /dev/shm; None where there is none."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize


def shared_memory_size(folder: str = SHARED_MEMORY):
    try:
        facts = os.statvfs(folder)
    except OSError:
        return None
    return facts.f_blocks * facts.f_frsize


def cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
