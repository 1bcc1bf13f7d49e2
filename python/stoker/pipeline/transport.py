"""What moving batches costs on this machine: real DataLoaders of one worker whose samples cost nothing.

Batches differ in one thing at a time: number of tensors, bytes, samples, bytes that are pickled. The coefficients are
those of "transport" in data/coefficients/input.json, from non-negative least squares over what the runs took.
"""

from __future__ import annotations

import gc
import itertools
import mmap
import statistics
import struct
import time
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from ..measure import machine

_SETTLE_S = 0.003  # after a batch is ready: until the worker's threads have nothing left to do
_WARM = 3  # batches that do not count
_RECORD = struct.Struct("qqq")  # process CPU time before and after collating, and of the sharer's thread, ns


class Ready(Dataset):
    """Samples made beforehand; __getitems__, so that fetching costs nothing either."""

    def __init__(self, batch: int, tensors: int, floats: int, text: int):
        self.batch = batch
        parts = [torch.zeros(floats) for _ in range(tensors)]
        # A text of its own for each: pickle sends an object that it meets again as a reference.
        self.samples = [(*parts, *([chr(ord("a") + number % 26) * text] if text else [])) for number in range(batch)]

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return self.samples[index % self.batch]

    def __getitems__(self, indices):
        return [self.samples[index % self.batch] for index in indices]


class Case:
    """One kind of batch."""

    def __init__(self, batch, tensors, floats, text=0, batches=16):
        self.batch, self.tensors, self.floats, self.text, self.batches = batch, tensors, floats, text, batches

    @property
    def bytes(self) -> int:
        return self.batch * self.tensors * self.floats * 4

    @property
    def pickled(self) -> int:
        return self.batch * self.text


CASES = (  # the most telling ones first
    Case(8, 1, 16), Case(8, 16, 16), Case(32, 1, 0x26000, batches=10), Case(8, 1, 16, text=131072, batches=10),
    Case(8, 4, 16), Case(256, 1, 16), Case(8, 1, 0x26000), Case(64, 1, 0x26000, batches=8), Case(8, 1, 0x8000),
    Case(8, 1, 16, text=16384))
_FEWEST_CASES = 5


class Notes:
    """Where the worker writes its clocks: memory shared since before the fork."""

    def __init__(self, most: int):
        self._memory, self._most = mmap.mmap(-1, 8 + most * _RECORD.size), most

    def add(self, before: int, after: int, sharer: int) -> None:
        count = self.count()
        if count < self._most:
            _RECORD.pack_into(self._memory, 8 + count * _RECORD.size, before, after, sharer)
            struct.pack_into("q", self._memory, 0, count + 1)

    def count(self) -> int:
        return struct.unpack_from("q", self._memory, 0)[0]

    def all(self) -> list:
        return [_RECORD.unpack_from(self._memory, 8 + i * _RECORD.size) for i in range(self.count())]


def _sharer_ns() -> int:
    """CPU time so far of the worker's thread that hands out descriptors; the receiver waits for it meanwhile."""
    from multiprocessing import resource_sharer

    thread = getattr(getattr(resource_sharer, "_resource_sharer", None), "_thread", None)  # nothing public says
    try:
        with open(f"/proc/self/task/{thread.native_id}/schedstat") as file:
            return int(file.read().split()[0])
    except (OSError, AttributeError, ValueError):
        return 0


def _run(case: Case) -> dict:
    """One loader of one worker: what each side spends on a batch, ms."""
    notes = Notes(case.batches + 8)

    def collate(samples):
        before = time.process_time_ns()
        made = default_collate(samples)
        notes.add(before, time.process_time_ns(), _sharer_ns())
        return made

    loader = DataLoader(Ready(case.batch, case.tensors, case.floats, case.text), batch_size=case.batch, num_workers=1,
                        collate_fn=collate)
    iterator = iter(loader)
    walls, cpus, held = [], [], None
    for _ in range(case.batches):
        _wait_until_ready(iterator)
        wall, cpu = time.perf_counter(), time.thread_time()
        held = next(iterator)  # the batch before is released here, as in a training loop
        walls.append(time.perf_counter() - wall)
        cpus.append(time.thread_time() - cpu)
    del iterator, held
    rows = notes.all()
    collating = [1e-6 * (after - before) for before, after, _ in rows]
    # From the end of one collate to the start of the next: sending one batch, taking the next index. The sharer's part
    # lies within the receiver's wall time and counts there.
    between = [1e-6 * (rows[i + 1][0] - rows[i][1] - (rows[i + 1][2] - rows[i][2])) for i in range(len(rows) - 1)]

    def quiet(times):
        return statistics.quantiles(times[_WARM:], n=4)[0] * 1e3

    return {"wall": quiet(walls), "cpu": quiet(cpus), "collate": statistics.median(collating[_WARM:]),
            "worker": statistics.median(between[_WARM:])}


def _wait_until_ready(iterator) -> None:
    """Nothing public says that a batch is there; without the private queue a pause has to do."""
    reader = getattr(getattr(iterator, "_worker_result_queue", None), "_reader", None)
    if reader is None:
        time.sleep(0.05)
        return
    until = time.monotonic() + 5
    while not reader.poll(1) and time.monotonic() < until:
        pass
    time.sleep(_SETTLE_S)


def transport_pass(send, *, seconds: float) -> None:
    """Repeats all cases until the time is up; reports each, so that what came counts when the time is cut."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # OpenMP's threads do not live on in a fork: a parallel loop would wait for them for ever
    until = time.monotonic() + seconds
    free = machine.shared_memory_free() or 0
    longest, first = 0.0, True
    while first or time.monotonic() + longest < until:
        began = time.monotonic()
        for number, case in enumerate(CASES):
            if 8 * case.bytes < free:
                send("case", [number, _run(case)])
            if number == 0 and first:
                send("processes", _processes())
        first, longest = False, time.monotonic() - began


def coefficients(cases: list, processes: dict | None) -> dict:
    """The keys of "transport" from what transport_pass reported; empty from too little."""
    results = {}
    for number, run in cases:
        results.setdefault(number, []).append(run)
    fit = _fit([CASES[number] for number in results], list(results.values())) if len(results) >= _FEWEST_CASES else {}
    return {**fit, **(processes or {})}


def _processes() -> dict:
    """Starting, ending and restarting workers."""
    fork, end = {1: [], 3: []}, {1: [], 3: []}
    reset = []
    for _ in range(2):
        for count in fork:
            loader = DataLoader(Ready(1, 1, 4, 0), batch_size=1, num_workers=count)
            start = time.perf_counter()
            iterator = iter(loader)
            fork[count].append(time.perf_counter() - start)
            for _ in range(count):
                next(iterator)
            start = time.perf_counter()
            del iterator
            gc.collect()
            end[count].append(time.perf_counter() - start)
    keeper = DataLoader(_Few(), batch_size=1, num_workers=1, persistent_workers=True)
    list(keeper)
    for _ in range(3):
        start = time.perf_counter()
        iterator = iter(keeper)
        next(iterator)
        reset.append(time.perf_counter() - start)
        list(iterator)

    def slope(times):
        return max(0.0, 1e3 * (min(times[3]) - min(times[1])) / 2)

    return {"fork_per_worker_ms": slope(fork), "shutdown_per_worker_ms": slope(end), "epoch_reset_ms": 1e3 * min(reset)}


class _Few(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.zeros(4)


def _fit(cases: list, results: list) -> dict:
    best = [{key: (min if key == "wall" else statistics.median)(run[key] for run in runs) for key in runs[0]}
            for runs in results]
    one = [1.0] * len(cases)
    tensors = [float(case.tensors) for case in cases]
    size = [float(case.bytes) for case in cases]
    pickled = [float(case.pickled) for case in cases]
    samples = [float(case.batch * case.tensors) for case in cases]
    main = non_negative([one, tensors, size, pickled], [row["wall"] for row in best])
    worker = non_negative([one, tensors, pickled], [max(0.01, row["worker"]) for row in best])
    collate = non_negative([one, samples, size], [row["collate"] for row in best])
    return {"per_batch_main_ms": main[0], "per_tensor_main_ms": main[1], "per_byte_main_ns": main[2] * 1e6,
            "pickle_main_ns_per_byte": main[3] * 1e6, "per_batch_worker_ms": worker[0],
            "per_tensor_worker_ms": worker[1], "pickle_worker_ns_per_byte": worker[2] * 1e6,
            "collate_per_sample_ms": collate[1], "collate_shared_ns_per_byte": collate[2] * 1e6}


def non_negative(columns: list, y: list) -> list:
    """Least squares of relative errors with coefficients >= 0, by trying every subset of the columns."""
    target = torch.tensor(y, dtype=torch.float64)
    weight = 1 / target.clamp(min=1e-6)
    matrix = torch.tensor(columns, dtype=torch.float64).T * weight[:, None]
    best, best_error = [0.0] * len(columns), float("inf")
    for size in range(1, len(columns) + 1):
        for subset in itertools.combinations(range(len(columns)), size):
            part = matrix[:, list(subset)]
            scale = part.abs().amax(dim=0).clamp(min=1e-300)  # bytes and ones side by side
            k = torch.linalg.lstsq(part / scale, (target * weight)[:, None]).solution[:, 0] / scale
            error = float(((part @ k - target * weight) ** 2).sum())
            if bool((k >= 0).all()) and error < best_error * (1 - 1e-9):
                best, best_error = [0.0] * len(columns), error
                for column, value in zip(subset, k.tolist()):
                    best[column] = value
    return best
