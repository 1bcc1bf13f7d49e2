"""One timed epoch of a point, in a process of its own that leaves nothing behind."""

from __future__ import annotations

import gc
import os
import statistics
import time
import warnings

from ..measure import contention, machine, page_cache
from ..measure.forked import in_child
from ..measure.processes import thread_seconds
from ..plain import percent
from . import judge

MAX_EPOCH_S = 60.0    # longer is a hang
MAX_RESIDENT = 0.02   # share of files that should have left the page cache


class _Played:
    """One pass of the training loop over a loader, and what could be read when its last step had ended."""

    def __init__(self, loader, step_s: float, batches: int | None = None):
        """batches: after which the loop leaves the epoch; None: at its end."""
        self.yields, self.ends = [], []  # seconds from before iter() until a batch arrived, until its step ended
        self.shm_peak = 0
        batch, expected = None, batches or len(loader)
        start = time.perf_counter()
        iterator = iter(loader)
        for batch in iterator:
            self.yields.append(time.perf_counter() - start)
            if step_s > 0:
                time.sleep(step_s)
            self.ends.append(time.perf_counter() - start)
            self.shm_peak = max(self.shm_peak, machine.shared_memory_used())
            if len(self.ends) == expected:  # the next request would end the workers
                self.main_cpu = time.process_time()
                self.workers_cpu = sum(thread_seconds(w.pid) for w in getattr(iterator, "_workers", []))
                del batch
                gc.collect()
                self.shm_floor = machine.shared_memory_used()  # queues, and whatever others hold
                break
        if len(self.ends) < expected:
            raise RuntimeError(f"the epoch ended after {len(self.ends)} of {expected} batches")


def timed(scenario, point: dict, samples: int, seed: int) -> dict:
    """The epoch itself; runs in the child."""
    import torch

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:point["cores"]])
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than cores are meant
    loader = scenario.loader(point, samples, seed)
    batches = samples // point["batch"] if scenario.cut else None
    workers_before = 0.0
    if point["persistent"]:  # the second epoch counts: its workers are there already
        workers_before = _Played(loader, 0, batches).workers_cpu
    gc.collect()
    main_before = time.process_time()
    played = _Played(loader, point["step_ms"] * 1e-3, batches)
    del loader
    _stop_helpers(point["start_method"])
    return {"epoch_ms": round(played.ends[-1] * 1e3, 3), "first_batch_ms": round(played.yields[0] * 1e3, 3),
            "interval_ms": round(steady_interval(played.yields, point) * 1e3, 3),
            "main_cpu_ms": round((played.main_cpu - main_before) * 1e3, 3),
            "workers_cpu_ms": round((played.workers_cpu - workers_before) * 1e3, 3),
            "shm_peak": played.shm_peak, "shm_floor": played.shm_floor}


def steady_interval(yields: list, point: dict) -> float:
    """Median gap between batches, without the first and the last window of the prefetching where enough is left."""
    gaps = [b - a for a, b in zip(yields, yields[1:])]
    window = point["workers"] * point["prefetch"]
    inner = gaps[window:len(gaps) - window]
    return statistics.median(inner or gaps or yields)


def _stop_helpers(start_method: str) -> None:
    """Ends the processes that multiprocessing keeps for spawn and forkserver."""
    if start_method == "fork":
        return
    from multiprocessing import forkserver, resource_tracker

    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()


def repetition(scenario, point: dict, seed: int, reference, reference_ms: float, warden=None,
               limit_s: float = MAX_EPOCH_S) -> dict:
    """Runs and judges one epoch (judge.RULE), which is ended after `limit_s`."""
    reasons = []
    reference.settle(reference_ms * judge.SETTLED)
    if point["cold"]:
        page_cache.evict(scenario.files)
        if (left := page_cache.resident_share(scenario.files)) > MAX_RESIDENT:
            reasons.append(f"{percent(left)} of the files stayed in the page cache")
    peak, shared_before = 0, machine.shared_memory_used()

    def watch():
        nonlocal peak
        peak = max(peak, machine.shared_memory_used())

    speed_before = reference.milliseconds()
    before = contention.usage()
    row = in_child(lambda: timed(scenario, point, point["samples"], seed), limit_s, watch, warden)
    others, steal = contention.between(before, contention.usage())
    speed = 2 * reference_ms / (speed_before + reference.milliseconds())
    if "error" in row:
        reasons.append(row["error"])
    else:
        peak, floor = max(peak, row.pop("shm_peak")), row.pop("shm_floor")
        row["shm_bytes"] = max(0, peak - floor) if point["workers"] else 0
    if machine.shared_memory_used() != shared_before:
        reasons.append("others used /dev/shm meanwhile")
    row.update(foreign_share=round(others, 4), steal_share=round(steal, 4), speed=round(speed, 4))
    reasons += judge.objections(others, steal, speed)
    row.update(good=not reasons, why="; ".join(reasons))
    return row
