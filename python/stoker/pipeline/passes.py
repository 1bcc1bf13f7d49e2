"""What the children measure. Each function runs in a process of its own and reports by send(kind, value)."""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from . import batch_facts, processes
from .counters import ForeignLoad, memory_of
from .maker import Maker, become_worker, seed_all

SEED = 6  # the same samples each time: two probes of one data set measure the same
MOST_SAMPLES = 4096  # distinct ones
MOST_ROUNDS = 8
ALL_RAISE = 16  # that many failures without one good sample: every sample raises
_SLOW_SAMPLE_S = 0.2  # from here on each sample is reported by itself


def _alive(maker: Maker, send) -> bool:
    """False: nothing but failures so far."""
    if maker.failures.count >= ALL_RAISE:
        send("failures", [maker.failures.count, maker.failures.first])
        return False
    return True


def first_look(source, send) -> None:
    """One sample, then a few: what it is, how long it takes, whether it collates."""
    _probe_side_effects(source, send, lambda: _first_look(source, send))


def _first_look(source, send) -> None:
    become_worker(source)
    maker = Maker(source)
    rng = random.Random(SEED)
    plan = source.plan(4 * source.batch, rng) if source.kind == "map" else None
    if plan is not None:
        indices = [index for batch in plan for index in batch]
        if not indices:
            send("no batches", None)
            return
        send("planned", [len(plan[0])])
    walls, cpu, tried = [], [], 0
    start = time.monotonic()
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
        walls.append(batch.rows[0][1] * 1e-6)
        cpu.append(batch.rows[0][2] * 1e-6)
        if len(samples) < 2:
            samples += batch.samples
            kept += batch.rows
        send("speed", {"walls": walls[1:] or walls, "cpu": cpu[1:] or cpu, "tried": tried})
    send("failures", [maker.failures.count, maker.failures.first])
    send("tried", tried)


def _probe_side_effects(source, send, work) -> None:
    """Threads and processes started, directory changed, by what the data set does."""
    folder = os.getcwd()
    threads, modules = _threads(), set(sys.modules)
    work()
    new_threads = _threads() - threads - 1  # ours, idle
    children = _children()
    effects = {"threads": max(0, new_threads), "processes": children, "moved": _cwd() != folder,
               "imports": len(set(sys.modules) - modules)}
    send("effects", effects)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _children() -> int:
    count = 0
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as file:
                count += len(file.read().split())
    except OSError:
        return 0
    return count


def sample_pass(source, send, *, seconds: float, most: int) -> None:
    """Rounds over the same random samples, whole batches, collated into shared memory; the heart of the probe.

    Round 0 warms the caches and counts the bytes read; its times count only where no other round came.
    """
    start = time.monotonic()
    until = start + seconds
    become_worker(source)
    maker = Maker(source)
    send("private before", memory_of()["private"])
    plan = source.plan(most, random.Random(SEED)) if source.kind == "map" else None
    rng = random.Random(SEED + 1)
    loose = source.sampler is None and plan is not None  # batches may be put together anew
    load = ForeignLoad(maker.counters)
    for round_ in range(MOST_ROUNDS):
        began = time.monotonic()
        for indices in _batches_of(source, plan, loose, rng, round_, most):
            batch = maker.make(indices, count_bytes=round_ == 0)
            _report(maker, batch, round_, send)
            if batch.ended or time.monotonic() > until:
                break
            if not _alive(maker, send) and round_ == 0 and not batch.rows:
                return
        maker.restart()
        send("round", round_)
        now = time.monotonic()
        if now > until or (round_ >= 1 and now + 0.6 * (now - began) > until):
            break
    send("foreign", load.finish())
    send("failures", [maker.failures.count, maker.failures.first])
    send("collate failures", [maker.collate_failures.count, maker.collate_failures.first])
    _memory(source, maker, plan, send)


def _batches_of(source, plan, loose: bool, rng, round_: int, most: int):
    size = min(source.batch, source.cap or source.batch)
    if plan is None:
        return [size] * max(1, most // size)
    if loose:
        indices = [index for batch in plan for index in batch]
        if round_:
            rng.shuffle(indices)
        return [indices[i:i + size] for i in range(0, len(indices), size)]
    batches = list(plan)
    if round_:
        rng.shuffle(batches)
    return batches


def _report(maker: Maker, batch, round_: int, send) -> None:
    if not batch.samples:
        return
    rows = batch.rows
    made = maker.collate_shared(batch)
    batch.samples.clear()
    dropped = processes.drop_output()
    if dropped:
        send("lines dropped", dropped)
    send("batch", {"round": round_, "rows": rows, "queued": batch.queued, "fetched": batch.fetched,
                   "collate_ns": made[0] if made else None, "facts": made[1] if made else None})


def _memory(source, maker: Maker, plan, send) -> None:
    """Memory of a worker that its parent does not share: at rest, and with the samples of a batch in its hands."""
    rest = memory_of()["private"]
    send("memory", {"private": rest, "peak": rest})
    batch = maker.make(source.batch if plan is None else plan[0])
    peak = memory_of()["private"]
    maker.collate_shared(batch) if batch.samples else None
    batch.samples.clear()
    send("memory", {"private": memory_of()["private"], "peak": max(peak, rest)})


def size_pass(source, send, *, seconds: float, sizes: list, shared: bool) -> None:
    """Collating at other batch sizes; as a worker (shared) or as the training process."""
    until = time.monotonic() + seconds
    if shared:
        become_worker(source)
        maker = Maker(source)
    else:
        seed_all(SEED)
        maker = Maker(source, time.thread_time_ns)
    rng = random.Random(SEED)
    before = []
    longest = {size: 0.0 for size in sizes}
    plan = source.plan(MOST_SAMPLES, rng) if source.kind == "map" else None
    at = {size: 0 for size in sizes}
    # A turn makes about as many samples of each size, the smallest last.
    largest = max(sizes)
    warm = True
    while True:
        for size in sizes:
            for _ in range(max(1, min(8, largest // (2 * size)))):
                began = time.monotonic()
                if not warm and began + longest[size] > until:
                    continue
                batch = maker.make(_take(source, plan, size, at, rng))
                if batch.ended:
                    maker.restart()
                if not batch.samples:
                    continue
                rows = batch.rows
                made = maker.collate_shared(batch) if shared else maker.collate_private(batch, before)
                batch.samples.clear()
                longest[size] = max(longest[size], time.monotonic() - began)
                if made is not None:
                    send("batch", {"size": size, "rows": rows, "warm": warm,
                                   "collate_ns": made[0] if shared else made, "facts": made[1] if shared else None})
                if time.monotonic() > until and not warm:
                    return
        if time.monotonic() + min(longest.values()) > until:
            return
        warm = False


def _take(source, plan, size: int, at: dict, rng):
    """The next indices of a batch of `size`."""
    if plan is None:
        return size
    if source.sampler is not None:
        if source.own_batches:  # part of a batch, or all of it
            batch = plan[at[size] % len(plan)]
            at[size] += 1
            return batch[:max(1, round(len(batch) * size / source.batch))] if size < source.batch else batch
    flat = [index for batch in plan for index in batch]
    start = at[size]
    at[size] = (start + size) % len(flat)
    return [flat[(start + i) % len(flat)] for i in range(min(size, len(flat)))]


def parallel_pass(source, send, *, begin: float, end: float, indices: list) -> None:
    """CPU time of these samples, again and again between two moments of time.monotonic()."""
    become_worker(source)
    maker = Maker(source)
    batches = [indices[i:i + source.batch] for i in range(0, len(indices), source.batch)] \
        if source.kind == "map" else [source.batch]
    warm = batches[0] if source.kind == "map" else source.batch
    _discard(maker, maker.make(warm if source.kind != "map" else warm[:max(1, len(warm) // 4)]))
    send("ready", None)
    time.sleep(max(0.0, begin - time.monotonic()))
    rows = []
    while time.monotonic() < end:
        for indices_ in batches:
            batch = maker.make(indices_)
            if batch.ended:
                maker.restart()
            if time.monotonic() < end or not rows:
                rows += [(row[0], row[2]) for row in batch.rows]
            _discard(maker, batch)
            if time.monotonic() >= end:
                break
    send("rows", rows)


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
