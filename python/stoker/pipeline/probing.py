"""The probe of a user's own pipeline: what to measure in which order, within the budget, and the object of it all.

docs/guide/probing.md says how each number is measured, docs/reference/pipeline-probe-file.md what the keys mean.
"""

from __future__ import annotations

import statistics
import time

from ..errors import ProbeError, UserCodeError
from ..measure import contention, forked, machine
from ..measure.leftovers import Warden
from . import findings as finding
from . import (
    interleaved,
    objects,
    one_worker,
    order,
    passes,
    piping,
    sections,
    speed,
    stages,
    starting,
    statistics_of,
    streams,
    transport,
)
from . import source as sources
from .budget import DEFAULT_BUDGET_S, SHORTEST_BUDGET_S

FORMAT, SCHEMA_VERSION = "stoker-pipeline-probe", [1, 1]

# Shares of the budget. What a pass leaves over goes to the next ones.
_SAMPLES, _GIL, _STAGES, _TRANSPORT, _ONE_WORKER = .45, .03, .06, .13, .12
_SAMPLES_BESIDE_STREAMS, _STREAMS, _MORE_STREAMS = .3, .15, .07  # of an IterableDataset
_ONE_WORKER_BATCHES, _ONE_WORKER_MOST = 11, 0.25  # so many slow batches, up to this share of the budget
_PIPE, _SLOW_FIRST = .02, .2  # for objects that are no tensors; in which a first sample comes that is no measure of others
_STARTING_S = 1.0  # for pickling and forking in any case
_OWN_START = 0.3  # kept for the loader's own way of starting workers where that is no fork
_KEEP_S, _OBJECTS_S = 0.3, 0.5  # for putting it all together; for counting Python objects
_SHARE_OF_MEMORY = 0.25  # share of what is available that one batch and its samples may take
_LONGEST_BATCH = 0.06  # share of the time for samples that one batch of another size may take
_COPIED_BYTES = 8 << 20  # objects' bytes; less is lost in a worker's own memory


def probe_pipeline(dataset_or_loader, *, name: str, budget_s: float = DEFAULT_BUDGET_S, progress=None,
                   transport: dict | None = None) -> dict:
    """Measures a Dataset, IterableDataset or DataLoader and returns the object of docs/reference/pipeline-probe-file.md.

    name        what it is called in reports, "train.py:dataset"
    budget_s    seconds to spend at most, about
    progress    called as progress(what, share_of_the_budget_used)
    transport   the coefficients of an earlier probe on this machine, so that they are not measured anew

    All measuring happens in child processes; nothing of them stays. Raises ProbeError, or UserCodeError where the
    user's own code fails.
    """
    if not budget_s >= SHORTEST_BUDGET_S:
        raise ProbeError(f"a budget of {budget_s:g} s is too short for a probe: give {SHORTEST_BUDGET_S:g} s or more")
    forked.refuse_while_starting()
    source = sources.of(dataset_or_loader, name)
    warden = Warden()
    try:
        return _Probe(source, budget_s, progress, transport, warden).run()
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
        self._failed = False
        self._kept_s = 0.0  # for what comes last
        self._crowding = None  # CPU time lost with twice as many processes as cores, as a share

    # -- children -----------------------------------------------------------------------------------------------------

    def _left(self) -> float:
        return max(0.0, self._deadline - self._kept_s - time.monotonic())

    def _tell(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, min(1.0, (time.monotonic() - self._start) / self._budget))

    def _share(self, share: float) -> float:
        return min(share * self._budget, self._left())

    def _run(self, what: str, work, seconds: float, *, daemon: bool = True, grace: float = 0.5):
        """Runs work(send) in a child for at most `seconds` and a little more."""
        self._tell(what)
        return forked.Child(work, self._warden, daemon=daemon).collect(time.monotonic() + seconds + grace, tick=lambda: self._tell(what))

    # -- the order ----------------------------------------------------------------------------------------------------

    def run(self) -> dict:
        source, doc = self._source, self._doc
        doc.update(format=FORMAT, schema_version=SCHEMA_VERSION, name=source.name, kind=source.kind,
                   samples=source.samples, loader=sources.loader_facts(source))
        self._findings.cores(machine.usable_cores())
        if source.loader is not None and source.loader.num_workers > 0 and sections.own_method(doc) != "fork":
            self._kept_s = _OWN_START * self._budget
        self._first_look()
        self._samples()
        self._pipe()
        self._streams()
        self._one_worker()
        self._lock()
        self._stages()
        self._moving()
        self._objects()
        self._starting()
        doc["findings"] = self._findings.rows()
        doc["provenance"] = sections.provenance()
        self._tell("done")
        keys = ("format", "schema_version", "name", "kind", "samples", "loader", "sample", "order", "streams", "work_units", "batch",
                "output", "transport", "one_worker", "start", "memory", "parallel", "foreign", "provenance", "findings")
        return {key: doc[key] for key in keys if key in doc}

    def _first_look(self) -> None:
        source = self._source
        # A slow first sample (a cold file, a lazy import) may take half of the budget.
        outcome = self._run("first sample", lambda send: passes.first_look(
            source, send, slow_s=_SLOW_FIRST * self._budget), self._budget * 0.5)
        speed, failures = outcome.last("speed"), outcome.last("failures")
        if outcome.end == "error":
            raise UserCodeError(f"{source.name}: making its first batch failed ({outcome.error['message']}); correct "
                                "the code named in the traceback above", outcome.error["traceback"])
        if any(kind == "no batches" for kind, _ in outcome.messages):
            raise ProbeError(f"{source.name}: its sampler gives no index: check the sampler of the DataLoader")
        if speed is None:
            self._refuse(outcome, failures)
        self._plan, self._order = outcome.last("plan"), outcome.last("order")
        self._sampler_ms = outcome.last("sampler") or 0.0
        self._doc["samples"] = outcome.last("sampled") or source.epoch_samples
        self._findings.sampler(source, self._sampler_ms)
        if source.own_batches and not isinstance(getattr(source.sampler, "batch_size", None), int):
            source.batch = max(1, round(statistics.fmean(len(batch) for batch in self._plan)))
        self._findings.effects(outcome, source)
        sample = outcome.last("sample")
        self._doc["output"] = sample["output"]
        self._sample_bytes = sample["bytes"]
        self._walls = speed["walls"]  # of samples anywhere in the data set
        self._wall_ms = statistics.fmean(self._walls)
        self._findings.first_sample(sample["first_wall_ms"], self._wall_ms)

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

    def _samples(self) -> None:
        source, wall = self._source, max(1e-4, self._wall_ms)
        seconds = self._share(_SAMPLES_BESIDE_STREAMS if source.kind == "iterable" else _SAMPLES)
        room = machine.available_memory() * _SHARE_OF_MEMORY
        fits = int(room / max(1, 2 * self._sample_bytes))  # samples and their batch
        by_time = max(1, int(seconds * 1e3 / 3 / wall))
        source.cap = None if min(fits, by_time) >= source.batch else max(1, min(fits, by_time))
        self._findings.capped(source, fits, by_time)
        self._check_shared_memory()
        self._tell("samples")
        measured = interleaved.Interleaved(source, self._warden, plan=self._planned(), sizes=self._other_sizes(),
                               seconds=seconds, wall_ms=wall, tick=lambda: self._tell("samples"), limit=self._deadline - self._kept_s,
                               in_order=self._order is not None)
        measured.run()
        if not any(batch["rows"] for batch in measured.batches):
            self._died_without_samples(measured.outcome)
        first = [b for b in measured.batches if b["round"] == 0]
        later = [b for b in measured.batches if b["round"] > 0]
        undisturbed = speed.undisturbed(later)
        self._slowed = 1 - (len(first) + len(undisturbed)) / len(measured.batches)
        measured.batches = first + speed.with_every_sample(undisturbed, later)
        self._sample_section(measured.batches, interleaved.median(measured.whole) or 1.0)
        self._findings.after_samples(measured.outcome, source, self._doc, len(self._doc["sample"]["cpu_ms"]))
        if measured.hung:
            self._findings.hung()
        failures = measured.outcome.last("failures")
        self._failed = failures is None or failures[0] > 0  # a DataLoader would end at the first
        self._compared(measured)
        memory = measured.memory or {"private": None, "peak": None}
        self._doc["memory"] = {"worker_private_bytes": memory["private"], "worker_peak_bytes": memory["peak"],
                               "objects": None, "object_bytes": None, "copied_on_read": None}

    def _planned(self):
        """The plan of the first look, its batches cut to what can be made; None of an IterableDataset."""
        return [batch[:self._source.cap] for batch in self._plan] if self._plan else None

    def _sample_section(self, batches: list, whole: float) -> None:
        """`whole`: CPU time of cheap samples without a clock around each / with it."""
        source, times = self._source, statistics_of.SampleTimes(batches)
        cpu, wait, read = [whole * ms for ms in times.cpu_ms()], times.wait_ms(), times.file_bytes()
        self._cpu_ms = statistics.fmean(cpu)
        self._measured = times.kept()
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
        if self._order is None:
            return None
        source = self._source
        # Neighbours that only the warming pass saw count too: a sequence has no gaps.
        costs = {index: (whole * cpu, wait) for index, (cpu, wait) in costs.items()}
        # A sampler of batches may give them any size; the simulation's all have the same.
        return order.section(self._plan, self._order["places"], self._order["whole"], costs, source.batch,
                             cut=source.own_batches, anywhere=self._walls)

    def _streams(self) -> None:
        """What each worker of an IterableDataset gets."""
        source = self._source
        self._doc["streams"], self._doc["work_units"] = [], None
        if source.kind != "iterable":
            return
        self._doc["work_units"] = streams.work_units(source.dataset)
        sample = self._doc["sample"]
        cpu, wait = sum(sample["cpu_ms"]), sum(sample["wait_ms"])
        for number, workers in enumerate(streams.counts_to_see(source.loader)):
            seconds = self._share(_STREAMS if number == 0 else _MORE_STREAMS)
            if seconds < 0.1:
                return
            found = streams.measured(source, workers, seconds, self._at_once, waits=wait / max(1e-9, cpu + wait))
            if found is not None:
                self._doc["streams"].append(found)
                if number == 0:
                    found["seed_spread"] = streams.seed_spread(source, workers, seconds / 4, self._at_once, found["workers"][0])
                    self._findings.streams(found, source)

    def _at_once(self, works: list, seconds: float) -> list:
        """Runs each work(send) in a child, all at the same time; how they ended."""
        self._tell("streams of the workers")
        children = [forked.Child(work, self._warden, daemon=True) for work in works]
        until = time.monotonic() + seconds + 0.5
        return [child.collect(until, tick=lambda: self._tell("streams of the workers")) for child in children]

    def _compared(self, measured) -> None:
        """Everything that slices beside each other show: batches, the training process, several workers at once."""
        source, sample = self._source, self._doc["sample"]
        self._doc["foreign"] = {**contention.of_thread(measured.loads), "slowed_share": round(self._slowed, 4)}
        ratio = interleaved.median(measured.in_process)
        sample["in_process_ratio"] = None if ratio is None else round(max(0.01, min(100.0, ratio)), 4)
        own = min(source.batch, source.cap or source.batch)
        later = [b for b in measured.batches if b["round"] > 0 and b["collate_ns"] is not None] or \
            [b for b in measured.batches if b["collate_ns"] is not None]
        whole = [b for b in later if source.own_batches or len(b["rows"]) == own] or later
        rows = {own: sections.batch_row(own, whole)} if whole else {}
        for size, found in measured.by_size.items():
            found = speed.undisturbed([row for row in found if row["collate_ns"] is not None])
            if found:
                rows[size] = sections.batch_row(size, found)
        for size, row in rows.items():
            factor = interleaved.median(measured.private_per_shared.get(size, []))
            row["collate_private_ms"] = None if factor is None else round(row["collate_shared_ms"] * factor, 6)
        self._doc["batch"] = [rows[size] for size in sorted(rows)]
        beside, crowded = interleaved.median(measured.beside), interleaved.median(measured.crowded)
        self._doc["parallel"] = {"processes": 1, "efficiency": 1.0} if beside is None else {
            "processes": int(machine.usable_cores()), "efficiency": round(min(2.0, 1 / max(1e-3, beside)), 4)}
        self._crowding = None if crowded is None else max(0.0, crowded - 1)
        if crowded is not None:
            self._doc["parallel"]["crowded_efficiency"] = round(min(2.0, 1 / max(1e-3, crowded)), 4)
        self._warm_ups = self._beyond_usual(measured, rows.get(own))
        self._warm_up_waits = self._waits_beyond_usual(measured)

    def _pipe(self) -> None:
        """What the objects of a batch take through the result queue, at the sizes that were made."""
        rows, seconds = self._doc["batch"], self._share(_PIPE)
        if max((row["pickled_bytes"] for row in rows), default=0) <= piping.PIPE_BYTES or seconds < 0.1:
            return
        outcome = self._run("the pipe", lambda send: piping.pipe_pass(
            send, [row["pickled_bytes"] for row in rows], seconds=seconds), 2 * seconds, daemon=False)
        for row, (_, ms) in zip(rows, outcome.all("pipe")):
            row["pipe_ms"] = round(ms, 6)

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

    def _check_shared_memory(self) -> None:
        """A batch that does not fit /dev/shm would end the worker with SIGBUS: smaller ones are measured then."""
        source = self._source
        free = machine.shared_memory_free()
        if free is None:
            return
        loader = source.loader
        workers = loader.num_workers if loader is not None else 2
        prefetch = (loader.prefetch_factor if loader is not None else None) or 2
        if workers > 0:  # without workers, batches stay in the training process
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
        room = min(machine.available_memory() * _SHARE_OF_MEMORY / 2, 0.5 * (machine.shared_memory_free() or 1e18))
        longest_s = self._budget * _SAMPLES * _LONGEST_BATCH
        sizes = [max(1, own // 4), own] + ([] if source.own_batches else [4 * own, 2 * own])
        found = [own]
        for size in sizes:
            fits = size * self._sample_bytes <= room and size * self._wall_ms * 1e-3 <= longest_s and size <= most
            if size not in found and fits and (size < own or all(s <= own for s in found)):
                found.append(size)
        return sorted(found)

    # -- several at once, other threads --------------------------------------------------------------------------------

    def _few_indices(self, seconds: float) -> list:
        """Indices whose samples take about `seconds` together, whole batches where that is possible."""
        source = self._source
        if source.kind == "iterable":
            return []
        known = self._measured
        count = max(1, int(seconds * 1e3 / max(1e-3, self._wall_ms)))
        own = min(source.batch, source.cap or source.batch)
        return known[:max(own, count // own * own)] if count >= own else known[:count]

    def _one_worker(self) -> None:
        """A real DataLoader of the user's samples, where whole batches can be made in the time."""
        source, seconds = self._source, self._share(_ONE_WORKER)
        self._doc["one_worker"] = None
        row = next((row for row in self._doc["batch"] if row["batch"] == source.batch), None)
        if source.cap is not None or row is None or self._failed:
            return
        batch_ms = self._wall_ms * row["samples"] + row["collate_shared_ms"] + row["collate_wait_ms"]
        seconds = min(max(seconds, 1e-3 * batch_ms * _ONE_WORKER_BATCHES), _ONE_WORKER_MOST * self._budget, self._left())
        batches = None
        if source.kind == "map":
            batches = [batch for batch in self._planned() if len(batch) == source.batch
                       or source.own_batches] or None
            if batches is None:
                return
        outcome = self._run("one worker", lambda send: one_worker.one_worker_pass(
            source, send, seconds=seconds, batches=batches, batch_ms=batch_ms), seconds, daemon=False, grace=2.0)
        found = one_worker.joined(outcome.all("one worker"))
        self._doc["one_worker"] = None if found is None else {"batch": source.batch, **found}
        if found is not None:
            self._warm_ups.append(found["first_make_cpu_ms"] - found["make_cpu_ms"])

    def _lock(self) -> None:
        seconds = self._share(_GIL)
        if seconds < 0.2:
            return
        indices = self._few_indices(seconds / 4)
        outcome = self._run("the interpreter's lock", lambda send: passes.gil_pass(
            self._source, send, seconds=seconds, indices=indices), seconds, grace=0.5 + 3e-3 * self._wall_ms)
        late = outcome.last("gil")
        self._doc["sample"]["gil_wait_ms"] = None if late is None else round(late, 4)

    def _stages(self) -> None:
        """A pass of its own: watching disturbs. Its shares count, the sum is the sample's as measured."""
        for work, in_order in ((stages.transform_pass, True), (stages.sampling_pass, False)):
            seconds = self._share(_STAGES)
            if seconds < 0.1:
                return
            indices = self._few_indices(seconds / 3)
            outcome = self._run("stages", lambda send: work(self._source, send, seconds=seconds, indices=indices),
                                3 * seconds, grace=0.5 + 3e-3 * self._wall_ms)
            found = outcome.last("stages")
            if found is not None:
                self._doc["sample"].update(stages=stages.table(found["rows"], self._cpu_ms, in_order=in_order),
                                           stages_how=found["how"])
                return

    # -- batches and processes ----------------------------------------------------------------------------------------

    def _moving(self) -> None:
        """Transport: measured here, or taken from an earlier probe of this machine."""
        found = dict(self._transport or {})
        seconds = self._share(_TRANSPORT)
        if self._transport is None and seconds >= 0.5:
            outcome = self._run("moving batches", lambda send: transport.transport_pass(send, seconds=seconds), seconds,
                                daemon=False, grace=max(2.0, 0.2 * self._budget))
            found = transport.coefficients(outcome.all("case"), outcome.last("processes"))
        if self._crowding is not None:
            found["oversubscription"] = self._crowding
        self._doc["transport"] = {key: round(value, 6) for key, value in found.items()}

    def _starting(self) -> None:
        self._kept_s = 0.0
        source, until = self._source, max(self._deadline - 0.1, time.monotonic() + _STARTING_S)
        facts = sections.start_facts(self._warm_ups, self._warm_up_waits, self._sampler_ms)
        own = sections.own_method(self._doc)
        outcome = self._run("starting workers", lambda send: starting.start_pass(source, send, until=until, own=own),
                            until - time.monotonic(), daemon=False, grace=_STARTING_S)
        for part in outcome.all("start"):
            facts.update({key: round(v, 3) if isinstance(v, float) else v for key, v in part.items()})
        self._doc["start"] = facts
        self._findings.after_start(facts, outcome, self._doc)

    def _objects(self) -> None:
        outcome = self._run("objects", lambda send: objects.object_pass(self._source, send, seconds=_OBJECTS_S),
                            _OBJECTS_S)
        found = outcome.last("objects")
        if found is None:
            return
        copied = found["object_bytes"] >= _COPIED_BYTES
        self._doc["memory"].update(found, copied_on_read=copied)
        if copied:
            self._findings.objects(found, self._doc)
