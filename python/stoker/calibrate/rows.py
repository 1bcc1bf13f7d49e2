"""The file of a calibration: format "stoker-calibration", JSON (docs/guide/calibrating.md)."""

from __future__ import annotations

import datetime
import json
import platform
import re

from ..errors import CaptureError
from ..measure import rows_file
from ..version import VERSION
from . import spec

FORMAT, SCHEMA = "stoker-calibration", [1, 0]
# Not cores and memory: a container may grant others, and each row says how many threads it is of.
SAME_DEVICE = ("kind", "name", "simd_bits", "l1_bytes", "l2_bytes", "compute_capability", "sm_count")
SAME_SOFTWARE = ("torch", "cuda", "driver")
_LISTS = ("figures", "operators")


def provenance() -> dict:
    """Texts that say what the figures rest on, of CPU and GPU alike; the device's own (driver) come from whoever measures it."""
    import torch

    return {"date": datetime.date.today().isoformat(), "torch": str(torch.__version__), "python": platform.python_version(),
            "stoker_version": VERSION, "driver": "", "cuda": torch.version.cuda or "", "cudnn": "",
            **libraries(_told(torch.__config__.show)),
            "openmp": openmp(_told(torch.__config__.parallel_info)), "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "system": platform.platform()}


def _told(describe) -> str:
    try:
        return describe()
    except RuntimeError:  # asks CUDA for its version, which may not be loaded
        return ""


def libraries(configuration: str) -> dict:
    """Versions of the CPU's libraries out of PyTorch's own description of its build."""
    found = {}
    for name, pattern in (("mkl", r"Math Kernel Library Version ([0-9.]+)"), ("onednn", r"MKL-DNN v([0-9.]+)")):
        match = re.search(pattern, configuration)
        found[name] = match[1] if match else ""
    return found


def openmp(parallel_info: str) -> str:
    match = re.search(r"OpenMP \d+[^\n]*", parallel_info)
    return match[0].strip() if match else ""


def empty(device: dict, about: dict) -> dict:
    return {"format": FORMAT, "schema_version": SCHEMA, "provenance": about, "device": device,
            "load": {"foreign_share": 0.0, "steal_share": 0.0, "others_on_gpu": 0, "clocks_changed": False, "disturbed": False,
                     "why": ""},
            "threads": [], "figures": [], "operators": [], "complete": False}


def read(path: str) -> dict:
    return rows_file.read(path, "calibration", FORMAT, SCHEMA)


def begun(path: str, device: dict, about: dict) -> dict:
    """The file to go on with: the one at `path` if it is of this device and software, else a new one."""
    if not rows_file.begun(path):
        return empty(device, about)
    found = read(path)
    for part, mine, keys in (("device", device, SAME_DEVICE), ("provenance", about, SAME_SOFTWARE)):
        for key in keys:
            there, here = found[part].get(key), mine.get(key)
            if there != here:
                raise CaptureError(f"{path} was measured with another {key} ({there}; here {here}): name another file with --out, "
                                   "or move it away")
    found["device"] = {**found["device"], **device}
    found["provenance"] = {**about, "begun": found["provenance"].get("begun", found["provenance"].get("date", ""))}
    return found


def write(rows: dict, path: str) -> None:
    rows_file.write_text(text(rows), path)


def text(rows: dict) -> str:
    """A line a row, so that differences can be read."""
    parts = []
    for key, value in rows.items():
        if key in _LISTS and value:
            parts.append(f'"{key}": [\n  ' + ",\n  ".join(json.dumps(row) for row in value) + "\n ]")
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{" + ",\n ".join(parts) + "}\n"


def put(rows: dict, row: dict) -> None:
    """Adds an operator's row, in place of an earlier one of the same operator."""
    identity = (spec.row_key(row), row["threads"])
    for at, other in enumerate(rows["operators"]):
        if (spec.row_key(other), other["threads"]) == identity:
            rows["operators"][at] = row
            return
    rows["operators"].append(row)


def put_figure(rows: dict, row: dict) -> None:
    rows["figures"] = [f for f in rows["figures"] if (f["name"], f["threads"]) != (row["name"], row["threads"])] + [row]


def place(path: str) -> str:
    """Where the rows are, in words; a descriptor is a file that the caller keeps to itself."""
    return "were measured" if rows_file.is_descriptor(path) else f"are in {path}"


def going_on(path: str) -> str:
    """What to do for the rest, in words."""
    if rows_file.is_descriptor(path):
        return "--rows FILE keeps what is measured and goes on with it"
    return "run the same command again to go on"
