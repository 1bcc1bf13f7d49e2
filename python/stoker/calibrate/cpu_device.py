"""What this machine's CPU is: cores, vector width, caches, memory, clock; and what a process holds before its model."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

_CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
_SIMD_BITS = {"AVX512": 512, "AVX2": 256, "SVE256": 256, "SVE128": 128, "DEFAULT": 128, "NO AVX": 128, "VSX": 128, "Z VECTOR": 128}


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0


def _cpus(text: str) -> int:
    """How many a list such as "0-3,8" names."""
    count = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def caches(folder: pathlib.Path = _CACHES) -> dict:
    """Bytes of the first and second level of one core, and of the third of all cores; 0 where the system does not tell."""
    found = {"l1_bytes": 0, "l2_bytes": 0, "l3_bytes": 0}
    try:
        cpus = _cpus(pathlib.Path("/sys/devices/system/cpu/online").read_text())
    except (OSError, ValueError):
        cpus = os.cpu_count() or 1
    for index in sorted(folder.glob("index*")):
        try:
            level, kind = int((index / "level").read_text()), (index / "type").read_text().strip()
            size, shared = _bytes((index / "size").read_text()), _cpus((index / "shared_cpu_list").read_text())
        except (OSError, ValueError):
            continue
        if kind == "Instruction" or level not in (1, 2, 3):
            continue
        found[f"l{level}_bytes"] = size * max(1, cpus // max(1, shared)) if level == 3 else size
    return found


def memory_bytes() -> int:
    """What processes here may use: the machine's memory, or the control group's limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = int(pathlib.Path(path).read_text())
        except (OSError, ValueError):
            continue
        total = min(total, limit)
    return total


def cpu_name() -> tuple:
    """(name, MHz) as /proc/cpuinfo tells them."""
    name, mhz = "unknown CPU", 0.0
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Processor") and name == "unknown CPU":
                    name = value.strip()
                if key.strip() == "cpu MHz":
                    mhz = max(mhz, float(value))
    except (OSError, ValueError):
        pass
    return name, mhz


def describe() -> dict:
    """The rows file's `device`, without context_bytes."""
    import torch

    name, mhz = cpu_name()
    capability = torch.backends.cpu.get_cpu_capability()
    return {"kind": "cpu", "name": name, "cores": len(os.sched_getaffinity(0)), "simd_bits": _SIMD_BITS.get(capability, 128),
            **caches(), "memory_bytes": memory_bytes(), "clock_mhz": round(mhz, 1)}


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def context_bytes() -> dict:
    """What is resident in a process of its own that has made two steps of a tiny net, without the net: PyTorch, and what every training
    brings in (kernel libraries, threads, autograd, what an optimizer imports). A forked process would not do: pages of
    libraries count in it only once it touches them itself, which hid 50 MiB."""
    code = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))!r})\n" \
           "from stoker.calibrate import cpu_device; print(cpu_device.resident_after_a_net())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return {"bytes": int(done.stdout)}


def resident_after_a_net() -> int:
    """Bytes."""
    import gc

    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(torch.ones(4, 3, 8, 8)), torch.zeros(4, dtype=torch.long)).backward()
        optimizer.step()
    del net, optimizer
    gc.collect()
    return resident_bytes()
