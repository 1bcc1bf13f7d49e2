"""What nvidia-smi tells of a GPU and of who else is on it. Nothing, where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess

MIB = 1 << 20
_PATIENCE_S = 30  # a driver that loads anew takes seconds


def run(*arguments: str) -> str:
    """What nvidia-smi prints; empty without it, or where it fails."""
    if shutil.which("nvidia-smi") is None:
        return ""
    try:
        done = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def parse_query(line: str, names: tuple) -> dict:
    """One line of values by name; empty where it is something else."""
    cells = [cell.strip() for cell in line.split(",")]
    return dict(zip(names, cells)) if len(cells) == len(names) else {}


def query(which: str, names: tuple) -> dict:
    """Values of a GPU by nvidia-smi's names."""
    lines = run("-i", which, "--query-gpu=" + ",".join(names), "--format=csv,noheader,nounits").splitlines()
    return parse_query(lines[0], names) if lines else {}


def parse_processes(text: str) -> list:
    """(process id, bytes) of each line "1234, 512" (MiB); bytes 0 where the driver does not tell."""
    found = []
    for line in text.splitlines():
        pid, _, used = (cell.strip() for cell in line.partition(","))
        if pid.isdigit():
            number = used.split()[0] if used.split() else ""
            found.append((int(pid), int(number) * MIB if number.isdigit() else 0))
    return found


def processes(which: str) -> list:
    """(process id, bytes) of each process on a GPU."""
    return parse_processes(run("-i", which, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"))


def bytes_of(found: list) -> int:
    """The sum of processes()'s bytes."""
    return sum(used for _, used in found)


def visible() -> list:
    """Names of the GPUs that nvidia-smi lists."""
    return [line.strip() for line in run("--query-gpu=name", "--format=csv,noheader").splitlines() if line.strip()]


def selector(torch, index: int) -> str:
    """What nvidia-smi's -i takes for PyTorch's index, which CUDA_VISIBLE_DEVICES may have renumbered."""
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    if uuid is not None:
        text = str(uuid)
        return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"
    listed = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip()]
    return listed[index].strip() if index < len(listed) else str(index)
