"""Processes below another one, and what they hold of the machine's memory."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal

_KEPT = re.compile(r"^(RssAnon|RssShmem|Pss_Anon|Pss_Shmem):\s+(\d+) kB", re.MULTILINE)


def descendants(pid: int) -> list:
    """Processes below this one, the nearest first."""
    children: dict[int, list] = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])  # proc_pid_stat(5): state, parent
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def end_descendants(pid: int) -> None:
    """Ends them all, but for those that remove what the others shared once these are gone."""
    for one in descendants(pid):
        if _cleans_up(one):
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)


def _cleans_up(pid: int) -> bool:
    """Whether it is PyTorch's or Python's keeper of shared memory."""
    with contextlib.suppress(OSError):
        line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"torch_shm_manager" in line or b"resource_tracker" in line
    return False


def held_bytes(pid) -> int:
    """Resident bytes of a process that no file backs, what it shares with others among them."""
    return _sum(f"/proc/{pid}/status")


def held_together(pids: list, enough: int | None) -> int:
    """Bytes that no file backs of several processes; where they exceed `enough`, what they share is counted once."""
    each = [held_bytes(pid) for pid in pids]
    if enough is None or sum(each) <= enough or len(pids) < 2:
        return sum(each)
    return sum(_sum(f"/proc/{pid}/smaps_rollup") or count for pid, count in zip(pids, each))


def _sum(path: str) -> int:
    try:
        text = pathlib.Path(path).read_text()
    except OSError:
        return 0
    return sum(int(kib) * 1024 for _, kib in _KEPT.findall(text))
