"""Measuring in time slices: several children alive, one of them (or all at once) working while the others wait.

A machine's speed moves within seconds. What is compared - worker and training process, one process and many, batch sizes
- is therefore measured in short slices that follow each other, and the median of the ratios of neighbouring slices counts.
"""

from __future__ import annotations

import math
import random
import statistics
import time

from ..measure import forked, machine
from . import passes, statistics_of

_MOST_AT_ONCE = 32  # processes
_MOST_CROWD = 16
_MAIN_SHARE, _SIDE_SHARE, _AT_ONCE_SHARE = 0.5, 0.12, 0.4  # shares of a cycle: the main samples, other slices
_AT_ONCE_ROUNDS = 8  # times that a sample is made there one after the other: twice by 1, C and 2C processes on C cores
_SLOWER_AT_ONCE = 1.5  # times that processes on the same cores may take beyond taking turns
_CYCLES = 6  # where samples take long
_ENOUGH_ROUNDS, _ENOUGH_CYCLES = 20, 12  # after which cheap samples are known
_CHEAP_MS = 0.2  # below this, clocks around each sample cost something beside it
_WARM_UPS = 3
_OPENS, _OPENS_NS = 10, 100e6  # times the others' waiting, and ns beyond it: a first sample that is no measure of others
_PATIENCE_S, _PATIENCE = 1.5, 6  # a slice may take this, and so many times what its samples should
_LOOK_S, _CACHE_SHARE = 0.25, 0.35  # seconds that tell whether files are cached; share of the time to cache them
_FIRST_CYCLE = 0.5  # share of the time that the first cycle may take beyond it, so that a busy machine gets one too


class Interleaved:
    """The children and what they answered."""

    def __init__(self, source, warden, *, plan, sizes, seconds, wall_ms, tick, limit=None, in_order=False):
        """limit: time.monotonic() by which every slice must be over; a slice begun later has _PATIENCE_S.

        in_order: the plan's batches stay as they are, since neighbours belong together.
        """
        self._source, self._warden, self._plan, self._sizes = source, warden, plan, sizes
        self._start, self._seconds, self._tick = time.monotonic(), seconds, tick
        # What a sample takes, and what it takes with all that a slice does besides: collating, pickling, other clocks.
        self._sample_ms, self._wall_ms = wall_ms, wall_ms
        self._in_order = in_order
        self._until, self._limit = self._start + seconds, limit or math.inf
        self.hung = False  # the worker of the main samples did not answer in time
        self._first, self._queue = True, []
        self._rng = random.Random(passes.SEED + 1)
        self.batch = self._batch = min(source.batch, source.cap or source.batch)
        self.worker = self.process = None
        self._others = []
        self.batches = []  # the main samples' batches, each with its round
        self.by_size = {}  # {size: rows} of the worker
        self.private_per_shared = {}  # {size: ratios of collating}
        self.in_process, self.beside, self.crowded = [], [], []  # ratios
        self.whole = []  # CPU time of cheap samples with one clock around the batch / with one around each
        self.cold = []  # ms of CPU time that the first batch of a new worker took, always the same one
        self.cold_waits = []  # ms that it waited without CPU
        self.first = []  # its indices
        self._at_once_ms = 0.0  # what a sample takes in all the processes that make it beside each other
        self.memory = None
        self.loads = []
        self.outcome = None  # how the worker of the main samples ended

    # -- children ---------------------------------------------------------------------------------------------------

    def _child(self, worker: bool, threads=None):
        source = self._source
        return forked.Child(lambda send: passes.slice_pass(source, send, worker=worker, threads=threads), self._warden,
                               daemon=True)

    def _deadline(self, samples: int, main: bool) -> float:
        """The time at which a slice of so many samples must be over, whatever happens."""
        return self._patience(max(time.monotonic(), self._until) if main else time.monotonic(), samples)

    def _patience(self, start: float, samples: int) -> float:
        """The time at which samples that should be begun by `start` must have been made."""
        end = start + _PATIENCE_S + _PATIENCE * 1e-3 * self._wall_ms * samples
        return min(end, max(self._limit, time.monotonic() + _PATIENCE_S))

    def _ask(self, child, batches, **more):
        """One child's slice; None when it gave no answer."""
        counts = [len(b) if isinstance(b, list) else b for b in batches]
        if more.get("until") is not None:  # the slice ends by itself after the batch that it makes then
            deadline = self._patience(max(time.monotonic(), more["until"]), max(counts, default=0))
        else:
            deadline = self._deadline(sum(counts), child is self.worker)
        begin = time.monotonic()
        child.ask({"batches": batches, **more})
        answer = child.answer(deadline, self._tick)
        if child is self.worker:
            self.hung = self.hung or answer is None and time.monotonic() >= deadline
            if answer is not None:
                self._learn(answer.get("rows", []), time.monotonic() - begin)
        return answer

    def _learn(self, rows: list, seconds: float) -> None:
        """Plans the next slices by what this one took."""
        samples = sum(len(row["rows"]) for row in rows)
        if samples:
            self._wall_ms = max(self._sample_ms, 1e3 * seconds / samples)

    def close(self, patience_s: float = 0.5) -> None:
        """Ends all children; those that finish within the patience tell what failed."""
        children = [child for child in [self.worker, self.process, *self._others] if child is not None]
        for child in children:
            child.ask(None)
        until = time.monotonic() + patience_s
        for child in children:
            outcome = child.collect(until)
            self.outcome = outcome if child is self.worker else self.outcome
        self.worker = self.process = None
        self._others = []

    # -- the order --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Raises nothing for a child that dies: what it measured stays, outcomes say how it ended."""
        try:
            first = self._lists()[:1]
            self.first = first[0] if self._plan is not None else []
            self.worker = self._warmed(True, first, keep=True)
            if self.worker is None or not self._look_at_caches():
                return
            self.process = self._training_process(first)
            while len(self.cold) < _WARM_UPS and self._time_for(2 * self._batch, 0.3):
                if not self._add_other(first):
                    break
            self._cycles()
            self._weigh()
        except BaseException:  # Ctrl-C among them: at once
            self.close(0)
            raise
        finally:
            self.close()

    def _training_process(self, first: list):
        """A child that works as the training process does; OpenMP's threads of this process cannot be forked."""
        forked_threads = forked.threads_here() > 1
        child = None if forked_threads else self._warmed(False, first)
        return child or self._warmed(False, first, threads=1)

    def _warmed(self, worker: bool, first: list, keep: bool = False, threads=None):
        """A new child after its first batch, which costs more than later ones (imports, memory copied on write)."""
        child = self._child(worker, threads)
        cold = self._ask(child, first, bytes=keep)
        if cold is None:
            outcome = child.collect(time.monotonic())
            self.outcome = outcome if keep else self.outcome
            return None
        if keep:  # where time allows no second one, this batch counts
            self._keep({"rows": [_without_imports(row) for row in cold["rows"][:1]], "load": None}, [0], bytes_counted=True)
        if worker and cold["rows"]:
            self.cold.append(_whole_ms(cold["rows"][0]))
            self.cold_waits.append(_waited_ms(cold["rows"][0]))
        if self._time_for(self._batch, 1):
            self._ask(child, first)
        return child

    def _add_other(self, first: list) -> bool:
        child = self._warmed(True, first)
        if child is not None:
            self._others.append(child)
        return child is not None

    def _time_for(self, samples: int, share: float) -> bool:
        """Whether so many samples take no more than this share of the time that is left."""
        left = self._until - time.monotonic() + (_FIRST_CYCLE * self._seconds if self._first else 0)
        return samples * self._wall_ms * 1e-3 < share * left

    def _cut(self):
        """The time at which a slice ends early, with what it has by then; at least one batch."""
        return self._until + (_FIRST_CYCLE * self._seconds if self._first else 0)

    def _lists(self, shuffled: bool = False) -> list:
        """Batches of the planned samples; put together anew for every round where no sampler of the user's decides."""
        source, size = self._source, self._batch
        if self._plan is None:
            return [size] * max(1, passes.MOST_SAMPLES // size)
        batches = list(self._plan)
        if self._in_order:
            return batches
        if source.sampler is None:
            indices = [index for batch in batches for index in batch]
            if shuffled:
                self._rng.shuffle(indices)
            return [indices[i:i + size] for i in range(0, len(indices), size)]
        if shuffled:
            self._rng.shuffle(batches)
        return batches

    def _look_at_caches(self) -> bool:
        """Whether samples come from storage: then each is made once before it counts. False: no time for more.

        Round 0 only warms. Where a quarter of a second's samples fetch nothing from storage, there is none.
        """
        lists = self._lists()[1:]
        few = self._some(lists, _LOOK_S) if lists else []
        answer = self._ask(self.worker, few, bytes=True, until=self._cut(), speed=True) if few else {"rows": [], "load": None}
        if answer is None:
            return False
        warm = not any(row["fetched"] for row in answer["rows"])
        self._keep(answer, [1 if warm else 0] * len(few), bytes_counted=True)
        if warm:
            self._queue = [(batch, 1) for batch in [*lists[len(few):], *self._lists()[:1]]]
            return True
        rest, end = lists[len(few):], self._start + _CACHE_SHARE * self._seconds
        if self._plan is not None and rest and time.monotonic() < end:
            more = self._ask(self.worker, rest, bytes=True, until=end)
            if more is None:
                return False
            self._keep(more, [0] * len(rest), bytes_counted=True)
            # What was not reached is left out of the next rounds.
            self._plan = self._lists()[:1 + len(few) + len(more["rows"])]
        return self._time_for(self._batch, 1)

    def _keep(self, answer: dict, rounds: list, bytes_counted: bool = False) -> None:
        self.batches += [{**row, "round": 0 if row["fetched"] else number, "bytes_counted": bytes_counted}
                         for row, number in zip(answer["rows"], rounds)]
        if answer["load"] is not None:
            self.loads.append(answer["load"])

    def _cycles(self) -> None:
        queue, round_ = self._queue, 1 if self._queue else 0
        cycle = max(0.1 * self._seconds, self._until - time.monotonic()) / _CYCLES
        while self._time_for(self._batch, 1):
            main = max(1, int(_MAIN_SHARE * cycle * 1e3 / max(1e-3, self._wall_ms) / self._batch))
            if round_ > _ENOUGH_ROUNDS and len(self.in_process) >= _ENOUGH_CYCLES:
                return
            if len(queue) < main:
                round_ += 1
                queue += [(batch, round_) for batch in self._lists(shuffled=True)]
            part, queue = queue[:main], queue[main:]
            answer = self._ask(self.worker, [batch for batch, _ in part], until=self._cut(),
                               bytes=part[0][1] == 1, speed=True)
            if answer is None:
                return
            self._keep(answer, [number for _, number in part], bytes_counted=part[0][1] == 1)
            rows = answer["rows"]
            if not rows:
                return
            cheap = self._sample_ms < _CHEAP_MS and self._plan is not None
            if cheap:
                answer = self._ask(self.worker, [batch for batch, _ in part], whole=True)
                if answer is None:
                    return
                self._with_one_clock(rows, answer["rows"])
                rows = answer["rows"]
            self._beside(part, rows, cycle, cheap)
            self._other_sizes(cycle)
            self._at_once(part, cycle, cheap)
            self._first = False

    def _some(self, batches: list, seconds: float, *, cut: bool = False, sample_ms: float = 0) -> list:
        """Batches that take about so many seconds; at least one, or with `cut` the beginning of one.

        sample_ms: what a sample takes, where that is more than in the worker alone.
        """
        samples = max(1, int(seconds * 1e3 / max(1e-3, self._wall_ms, sample_ms)))
        if cut and samples < self._batch:
            return [batches[0][:samples] if isinstance(batches[0], list) else samples]
        return batches[:max(1, samples // self._batch)]

    def _with_one_clock(self, each: list, whole: list) -> None:
        ratio = _ratio([row["rows"] for row in whole], [row["rows"] for row in each])
        if ratio is not None:
            self.whole.append(ratio)

    def _beside(self, part: list, rows: list, cycle: float, whole: bool) -> None:
        """Makes the batches of `part` in the training process, right after the worker made them."""
        if self.process is None or not self._time_for(self._batch, 1):
            return
        some = self._some([batch for batch, _ in part], _SIDE_SHARE * cycle)
        answer = self._ask(self.process, some, until=self._cut(), whole=whole)
        if answer is None:
            self.process.collect(time.monotonic())
            self.process = None
            return
        pairs = list(zip(rows, answer["rows"]))
        ratio = _ratio([a["rows"] for _, a in pairs], [w["rows"] for w, _ in pairs])
        if ratio is not None:
            self.in_process.append(ratio)
        self._collating(self._batch, pairs)

    def _collating(self, size: int, pairs: list) -> None:
        both = [(w["collate_ns"], p["collate_ns"]) for w, p in pairs if w["collate_ns"] and p["collate_ns"]]
        if both:
            self.private_per_shared.setdefault(size, []).append(sum(p for _, p in both) / sum(w for w, _ in both))

    def _weigh(self) -> None:
        """Memory of a worker that has worked for a while."""
        answer = self._ask(self.worker, self._lists()[:1], memory=True)
        self.memory = answer["memory"] if answer is not None and answer["rows"] else None

    def _other_sizes(self, cycle: float) -> None:
        """Smaller and larger batches, each by the worker and by the training process."""
        for size in self._sizes:
            if size == self._batch or not self._time_for(2 * size, 0.6):
                continue
            count = max(1, int(0.5 * _SIDE_SHARE * cycle * 1e3 / max(1e-3, self._wall_ms) / size))
            batches = [self._take(size) for _ in range(min(count, 16))]
            worker = self._ask(self.worker, batches, speed=True)
            if worker is None:
                return
            self.by_size.setdefault(size, []).extend(worker["rows"])
            if self.process is not None:
                answer = self._ask(self.process, batches)
                if answer is not None:
                    self._collating(size, list(zip(worker["rows"], answer["rows"])))

    def _take(self, size: int):
        """A batch of another size: part of one of the user's own, or random samples."""
        if self._plan is None:
            return size
        if self._source.own_batches:
            batch = self._rng.choice(self._plan)
            return batch[:max(1, round(len(batch) * size / self._source.batch))]
        indices = [index for batch in self._plan for index in batch]
        if len(indices) >= size:
            return self._rng.sample(indices, size)
        return [self._rng.choice(indices) for _ in range(size)]

    def _at_once(self, part: list, cycle: float, whole: bool) -> None:
        """Makes one batch by as many processes as there are cores, then by twice as many."""
        cores = min(_MOST_AT_ONCE, max(1, int(machine.usable_cores())))
        room = machine.available_memory() / 4
        if cores < 2 or not self._time_for(2 * self._batch, 0.5):
            return
        first = self._lists()[:1]
        want = 2 * cores if 2 * cores <= _MOST_CROWD else cores
        while len(self._others) < want - 1 and self._time_for(2 * self._batch, 0.2):
            if not self._add_other(first):
                break
        if len(self._others) < cores - 1 or room <= 0:
            return
        # Twice the same: the first time brings caches and heaps back after a pause and does not count. The main worker
        # is compared with itself.
        seconds = _AT_ONCE_SHARE * cycle
        some = self._some([batch for batch, _ in part], seconds, cut=True,
                          sample_ms=max(_AT_ONCE_ROUNDS * self._wall_ms, self._at_once_ms))
        counts = [n for n in (1, cores, 2 * cores) if n <= len(self._others) + 1]
        begin, made = time.monotonic(), 0
        found = {}
        for n in counts:
            rows = self._main_rows([self.worker, *self._others[:n - 1]], some, whole, seconds)
            made += len(rows)
            found[n] = [row["rows"] for row in rows[len(some):]]
        # Processes that take memory or cores from each other take longer than the worker alone would.
        samples = sum(len(b) if isinstance(b, list) else b for b in some) * made / (2 * len(some) * len(counts))
        self._at_once_ms = 1e3 * (time.monotonic() - begin) / max(1.0, samples)
        for n, base, ratios in ((cores, 1, self.beside), (2 * cores, cores, self.crowded)):
            ratio = _ratio(found[n], found[base]) if found.get(n) and found.get(base) else None
            if ratio is not None:
                ratios.append(ratio)

    def _main_rows(self, children: list, batches: list, whole: bool, seconds: float) -> list:
        """The rows of the first of the children while all of them make the same batches twice, as far as the time goes."""
        count = 2 * len(children) * sum(len(b) if isinstance(b, list) else b for b in batches)
        begin = time.monotonic() + 0.01
        until = begin + max(seconds, _SLOWER_AT_ONCE * 1e-3 * self._wall_ms * count)  # a few slow samples are not cut short
        for child in children:
            child.ask({"batches": batches * 2, "begin": begin, "until": until, "whole": whole})
        deadline = self._deadline(count, True)
        answers = [child.answer(deadline, self._tick) for child in children]
        return answers[0]["rows"] if answers[0] is not None else []


def _without_imports(row: dict) -> dict:
    """The first batch of a process, whose first sample reads what it imports too: it is taken to read as the others do."""
    rows = [tuple(sample) for sample in row["rows"]]
    if len(rows) > 1:
        usual = int(statistics.median(sample[3] for sample in rows[1:]))
        index, wall, cpu, read = rows[0]
        waits = statistics.median(sample[1] - sample[2] for sample in rows[1:])
        if wall - cpu > _OPENS * waits + _OPENS_NS:  # it opened something, which is part of the start
            wall = cpu + waits
        rows[0] = (index, wall, cpu, min(read, usual))
    return {**row, "rows": rows}


def _whole_ms(row: dict) -> float:
    """CPU time of a batch: its samples and its collating."""
    return 1e-6 * (sum(sample[2] for sample in row["rows"]) + (row["collate_ns"] or 0))


def _waited_ms(row: dict) -> float:
    """Time that the samples of a batch took without CPU and not for want of a core."""
    return 1e-6 * max(0, sum(sample[1] - sample[2] for sample in row["rows"]) - row["queued"])


def _ratio(one: list, other: list):
    """CPU time of the samples in `one` / the same samples in `other` (rows of batches); None without any."""
    mine = statistics_of.means_by_key([(row[0], row[2]) for batch in one for row in batch])
    base = statistics_of.means_by_key([(row[0], row[2]) for batch in other for row in batch])
    both = [key for key in mine if key in base]
    below = sum(base[key] for key in both)
    return sum(mine[key] for key in both) / below if below > 0 else None


def median(values: list):
    return statistics.median(values) if values else None
