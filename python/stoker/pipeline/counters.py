"""Linux's counters of this process, read through descriptors that stay open: 1 to 4 us a reading."""

from __future__ import annotations

import os
import time

# The limits of src/input/foreign_load.h: above them others were on our core.
DISTURBED_WALL_PER_CPU = 1.10
DISTURBED_SHARE = 0.05

_BUFFER = 512


class Counters:
    """Run-queue wait of the calling thread, bytes read by this process. Zero where Linux does not tell."""

    def __init__(self):
        self._schedule = _opened("/proc/thread-self/schedstat")
        self._io = _opened("/proc/self/io")
        first = self.bytes_read()
        self._own_bytes = self.bytes_read() - first  # what one reading adds to the count

    def queued_ns(self) -> int:
        """Nanoseconds in the run queue: ready to run, and another on the core."""
        text = _read(self._schedule)
        return int(text.split()[1]) if text else 0

    def bytes_read(self) -> int:
        """Bytes handed over by read() and its kin, from the page cache or not."""
        text = _read(self._io)
        return int(text.split()[1]) if text else 0

    def fetched(self) -> int:
        """Bytes that storage really delivered."""
        return _field(_read(self._io), b"read_bytes:")

    def bytes_since(self, before: int) -> int:
        return max(0, self.bytes_read() - before - self._own_bytes)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _read(descriptor: int) -> bytes:
    if descriptor < 0:
        return b""
    try:
        return os.pread(descriptor, _BUFFER, 0)
    except OSError:
        return b""


def _field(text: bytes, name: bytes) -> int:
    at = text.find(name)
    return int(text[at + len(name):].split(None, 1)[0]) if at >= 0 else 0


def clock_cost_ns(clock) -> int:
    """What two readings of a clock take between them, so that it can be taken off."""
    best = min(clock() * -1 + clock() for _ in range(2000))
    return max(0, best)


def _machine_ticks() -> tuple:
    """(all, stolen) ticks of the machine so far, from the first line of /proc/stat."""
    try:
        with open("/proc/stat") as file:
            fields = [int(f) for f in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return sum(fields), fields[7] if len(fields) > 7 else 0


class ForeignLoad:
    """How far others kept the measuring thread from its core, from construction to counts()."""

    def __init__(self, counters: Counters):
        self._counters = counters
        self._queued, self._cpu, self._wall = counters.queued_ns(), time.thread_time_ns(), time.perf_counter_ns()
        self._ticks = _machine_ticks()

    def counts(self) -> dict:
        """What passed since: nanoseconds of CPU, wall and run queue, ticks of the machine."""
        ticks, stolen = (after - before for after, before in zip(_machine_ticks(), self._ticks))
        return {"cpu": time.thread_time_ns() - self._cpu, "wall": time.perf_counter_ns() - self._wall,
                "queued": max(0, self._counters.queued_ns() - self._queued), "ticks": ticks, "stolen": max(0, stolen)}


def foreign_load(parts: list) -> dict:
    """The object "foreign" of the file, from several turns."""
    cpu, wall, queued, ticks, stolen = (sum(part[key] for part in parts)
                                        for key in ("cpu", "wall", "queued", "ticks", "stolen"))
    # A sample may sleep or wait for storage: only time in the run queue is others' doing.
    ratio = 1 + queued / cpu if cpu > 0 else 1.0
    share = min(1.0, queued / wall) if wall > 0 else 0.0
    steal = min(1.0, stolen / ticks) if ticks > 0 else 0.0
    return {"wall_per_cpu": round(ratio, 4), "run_queue_share": round(share, 4), "steal_share": round(steal, 4),
            "disturbed": ratio > DISTURBED_WALL_PER_CPU or share > DISTURBED_SHARE or steal > DISTURBED_SHARE}


def memory_of(pid="self") -> dict:
    """Private dirty bytes (of files' and anonymous pages, without /dev/shm's) and the high-water mark of RSS."""
    private = shared_memory = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Private_Dirty:"):
                    private = int(line.split()[1]) * 1024
                elif line.startswith("Pss_Shmem:"):
                    shared_memory = int(line.split()[1]) * 1024
    except OSError:
        return {"private": 0}
    return {"private": max(0, private - shared_memory)}


def usable_cores() -> float:
    """Cores that this process may use: affinity, cut by the quota of its control group."""
    cores = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(os.cpu_count() or 1)
    quota = _quota()
    return min(cores, quota) if quota else cores


def _quota() -> float | None:
    """CPU quota of the control group in cores (version 2, then version 1), the smallest on the way up."""
    best = None
    try:
        with open("/proc/self/cgroup") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, path in rows:
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        roots = ["/sys/fs/cgroup"] if not controllers else ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        for root in roots:
            at = path.rstrip("/")
            while True:
                found = _quota_at(root + at, version_2=not controllers)
                best = found if best is None else min(best, found) if found else best
                if not at:
                    break
                at = at.rpartition("/")[0]
    return best


def _quota_at(folder: str, version_2: bool) -> float | None:
    try:
        if version_2:
            with open(folder + "/cpu.max") as file:
                quota, period = file.read().split()[:2]
        else:
            with open(folder + "/cpu.cfs_quota_us") as file:
                quota = file.read().strip()
            with open(folder + "/cpu.cfs_period_us") as file:
                period = file.read().strip()
        if quota in ("max", "-1"):
            return None
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
