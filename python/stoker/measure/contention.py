"""Contention: what other processes and the hypervisor take of the cores while something is measured."""

from __future__ import annotations

import os
import resource
import time

from ..plain import percent
from . import machine
from .counters import Counters
from .processes import cpu_seconds

MAX_OTHERS = 0.03  # busy time of other processes, share of all cores' time, above which a measurement does not count
MAX_STEAL = 0.02    # time that the hypervisor gave to others, likewise
# The limits of src/system/contention.h, above which others were on a thread's core.
DISTURBED_WALL_PER_CPU = 1.10
DISTURBED_SHARE = 0.05
_TICK = os.sysconf("SC_CLK_TCK")


def usage() -> dict:
    """Clocks in seconds: wall, all cores' busy and stolen time, CPU time of this process and its ended children."""
    with open("/proc/stat") as file:
        fields = [int(value) / _TICK for value in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, interrupts, soft, steal = fields
    own = sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return {"wall": time.perf_counter(), "busy": user + nice + system + interrupts + soft, "steal": steal, "own": own}


def between(before: dict, after: dict) -> tuple:
    """(share of others, share stolen) of all cores' time. Clock ticks limit it to about 10 ms."""
    total = (after["wall"] - before["wall"]) * machine.online_cores()
    other = (after["busy"] - before["busy"]) - (after["own"] - before["own"])
    return max(0.0, other / total), max(0.0, (after["steal"] - before["steal"]) / total)


def objections(others: float, steal: float) -> list:
    """Why a measurement does not count; empty: it does."""
    reasons = []
    if others > MAX_OTHERS:
        reasons.append(f"other processes used {percent(others, 1)} of the cores")
    if steal > MAX_STEAL:
        reasons.append(f"the hypervisor took {percent(steal, 1)}")
    return reasons


class Load:
    """Shares of the cores' time that other processes and the hypervisor took, over the whole run and earlier ones. `helper` tells the
    process id of a child that measures for this process: its time is no other's, also while it lives; 0 where there is none."""

    def __init__(self, before: dict | None = None, helper=lambda: 0):
        before, self._helper = before or {}, helper
        self._seconds = before.get("seconds", 0.0)
        self._others = before.get("foreign_share", 0.0) * self._seconds
        self._steal = before.get("steal_share", 0.0) * self._seconds
        self.mark = self._usage()

    def _usage(self) -> dict:
        found = usage()
        return {**found, "own": found["own"] + cpu_seconds(self._helper())}

    def lap(self) -> tuple:
        """(share of others, share stolen) since the last lap."""
        after = self._usage()
        others, steal = between(self.mark, after)
        elapsed = after["wall"] - self.mark["wall"]
        self._seconds += elapsed
        self._others += others * elapsed
        self._steal += steal * elapsed
        self.mark = after
        return others, steal

    def shares(self) -> dict:
        """The means so far, and the seconds that they are of."""
        total = max(self._seconds, 1e-9)
        return {"foreign_share": round(self._others / total, 4), "steal_share": round(self._steal / total, 4),
                "seconds": round(self._seconds, 1)}


def _machine_ticks() -> tuple:
    """(all, stolen) ticks of the machine so far, from the first line of /proc/stat."""
    try:
        with open("/proc/stat") as file:
            fields = [int(f) for f in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return sum(fields), fields[7] if len(fields) > 7 else 0


class OfThread:
    """How far others keep the calling thread from its core, from construction to counts()."""

    def __init__(self, counters: Counters):
        self._counters = counters
        self._queued, self._cpu, self._wall = counters.queued_ns(), time.thread_time_ns(), time.perf_counter_ns()
        self._ticks = _machine_ticks()

    def counts(self) -> dict:
        """What passed since: nanoseconds of CPU, wall and run queue, ticks of the machine."""
        ticks, stolen = (after - before for after, before in zip(_machine_ticks(), self._ticks))
        return {"cpu": time.thread_time_ns() - self._cpu, "wall": time.perf_counter_ns() - self._wall,
                "queued": max(0, self._counters.queued_ns() - self._queued), "ticks": ticks, "stolen": max(0, stolen)}


def of_thread(parts: list) -> dict:
    """The object "foreign" of a probe file, from the counts of several stretches of time."""
    cpu, wall, queued, ticks, stolen = (sum(part[key] for part in parts)
                                        for key in ("cpu", "wall", "queued", "ticks", "stolen"))
    # A sample may sleep or wait for storage: only time in the run queue is others' doing.
    ratio = 1 + queued / cpu if cpu > 0 else 1.0
    share = min(1.0, queued / wall) if wall > 0 else 0.0
    steal = min(1.0, stolen / ticks) if ticks > 0 else 0.0
    return {"wall_per_cpu": round(ratio, 4), "run_queue_share": round(share, 4), "steal_share": round(steal, 4),
            "disturbed": ratio > DISTURBED_WALL_PER_CPU or share > DISTURBED_SHARE or steal > DISTURBED_SHARE}
