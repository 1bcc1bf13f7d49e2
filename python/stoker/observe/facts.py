"""What the header says about the run: versions, device, precision, rank; and how memory is read."""

from __future__ import annotations

import datetime
import os
import platform
import sys

from ..version import VERSION

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

RANK_VARIABLES = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
                  ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))


def loaded_torch():
    """PyTorch if the program has imported it; recording never imports it by itself."""
    return sys.modules.get("torch")


def rank() -> tuple:
    """(rank, world size): torch.distributed's if it is up, else the launcher's, else (0, 1)."""
    torch = loaded_torch()
    distributed = getattr(torch, "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except (RuntimeError, ValueError):
        pass
    for rank_name, size_name in RANK_VARIABLES:
        try:
            found, size = int(os.environ[rank_name]), int(os.environ[size_name])
        except (KeyError, ValueError):
            continue
        if 0 <= found < size:
            return found, size
    return 0, 1


def provenance(device) -> dict:
    """`device` is "cpu", "cuda:0", ... or None where it is not known."""
    torch = loaded_torch()
    facts = {"stoker": VERSION, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "python": platform.python_version(), "torch": None if torch is None else str(torch.__version__),
             "device": device, "device_name": None, "cpu_model": cpu_model(), "cores": cores(), "threads": None}
    if torch is not None:
        facts["threads"] = torch.get_num_threads()
        if device and device.startswith("cuda"):
            facts["device_name"] = torch.cuda.get_device_name(device)
            facts["cuda"] = torch.version.cuda or torch.version.hip
    return facts


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def cpu_model() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def model(module) -> dict | None:
    """A module's class, number of parameters and their bytes."""
    if module is None:
        return None
    found = list(module.parameters())
    return {"class": type(getattr(module, "_orig_mod", module)).__name__, "count": sum(p.numel() for p in found),
            "trainable": sum(p.numel() for p in found if p.requires_grad),
            "bytes": sum(p.numel() * p.element_size() for p in found)}


def device_of(module) -> str | None:
    for parameter in module.parameters():
        return str(parameter.device)
    return None


def precision(module, device_type: str) -> str | None:
    """The precision in the words of --precision, as things stand right now (call it inside the user's autocast)."""
    torch = loaded_torch()
    if torch is None:
        return None
    short = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}
    try:
        if torch.is_autocast_enabled(device_type):
            return f"amp-{short.get(torch.get_autocast_dtype(device_type), 'other')}"
    except (TypeError, RuntimeError):  # before 2.4 it took no device
        return None
    if module is None:
        return None
    for parameter in module.parameters():
        if parameter.dtype in short:
            name = short[parameter.dtype]
            tf32 = name == "fp32" and device_type == "cuda" and torch.get_float32_matmul_precision() != "highest"
            return "tf32" if tf32 else name
    return None


def default_device() -> str | None:
    """The device of a loop that named none: CUDA if it is in use, the CPU if PyTorch is."""
    torch = loaded_torch()
    if torch is None:
        return None
    try:
        if torch.cuda.is_initialized() and torch.cuda.is_available():
            return f"cuda:{torch.cuda.current_device()}"
    except (RuntimeError, AssertionError):
        pass
    return "cpu"


class Memory:
    """Reads the process's resident set, and the allocator's peaks on CUDA. Bytes. A reading costs about 10 us."""

    def __init__(self, device):
        self._cuda = device if device and device.startswith("cuda") else None
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def read(self) -> dict:
        found = {"rss": self._resident(), "rss_peak": self._peak()}
        if self._cuda is not None:
            cuda = loaded_torch().cuda
            found["allocated_peak"] = cuda.max_memory_allocated(self._cuda)
            found["reserved_peak"] = cuda.max_memory_reserved(self._cuda)
        return found

    def _resident(self):
        try:
            with open("/proc/self/statm", "rb", buffering=0) as file:
                return int(file.read(128).split()[1]) * self._page
        except (OSError, IndexError, ValueError):
            return None

    @staticmethod
    def _peak():
        if resource is None:
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
