"""What this machine's CPU is: cores, vector width, caches, memory, clock; and what a process holds before its model."""

from __future__ import annotations

import os
import time

from ..measure import fresh, machine
from ..measure.answering import Answering

_SIMD_BITS = {"AVX512": 512, "AVX2": 256, "SVE256": 256, "SVE128": 128, "DEFAULT": 128, "NO AVX": 128, "VSX": 128, "Z VECTOR": 128}


def describe() -> dict:
    """The rows file's `device`, without context_bytes."""
    import torch

    here = machine.this()
    capability = torch.backends.cpu.get_cpu_capability()
    return {"kind": "cpu", "name": here.cpu_name, "cores": here.whole_cores, "simd_bits": _SIMD_BITS.get(capability, 128),
            **machine.caches(), "memory_bytes": here.memory_bytes, "clock_mhz": round(here.clock_mhz, 1)}


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def context_bytes(limit_s: float) -> dict:
    """What is resident in a process of its own that has made two steps of a tiny net, without the net: PyTorch, and what every training
    brings in (kernel libraries, threads, autograd, what an optimizer imports). A forked process would not do: pages of
    libraries count in it only once it touches them itself, which hid 50 MiB. {"bytes": N} or {"error": why not}."""
    with fresh.Child("stoker.calibrate.cpu_device") as child:
        try:
            return {"bytes": child.hear(time.monotonic() + limit_s)}
        except fresh.TimeUp:
            return {"error": f"did not end within {limit_s:.0f} s"}
        except fresh.Died:
            return {"error": child.last_words() or f"exit code {child.code()}"}


def resident_after_a_net() -> int:
    """Bytes, of this process."""
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


if __name__ == "__main__":
    Answering().tell(resident_after_a_net())
