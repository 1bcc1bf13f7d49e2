"""What the figures have to be judged by: date, GPU, driver, versions, MIG, and who else is on the device."""

from __future__ import annotations

import datetime
import platform
import re
import sys

from ..measure import machine, nvidia

_QUERY = ("name", "driver_version", "memory.total", "memory.used", "mig.mode.current", "persistence_mode", "vbios_version",
          "clocks.max.sm", "power.limit")


def nvidia_smi() -> dict:
    """Values of the first GPU that nvidia-smi lists, with the processes on it; empty without nvidia-smi."""
    found = nvidia.query("0", _QUERY)
    return {**found, "processes": nvidia.processes("0")} if found else {}


def describe(device: str) -> dict:
    """The metadata file. Imports PyTorch without touching the GPU, so that this process has no context on it."""
    import torch

    smi = nvidia_smi() if device == "cuda" else {}
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return {
        "schema": "stoker-measured-memory-1", "device": device, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "gpu": smi.get("name") or machine.cpu_name(), "driver": smi.get("driver_version", ""),
        "torch": str(torch.__version__), "cuda": torch.version.cuda or "", "cudnn": cudnn,
        "python": platform.python_version(), "system": platform.platform(), "nvidia_smi": smi,
        "others_bytes": nvidia.bytes_of(smi.get("processes", [])), "arguments": sys.argv[1:],
        "defaults": {"matmul_precision": torch.get_float32_matmul_precision(),
                     "allow_tf32_convolution": bool(torch.backends.cudnn.allow_tf32)},
    }


def slug(name: str) -> str:
    """A device's name as a part of a folder's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
