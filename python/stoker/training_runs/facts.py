"""What the figures have to be judged by: the device, versions, who else is on the GPU."""

from __future__ import annotations

import datetime
import platform

from ..errors import CaptureError
from ..measure import machine, nvidia
from ..version import VERSION

_QUERY = ("driver_version", "mig.mode.current", "memory.total", "memory.used", "clocks.sm", "clocks_throttle_reasons.active")


def selector(device: str) -> str:
    """What nvidia-smi's -i takes for PyTorch's cuda:N, which CUDA_VISIBLE_DEVICES may have renumbered."""
    import torch

    return nvidia.selector(torch, cuda_index(device))


def nvidia_smi(which: str = "0") -> dict:
    """Values of a GPU by nvidia-smi's names, with the processes on it; empty without nvidia-smi."""
    found = nvidia.query(which, _QUERY)
    return {**found, "processes": nvidia.processes(which)} if found else {}


def others_bytes(smi: dict) -> int:
    """Bytes that processes hold on the GPU, as nvidia-smi sums them up; 0 where it does not tell."""
    return nvidia.bytes_of(smi.get("processes", []))


def cuda_index(device: str) -> int:
    return int(device.partition(":")[2] or 0)


def check(text: str) -> str:
    """"cpu" or "cuda:N" of a --device; raises CaptureError where there is no such device."""
    import torch

    kind, _, index = text.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdigit()) or (kind == "cpu" and index):
        raise CaptureError(f"--device {text}: write cpu, cuda or cuda:N")
    if kind == "cpu":
        return "cpu"
    there = bool(nvidia.visible())
    if torch.version.cuda is None and torch.version.hip is None:
        seen = "nvidia-smi shows a GPU, but " if there else ""
        raise CaptureError(f"--device {text}: {seen}this PyTorch ({torch.__version__}) is built without CUDA: install one that "
                           "is built with it, or measure with --device cpu")
    count = torch.cuda.device_count()
    if count == 0:
        seen = "though nvidia-smi shows one: the driver may be too old for it, or CUDA_VISIBLE_DEVICES hides it" if there \
            else "and nvidia-smi shows none"
        raise CaptureError(f"--device {text}: PyTorch finds no GPU, {seen}; with --device cpu the CPU is measured")
    if int(index or 0) >= count:
        raise CaptureError(f"--device {text}: PyTorch finds {count} GPU(s); the last is cuda:{count - 1}")
    return f"cuda:{int(index or 0)}"


def device(name: str) -> dict:
    """The rows file's `device`. For a GPU this makes a CUDA context: call it in a process that goes away."""
    cores = machine.usable_cores()  # a quota may leave one and a half
    found = {"kind": "cpu", "name": machine.cpu_name(), "cores": int(cores) if cores == int(cores) else cores,
             "memory_bytes": machine.memory_bytes(), "available_bytes": int(machine.available_memory())}
    if name == "cpu":
        return found
    import torch

    gpu = torch.cuda.get_device_properties(name)
    free, total = torch.cuda.mem_get_info(name)
    smi = nvidia_smi(selector(name))
    return {"kind": "cuda", "name": gpu.name, "compute_capability": f"{gpu.major}.{gpu.minor}",
            "sm_count": gpu.multi_processor_count, "memory_bytes": total, "available_bytes": free,
            "mig": smi.get("mig.mode.current", "") == "Enabled", "cpu_model": found["name"], "cores": found["cores"],
            "host_memory_bytes": found["memory_bytes"]}


def versions(name: str) -> dict:
    """The rows file's `provenance`."""
    import torch

    on_gpu = name != "cpu"
    smi = nvidia_smi(selector(name)) if on_gpu else {}
    cudnn = torch.backends.cudnn.version() if on_gpu and torch.backends.cudnn.is_available() else None
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "python": platform.python_version(), "torch": str(torch.__version__), "stoker_version": VERSION,
            "system": platform.platform(), "cuda": torch.version.cuda if on_gpu else None,
            "driver": smi.get("driver_version") if on_gpu else None, "cudnn": cudnn}
