"""Makes batches as PyTorch's fetcher does, with the clocks running."""

from __future__ import annotations

import contextlib
import os
import random
import time

import torch

from ..measure.counters import Counters, clock_cost_ns
from ..user_code import trimmed
from . import batch_facts, pinning

_NOT_ASKED: dict = {}
_SEED, _SEEDS_APART = 20251, 1009  # of the first epoch's worker 0; from epoch to epoch
# Batches of about one size that are pickled in any case; then so much of the time that making them takes, at most.
_PICKLED_ANYWAY, _PICKLING_SHARE = 6, 0.25


def makes_batches(dataset) -> bool:
    """Whether its __getitems__ makes a batch in one call: PyTorch's wrappers have one that asks for sample by sample
    where the data set inside has none."""
    from torch.utils.data import StackDataset, Subset

    if type(dataset) is Subset:
        return makes_batches(dataset.dataset)
    if type(dataset) is StackDataset:
        inner = dataset.datasets
        return any(makes_batches(d) for d in (inner.values() if isinstance(inner, dict) else inner))
    return callable(getattr(dataset, "__getitems__", None))


class Failures:
    """What raised, and where first."""

    def __init__(self):
        self.count, self.first, self._indices = 0, None, set()

    def distinct(self) -> int:
        """Samples that raised, each counted once; those of a stream have no index."""
        return len(self._indices) or self.count

    def add(self, index, error: Exception) -> None:
        self.count += 1
        if index != -1:
            self._indices.add(index)
        if self.first is None:
            lines = str(error).strip().splitlines()
            text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
            self.first = {"index": index, "error": text, "traceback": trimmed(error)}


class Batch:
    """The samples of a batch while it is made, and a row (index, wall ns, CPU ns, bytes read) of each."""

    __slots__ = ("samples", "rows", "queued", "fetched", "ended")

    def __init__(self):
        self.samples, self.rows = [], []
        self.queued = self.fetched = 0
        self.ended = False  # an IterableDataset gave no more


class Maker:
    """Calls the data set as a worker does. cpu_clock: process_time_ns counts threads of the data set's own too."""

    def __init__(self, source, cpu_clock=time.process_time_ns):
        self.source, self._clock = source, cpu_clock
        self.counters = Counters()
        self.failures, self.collate_failures = Failures(), Failures()
        self._cost = clock_cost_ns(cpu_clock)
        self._pickled, self._pickling_ns, self._making_ns = {}, 0, 0  # batches by size; wall times
        self._stream = None
        self.left_unpinned: dict | None = _NOT_ASKED  # of the first batch (pinning.py)
        self._whole = source.dataset.__getitems__ if source.auto_collation and makes_batches(source.dataset) else None

    def restart(self) -> None:
        """Begins an IterableDataset anew."""
        self._stream = None

    def make(self, indices, *, count_bytes: bool = False, whole: bool = False) -> Batch:
        """One batch: of these indices, or of that many further samples of an IterableDataset (an int).

        whole: the clocks are read once for the batch, and its cost is shared evenly. Reading them for each sample slows
        samples of a few microseconds down.
        """
        batch, begin = Batch(), time.perf_counter_ns()
        queued, fetched = self.counters.queued_ns(), self.counters.fetched() if count_bytes else 0
        if self.source.kind == "iterable":
            self._next_samples(batch, indices, count_bytes)
        elif (whole or self._whole is not None) and len(indices) > 0:
            self._all_at_once(batch, indices)
        else:
            for index in indices:
                self._one(batch, index, lambda: self.source.dataset[index], count_bytes)
        batch.queued = max(0, self.counters.queued_ns() - queued)
        if count_bytes:
            batch.fetched = self.counters.fetched() - fetched
        self._making_ns += time.perf_counter_ns() - begin
        return batch

    def _one(self, batch: Batch, index, get, count_bytes: bool) -> None:
        clock, read = self._clock, self.counters.bytes_read() if count_bytes else 0
        wall, cpu = time.perf_counter_ns(), clock()
        try:
            sample = get()
        except Exception as error:
            if isinstance(error, StopIteration) and self.source.kind == "iterable":
                raise
            self.failures.add(index, error)
            return
        cpu = clock() - cpu - self._cost
        wall = time.perf_counter_ns() - wall - self._cost
        read = self.counters.bytes_since(read) if count_bytes else 0
        batch.samples.append(sample)
        batch.rows.append((index, max(0, wall), max(0, cpu), read))

    def _next_samples(self, batch: Batch, count: int, count_bytes: bool) -> None:
        if self._stream is None:
            self._stream = iter(self.source.dataset)
        for _ in range(count):
            try:
                self._one(batch, -1, lambda: next(self._stream), count_bytes)
            except StopIteration:
                batch.ended, self._stream = True, None
                return
            if self.failures.count and not batch.rows:
                batch.ended, self._stream = True, None  # a generator that raised gives nothing more
                return

    def _all_at_once(self, batch: Batch, indices: list) -> None:
        """By __getitems__ where the data set has it: the batch in one call."""
        dataset = self.source.dataset
        wall, cpu, read = time.perf_counter_ns(), self._clock(), self.counters.bytes_read()
        try:
            batch.samples = [dataset[index] for index in indices] if self._whole is None else list(self._whole(indices))
        except Exception as error:
            if len(indices) == 1:
                self.failures.add(indices[0], error)
            else:  # which of them: each by itself
                for index in indices:
                    self._one(batch, index, lambda: self._by_itself(index), True)
            return
        cpu, wall = self._clock() - cpu, time.perf_counter_ns() - wall
        read, n = self.counters.bytes_since(read), len(indices)
        batch.rows = [(index, wall // n, cpu // n, read // n) for index in indices]

    def _by_itself(self, index):
        return self.source.dataset[index] if self._whole is None else self._whole([index])[0]

    # -- collating --------------------------------------------------------------------------------------------------

    def _collate(self, samples):
        source = self.source
        return source.collate(samples if source.auto_collation else samples[0])

    def collate_shared(self, batch: Batch):
        """Collates as a worker does. Returns (CPU ns, facts); None when the collate function raised, and for most batches
        whose objects take longer to pickle than to make: a few tell it, and the time belongs to the samples.

        Counted: collating, copying what is not in shared memory yet (the queue does that), forgetting the samples, and
        unmapping the batch while another process still holds it; not counted: freeing its pages, the receiver's work.
        """
        clock, indices = time.thread_time_ns, [row[0] for row in batch.rows]
        queued, wall, start = self.counters.queued_ns(), time.perf_counter_ns(), clock()
        try:
            made = self._collate(batch.samples)
        except Exception as error:
            self._collate_failed(batch.samples, indices, error)
            return None
        cpu = clock() - start
        wait = time.perf_counter_ns() - wall - cpu - max(0, self.counters.queued_ns() - queued)
        self._making_ns += time.perf_counter_ns() - wall
        if not self._pickles(len(batch.samples)):
            batch.samples.clear()
            return None
        wall = time.perf_counter_ns()
        try:
            crossing = batch_facts.crossing_of(made)
        except Exception as error:
            self.collate_failures.add(indices[0] if indices else -1, error)
            crossing = batch_facts.Crossing([])
        self._pickling_ns += time.perf_counter_ns() - wall
        storages = crossing.storages
        facts = {"samples": len(batch.samples), "bytes": sum(s.nbytes() for s in storages), "tensors": len(storages),
                 "pickled": crossing.pickled, "dump_ns": crossing.dump_ns, "load_ns": crossing.load_ns,
                 "wait_ns": max(0, wait)}
        private = any(not storage.is_shared() for storage in storages)
        if self.left_unpinned is _NOT_ASKED:
            self.left_unpinned = pinning.left_unpinned(made, storages)
        start = clock()
        held = [_descriptor(storage) for storage in storages]
        facts["share_ns"] = clock() - start if private else 0
        cpu += clock() - start
        held = [os.dup(d) for d in held if d >= 0]
        start = clock()
        del made, storages, crossing
        batch.samples.clear()
        cpu += clock() - start
        for descriptor in held:
            os.close(descriptor)
        return cpu, facts

    def _pickles(self, samples: int) -> bool:
        """Whether the batch at hand is pickled as a worker's queue would do it."""
        size = samples.bit_length()
        self._pickled[size] = self._pickled.get(size, 0) + 1
        return self._pickled[size] <= _PICKLED_ANYWAY or self._pickling_ns <= _PICKLING_SHARE * self._making_ns

    def collate_private(self, batch: Batch, before: list):
        """Collates as the training process does; `before` holds the batch of the step before, which goes. CPU ns."""
        start = time.thread_time_ns()
        try:
            made = self._collate(batch.samples)
        except Exception as error:
            self._collate_failed(batch.samples, [row[0] for row in batch.rows], error)
            return None
        batch.samples.clear()
        before.clear()
        cpu = time.thread_time_ns() - start
        before.append(made)
        return cpu

    def _collate_failed(self, samples, indices, error) -> None:
        self.collate_failures.add(indices[0] if indices else -1, error)
        first = self.collate_failures.first
        if self.collate_failures.count == 1 and samples:
            first["difference"] = batch_facts.first_difference(samples, indices)


def _descriptor(storage) -> int:
    """The descriptor of a storage in shared memory; copies it there if it is not yet, as the worker's queue does."""
    try:
        return storage._share_fd_cpu_()[0]
    except (RuntimeError, AttributeError, TypeError):
        return -1


def become_worker(source, number: int = 0, workers: int = 1, epoch: int = 0) -> None:
    """Sets this process up as torch.utils.data._utils.worker sets up worker `number` of a DataLoader's `workers`."""
    seed = _SEED + _SEEDS_APART * epoch + number
    from torch.utils.data._utils import signal_handling, worker

    with contextlib.suppress(Exception):
        signal_handling._set_worker_signal_handlers()
    torch.set_num_threads(1)
    seed_all(seed)
    worker._worker_info = worker.WorkerInfo(id=number, num_workers=workers, seed=seed, dataset=source.dataset)
    _idle_thread()
    if source.worker_init is not None:
        source.worker_init(number)


def seed_all(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed % (1 << 32))


def _idle_thread() -> None:
    """A worker has a feeder thread: allocator and interpreter behave otherwise in a process with one thread alone."""
    import threading

    threading.Thread(target=threading.Event().wait, daemon=True, name="stoker-idle").start()
