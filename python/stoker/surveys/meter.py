"""Reads memory figures of the device that a case runs on: a CUDA GPU, or the process itself on a CPU."""

import os
import resource
import sys

import torch


class CudaMeter:
    """Bytes on the current GPU. `used` counts everything on it, other processes too."""

    def __init__(self):
        self.total = torch.cuda.mem_get_info()[1]

    def used(self):
        free, total = torch.cuda.mem_get_info()
        return total - free

    def allocated(self):
        return torch.cuda.memory_allocated()

    def reserved(self):
        return torch.cuda.memory_reserved()

    def synchronize(self):
        torch.cuda.synchronize()

    def peaks(self):
        """Since the last call: allocated and reserved peaks; the counters start anew."""
        found = {"allocated_peak_bytes": torch.cuda.max_memory_allocated(),
                 "reserved_peak_bytes": torch.cuda.max_memory_reserved()}
        torch.cuda.reset_peak_memory_stats()
        return found

    def extras(self):
        stats = torch.cuda.memory_stats()
        keys = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "requested_bytes.all.peak")
        return {key: stats[key] for key in keys if key in stats}


class CpuMeter:
    """Resident bytes of this process; PyTorch's CPU allocator keeps no books."""

    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def used(self):
        if sys.platform.startswith("linux"):
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return self._highest()

    @staticmethod
    def _highest():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def allocated(self):
        return 0

    def reserved(self):
        return 0

    def synchronize(self):
        pass

    def peaks(self):
        return {"allocated_peak_bytes": None, "reserved_peak_bytes": None}

    def extras(self):
        return {"resident_peak_bytes": self._highest()}


def meter(device):
    return CudaMeter() if device == "cuda" else CpuMeter()


def nvml_bytes():
    """Bytes used on GPU 0 by NVML (everybody's) and by this process, or an empty dict without pynvml."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        own = [p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if p.pid == os.getpid()]
        return {"nvml_used_bytes": pynvml.nvmlDeviceGetMemoryInfo(handle).used,
                "nvml_process_bytes": own[0] if own else None}
    except Exception:  # no pynvml, no driver, no permission: it is a second opinion only
        return {}
