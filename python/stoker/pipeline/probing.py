"""The probe of a user's own pipeline: what to measure in which order, within the budget, and the object of it all.

docs/probing.md says how each number is measured, docs/pipeline-probe-format.md what the keys mean.
"""

from __future__ import annotations

import dataclasses
import datetime
import platform
import statistics
import time

from ..errors import ProbeError, UserCodeError
from ..version import VERSION
from . import findings as finding
from . import host, passes, processes, source as sources, statistics_of

FORMAT, SCHEMA_VERSION = "stoker-pipeline-probe", [1, 0]
DEFAULT_BUDGET_S = 20.0
SHORTEST_BUDGET_S = 1.0

# Shares of the budget. What a pass leaves over goes to the next ones.
_FIRST, _SAMPLES, _SIZES, _IN_PROCESS, _PARALLEL, _GIL, _STAGES, _TRANSPORT = .08, .30, .08, .12, .08, .03, .06, .12
_KEEP_S = 0.3  # for putting it all together
_SHARE_OF_MEMORY = 0.25  # of what is available: for one batch and its samples
_ROUNDS_WANTED = 3


def probe_pipeline(dataset_or_loader, *, name: str, budget_s: float = DEFAULT_BUDGET_S, progress=None,
                   transport: dict | None = None) -> dict:
    """Measures a Dataset, IterableDataset or DataLoader and returns the object of docs/pipeline-probe-format.md.

    name        what it is called in reports, "train.py:dataset"
    budget_s    seconds to spend at most, about
    progress    called as progress(what, share_of_the_budget_used)
    transport   the coefficients of an earlier probe on this machine, so that they are not measured anew

    All measuring happens in child processes; nothing of them stays. Raises ProbeError, or UserCodeError where the
    user's own code fails.
    """
    if not budget_s >= SHORTEST_BUDGET_S:
        raise ProbeError(f"a budget of {budget_s:g} s is too short for a probe: give {SHORTEST_BUDGET_S:g} s or more")
    warden = processes.Warden()
    try:
        return _Probe(sources.of(dataset_or_loader, name), budget_s, progress, transport, warden).run()
    finally:
        warden.close()


class _Probe:
    def __init__(self, source, budget_s, progress, transport, warden):
        self._source, self._budget, self._transport = source, budget_s, transport
        self._progress, self._warden = progress, warden
        self._start = time.monotonic()
        self._deadline = self._start + budget_s - min(_KEEP_S, 0.1 * budget_s)
        self._findings = finding.Findings()
        self._doc = {}

    # -- children -----------------------------------------------------------------------------------------------------

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _tell(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, min(1.0, (time.monotonic() - self._start) / self._budget))

    def _share(self, share: float) -> float:
        return min(share * self._budget, self._left())

    def _run(self, what: str, work, seconds: float, *, daemon: bool = True, grace: float = 0.5):
        """Runs work(send) in a child for at most `seconds` and a little more."""
        self._tell(what)
        child = processes.Child(work, self._warden, daemon=daemon)
        return child.collect(time.monotonic() + seconds + grace, tick=lambda: self._tell(what))

    # -- the order ----------------------------------------------------------------------------------------------------

    def run(self) -> dict:
        source, doc = self._source, self._doc
        doc.update(format=FORMAT, schema_version=SCHEMA_VERSION, name=source.name, kind=source.kind,
                   samples=source.samples, loader=sources.loader_facts(source))
        look = self._first_look()
        self._samples(look)
        self._sizes()
        self._in_process()
        self._parallel()
        self._lock()
        self._stages()
        self._moving()
        self._starting()
        self._objects()
        doc["findings"] = self._findings.rows()
        doc["provenance"] = _provenance()
        self._tell("done")
        order = ("format", "schema_version", "name", "kind", "samples", "loader", "sample", "batch", "output",
                 "transport", "start", "memory", "parallel", "foreign", "provenance", "findings")
        return {key: doc[key] for key in order if key in doc}

    def _first_look(self) -> dict:
        source = self._source
        # A slow first sample (a cold file, a lazy import) may take half of the budget.
        outcome = self._run("first sample", lambda send: passes.first_look(source, send), self._budget * 0.5)
        speed, failures = outcome.last("speed"), outcome.last("failures")
        if outcome.end == "error":
            raise UserCodeError(f"{source.name}: making its first batch failed ({outcome.error['message']}); correct "
                                "the code named in the traceback above", outcome.error["traceback"])
        if any(kind == "no batches" for kind, _ in outcome.messages):
            raise ProbeError(f"{source.name}: its sampler gives no index: check the sampler of the DataLoader")
        if speed is None:
            self._refuse(outcome, failures)
        if source.sampler is not None and source.own_batches:
            source.batch = max(source.batch, *outcome.last("planned")) if source.batch == sources.DEFAULT_BATCH and \
                not isinstance(getattr(source.sampler, "batch_size", None), int) else source.batch
        self._findings.effects(outcome, source)
        sample = outcome.last("sample")
        self._doc["output"] = sample["output"]
        self._sample_bytes = sample["bytes"]
        self._wall_ms = statistics.fmean(speed["walls"])
        self._findings.first_sample(sample["first_wall_ms"], self._wall_ms)
        return speed

    def _refuse(self, outcome, failures) -> None:
        """Not one sample: says why."""
        source = self._source
        if failures is not None and failures[0]:
            first = failures[1]
            raise UserCodeError(
                f"{source.name}: none of {failures[0]} samples could be made; index {first['index']} raised "
                f"{first['error']}; correct the code named in the traceback above", first["traceback"])
        if outcome.end == "time":
            raise ProbeError(f"{source.name}: one sample took more than {self._budget * 0.5:.0f} s, half of the "
                             f"budget: give --budget {4 * self._budget:.0f}s, or make samples cheaper")
        if outcome.end in ("signal", "exit"):
            raise ProbeError(f"{source.name}: the process that made the first sample did not come back: "
                             f"{outcome.why()}{finding.advice_for_death(outcome)}")
        raise ProbeError(f"{source.name} gives no sample: check the list or stream that it reads")

    def _samples(self, speed: dict) -> None:
        source, wall = self._source, max(1e-4, self._wall_ms)
        seconds = self._share(_SAMPLES)
        room = host.available_memory() * _SHARE_OF_MEMORY
        fits = int(room / max(1, 2 * self._sample_bytes))  # samples and their batch
        by_time = max(1, int(seconds * 1e3 / 3 / wall))
        source.cap = None if min(fits, by_time) >= source.batch else max(1, min(fits, by_time))
        self._findings.capped(source, fits, by_time)
        self._check_shared_memory()
        most = int(seconds * 1e3 / wall / _ROUNDS_WANTED)
        most = max(min(source.batch, source.cap or source.batch), min(most, passes.MOST_SAMPLES))
        if source.samples is not None:
            most = min(most, source.samples)
        outcome = self._run("samples", lambda send: passes.sample_pass(source, send, seconds=seconds, most=most),
                            seconds, grace=max(0.5, 3e-3 * wall))
        batches = outcome.all("batch")
        if not batches:
            self._died_without_samples(outcome)
        self._findings.after_samples(outcome, source, self._doc)
        times = statistics_of.SampleTimes(batches)
        cpu, wait, read = times.cpu_ms(), times.wait_ms(), times.file_bytes()
        self._cpu_ms = statistics.fmean(cpu)
        self._cpu_by_index = times.by_index()
        correlated = source.sampler is not None or source.kind == "iterable"
        self._doc["sample"] = {
            "cpu_ms": _rounded(cpu, 6), "wait_ms": _rounded(wait, 6), "file_bytes": read,
            "in_process_ratio": None, "stages": [], "stages_how": None,
            "size_correlation": statistics_of.correlation(read, cpu), "gil_wait_ms": None,
            "within_batch_correlation":
                round(statistics_of.within_batch(cpu, times.batch_numbers()), 4) if correlated else 0}
        self._doc["foreign"] = outcome.last("foreign") or {}
        self._rows = {}
        later = [b for b in batches if b["round"] > 0] or batches
        whole = [b for b in later if b["collate_ns"] is not None
                 and (source.own_batches or len(b["rows"]) == min(source.batch, source.cap or source.batch))]
        whole = whole or [b for b in later if b["collate_ns"] is not None]
        if whole:
            asked = min(source.batch, source.cap or source.batch)
            self._rows[asked] = _batch_row(asked, [b["collate_ns"] for b in whole], [b["facts"] for b in whole])
        self._doc["batch"] = list(self._rows.values())
        memory = outcome.last("memory")
        self._doc["memory"] = {"worker_private_bytes": memory["private"] if memory else None,
                               "worker_peak_bytes": memory["peak"] if memory else None, "objects": None,
                               "object_bytes": None, "copied_on_read": None}

    def _check_shared_memory(self) -> None:
        """A batch that does not fit /dev/shm would end the worker with SIGBUS: smaller ones are measured then."""
        source = self._source
        free = host.shared_memory_free()
        if free is None:
            return
        loader = source.loader
        workers = (loader.num_workers if loader is not None else 0) or 2
        prefetch = (loader.prefetch_factor if loader is not None else None) or 2
        self._findings.shared_memory(source, self._sample_bytes, free, workers, prefetch)
        fits = int(0.5 * free / max(1, self._sample_bytes))
        if fits < min(source.batch, source.cap or source.batch):
            source.cap = max(1, fits)

    def _died_without_samples(self, outcome) -> None:
        source = self._source
        failures = outcome.last("failures")
        if outcome.end == "error":
            raise UserCodeError(f"{source.name}: {outcome.error['message']}; correct the code named in the traceback "
                                "above", outcome.error["traceback"])
        if failures is not None and failures[0]:
            self._refuse(outcome, failures)
        raise ProbeError(f"{source.name}: no batch of {source.batch} could be made and collated: {outcome.why()}"
                         f"{finding.advice_for_death(outcome)}")

    def _other_sizes(self) -> list:
        """Batch sizes to collate at: a quarter, the user's own, four times that; what time and memory allow."""
        source = self._source
        own = min(source.batch, source.cap or source.batch)
        most = source.samples or 4 * own
        room = min(host.available_memory() * _SHARE_OF_MEMORY / 2, 0.5 * (host.shared_memory_free() or 1e18))
        longest_s = self._budget * _SIZES / 2
        sizes = [max(1, own // 4), own] + ([] if source.own_batches else [4 * own, 2 * own])
        found = [own]
        for size in sizes:
            fits = size * self._sample_bytes <= room and size * self._wall_ms * 1e-3 <= longest_s and size <= most
            if size not in found and fits and (size < own or all(s <= own for s in found)):
                found.append(size)
        return sorted(found)

    def _sizes(self) -> None:
        source = self._source
        if not self._rows:
            return
        own = min(source.batch, source.cap or source.batch)
        sizes = [s for s in self._other_sizes() if s != own]
        seconds = self._share(_SIZES)
        if not sizes or seconds < 0.05:
            return
        outcome = self._run("batch sizes", lambda send: passes.size_pass(source, send, seconds=seconds, sizes=sizes,
                                                                         shared=True), seconds)
        for size in sizes:
            found = _warm([b for b in outcome.all("batch") if b["size"] == size and b["facts"]])
            if found:
                self._rows[size] = _batch_row(size, [b["collate_ns"] for b in found], [b["facts"] for b in found])
        self._doc["batch"] = [self._rows[size] for size in sorted(self._rows)]

    def _in_process(self) -> None:
        """The same without a worker: samples on the calling thread's clock, collating into private memory."""
        source, seconds = self._source, self._share(_IN_PROCESS)
        if seconds < 0.05:
            return
        own = min(source.batch, source.cap or source.batch)
        sizes = sorted(self._rows or [own], key=lambda size: (size != own, size))  # the user's own first
        outcome = self._run("in this process", lambda send: passes.size_pass(source, send, seconds=seconds, sizes=sizes,
                                                                             shared=False), seconds)
        batches = outcome.all("batch")
        for size in sizes:
            found = _warm([b for b in batches if b["size"] == size])
            if found and size in self._rows:
                self._rows[size]["collate_private_ms"] = _rounded([statistics_of.trimmed_mean(
                    [b["collate_ns"] for b in found]) * 1e-6], 6)[0]
        self._in_process_rows = [row for b in batches if not b["warm"] for row in b["rows"]] or \
            [row for b in batches for row in b["rows"]]
        self._doc["sample"]["in_process_ratio"] = self._ratio(self._in_process_rows)

    def _ratio(self, rows: list):
        """CPU of the same samples in the training process / in a worker."""
        source, sample = self._source, self._doc["sample"]
        if not rows:
            return None
        if source.kind == "iterable":
            here = statistics.fmean(row[2] for row in rows) * 1e-6
            ratio = here / statistics.fmean(sample["cpu_ms"]) if self._cpu_ms > 0 else 1.0
        else:
            pairs = [(row[2] * 1e-6, self._cpu_by_index[row[0]]) for row in rows if row[0] in self._cpu_by_index]
            below = sum(worker for _, worker in pairs)
            if below <= 0:
                return None
            ratio = sum(here for here, _ in pairs) / below
        return round(max(0.01, min(100.0, ratio)), 4)

    def _parallel(self) -> None:
        pass

    def _lock(self) -> None:
        pass

    def _stages(self) -> None:
        pass

    def _moving(self) -> None:
        pass

    def _starting(self) -> None:
        pass

    def _objects(self) -> None:
        pass


def _warm(batches: list) -> list:
    return [b for b in batches if not b["warm"]] or batches


def _batch_row(size: int, collate_ns: list, facts: list) -> dict:
    mean = statistics.fmean
    return {"batch": size, "samples": round(mean(f["samples"] for f in facts), 3),
            "bytes": round(mean(f["bytes"] for f in facts)), "tensors": round(mean(f["tensors"] for f in facts), 3),
            "collate_shared_ms": round(statistics_of.trimmed_mean(collate_ns) * 1e-6, 6), "collate_private_ms": None,
            "pickled_bytes": round(mean(f["pickled"] for f in facts))}


def _rounded(values: list, digits: int) -> list:
    return [round(v, digits) for v in values]


def _provenance() -> dict:
    import torch

    return {"stoker_version": VERSION, "date": datetime.date.today().isoformat(), "cpu_model": host.cpu_model(),
            "cores": host.usable_cores(), "python": platform.python_version(), "torch": torch.__version__}
