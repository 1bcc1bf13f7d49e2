"""What the children measure. Each function runs in a process of its own and reports by send(kind, value)."""

from __future__ import annotations

import os
import random
import sys
import threading
import time

import torch

from ..measure import contention, forked
from ..measure.counters import memory_of
from . import batch_facts, speed
from .maker import Maker, become_worker, seed_all

SEED = 6  # the same samples each time: two probes of one data set measure the same
MOST_SAMPLES = 4096  # distinct ones
ALL_RAISE = 16  # that many failures without one good sample: every sample raises


def _alive(maker: Maker, send) -> bool:
    """False: nothing but failures so far."""
    if maker.failures.count >= ALL_RAISE:
        send("failures", [maker.failures.count, maker.failures.first])
        return False
    return True


def first_look(source, send, *, slow_s: float = 1.0) -> None:
    """One sample, then a few: what it is, how long it takes, whether it collates.

    slow_s   a first sample that takes less than that does not count as time for the others: it may open or fill something
    """
    _probe_side_effects(source, send, lambda: _first_look(source, send, slow_s))


def _first_look(source, send, slow_s: float) -> None:
    become_worker(source)
    maker = Maker(source)
    rng = random.Random(SEED)
    plan, fixed = source.plan(MOST_SAMPLES, rng) if source.kind == "map" else (None, None)
    send("plan", plan)  # the user's sampler runs here, not in the parent
    send("sampler", source.sampler_ms)
    send("sampled", source.sampled)
    send("order", None if fixed is None else {"places": fixed.places, "whole": fixed.whole})
    if plan is not None:
        indices = [index for batch in plan for index in batch]
        rng.shuffle(indices)  # neighbours may cost the same, and others something else
        if not indices:
            send("no batches", None)
            return
    walls, cpu, tried, told = [], [], 0, 0

    def tell():
        send("speed", {"walls": walls[1:] or walls, "cpu": cpu[1:] or cpu, "tried": tried})

    begin = start = time.monotonic()
    samples, kept = [], []
    while time.monotonic() - start < 0.5 and (plan is None or tried < len(indices)):
        batch = maker.make(1 if plan is None else [indices[tried]])
        tried += 1
        if batch.ended:
            break
        if not batch.samples:
            if not _alive(maker, send):
                return
            continue
        if not samples:
            send("sample", {"output": batch_facts.describe(batch.samples[0]),
                            "bytes": batch_facts.size_of(batch.samples[0]),
                            "first_wall_ms": batch.rows[0][1] * 1e-6})
            if time.monotonic() - begin < slow_s:
                start = time.monotonic()
        walls.append(batch.rows[0][1] * 1e-6)
        cpu.append(batch.rows[0][2] * 1e-6)
        if len(samples) < 2:
            samples += batch.samples
            kept += batch.rows
        if len(walls) >= 2 * told:  # all so far each time: at growing intervals, as the next may hang or crash
            told = len(walls)
            tell()
    if len(walls) > told:
        tell()
    send("failures", [maker.failures.count, maker.failures.first])
    send("tried", tried)


def _probe_side_effects(source, send, work) -> None:
    """Threads and processes started, directory changed, by what the data set does."""
    folder = os.getcwd()
    threads, modules = forked.threads_here(), set(sys.modules)
    work()
    new_threads = forked.threads_here() - threads - 1  # ours, idle
    children = _children()
    effects = {"threads": max(0, new_threads), "processes": children, "moved": _cwd() != folder,
               "imports": len(set(sys.modules) - modules)}
    send("effects", effects)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _children() -> int:
    count = 0
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as file:
                count += len(file.read().split())
    except OSError:
        return 0
    return count


def slice_pass(source, send, *, worker: bool, threads: int | None = None) -> None:
    """Makes the batches that it is asked for, slice by slice, as a worker or as the training process; waits in between.

    threads: of PyTorch in the training process; None: as many as it takes by itself.

    A command is {"batches": [indices or a count, ...], "until": time.monotonic() or None, "bytes": count bytes read,
    "whole": one clock a batch, "speed": how fast the machine is, "begin": time.monotonic() or None,
    "memory": measure memory}. The answer: a row for each batch.
    """
    if worker:
        become_worker(source)
        maker = Maker(source)
    else:
        if threads is not None:
            torch.set_num_threads(threads)
        seed_all(SEED)
        maker = Maker(source, time.thread_time_ns)
    before, kernel = [], speed.Recent() if worker else None
    while True:
        command = send.receive()
        if command is None:
            break
        if command.get("begin"):
            time.sleep(max(0.0, command["begin"] - time.monotonic()))
        send("answer", _slice(maker, command, before, worker, kernel, send))
    send("failures", [maker.failures.distinct(), maker.failures.first])
    send("collate failures", [maker.collate_failures.count, maker.collate_failures.first])
    send("left unpinned", maker.left_unpinned or None)


def _slice(maker: Maker, command: dict, before: list, worker: bool, kernel, send) -> dict:
    rows, until = [], command.get("until")
    timed = bool(command.get("speed")) and kernel is not None
    last = kernel.ms() if timed else 0.0
    load = contention.OfThread(maker.counters)
    peak = 0
    for indices in command["batches"]:
        batch = maker.make(indices, count_bytes=bool(command.get("bytes")), whole=bool(command.get("whole")))
        if command.get("memory"):
            peak = max(peak, memory_of()["private"])
        if batch.samples:
            rows.append(_finished(maker, batch, before, worker))
            if timed:
                now = kernel.ms()
                rows[-1]["kernel_ms"], last = max(last, now), now
        batch.samples.clear()
        dropped = forked.drop_output()
        if dropped:
            send("lines dropped", dropped)
        if batch.ended:
            maker.restart()
            if command.get("once"):
                break
        if until and time.monotonic() > until or maker.failures.count > ALL_RAISE and not rows:
            break
    answer = {"rows": rows, "load": load.counts()}
    if command.get("memory"):
        answer["memory"] = {"private": memory_of()["private"], "peak": peak}
    return answer


def _finished(maker: Maker, batch, before: list, worker: bool) -> dict:
    row = {"rows": batch.rows, "queued": batch.queued, "fetched": batch.fetched, "collate_ns": None, "facts": None}
    if worker:
        made = maker.collate_shared(batch)
        if made is not None:
            row["collate_ns"], row["facts"] = made
    else:
        row["collate_ns"] = maker.collate_private(batch, before)
    return row


def _discard(maker: Maker, batch) -> None:
    if batch.samples:
        maker.collate_shared(batch)
    batch.samples.clear()


def gil_pass(source, send, *, seconds: float, indices: list) -> None:
    """How late a thread that sleeps 3 ms wakes while samples are made, and while nothing is done."""
    become_worker(source)
    maker = Maker(source)
    step = indices[:source.batch] if source.kind == "map" else source.batch
    _discard(maker, maker.make(step))
    late, stop = [], threading.Event()

    def sleeper():
        while not stop.is_set():
            start = time.perf_counter()
            time.sleep(0.003)
            late.append(time.perf_counter() - start - 0.003)

    def measured(work, length) -> float:
        late.clear()
        stop.clear()
        thread = threading.Thread(target=sleeper, daemon=True)
        until = time.monotonic() + length
        thread.start()
        while time.monotonic() < until:
            work()
        stop.set()
        thread.join()
        return sum(late) / len(late) * 1e3 if late else 0.0

    def samples():
        batch = maker.make(step)
        if batch.ended:
            maker.restart()
        _discard(maker, batch)

    idle = measured(lambda: time.sleep(0.01), seconds * 0.25)
    busy = measured(samples, seconds * 0.75)
    send("gil", max(0.0, busy - idle))
