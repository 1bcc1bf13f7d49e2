"""Other processes by their ids: groups, orphans, CPU time and shared memory."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import time


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_group(pid: int) -> None:
    """Kills the group until none of it is left, and reaps what has become this process's own."""
    for _ in range(100):
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            break
        reap()
        time.sleep(0.01)
    reap()


def reap() -> None:
    """Waits for orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def remove_segments(pid: int) -> None:
    """Removes shared memory that PyTorch had made and not yet unlinked when the process was killed."""
    for path in glob.glob(f"/dev/shm/torch_{pid}_*"):
        with contextlib.suppress(OSError):
            os.unlink(path)


def thread_seconds(pid: int) -> float:
    """CPU seconds of all living threads of a process, to the nanosecond; 0 where there is none."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    except OSError:
        pass
    return total * 1e-9


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a living process with its ended threads, to the tick; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes() -> dict:
    """Bytes of this process's resident set: `now`, and `peak`, the highest so far (VmHWM)."""
    found = {}
    with open("/proc/self/status") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                found[name] = int(value.split()[0]) * 1024
    return {"now": found.get("VmRSS", 0), "peak": found.get("VmHWM", 0)}
