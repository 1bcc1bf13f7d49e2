"""The probe of a user's own pipeline: what to measure in which order, within the budget, and the object of it all.

docs/guide/probing.md says how each number is measured, docs/reference/pipeline-probe-file.md what the keys mean.
"""

from __future__ import annotations

import time

from ..errors import ProbeError
from ..measure import forked, machine
from ..measure.leftovers import Warden
from . import findings as finding
from . import first_look, objects, one_worker, passes, piping, sections, stages, starting, streams, transport
from . import source as sources
from .budget import DEFAULT_BUDGET_S, SHORTEST_BUDGET_S
from .children import Children
from .samples import Samples

FORMAT, SCHEMA_VERSION = "stoker-pipeline-probe", [1, 1]

# Shares of the budget. What a pass leaves over goes to the next ones.
_GIL, _STAGES, _TRANSPORT, _ONE_WORKER = .03, .06, .13, .12
_STREAMS, _MORE_STREAMS = .15, .07  # of an IterableDataset
_ONE_WORKER_BATCHES, _ONE_WORKER_MOST = 11, 0.25  # so many slow batches, up to this share of the budget
_PIPE = .02  # for objects that are no tensors
_STARTING_S = 1.0  # for pickling and forking in any case
_OWN_START = 0.3  # kept for the loader's own way of starting workers where that is no fork
_OBJECTS_S = 0.5  # for counting Python objects
_COPIED_BYTES = 8 << 20  # objects' bytes; less is lost in a worker's own memory
_KEYS = ("format", "schema_version", "name", "kind", "samples", "loader", "sample", "order", "streams", "work_units", "batch", "output",
         "transport", "one_worker", "start", "memory", "parallel", "foreign", "provenance", "findings")


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
        return _Probe(source, Children(budget_s, progress, warden), transport).run()
    finally:
        warden.close()


class _Probe:
    """The passes. Each writes its part of the file; what the machine leaves no time for stays null."""

    def __init__(self, source, children: Children, transport):
        self._source, self._children, self._transport = source, children, transport
        self._findings = finding.Findings()
        self._doc = {}

    def run(self) -> dict:
        source, doc, children = self._source, self._doc, self._children
        doc.update(format=FORMAT, schema_version=SCHEMA_VERSION, name=source.name, kind=source.kind,
                   samples=source.samples, loader=sources.loader_facts(source))
        self._findings.cores(machine.usable_cores())
        if source.loader is not None and source.loader.num_workers > 0 and sections.own_method(doc) != "fork":
            children.kept_s = _OWN_START * children.budget
        self._look = first_look.look(source, children, self._findings)
        doc.update(samples=self._look.samples, output=self._look.sample["output"])
        self._samples = Samples(source, self._look, children, self._findings, doc)
        self._samples.measure()
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
        children.tell("done")
        return {key: doc[key] for key in _KEYS if key in doc}

    # -- what workers get, and send -------------------------------------------------------------------------------------

    def _pipe(self) -> None:
        """What the objects of a batch take through the result queue, at the sizes that were made."""
        rows, seconds = self._doc["batch"], self._children.share(_PIPE)
        if max((row["pickled_bytes"] for row in rows), default=0) <= piping.PIPE_BYTES or seconds < 0.1:
            return
        outcome = self._children.run("the pipe", lambda send: piping.pipe_pass(
            send, [row["pickled_bytes"] for row in rows], seconds=seconds), 2 * seconds, daemon=False)
        for row, (_, ms) in zip(rows, outcome.all("pipe")):
            row["pipe_ms"] = round(ms, 6)

    def _streams(self) -> None:
        """What each worker of an IterableDataset gets."""
        source = self._source
        self._doc["streams"], self._doc["work_units"] = [], None
        if source.kind != "iterable":
            return
        self._doc["work_units"] = streams.work_units(source.dataset)
        sample = self._doc["sample"]
        cpu, wait = sum(sample["cpu_ms"]), sum(sample["wait_ms"])

        def at_once(works, seconds):
            return self._children.run_at_once("streams of the workers", works, seconds)

        for number, workers in enumerate(streams.counts_to_see(source.loader)):
            seconds = self._children.share(_STREAMS if number == 0 else _MORE_STREAMS)
            if seconds < 0.1:
                return
            found = streams.measured(source, workers, seconds, at_once, waits=wait / max(1e-9, cpu + wait))
            if found is not None:
                self._doc["streams"].append(found)
                if number == 0:
                    found["seed_spread"] = streams.seed_spread(source, workers, seconds / 4, at_once, found["workers"][0])
                    self._findings.streams(found, source)

    def _one_worker(self) -> None:
        """A real DataLoader of the user's samples, where whole batches can be made in the time."""
        source, children, wall_ms = self._source, self._children, self._look.wall_ms
        self._doc["one_worker"] = None
        row = next((row for row in self._doc["batch"] if row["batch"] == source.batch), None)
        if source.cap is not None or row is None or self._samples.failed:
            return
        batch_ms = wall_ms * row["samples"] + row["collate_shared_ms"] + row["collate_wait_ms"]
        seconds = min(max(children.share(_ONE_WORKER), 1e-3 * batch_ms * _ONE_WORKER_BATCHES),
                      _ONE_WORKER_MOST * children.budget, children.left())
        batches = None
        if source.kind == "map":
            batches = [batch for batch in self._samples.planned() if len(batch) == source.batch
                       or source.own_batches] or None
            if batches is None:
                return
        outcome = children.run("one worker", lambda send: one_worker.one_worker_pass(
            source, send, seconds=seconds, batches=batches, batch_ms=batch_ms), seconds, daemon=False, grace=2.0)
        found = one_worker.joined(outcome.all("one worker"))
        self._doc["one_worker"] = None if found is None else {"batch": source.batch, **found}
        if found is not None:
            self._samples.warm_ups.append(found["first_make_cpu_ms"] - found["make_cpu_ms"])

    # -- within a sample ------------------------------------------------------------------------------------------------

    def _lock(self) -> None:
        seconds = self._children.share(_GIL)
        if seconds < 0.2:
            return
        indices = self._samples.few_indices(seconds / 4)
        outcome = self._children.run("the interpreter's lock", lambda send: passes.gil_pass(
            self._source, send, seconds=seconds, indices=indices), seconds, grace=0.5 + 3e-3 * self._look.wall_ms)
        late = outcome.last("gil")
        self._doc["sample"]["gil_wait_ms"] = None if late is None else round(late, 4)

    def _stages(self) -> None:
        """A pass of its own: watching disturbs. Its shares count, the sum is the sample's as measured."""
        for work, in_order in ((stages.transform_pass, True), (stages.sampling_pass, False)):
            seconds = self._children.share(_STAGES)
            if seconds < 0.1:
                return
            indices = self._samples.few_indices(seconds / 3)
            outcome = self._children.run("stages", lambda send: work(self._source, send, seconds=seconds, indices=indices),
                                         3 * seconds, grace=0.5 + 3e-3 * self._look.wall_ms)
            found = outcome.last("stages")
            if found is not None:
                self._doc["sample"].update(stages=stages.table(found["rows"], self._samples.cpu_ms, in_order=in_order),
                                           stages_how=found["how"])
                return

    # -- batches and processes ------------------------------------------------------------------------------------------

    def _moving(self) -> None:
        """Transport: measured here, or taken from an earlier probe of this machine."""
        found, children = dict(self._transport or {}), self._children
        seconds = children.share(_TRANSPORT)
        if self._transport is None and seconds >= 0.5:
            outcome = children.run("moving batches", lambda send: transport.transport_pass(send, seconds=seconds), seconds,
                                   daemon=False, grace=max(2.0, 0.2 * children.budget))
            found = transport.coefficients(outcome.all("case"), outcome.last("processes"))
        if self._samples.crowding is not None:
            found["oversubscription"] = self._samples.crowding
        self._doc["transport"] = {key: round(value, 6) for key, value in found.items()}

    def _objects(self) -> None:
        outcome = self._children.run("objects", lambda send: objects.object_pass(self._source, send, seconds=_OBJECTS_S),
                                     _OBJECTS_S)
        found = outcome.last("objects")
        if found is None:
            return
        copied = found["object_bytes"] >= _COPIED_BYTES
        self._doc["memory"].update(found, copied_on_read=copied)
        if copied:
            self._findings.objects(found, self._doc)

    def _starting(self) -> None:
        self._children.kept_s = 0.0
        source, until = self._source, max(self._children.end() - 0.1, time.monotonic() + _STARTING_S)
        facts = sections.start_facts(self._samples.warm_ups, self._samples.warm_up_waits, self._look.sampler_ms)
        own = sections.own_method(self._doc)
        outcome = self._children.run("starting workers", lambda send: starting.start_pass(source, send, until=until, own=own),
                                     until - time.monotonic(), daemon=False, grace=_STARTING_S)
        for part in outcome.all("start"):
            facts.update({key: round(v, 3) if isinstance(v, float) else v for key, v in part.items()})
        self._doc["start"] = facts
        self._findings.after_start(facts, outcome, self._doc)
