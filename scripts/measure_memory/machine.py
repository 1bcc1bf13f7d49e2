"""What the figures have to be judged by: date, GPU, driver, versions, MIG, and who else is on the device."""

import datetime
import platform
import shutil
import subprocess
import sys

_QUERY = ("name", "driver_version", "memory.total", "memory.used", "mig.mode.current", "persistence_mode", "vbios_version",
          "clocks.max.sm", "power.limit")


def _run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def nvidia_smi():
    """Values of the first GPU that nvidia-smi lists, with the processes on it; empty without nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return {}
    lines = _run("nvidia-smi", "--query-gpu=" + ",".join(_QUERY), "--format=csv,noheader,nounits", "-i", "0").splitlines()
    values = [v.strip() for v in lines[0].split(",")] if lines else []
    found = dict(zip(_QUERY, values)) if len(values) == len(_QUERY) else {}
    found["processes"] = _run("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader",
                              "-i", "0").splitlines()
    return found


def others_bytes(smi):
    """Bytes that other processes hold, as their own figures sum up (MiB each); 0 where none are shown."""
    total = 0
    for line in smi.get("processes", []):
        digits = "".join(c for c in line.rpartition(",")[2] if c.isdigit())
        total += int(digits) << 20 if digits else 0
    return total


def describe(device):
    """The metadata file. Imports PyTorch without touching the GPU, so that this process has no context on it."""
    import torch

    smi = nvidia_smi() if device == "cuda" else {}
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return {
        "schema": "stoker-measured-memory-1", "device": device, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "gpu": smi.get("name") or (platform.processor() or platform.machine()), "driver": smi.get("driver_version", ""),
        "torch": str(torch.__version__), "cuda": torch.version.cuda or "", "cudnn": cudnn,
        "python": platform.python_version(), "system": platform.platform(), "nvidia_smi": smi,
        "others_bytes": others_bytes(smi), "arguments": sys.argv[1:],
        "defaults": {"matmul_precision": torch.get_float32_matmul_precision(),
                     "allow_tf32_convolution": bool(torch.backends.cudnn.allow_tf32)},
    }
