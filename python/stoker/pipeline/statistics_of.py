"""From what the children reported to the numbers of the file."""

from __future__ import annotations

import math
import statistics

_PASSES_FOR_DEVIATION = 4  # with fewer the widest counts
_NORMAL_90 = 1.645  # standard deviations that hold 90 % of a normal distribution
_TRIM = 0.1  # share of the batches left out at either end


def trimmed_mean(values: list) -> float:
    """Mean without the tenth at either end: a batch that something else disturbed does not count."""
    ordered = sorted(values)
    cut = int(len(ordered) * _TRIM)
    kept = ordered[cut:len(ordered) - cut]
    return statistics.fmean(kept)


def means_by_key(rows: list) -> dict:
    """{key: mean} of rows (key, value)."""
    found = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return {key: statistics.fmean(values) for key, values in found.items()}


class SampleTimes:
    """Rows of all rounds, joined by sample."""

    def __init__(self, batches: list):
        self._order, self._by_sample, self._bytes, self._cold = [], {}, {}, set()
        self._batch_of = {}
        self.rounds = 1 + max((b["round"] for b in batches), default=0)
        for number, batch in enumerate(batches):
            self._add(number, batch)

    def _add(self, number: int, batch: dict) -> None:
        slack = [max(0, row[1] - row[2]) for row in batch["rows"]]
        total = sum(slack)
        for position, (row, lost) in enumerate(zip(batch["rows"], slack)):
            index, _, cpu, read = row
            # Samples of an IterableDataset have no index: their place in the stream names them.
            key = index if index != -1 else ("at", batch["round"] == 0, number, position)
            wait = lost - (batch["queued"] * lost / total if total else 0)
            if key not in self._by_sample:
                self._by_sample[key] = []
                self._order.append(key)
                self._bytes[key] = read
                self._batch_of[key] = number
            elif batch.get("bytes_counted"):  # the first sample of all reads the modules that it imports too
                self._bytes[key] = min(self._bytes[key], read)
            self._by_sample[key].append((batch["round"], cpu, max(0.0, wait)))

    def _of(self, key) -> list:
        """The readings that count: without round 0, which warmed the caches, where there are others."""
        later = [r for r in self._by_sample[key] if r[0] > 0]
        return later or self._by_sample[key]

    def kept(self) -> list:
        """Samples in the order of measurement. Those that only round 0 saw count only if no other round came."""
        later = [key for key in self._order if any(r[0] > 0 for r in self._by_sample[key])]
        return later if len(later) * 2 >= len(self._order) else self._order

    def cpu_ms(self) -> list:
        return [statistics.fmean(r[1] for r in self._of(key)) * 1e-6 for key in self.kept()]

    def wait_ms(self) -> list:
        return [statistics.fmean(r[2] for r in self._of(key)) * 1e-6 for key in self.kept()]

    def file_bytes(self) -> list:
        return [self._bytes[key] for key in self.kept()]

    def by_index(self) -> dict:
        return dict(zip(self.kept(), self.cpu_ms()))

    def all_costs(self) -> dict:
        """{index: (ms of CPU time, ms of waiting)} of every sample that was made."""
        return {key: tuple(1e-6 * statistics.fmean(r[at] for r in self._of(key)) for at in (1, 2)) for key in self._order}

    def repeat_spread(self):
        """How far passes over the same samples lie apart, as the half-width of a 90 % band; None without two passes.

        A pass counts that saw half of the samples. Each is set beside the mean of the same samples over all passes.
        """
        passes, means = {}, {}
        for key in self.kept():
            readings = self._of(key)
            means[key] = statistics.fmean(cpu + wait for _, cpu, wait in readings)
            for number, cpu, wait in readings:
                passes.setdefault(number, []).append((cpu + wait, means[key]))
        ratios = [sum(t for t, _ in rows) / max(1e-9, sum(mean for _, mean in rows)) for rows in passes.values()
                  if 2 * len(rows) >= len(means)]
        if len(ratios) < 2:
            return None
        if len(ratios) < _PASSES_FOR_DEVIATION:
            return max(abs(ratio - 1) for ratio in ratios)
        return _NORMAL_90 * statistics.stdev(ratios)

    def batch_numbers(self) -> list:
        return [self._batch_of[key] for key in self.kept()]


def correlation(x: list, y: list):
    """Pearson's r; None without spread."""
    if len(x) < 3 or len(x) != len(y):
        return None
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    xx = sum((a - mean_x) ** 2 for a in x)
    yy = sum((b - mean_y) ** 2 for b in y)
    if xx <= 1e-12 * (1 + mean_x * mean_x) or yy <= 0:
        return None
    r = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / math.sqrt(xx * yy)
    return max(-1.0, min(1.0, r))


def within_batch(values: list, batches: list) -> float:
    """Likeness of the samples of a batch: the intraclass correlation of one-way analysis of variance, 0 to 1."""
    groups = {}
    for value, batch in zip(values, batches):
        groups.setdefault(batch, []).append(value)
    groups = [g for g in groups.values() if len(g) > 1]
    if len(groups) < 3:
        return 0.0
    n = statistics.fmean(len(g) for g in groups)
    total = statistics.fmean(v for g in groups for v in g)
    between = sum(len(g) * (statistics.fmean(g) - total) ** 2 for g in groups) / (len(groups) - 1)
    inside = sum((v - statistics.fmean(g)) ** 2 for g in groups for v in g) / sum(len(g) - 1 for g in groups)
    bottom = between + (n - 1) * inside
    return max(0.0, min(1.0, (between - inside) / bottom)) if bottom > 0 else 0.0
