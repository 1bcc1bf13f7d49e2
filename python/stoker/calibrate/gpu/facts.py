"""Which GPU this is, who else uses it, and why it cannot be used where it cannot."""

from __future__ import annotations

import os

from ...errors import CaptureError
from ...measure import machine, nvidia

_QUERY = ("name", "uuid", "driver_version", "memory.total", "memory.used", "utilization.gpu", "mig.mode.current", "clocks.max.sm",
          "power.limit", "persistence_mode")
BUSY_PERCENT = 5.0  # nvidia-smi's utilisation before anything of ours runs, above which the GPU counts as in use


def check(torch, index: int) -> None:
    """Raises with the cure where this PyTorch cannot use that GPU."""
    if not torch.cuda.is_available():
        raise CaptureError(why_not(str(torch.__version__), torch.version.cuda or getattr(torch.version, "hip", None), nvidia.visible()))
    count = torch.cuda.device_count()
    if index >= count:
        many = "there is one GPU" if count == 1 else f"there are {count} GPUs"
        raise CaptureError(f"--device cuda:{index}: {many} here that PyTorch may use; write cuda:0"
                           f"{'' if count == 1 else f' to cuda:{count - 1}'}")


def why_not(version: str, built_for: str | None, listed: list) -> str:
    """Why torch.cuda.is_available() is false, and the cure."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed and not built_for:
        return (f"nvidia-smi shows {_named(listed)}, but this PyTorch ({version}) is built without CUDA: install a CUDA build "
                "(the command is at pytorch.org/get-started), or calibrate the processor with --device cpu")
    if listed and hidden is not None:
        return (f"nvidia-smi shows {_named(listed)}, but CUDA_VISIBLE_DEVICES is \"{hidden}\" and hides it from PyTorch: unset it")
    if listed:
        return (f"nvidia-smi shows {_named(listed)}, but this PyTorch ({version}, CUDA {built_for}) cannot use it: its driver is "
                "older than that CUDA needs or does not answer; update the driver, or install a PyTorch for an older CUDA")
    built = f"is built for CUDA {built_for}" if built_for else "is built without CUDA"
    return (f"no GPU is here: nvidia-smi shows none, and this PyTorch ({version}) {built}; calibrate the processor with "
            "--device cpu, or run this where the GPU is")


def _named(listed: list) -> str:
    return f"a GPU ({listed[0]})" if len(listed) == 1 else f"{len(listed)} GPUs ({listed[0]})"


def query(which: str) -> dict:
    """Values of the GPU by nvidia-smi's names."""
    return nvidia.query(which, _QUERY)


def others(found: list, own: set) -> list:
    """Processes of nvidia.processes() that are not ours."""
    return [(pid, used) for pid, used in found if pid not in own]


def joined(found: list, before: list, own: set) -> list:
    """The others among nvidia.processes() while we measure; `before` where ours are not among them, since in a container
    processes have other numbers than nvidia-smi's."""
    return others(found, own) if any(pid in own for pid, _ in found) else before


def describe(torch, index: int, smi: dict) -> dict:
    """The rows file's `device`, without context_bytes."""
    properties = torch.cuda.get_device_properties(index)
    usable = properties.total_memory  # as cudaMemGetInfo has it, without making a context in this process
    total = smi.get("memory.total", "")
    mig = smi.get("mig.mode.current", "").lower() == "enabled" or "MIG" in properties.name
    return {"kind": "cuda", "name": properties.name, "compute_capability": f"{properties.major}.{properties.minor}",
            "sm_count": properties.multi_processor_count,
            "memory_bytes": int(float(total)) * nvidia.MIB if _is_number(total) and not mig else usable,
            "usable_bytes": usable, "l2_bytes": getattr(properties, "L2_cache_size", 0), "mig": mig,
            "clock_mhz": float(smi["clocks.max.sm"]) if _is_number(smi.get("clocks.max.sm", "")) else 0.0,
            "power_limit_w": float(smi["power.limit"]) if _is_number(smi.get("power.limit", "")) else 0.0,
            "gpus": torch.cuda.device_count(), "cores": machine.whole_cores(), "alloc_conf": allocator_settings()}


def allocator_settings() -> str:
    return os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")


def _is_number(text: str) -> bool:
    try:
        float(text)
        return True
    except ValueError:
        return False


def objections(utilisation: str, other: list, summary: dict, mig: bool) -> tuple:
    """(sentences why a calibration counts as disturbed, whether clocks changed under load)."""
    found = []
    if _is_number(utilisation) and float(utilisation) > BUSY_PERCENT:
        found.append(f"the GPU was {float(utilisation):.0f} % busy before this began")
    if other:
        found.append(f"{len(other)} other process{'es' if len(other) > 1 else ''} on the GPU held "
                     f"{nvidia.bytes_of(other) / nvidia.MIB:,.0f} MiB")
    changed = clocks_changed(summary)
    if changed:
        reasons = ", ".join(sorted(summary.get("throttle_samples", {})))
        found.append(f"its clock changed meanwhile{f' (nvidia-smi gives as reasons {reasons})' if reasons else ''}")
    if mig:
        found.append("it is a MIG slice, whose neighbours share its memory's bandwidth and its power")
    return found, changed


_SLOWER = 0.05          # share of the median clock that the slowest tenth of samples may be below it
_THROTTLED_SHARE = 0.1  # share of samples with a reason to slow down
_FEWEST_SAMPLES = 8


def clocks_changed(summary: dict) -> bool:
    """By the watch's summary. Samples of the time between two cases are among them, so few slow ones mean nothing."""
    samples, median, low = summary.get("samples", 0), summary.get("sm_mhz_median"), summary.get("sm_mhz_low")
    if samples < _FEWEST_SAMPLES:
        return False
    if sum(summary.get("throttle_samples", {}).values()) > _THROTTLED_SHARE * samples:
        return True
    return bool(median and low and low < (1 - _SLOWER) * median)
