"""One timed epoch of a point, in a process of its own that leaves nothing behind."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import statistics
import time
import traceback
import warnings

from ..errors import UserCodeError
from . import machine

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_POLL_S = 0.02        # of the shared memory's use, from outside the measured process
MAX_EPOCH_S = 60.0    # longer is a hang
MAX_RESIDENT = 0.02   # of files that should have left the page cache


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave, so that it can be waited for and counted."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def signal_at_parents_end(number: int) -> None:
    """Asks the system for this signal when the parent process ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


_interrupts = 0  # that have come


def interrupt(*_) -> None:
    """The handler of signals that end a run."""
    global _interrupts
    _interrupts += 1
    raise KeyboardInterrupt


def catch_signals(end_with_parent: bool) -> None:
    """From now on Ctrl-C and SIGTERM raise KeyboardInterrupt, and the parent's end does where that is wanted."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    if end_with_parent:
        signal_at_parents_end(signal.SIGTERM)


def reap() -> None:
    """Waits for orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def in_child(work, timeout_s: float, watch=None):
    """work() in a forked process, a group of its own that ends with this one; its result, or {"error": text}.

    `watch` is called every few milliseconds meanwhile."""
    reading, writing = os.pipe()
    parent = os.getpid()
    interrupts = _interrupts
    child = os.fork()
    if child == 0:
        _be_child(work, reading, writing, parent)  # does not return
    os.close(writing)
    try:
        if _interrupts != interrupts:  # raised in a callback of os.register_at_fork, where exceptions are lost
            raise KeyboardInterrupt
        return _result_of(child, reading, timeout_s, watch)
    finally:
        os.close(reading)
        _end_group(child)
        reap()


def _trace_of(error: Exception) -> str:
    """The user's own frames where the error has them."""
    return error.traceback_text.rstrip() + "\n" if isinstance(error, UserCodeError) else traceback.format_exc()


def _be_child(work, reading: int, writing: int, parent: int):
    code = 1
    try:
        os.setpgid(0, 0)
        signal_at_parents_end(signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reading)
        if os.getppid() == parent:
            try:
                result = work()
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}", "trace": _trace_of(error)}
            with os.fdopen(writing, "w") as file:
                json.dump(result, file)
            code = 0
    finally:
        os._exit(code)


def _result_of(child: int, reading: int, timeout_s: float, watch):
    os.set_blocking(reading, False)
    deadline = time.monotonic() + timeout_s
    received, ended = b"", False
    while not ended:
        ended = os.waitpid(child, os.WNOHANG)[0] != 0
        while True:
            try:
                part = os.read(reading, 1 << 16)
            except BlockingIOError:
                break
            if not part:
                break
            received += part
        if watch is not None:
            watch()
        if not ended:
            if time.monotonic() > deadline:
                return {"error": f"did not end within {timeout_s:.0f} s"}
            time.sleep(_POLL_S)
    try:
        return json.loads(received)
    except ValueError:
        return {"error": "the process that ran it died"}


def _end_group(child: int) -> None:
    for _ in range(100):
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            return
        reap()
        time.sleep(0.01)


def cpu_of(pid: int) -> float:
    """CPU seconds of all threads of a process."""
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    except OSError:
        pass
    return total * 1e-9


class _Played:
    """One pass of the training loop over a loader, and what could be read when its last step had ended."""

    def __init__(self, loader, step_s: float):
        self.yields, self.ends = [], []  # seconds from before iter() until a batch arrived, until its step ended
        self.shm_peak = 0
        batch, expected = None, len(loader)
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
                self.workers_cpu = sum(cpu_of(w.pid) for w in getattr(iterator, "_workers", []))
                del batch
                gc.collect()
                self.shm_floor = machine.shared_memory_used()  # queues, and whatever others hold


def timed(scenario, point: dict, samples: int, seed: int) -> dict:
    """The epoch itself; runs in the child."""
    import torch

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:point["cores"]])
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than cores are meant
    loader = scenario.loader(point, samples, seed)
    workers_before = 0.0
    if point["persistent"]:  # the second epoch counts: its workers are there already
        workers_before = _Played(loader, 0).workers_cpu
    gc.collect()
    main_before = time.process_time()
    played = _Played(loader, point["step_ms"] * 1e-3)
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


def repetition(scenario, point: dict, seed: int, reference, reference_ms: float) -> dict:
    """Runs and judges one epoch (machine.RULE)."""
    reasons = []
    reference.settle(reference_ms)
    if point["cold"]:
        machine.evict(scenario.files)
        if (left := machine.resident_share(scenario.files)) > MAX_RESIDENT:
            reasons.append(f"{left:.0%} of the files stayed in the page cache")
    peak, shared_before = 0, machine.shared_memory_used()

    def watch():
        nonlocal peak
        peak = max(peak, machine.shared_memory_used())

    speed_before = reference.milliseconds()
    before = machine.usage()
    row = in_child(lambda: timed(scenario, point, point["samples"], seed), MAX_EPOCH_S, watch)
    foreign, steal = machine.foreign_between(before, machine.usage())
    speed = 2 * reference_ms / (speed_before + reference.milliseconds())
    if "error" in row:
        reasons.append(row["error"])
    else:
        peak, floor = max(peak, row.pop("shm_peak")), row.pop("shm_floor")
        row["shm_bytes"] = max(0, peak - floor) if point["workers"] else 0
    if machine.shared_memory_used() != shared_before:
        reasons.append("others used /dev/shm meanwhile")
    row.update(foreign_share=round(foreign, 4), steal_share=round(steal, 4), speed=round(speed, 4))
    reasons += machine.objections(foreign, steal, speed)
    row.update(good=not reasons, why="; ".join(reasons))
    return row
