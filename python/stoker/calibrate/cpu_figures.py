"""What is no operator's time: what the interpreter and PyTorch add to each, memory, arithmetic, pages, threads."""

from __future__ import annotations

import mmap
import time

import torch
from torch import nn

from . import estimate
from .rounds import set_threads

PAGE = 4096
_GRAIN = 32768        # elements to a thread at least (at::internal::GRAIN_SIZE, aten/src/ATen/TensorIterator.h)
_CHAIN = 40           # modules in the nets that measure dispatch
_READINGS = 25
_SMALL_READINGS = 7   # where a reading takes long
_READING_S = 2e-3
_FAULT_BYTES = 64 << 20
_MOST_COPY = 256 << 20
_GEMM = 1024


def _per_call(run, least_s: float = _READING_S) -> float:
    """Microseconds of one call, of one reading."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            run()
        elapsed = time.perf_counter() - start
        if elapsed >= least_s:
            return 1e6 * elapsed / count
        count = max(2 * count, int(1.2 * count * least_s / max(elapsed, 1e-7)))


class Figure:
    """`reading()` gives one value; the engine interleaves the readings of several."""

    def __init__(self, name: str, threads: int, reading, readings: int = _READINGS, larger_is_better: bool = False):
        self.name, self.threads, self.reading, self.wanted = name, threads, reading, readings
        self.larger, self.values = larger_is_better, []

    def row(self) -> dict:
        values = [1 / v for v in self.values] if self.larger else self.values
        value, spread = estimate.better_half(values), estimate.spread(values)
        return {"name": self.name, "threads": self.threads, "value": float(f"{1 / value if self.larger else value:.5g}"),
                "spread": round(spread, 4)}


# -- dispatch --------------------------------------------------------------------------------------------------------


class _Scale(nn.Module):
    """A module of one element-wise operator, as activations are."""

    def forward(self, x):
        return torch.sigmoid(x)


class Dispatch:
    """One tiny net and one tiny optimizer, from which the costs of an operator in each part of a step are told."""

    def __init__(self):
        self.x = torch.ones(16, requires_grad=True)
        self.plain = torch.ones(16)
        self.chain = nn.Sequential(*(_Scale() for _ in range(_CHAIN)))
        self.one = nn.Linear(1, 1)
        self.input = torch.ones(1, 1)
        parameters = [nn.Parameter(torch.ones(16)) for _ in range(_CHAIN)]
        for parameter in parameters:
            parameter.grad = torch.ones(16)
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-9, foreach=False)
        self.optimizer.step()
        self.optimizer_operators = count_operators(self.optimizer.step)
        self.small = torch.optim.SGD(self.one.parameters(), lr=1e-9, foreach=False)

    def call_us(self) -> float:
        add, x = torch.ops.aten.add.Tensor, self.plain
        return _per_call(lambda: _repeat(add, x, 20)) / 20

    def forward_us(self) -> float:
        return _per_call(lambda: self.chain(self.x)) / _CHAIN

    def backward_us(self) -> float:
        """Microseconds of one node: forward and backward together less the forward. The last sum and the accumulation count as two."""
        def both():
            self.chain(self.x).sum().backward()
            self.x.grad = None

        return max(1e-3, (_per_call(both) - _per_call(lambda: self.chain(self.x).sum())) / (_CHAIN + 2))

    def view_us(self) -> float:
        return _per_call(lambda: _views(self.x)) / 20

    def optimizer_us(self) -> float:
        return _per_call(self.optimizer.step) / self.optimizer_operators

    def step_us(self) -> float:
        """What a step takes that has next to nothing to do: the loop, zero_grad, the engine's start, the optimizer's frame,
        and the loss read by the host."""
        def step():
            self.small.zero_grad()
            loss = self.one(self.input).sum()
            loss.backward()
            self.small.step()
            loss.item()

        return _per_call(step)


def _repeat(function, x, count: int) -> None:
    for _ in range(count):
        function(x, x)


def _views(x) -> None:
    for _ in range(10):
        x.view(4, 4).transpose(0, 1)


def count_operators(run) -> int:
    """ATen operators that run() dispatches, views not counted."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += not func.is_view
            return func(*args, **(kwargs or {}))

    with Counter() as counter:
        run()
    return max(1, counter.count)


# -- memory, arithmetic, threads ---------------------------------------------------------------------------------------


class Memory:
    """Copies of data that lies in a cache or beyond all of them; GB/s count what is read and what is written."""

    def __init__(self, byte_count: int, threads: int):
        half = max(byte_count // 2 // 4, 1024)
        self._source, self._target, self._threads = torch.ones(half), torch.ones(half), threads
        self._bytes = 8 * half

    def gbs(self) -> float:
        set_threads(self._threads)
        self._target.copy_(self._source)
        return self._bytes / (1e3 * _per_call(lambda: self._target.copy_(self._source)))


def _gemm_reading(threads: int):
    a, b = torch.rand(_GEMM, _GEMM), torch.rand(_GEMM, _GEMM)
    out = torch.empty(_GEMM, _GEMM)

    def reading():
        set_threads(threads)
        return 2 * _GEMM ** 3 / (1e3 * _per_call(lambda: torch.mm(a, b, out=out)))

    return reading


def _fault_reading(threads: int):
    """Microseconds of wall time for a page: made, first written, given back; less the same writing of pages that exist."""
    def reading():
        set_threads(threads)
        start = time.perf_counter()
        block = mmap.mmap(-1, _FAULT_BYTES)
        values = torch.frombuffer(block, dtype=torch.float32)
        values.fill_(1)
        written = time.perf_counter()
        values.fill_(1)
        again = time.perf_counter()
        del values
        block.close()
        given_back = time.perf_counter() - again
        return 1e6 * max(1e-9, (written - start) - (again - written) + given_back) / (_FAULT_BYTES // PAGE)

    return reading


def _region_reading(threads: int):
    """What the parallel form of an operator takes beyond its share of the work."""
    share, whole = torch.ones(_GRAIN), torch.ones(threads * _GRAIN)
    part_out, whole_out = torch.empty(_GRAIN), torch.empty(threads * _GRAIN)

    def reading():
        set_threads(threads)
        together = _per_call(lambda: torch.add(whole, 1.0, out=whole_out))
        alone = _per_call(lambda: torch.add(share, 1.0, out=part_out))
        return max(1e-3, together - alone)

    return reading


def figures(device: dict, threads: list, pool_bytes: int) -> list:
    """All of them, unmeasured; context_mib comes from a process of its own (context.py)."""
    dispatch = Dispatch()
    found = [Figure(name, 0, getattr(dispatch, name)) for name in
             ("call_us", "forward_us", "backward_us", "optimizer_us", "view_us", "step_us")]
    l2, l3 = device["l2_bytes"] or 1 << 20, device["l3_bytes"]
    beyond = min(_MOST_COPY, max(4 * l2 * device["cores"], 2 * l3), pool_bytes)
    for count in threads:
        sizes = [("copy_gbs", beyond), ("l2_gbs", count * l2 // 2)]
        if l3 > 4 * l2:
            sizes.append(("l3_gbs", min(l3 // 4, 6 * l2 * count)))
        for name, size in sizes:
            # No method of a temporary: the two arrays are made when the first reading is taken, and go with the figure.
            found.append(Figure(name, count, _Lazy(size, count), _SMALL_READINGS, larger_is_better=True))
        found.append(Figure("fma_gflops", count, _gemm_reading(count), _SMALL_READINGS, larger_is_better=True))
        found.append(Figure("fault_us", count, _fault_reading(count), _SMALL_READINGS))
        if count > 1:
            found.append(Figure("region_us", count, _region_reading(count)))
    return found


class _Lazy:
    def __init__(self, size: int, threads: int):
        self._size, self._threads, self._memory = size, threads, None

    def __call__(self) -> float:
        if self._memory is None:
            self._memory = Memory(self._size, self._threads)
        return self._memory.gbs()


def measure(wanted: list, speed, load, until: float, latest: float, retries: int = 4) -> None:
    """Interleaved readings, each judged by the machine's speed before and after, taken again while disturbed. Each figure has one
    before `until`; after `latest` the rest is left to the next run."""
    for round_ in range(max(f.wanted for f in wanted) + retries):
        for figure in wanted:
            now = time.monotonic()
            if len(figure.values) >= figure.wanted or (figure.values and now > until) or now > latest:
                continue
            threads = max(1, figure.threads)
            set_threads(threads)
            before = speed.reading(threads)
            value = figure.reading()
            set_threads(threads)
            slow = max(before, speed.reading(threads))
            if not speed.is_slow(slow, threads) or round_ >= figure.wanted + retries - 1 or not figure.values and round_ >= retries:
                figure.values.append(value)
    load.lap()
