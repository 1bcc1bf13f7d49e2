"""A real DataLoader of one worker: what a batch takes on the clock beyond making it, and what its first batch takes."""

from __future__ import annotations

import mmap
import os
import random
import statistics
import struct
import time
import warnings

import torch

from .maker import seed_all
from .piping import PIPE_BYTES

_FEWEST, _FEW = 6, 40  # batches; below the second number all go into one run
_MOST = 400
_RECORD = struct.Struct("4d")  # thread CPU and wall before and after a fetch, s
_SEED = 8
_OBJECTS_WARM = 2  # messages in which the heaps of both ends grow


class Notes:
    """Where the worker writes its clocks: memory shared since before the fork."""

    def __init__(self, most: int):
        self._memory, self._most = mmap.mmap(-1, 8 + most * _RECORD.size), most

    def add(self, *values) -> None:
        count = self._count()
        if count < self._most:
            _RECORD.pack_into(self._memory, 8 + count * _RECORD.size, *values)
            struct.pack_into("q", self._memory, 0, count + 1)

    def _count(self) -> int:
        return struct.unpack_from("q", self._memory, 0)[0]

    def all(self) -> list:
        return [_RECORD.unpack_from(self._memory, 8 + i * _RECORD.size) for i in range(self._count())]


def _note_fetching(notes: Notes) -> None:
    """In this process and its children: clocks around the fetcher, which makes the samples of a batch and collates."""
    from torch.utils.data._utils import fetch

    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        def noted(self, index, original=kind.fetch):
            cpu, wall = time.thread_time(), time.perf_counter()
            made = original(self, index)
            notes.add(cpu, wall, time.thread_time(), time.perf_counter())
            return made

        kind.fetch = noted


class ObjectTimes:
    """What the objects of a real loader's batches take on their way: clocks around the calls of multiprocessing's queue."""

    def __init__(self, most: int):
        self.dumped = Notes(most)  # in the worker: CPU of its feeder thread
        self.received, self.loaded = [], []  # here: wall time in the pipe, CPU of unpickling
        self._here = os.getpid()
        self._patch()

    def _patch(self) -> None:
        from multiprocessing.connection import Connection
        from multiprocessing.reduction import ForkingPickler

        dumps, loads, recv_bytes = ForkingPickler.dumps, ForkingPickler.loads, Connection.recv_bytes

        def noted_dumps(cls, thing, protocol=None):
            begin = time.thread_time()
            text = dumps(thing, protocol)
            if os.getpid() != self._here:
                self.dumped.add(begin, time.thread_time(), len(text), 0)
            return text

        def noted_recv(connection, maxlength=None):
            begin = time.perf_counter()
            text = recv_bytes(connection, maxlength)
            self.received.append((time.perf_counter() - begin, len(text)))
            return text

        def noted_loads(text, **options):
            begin = time.thread_time()
            thing = loads(text, **options)
            self.loaded.append((time.thread_time() - begin, len(text)))
            return thing

        ForkingPickler.dumps, ForkingPickler.loads = classmethod(noted_dumps), staticmethod(noted_loads)
        Connection.recv_bytes = noted_recv

    def summary(self) -> dict:
        """Medians in ms over messages that a pipe does not hold; empty without such."""
        kinds = {"dump_ms": [(row[1] - row[0], row[2]) for row in self.dumped.all()], "recv_ms": self.received,
                 "load_ms": self.loaded}
        large = {key: [seconds for seconds, size in rows if size > PIPE_BYTES][_OBJECTS_WARM:] for key, rows in kinds.items()}
        return {key: 1e3 * statistics.median(rows) for key, rows in large.items()} if all(large.values()) else {}


def _loader(source, batches: list | None):
    from torch.utils.data import DataLoader

    common = {"num_workers": 1, "prefetch_factor": 2, "worker_init_fn": source.worker_init, "collate_fn": source.collate,
              "multiprocessing_context": "fork"}
    if batches is None:
        return DataLoader(source.dataset, batch_size=source.batch if source.auto_collation else None, **common)
    if not source.auto_collation:
        return DataLoader(source.dataset, batch_size=None, sampler=[index for b in batches for index in b], **common)
    return DataLoader(source.dataset, batch_sampler=batches, **common)


def _edges(count: int) -> tuple:
    """The first and the last batch that count: before, the queues fill, and after, they would drain."""
    return (3, count - 3) if count >= 12 else (2, count - 2)


def _cpu_of(pid: int) -> float:
    """CPU seconds of all threads of a process."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            total += int(file.read().split()[0])
    return total * 1e-9


def one_worker_pass(source, send, *, seconds: float, batches: list | None, batch_ms: float) -> None:
    """Two runs, or one of slow batches. `batches`: of indices, to choose from; None of an IterableDataset.

    `batch_ms`: what a batch takes, about.
    """
    warnings.simplefilter("ignore")
    count = int(min(2 * _MOST, seconds * 1e3 / max(0.1, batch_ms)))
    if count < _FEWEST:
        return
    torch.set_num_threads(1)  # OpenMP's threads do not live on in a fork
    runs = 1 if count < _FEW else 2
    count //= runs
    seed_all(_SEED)
    rng = random.Random(_SEED)
    notes = Notes(2 * count + 16)
    _note_fetching(notes)
    times = ObjectTimes(2 * count + 16)
    seen = 0
    begin = time.monotonic()
    for number in range(runs):
        wanted = None
        if batches is not None:
            order = [rng.sample(batches, len(batches)) for _ in range(-(-count // len(batches)))]
            wanted = [batch for part in order for batch in part][:count]
        run = _run(_loader(source, wanted), count, begin + seconds * (number + 1) / runs)
        rows = notes.all()[seen:]
        seen += len(rows)
        if run is not None:
            send("one worker", {**_summary(run, rows), **times.summary()})


def _run(loader, count: int, until: float):
    """Times of the beginning of an epoch of `count` batches, as far as the time goes."""
    yields, marks = [], []
    first, last = _edges(count)
    start = time.perf_counter()
    iterator = iter(loader)
    workers = getattr(iterator, "_workers", [])
    try:
        for number in range(last + 1):
            held = next(iterator)
            yields.append(time.perf_counter() - start)
            late = number > first and time.monotonic() > until
            if number in (first, last) or late:
                marks.append((time.thread_time(), sum(_cpu_of(worker.pid) for worker in workers)))
            if late:
                break
        del held
    except StopIteration:
        pass
    del iterator
    return {"yields": yields, "marks": marks, "first": first} if len(marks) == 2 else None


def _summary(run: dict, rows: list) -> dict:
    yields, first = run["yields"], run["first"]
    last = len(yields) - 1
    n = last - first
    steady = rows[first + 1:last + 1]
    main, worker = ((run["marks"][1][i] - run["marks"][0][i]) / n * 1e3 for i in range(2))
    return {"batches": n, "interval_ms": (yields[last] - yields[first]) / n * 1e3,
            "make_cpu_ms": statistics.fmean(row[2] - row[0] for row in steady) * 1e3,
            "make_wall_ms": statistics.fmean(row[3] - row[1] for row in steady) * 1e3,
            "worker_cpu_ms": worker, "main_cpu_ms": main, "first_batch_ms": yields[0] * 1e3,
            "first_make_cpu_ms": (rows[0][2] - rows[0][0]) * 1e3}


def joined(runs: list) -> dict | None:
    """The object "one_worker" of the file: means of the runs; None without any."""
    if not runs:
        return None
    result = {key: statistics.fmean(run[key] for run in runs if key in run) for key in runs[-1]}
    result["batches"] = sum(run["batches"] for run in runs)
    if len(runs) > 1:  # how far two epochs lie apart
        intervals = [run["interval_ms"] for run in runs]
        result["interval_spread"] = (max(intervals) - min(intervals)) / max(1e-9, sum(intervals))
    return {key: round(value, 4) for key, value in result.items()}
