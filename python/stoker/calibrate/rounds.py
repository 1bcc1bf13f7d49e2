"""Times calls in shuffled rounds, so that what changes on the machine falls on all of them alike."""

from __future__ import annotations

import random
import sys
import time
from itertools import cycle, islice

import torch

from ..measure import contention
from ..measure.contention import Load
from ..plain import printable_lines
from . import estimate
from .spec import Spec
from .speed import Speed

ROUND_S = 1.2e-3        # one operator takes at least so long in a round: small calls are repeated
ROUNDS = 7
LEAST_GOOD = 4          # readings, without which an operator is measured again
MOST_EXTRA = 6          # rounds for those that were disturbed
_SEGMENT_S = 0.04       # between two readings of the machine's speed
_LOAD_S = 0.25          # least time over which the load of others can be told: clocks tick every 10 ms
_UNTIMED_S = 2e-3       # shorter calls run once before each reading, so that code and operands are where they are in a loop
_LEAST_FLUSH = 1 << 20  # bytes, where the cache's size is not known
_MOST_FLUSHED = 4       # calls in a round, each after its caches were emptied
_SEED = 20261


class Flush:
    """Empties the second-level caches of the cores in use of everything else: each thread goes over twice as much of its own."""

    def __init__(self, l2_bytes: int):
        self._elements = max(_LEAST_FLUSH, 2 * l2_bytes) // 4
        self._values = None

    def __call__(self) -> None:
        count = torch.get_num_threads() * self._elements
        if self._values is None or self._values.numel() < count:
            self._values = torch.ones(count)
        self._values[:count].mul_(1.0)


class Timed:
    """A call, how often it runs in a round of each thread count, and its readings. With `flush` caches are emptied before each call,
    as other operators do in a step, for operands and results alike."""

    def __init__(self, wanted: Spec, call, flush: Flush | None = None):
        self.spec, self.call, self.flush = wanted, call, flush
        self.sets = cycle(call.sets)
        self.calls, self.expected_s, self.readings = {}, {}, {}

    def run(self, count: int) -> float:
        """Seconds of `count` calls."""
        function, sets = self.call.function, islice(self.sets, count)
        if self.flush is not None:
            return sum(self._flushed(function, operands) for operands in sets)
        start = time.perf_counter()
        for operands in sets:
            function(*operands)
        return time.perf_counter() - start

    def _flushed(self, function, operands) -> float:
        self.flush()
        start = time.perf_counter()
        function(*operands)
        return time.perf_counter() - start

    def warm_up(self, threads: int) -> None:
        """Runs it until a round's number of calls is known. oneDNN makes its kernels in the first call."""
        self.run(1)
        began = time.perf_counter()
        count, elapsed = 1, self.run(1)
        lost = time.perf_counter() - began - elapsed  # for emptying caches
        while elapsed < ROUND_S / 3 and (self.flush is None or count < _MOST_FLUSHED):
            count = min(4 * count, max(count + 1, int(count * ROUND_S / max(elapsed, 1e-7))))
            elapsed = self.run(count)
        once = elapsed / count
        self.calls[threads] = max(1, round(ROUND_S / once))
        if self.flush is not None:
            self.calls[threads] = min(_MOST_FLUSHED, self.calls[threads])
        self.expected_s[threads] = (once * (1.2 if once < _UNTIMED_S else 1.05) + lost) * self.calls[threads]
        self.readings.setdefault(threads, [])

    def read(self, threads: int) -> float:
        """Microseconds of one call, of this round."""
        if self.flush is None and self.expected_s[threads] / self.calls[threads] < _UNTIMED_S:
            self.run(1)
        return 1e6 * self.run(self.calls[threads]) / self.calls[threads]

    def good(self, threads: int) -> list:
        return [us for us, good in self.readings[threads] if good]

    def row(self, threads: int) -> dict | None:
        """The file's row from the good readings; from all of them, with their spread, where too few were good."""
        values = self.good(threads)
        counted = len(values)
        if counted < 2:
            values = [us for us, _ in self.readings[threads]]
        if not values:
            return None
        s = self.spec
        return {"kind": s.kind, "function": s.function, "sizes": dict(s.sizes), "precision": s.precision, "pass": s.pass_,
                "threads": threads, "time_us": float(f"{estimate.better_half(values):.5g}"),
                "spread": round(estimate.spread(values), 4), "warm": s.warm, "repetitions": counted}

    def doubt(self) -> float:
        """How uncertain its least certain row is: the spread over the root of the number of readings."""
        return max(((row["spread"] / row["repetitions"] ** 0.5 if row["repetitions"] else 1.0)
                    for row in map(self.row, self.readings) if row is not None), default=1.0)

    def again(self, call) -> Timed:
        """The operator built anew, whose readings add to those that there are."""
        other = Timed(self.spec, call, self.flush)
        other.readings = self.readings
        return other


def set_threads(threads: int) -> None:
    """Begins a parallel region, in which the threads are made."""
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    if threads > 1:
        torch.zeros(1 << 17).add_(1)


class Rounds:
    """Measures blocks of operators; counts what was thrown away."""

    def __init__(self, speed: Speed, load: Load, say=lambda text: None):
        self.speed, self.load, self.say = speed, load, say
        self.taken = self.thrown_away = 0
        self._chance = random.Random(_SEED)

    def measure(self, timed: list, threads: list, until: float) -> None:
        """All rounds of one block, and more for what was disturbed while there is time (`until`: time.monotonic)."""
        had = {(t, count): len(t.good(count)) for t in timed for count in threads}
        for number in range(ROUNDS + MOST_EXTRA):
            for count in threads if number % 2 == 0 else threads[::-1]:
                chosen = timed if number < ROUNDS else [t for t in timed if len(t.good(count)) < had[t, count] + LEAST_GOOD]
                expected = sum(t.expected_s[count] for t in chosen)
                if chosen and (number == 0 or time.monotonic() + expected < until):
                    self._round(list(chosen), count, until)

    def _round(self, chosen: list, threads: int, until: float) -> None:
        self._chance.shuffle(chosen)
        set_threads(threads)
        before, segment, spent = self.speed.reading(threads), [], 0.0
        marked, since = [], time.monotonic()
        self.load.lap()
        for at, timed in enumerate(chosen):
            us = timed.read(threads)
            segment.append((timed, us))
            spent += timed.expected_s[threads]
            last = at + 1 == len(chosen) or time.monotonic() > until  # all is slower than expected where others run
            if spent < _SEGMENT_S and not last:
                continue
            after = self.speed.reading(threads)
            slow = max(before, after)
            marked += [(t, value, slow) for t, value in segment]
            before, segment, spent = after, [], 0.0
            if last or time.monotonic() - since > _LOAD_S:
                self._judge(marked, threads, time.monotonic() - since)
                marked, since = [], time.monotonic()
            if last:
                return

    def _judge(self, marked: list, threads: int, elapsed_s: float) -> None:
        """Keeps the readings with whether they count."""
        others, steal = self.load.lap()
        tick = 0.02 / max(elapsed_s, 1e-3)  # what two ticks of the clocks amount to
        loaded = others > max(contention.MAX_OTHERS, tick) or steal > max(contention.MAX_STEAL, tick)
        for timed, us, reference in marked:
            good = not loaded and not self.speed.is_slow(reference, threads)
            timed.readings[threads].append((us, good))
            self.taken += 1
            self.thrown_away += not good


class Progress:
    """Says what is done on stderr, about every five seconds."""

    EVERY_S = 5.0

    def __init__(self, quiet: bool, label: str = "calibrating"):
        self._quiet, self._label, self._last = quiet, label, time.monotonic()

    def __call__(self, text: str, always: bool = False) -> None:
        if not self._quiet and (always or time.monotonic() - self._last > self.EVERY_S):
            self._last = time.monotonic()
            print(f"stoker: {self._label}: {printable_lines(text)}", file=sys.stderr, flush=True)
