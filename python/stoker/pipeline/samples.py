"""The main pass: what samples and batches cost, beside each other in a worker, in the training process, in many processes."""

from __future__ import annotations

import statistics

from ..errors import ProbeError, UserCodeError
from ..measure import contention, machine
from . import findings as finding
from . import first_look, interleaved, order, sections, speed, statistics_of

_SHARE, _SHARE_BESIDE_STREAMS = .45, .3  # of the budget; the second for an IterableDataset
_SHARE_OF_MEMORY = 0.25  # share of what is available that one batch and its samples may take
_LONGEST_BATCH = 0.06  # share of the time for samples that one batch of another size may take
_TELL = "samples"


class Samples:
    """Measures into the probe's file; what later passes go by stays here."""

    def __init__(self, source, look: first_look.FirstLook, children, findings, doc: dict):
        self._source, self._look, self._children, self._findings, self._doc = source, look, children, findings, doc
        self._own = 0  # samples of a batch that can be made
        self.failed = False  # a DataLoader would end at the first sample that raises
        self.measured = []  # indices of the samples that were measured
        self.crowding = None  # CPU time lost with twice as many processes as cores, as a share
        self.warm_ups, self.warm_up_waits = [], []  # ms of first batches beyond later ones

    def measure(self) -> None:
        measured = self._slices()
        if not any(batch["rows"] for batch in measured.batches):
            self._died_without_samples(measured.outcome)
        made = measured.batches
        first = [b for b in made if b["round"] == 0]
        later = [b for b in made if b["round"] > 0]
        undisturbed = speed.undisturbed(later)
        slowed = 1 - (len(first) + len(undisturbed)) / len(made)
        counted = first + speed.with_every_sample(undisturbed, later)
        self._sample_section(counted, interleaved.median(measured.whole) or 1.0)
        self._findings.after_samples(measured.outcome, self._source, self._doc, len(self._doc["sample"]["cpu_ms"]))
        if measured.hung:
            self._findings.hung()
        failures = measured.outcome.last("failures")
        self.failed = failures is None or failures[0] > 0
        self._doc["foreign"] = {**contention.of_thread(measured.loads), "slowed_share": round(slowed, 4)}
        self._batches(measured, counted if any(_collated(b) for b in counted) else made)
        self._processes(measured)
        memory = measured.memory or {"private": None, "peak": None}
        self._doc["memory"] = {"worker_private_bytes": memory["private"], "worker_peak_bytes": memory["peak"],
                               "objects": None, "object_bytes": None, "copied_on_read": None}

    def planned(self):
        """The plan of the first look, its batches cut to what can be made; None of an IterableDataset."""
        return [batch[:self._source.cap] for batch in self._look.plan] if self._look.plan else None

    def few_indices(self, seconds: float) -> list:
        """Indices whose samples take about `seconds` together, whole batches where that is possible."""
        if self._source.kind == "iterable":
            return []
        count = max(1, int(seconds * 1e3 / max(1e-3, self._look.wall_ms)))
        return self.measured[:max(self._own, count // self._own * self._own)] if count >= self._own else self.measured[:count]

    # -- what can be made -----------------------------------------------------------------------------------------------

    def _slices(self) -> interleaved.Interleaved:
        source, children = self._source, self._children
        wall = max(1e-4, self._look.wall_ms)
        seconds = children.share(_SHARE_BESIDE_STREAMS if source.kind == "iterable" else _SHARE)
        room = machine.available_memory() * _SHARE_OF_MEMORY
        fits = int(room / max(1, 2 * self._look.sample["bytes"]))  # samples and their batch
        by_time = max(1, int(seconds * 1e3 / 3 / wall))
        source.cap = None if min(fits, by_time) >= source.batch else max(1, min(fits, by_time))
        self._findings.capped(source, fits, by_time)
        self._check_shared_memory()
        self._own = min(source.batch, source.cap or source.batch)
        children.tell(_TELL)
        measured = interleaved.Interleaved(
            source, children.warden, plan=self.planned(), sizes=self._sizes(), seconds=seconds, wall_ms=wall,
            tick=lambda: children.tell(_TELL), limit=children.end(), in_order=self._look.order is not None)
        measured.run()
        return measured

    def _check_shared_memory(self) -> None:
        """A batch that does not fit /dev/shm would end the worker with SIGBUS: smaller ones are measured then."""
        source, size = self._source, self._look.sample["bytes"]
        free = machine.shared_memory_free()
        if free is None:
            return
        loader = source.loader
        workers = loader.num_workers if loader is not None else 2
        prefetch = (loader.prefetch_factor if loader is not None else None) or 2
        if workers > 0:  # without workers, batches stay in the training process
            self._findings.shared_memory(source, size, free, workers, prefetch)
        fits = int(0.5 * free / max(1, size))
        if fits < min(source.batch, source.cap or source.batch):
            source.cap = max(1, fits)

    def _sizes(self) -> list:
        """Batch sizes to collate at: a quarter, the user's own, four times that; what time and memory allow."""
        source, own = self._source, self._own
        most = source.samples or 4 * own
        room = min(machine.available_memory() * _SHARE_OF_MEMORY / 2, 0.5 * (machine.shared_memory_free() or 1e18))
        longest_s = self._children.budget * _SHARE * _LONGEST_BATCH
        sizes = [max(1, own // 4), own] + ([] if source.own_batches else [4 * own, 2 * own])
        found = [own]
        for size in sizes:
            fits = size * self._look.sample["bytes"] <= room and size * self._look.wall_ms * 1e-3 <= longest_s and size <= most
            if size not in found and fits and (size < own or all(s <= own for s in found)):
                found.append(size)
        return sorted(found)

    def _died_without_samples(self, outcome) -> None:
        source = self._source
        failures = outcome.last("failures")
        if outcome.end == "error":
            raise UserCodeError(f"{source.name}: {outcome.error['message']}; correct the code named in the traceback "
                                "above", outcome.error["traceback"])
        if failures is not None and failures[0]:
            first_look.refuse(source, outcome, failures, self._children.budget)
        raise ProbeError(f"{source.name}: no batch of {source.batch} could be made and collated: {outcome.why()}"
                         f"{finding.advice_for_death(outcome)}")

    # -- into the file --------------------------------------------------------------------------------------------------

    def _sample_section(self, batches: list, whole: float) -> None:
        """`whole`: CPU time of cheap samples without a clock around each / with it."""
        source, times = self._source, statistics_of.SampleTimes(batches)
        cpu, wait, read = [whole * ms for ms in times.cpu_ms()], times.wait_ms(), times.file_bytes()
        self._cpu_ms = statistics.fmean(cpu)
        self.measured = times.kept()
        self._cpu_by_index, self._wait_by_index = times.by_index(), dict(zip(times.kept(), times.wait_ms()))
        correlated = source.sampler is not None or source.kind == "iterable"
        spread = times.repeat_spread()
        self._doc["order"] = self._order_section(times.all_costs(), whole)
        self._doc["sample"] = {
            "cpu_ms": sections.rounded(cpu, 6), "wait_ms": sections.rounded(wait, 6), "file_bytes": read,
            "in_process_ratio": None, "stages": [], "stages_how": None,
            "size_correlation": statistics_of.correlation(read, cpu), "gil_wait_ms": None,
            "repeat_spread": None if spread is None else round(spread, 4),
            "within_batch_correlation":
                round(statistics_of.within_batch(cpu, times.batch_numbers()), 4) if correlated else 0}

    def _order_section(self, costs: dict, whole: float):
        """What neighbours cost, where the loader asks for samples in the same order in every epoch."""
        places = self._look.order
        if places is None:
            return None
        # Neighbours that only the warming pass saw count too: a sequence has no gaps.
        costs = {index: (whole * cpu, wait) for index, (cpu, wait) in costs.items()}
        # A sampler of batches may give them any size; the simulation's all have the same.
        return order.section(self._look.plan, places["places"], places["whole"], costs, self._source.batch,
                             cut=self._source.own_batches, anywhere=self._look.walls)

    def _batches(self, measured, made: list) -> None:
        """The section "batch", and what first batches of new workers take beyond it."""
        source, own = self._source, self._own
        collated = [b for b in made if _collated(b)]
        later = [b for b in collated if b["round"] > 0] or collated
        whole = [b for b in later if source.own_batches or len(b["rows"]) == own] or later
        rows = {own: sections.batch_row(own, whole)} if whole else {}
        for size, found in measured.by_size.items():
            found = speed.undisturbed([row for row in found if _collated(row)])
            if found:
                rows[size] = sections.batch_row(size, found)
        for size, row in rows.items():
            factor = interleaved.median(measured.private_per_shared.get(size, []))
            row["collate_private_ms"] = None if factor is None else round(row["collate_shared_ms"] * factor, 6)
        self._doc["batch"] = [rows[size] for size in sorted(rows)]
        self.warm_ups = self._beyond_usual(measured, rows.get(own))
        self.warm_up_waits = self._waits_beyond_usual(measured)

    def _processes(self, measured) -> None:
        """What the training process, and several workers at once, take beside one worker."""
        ratio = interleaved.median(measured.in_process)
        self._doc["sample"]["in_process_ratio"] = None if ratio is None else round(max(0.01, min(100.0, ratio)), 4)
        beside, crowded = interleaved.median(measured.beside), interleaved.median(measured.crowded)
        self._doc["parallel"] = {"processes": 1, "efficiency": 1.0} if beside is None else {
            "processes": int(machine.usable_cores()), "efficiency": round(min(2.0, 1 / max(1e-3, beside)), 4)}
        self.crowding = None if crowded is None else max(0.0, crowded - 1)
        if crowded is not None:
            self._doc["parallel"]["crowded_efficiency"] = round(min(2.0, 1 / max(1e-3, crowded)), 4)

    def _beyond_usual(self, measured, row) -> list:
        """ms that the first batches of new workers took beyond what the same samples and their collating usually take."""
        collate = row["collate_shared_ms"] if row is not None else 0.0
        if measured.first:
            usual = [self._cpu_by_index[index] for index in measured.first if index in self._cpu_by_index]
        else:
            usual = [self._cpu_ms] * measured.batch
        return [cold - sum(usual) - collate for cold in measured.cold] if usual else []

    def _waits_beyond_usual(self, measured) -> list:
        """ms that the same batches waited beyond what their samples usually wait; a stream's first sample is its own matter."""
        if not measured.first:
            return []
        usual = sum(self._wait_by_index.get(index, 0.0) for index in measured.first)
        return [waited - usual for waited in measured.cold_waits]

    @property
    def cpu_ms(self) -> float:
        """CPU time of a sample."""
        return self._cpu_ms


def _collated(batch: dict) -> bool:
    return batch["collate_ns"] is not None
