"""nvidia-smi and NVML as the script finds them: the GPUs that were asked for, with all of their memory free."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import types

_DRIVER, CUDA = "550.54.15", "12.4"
_SHELL = re.compile(r"(?:(?<=^)|(?<=[|;&(`\s]))(?:/\S*/)?nvidia-smi\b([^|;&>)`]*)")


class Tool:
    """What nvidia-smi prints."""

    def __init__(self, world, scratch: str):
        self._gpu, self._scratch, self._count = world.request.gpu, scratch, 0

    def answer(self, given: dict) -> None:
        """Puts the answer in the place of a command that asks nvidia-smi."""
        command = given["args"]
        if isinstance(command, str) and given.get("shell"):
            given["args"] = _SHELL.sub(lambda m: f"cat {shlex.quote(self._file(_split(m[1])))} ", command)
            return
        words = [command] if isinstance(command, (str, bytes, os.PathLike)) else list(command)
        first = os.fsdecode(words[0]) if words else ""
        if os.path.basename(first) == "nvidia-smi":
            given["args"], given["executable"] = ["cat", self._file([os.fsdecode(w) for w in words[1:]])], None

    def _file(self, words: list) -> str:
        self._count += 1
        path = pathlib.Path(self._scratch) / f"nvidia-smi-{self._count}"
        path.write_text(self.text(words))
        return str(path)

    def text(self, words: list) -> str:
        query = next((w.partition("=")[2] for w in words if w.startswith("--query-gpu=")), None)
        numbers = range(self._gpu.count)
        if any(w.startswith("--query-compute-apps") for w in words):
            return ""
        if query is not None:
            return self._table(query.split(","), " ".join(words))
        if "-L" in words or "--list-gpus" in words:
            return "".join(f"GPU {i}: {self._gpu.name} (UUID: GPU-{i})\n" for i in numbers)
        mib = self._gpu.memory >> 20
        if "-q" in words:
            return "".join(f"GPU 00000000:{i:02X}:00.0\n    FB Memory Usage\n        Total                             : {mib} MiB\n"
                           f"        Used                              : 0 MiB\n        Free                              : {mib} MiB\n"
                           for i in numbers)
        rows = "".join(f"|   {i}  {self._gpu.name:<30} |      0MiB / {mib}MiB |      0%      Default |\n" for i in numbers)
        return f"| NVIDIA-SMI {_DRIVER}    Driver Version: {_DRIVER}    CUDA Version: {CUDA} |\n{rows}"

    def _table(self, fields: list, words: str) -> str:
        plain = "nounits" in words
        lines = [] if "noheader" in words else [", ".join(fields)]
        lines += [", ".join(self._field(field.strip(), i, plain) for field in fields) for i in range(self._gpu.count)]
        return "\n".join(lines) + "\n"

    def _field(self, field: str, number: int, plain: bool) -> str:
        mib = self._gpu.memory >> 20
        values = {"index": number, "name": self._gpu.name, "gpu_name": self._gpu.name, "uuid": f"GPU-{number}", "gpu_uuid": f"GPU-{number}",
                  "count": self._gpu.count, "driver_version": _DRIVER, "compute_cap": ".".join(map(str, self._gpu.capability)),
                  "pstate": "P0", "pci.bus_id": f"00000000:{number:02X}:00.0", "gpu_serial": 0, "serial": 0, "display_active": "Disabled",
                  "display_mode": "Disabled", "temperature.gpu": 40, "fan.speed": "[N/A]"}
        united = {"memory.total": (mib, "MiB"), "memory.free": (mib, "MiB"), "memory.used": (0, "MiB"), "utilization.gpu": (0, "%"),
                  "utilization.memory": (0, "%"), "power.draw": (60.0, "W"), "power.limit": (400.0, "W")}
        if field in united:
            value, unit = united[field]
            return str(value) if plain else f"{value} {unit}"
        return str(values.get(field, "[N/A]"))


def _split(text: str) -> list:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def nvml(world, module) -> None:
    """Functions of pynvml, once it is imported."""
    gpu = world.request.gpu

    def always(value):
        return lambda *_, **__: value

    memory = types.SimpleNamespace(total=gpu.memory, free=gpu.memory, used=0, reserved=0, version=0)
    answers = {"nvmlInit": always(None), "nvmlInitWithFlags": always(None), "nvmlShutdown": always(None),
               "nvmlDeviceGetCount": always(gpu.count),
               "nvmlDeviceGetHandleByIndex": lambda index: int(index), "nvmlDeviceGetHandleByUUID": always(0),
               "nvmlDeviceGetHandleByPciBusId": always(0), "nvmlDeviceGetIndex": lambda handle: int(handle),
               "nvmlDeviceGetName": always(gpu.name), "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
               "nvmlDeviceGetMemoryInfo": always(memory), "nvmlDeviceGetUtilizationRates": always(types.SimpleNamespace(gpu=0, memory=0)),
               "nvmlDeviceGetPowerUsage": always(60_000), "nvmlDeviceGetEnforcedPowerLimit": always(400_000),
               "nvmlDeviceGetPowerManagementLimit": always(400_000), "nvmlDeviceGetTemperature": always(40),
               "nvmlDeviceGetTotalEnergyConsumption": always(0), "nvmlDeviceGetComputeRunningProcesses": always([]),
               "nvmlDeviceGetGraphicsRunningProcesses": always([]), "nvmlDeviceGetClockInfo": always(1410),
               "nvmlDeviceGetMaxClockInfo": always(1410), "nvmlDeviceGetCudaComputeCapability": always(gpu.capability),
               "nvmlSystemGetDriverVersion": always(_DRIVER), "nvmlSystemGetCudaDriverVersion": always(12040),
               "nvmlDeviceGetCpuAffinity": always([(1 << 64) - 1] * 4)}
    for name, answer in answers.items():
        setattr(module, name, answer)
