"""From the runs of a script to a step file's document."""

from __future__ import annotations

import copy
import pathlib
import platform
from dataclasses import dataclass, replace

from .. import protocol, step_file
from ..errors import CaptureError, NotAffineError, UserCodeError
from ..polynomial import Dimension, Fitter
from ..tracing import compiled
from ..version import VERSION
from . import anew, hints
from .facade.fake_data import FakeData
from .recording import beside, shares
from .runs import TIME_LIMIT_S, Runs, TooLongError
from .settings import micro_batches, residents
from .world import Fact, Gpu, Outcome, Request

_POINTS = (*protocol.BATCH_POINTS[:2], protocol.BATCH_VERIFIED)
_FURTHER = {_POINTS: (*protocol.BATCH_POINTS[:3], protocol.BATCH_VERIFIED), (4, 8, 16): (4, 8, 16, 32)}  # where sizes grow with its square
_OTHER_NAMES = 2  # names that say nothing of a batch, and are tried since they hold its number
_LEAST_OWN_BYTES = 8 << 20  # less is lost among what Python itself takes
_ANOTHER = "set another in the script, and ask again"
_UNEVEN_STEPS = 12  # that are looked at for the largest, where a sampler of the script's own makes batches of any size
_POWERS = (4, 8, 16)  # for scripts that take no odd batch; the last one verifies


@dataclass
class Asked:
    """A capture of a script."""

    script: str
    arguments: list
    gpu: Gpu | None
    precision: str | None = None  # None: as the script has it
    batch_argument: str | None = None
    name: str | None = None
    time_limit_s: float | None = None
    host_memory: int | None = None
    fake_data: FakeData | None = None
    network: bool = False
    compile: bool | None = None  # torch.compile; None: as the script has it


def capture(asked: Asked, say=None, line=None) -> dict:
    """The document of the script's step."""
    _check(asked.script)
    with Runs(say, asked.time_limit_s or TIME_LIMIT_S, asked.host_memory, line) as runs:
        return _Capture(asked, runs, say or (lambda text: None)).document()


def _check(script: str) -> None:
    path = pathlib.Path(script)
    if not path.is_file():
        raise CaptureError(f"there is no file {script}: check the path")
    try:
        compile(path.read_bytes(), script, "exec")
    except (SyntaxError, ValueError) as error:
        line = f" line {error.lineno}" if getattr(error, "lineno", None) else ""
        if (getattr(error, "text", None) or "").lstrip().startswith(("!", "%")):
            raise CaptureError(f"{script}{line} is a notebook's command, and no Python: put a # before it, or export the notebook by "
                               "jupyter nbconvert --to script") from None
        raise CaptureError(f"{script}{line} is not Python ({getattr(error, 'msg', error)}): give the script that Python runs") from None


class _Capture:
    def __init__(self, asked: Asked, runs: Runs, say):
        self.asked, self.runs, self.say = asked, runs, say
        self.label = pathlib.Path(asked.script).name
        self.notes: list = []
        self.default: int | None = None  # the script's own batch, where it is no DataLoader's
        self.gpu = asked.gpu
        self.compile = asked.compile
        self._saved: list | None = None  # what compiled graphs keep: decided at the largest batch
        self._largest: tuple | None = None  # that batch, the way it was set, and the run
        self.ranks = bool(asked.gpu and asked.gpu.count > 1)
        self.bounded = self.inline = False
        self._has_loader = self._odd_failed = self._loops = False
        self._compiler_failed = False
        self._smallest: int | None = None  # batch of several loaders that a step takes batches from
        self._steps = Request.most_steps  # that a run may take: as many as the first one did
        self._own: Outcome | None = None  # a run in which no DataLoader was given another batch: that of the script as it is
        self._parts_are_equal = False  # a step accumulates over parts that a run has shown to be alike
        self._parts = 1  # into which the script splits each batch of its loader

    def _request(self, batch: int | None, by: str = "loader") -> Request:
        if batch is not None and by == "loader":
            batch *= self._parts
        return Request(script=self.asked.script, arguments=list(self.asked.arguments), gpu=self.gpu, batch=batch, batch_by=by,
                       precision=self.asked.precision, ranks=self.ranks, bounded=self.bounded, inline=self.inline,
                       fake_data=self.asked.fake_data, network=self.asked.network, most_steps=self._steps,
                       smallest_batch=self._smallest, compile=self.compile, saved=self._saved,
                       parts_are_equal=self._parts_are_equal)

    def _as_it_is(self) -> Outcome:
        """A run with the script's own batch, for what it finds."""
        return self._run(replace(self._request(None), may_compile_later=True))[0]

    def _run(self, *requests) -> list:
        pids = [self.runs.start(r) for r in requests]
        return [self._good(self.runs.wait(pid, self.label)) for pid in pids]

    def _good(self, outcome: Outcome) -> Outcome:
        if outcome.kind == "done":
            return outcome
        if outcome.kind == "on_cpu":
            raise anew.OnCpu
        if outcome.wants_ranks and not self.ranks:
            raise anew.WantsRanks
        if outcome.compiler_failed:
            raise anew.NotCompiled(outcome.compiled_at, outcome.error)
        if outcome.traceback:
            raise UserCodeError(f"{self.label} failed before a whole step was seen ({outcome.error}); correct "
                                f"{outcome.failed_at or 'what the traceback above names'}"
                                + (outcome.hint or hints.of_outcome(outcome.error)), outcome.traceback)
        if outcome.kind == "no_step" and outcome.starts_processes and not self.inline:
            raise anew.TrainsElsewhere
        if outcome.kind == "no_step":
            if outcome.starts:
                site, command = outcome.starts[0]
                raise CaptureError(f"{self.label} made no training step: {site} starts another script, which is not run ({command[:200]}): "
                                   "give that one, and its arguments behind --")
            words = f"; its last words: {outcome.last_words.strip()}" if outcome.last_words.strip() else ""
            what = "" if outcome.hint else (". A step ends with the step() of an optimizer of torch.optim; a function that returns a "
                                            "model is named FILE.py:FUNCTION")
            raise CaptureError(f"{self.label} made no training step: {outcome.error}{outcome.hint}{what}{words}")
        raise CaptureError(f"{self.label}: {outcome.error}")

    def document(self) -> dict:
        """The step file. CaptureError where the script does not train in the precision that was asked for."""
        doc = self._captured()
        asked = self.asked.precision
        if asked and doc["precision"] != asked:
            raise CaptureError(f"{self.label} trains in {doc['precision']}, not in {asked}: switch it on by the script's own arguments "
                               "behind --, or leave --precision out")
        return doc

    def _captured(self) -> dict:
        try:
            return self._document()
        except anew.WantsRanks:
            self.ranks = True
            return self._captured()
        except anew.TrainsElsewhere:
            self.inline = True
            self.notes.append("the first process that the script starts was followed: its others are taken to do the same")
            return self._captured()
        except anew.NotCompiled as why:
            self.compile, self._saved, self._largest, self._compiler_failed = False, None, None, True
            self.notes.append(f"{why.site}: torch.compile could not be followed ({_short(why)}): the step is the eager one")
            return self._captured()
        except anew.OnCpu:
            self.gpu = None
            self.notes.append(f"{self.label} trains on the CPU: its step was captured there, with what PyTorch does on a CPU")
            return self._document()

    def _document(self) -> dict:
        if self.asked.batch_argument:
            return self._by(self._named_way(self.asked.batch_argument))
        # Powers of two where a script takes no odd batch; one sample for all where lengths differ from sample to sample.
        for points, self.bounded in ((_POINTS, False), (_POWERS, False), (_POWERS, True)):
            if points is _POWERS and not (self._odd_failed or self._has_loader and self.bounded):
                continue
            try:
                made = self._by_loader(points)
            except anew.LoopsOverSamples:
                self._loops = True
                self.say("other batches than the script's own are not tried: it runs more operators for each sample")
                break
            if made is not None:
                return made
        self.bounded = False
        return self._without_loader()

    def _by_loader(self, points) -> dict | None:
        """The document by way of the script's DataLoader; None: it has none, or its batch cannot be replaced."""
        low, high, check = points
        self._parts, self._own, self._parts_are_equal = 1, None, False
        first = self._first(low)
        if first is not None and not first.batch_replaced:
            self._own, self._odd_failed = first, False
            return None
        if first is not None and self._decides(first, check):
            first = self._first(low)  # with what the largest batch keeps
        if first is not None and len(set(first.loader_batches)) > 1 and self._smallest is None:
            self._smallest = min(first.loader_batches)
            sizes = " and ".join(map(str, sorted(set(first.loader_batches))))
            self.notes.append(f"a step takes batches of {sizes} samples from several DataLoaders: other batches are in proportion to the "
                              "smallest")
            first = self._first(low)
        self._odd_failed = first is None
        if first is None or not any(f.setting == "batch" for f in first.facts):
            return None
        if first.uneven:
            own = self._run(replace(self._request(None), most_steps=_UNEVEN_STEPS))[0]
            return self._of_one_batch(own, own.batch or 1, "its sampler decides how many samples make a batch")
        self._has_loader = True
        self._steps = max(first.steps, 2)
        own = self._in_parts(first, low)
        if own is not None:
            points = points if self._parts > 1 else own.parts.points(points)
            first = self._first(points[0])
            if first is None or not first.parts.are(points[0], self._parts):
                return self._of_one_batch(own, own.batch, "a part of another size cannot be made by its DataLoader")
            low, high, check = points
        self._parts_are_equal = first.parts.many_alike()
        try:
            others = self._others(high, check)
            anew.check_loop(points, [first, *others])
            return self._line_or_square([first, *others], points, "loader", own)
        except TooLongError:
            raise  # in any other way it would take as long
        except (NotAffineError, CaptureError) as error:
            self.say(f"other batches by its DataLoader did not work out ({_short(error)})")
            self._odd_failed = isinstance(error, NotAffineError) and any(shares.EXPECTED in note for note in first.notes)
        return None

    def _in_parts(self, first: Outcome, low: int) -> Outcome | None:
        """The run with the script's own batch, where it takes a batch of its loader in parts: others are then made of one part."""
        own = self._run(self._request(None))[0] if first.parts.may_be_many() else first
        if not own.parts.are_of_one_batch(own.batch):
            return None
        self._parts = own.parts.count
        scaled = self._first(low)
        if scaled is None or not scaled.parts.are(low, self._parts):
            self._parts = 1  # parts of one size, however many they are
        self.notes.append(micro_batches.told(own))
        return own

    def _decides(self, outcome: Outcome, largest: int, by: str = "loader") -> bool:
        """What compiled graphs keep is decided at the largest batch and held at the others; whether `outcome` kept something else."""
        if outcome.saved is None or self._saved is not None:
            return False
        compiled.warm_up()  # once, for all runs that follow
        self._largest = (largest, by, self._run(self._request(largest, by))[0])
        self._saved = self._largest[2].saved
        return outcome.saved != self._saved

    def _others(self, high: int, check: int, by: str = "loader") -> list:
        """The runs at the other two batches; the one that decided what is kept is not run again."""
        if self._largest is not None and self._largest[:2] == (check, by):
            return [*self._run(self._request(high, by)), self._largest[2]]
        return self._run(self._request(high, by), self._request(check, by))

    def _first(self, batch) -> Outcome | None:
        """The run with this batch in the DataLoaders; None: it may run with its own."""
        outcome = None
        try:
            request = replace(self._request(batch), may_compile_later=self._saved is None)
            outcome = self.runs.wait(self.runs.start(request), self.label)
            return self._good(outcome)
        except CaptureError as error:
            if isinstance(error, TooLongError) or outcome is not None and not outcome.batch_replaced:
                raise  # it would take as long, or fail as it is
            return None

    def _without_loader(self) -> dict:
        """The script's own batch is known from a run as it is; others by the name that carries it."""
        own = self._own or self._as_it_is()
        if own is self._own and own.saved and self._saved is None:
            compiled.warm_up()  # once, for all runs that follow
            self._saved = own.saved
        named = [way for way, value in dict(own.batch_names).items() if value in (*own.sizes, own.batch)]
        computed = [way for way, _ in own.batch_names if way.startswith("computed:")]
        others = list(dict.fromkeys(way for way, value in own.other_names if value == own.batch and way not in named))
        literals = [way for way in others if way.startswith("literal:")]
        others = [way for way in others if way not in literals]
        help_ = "name what carries it with --batch-arg NAME"
        for way in [] if self._loops else named + computed[:_OTHER_NAMES] + literals + others[:_OTHER_NAMES]:
            try:
                return self._by(way, own)
            except CaptureError as error:
                if isinstance(error, anew.NotCompiled) and own.compiles_later:
                    raise
                self.say(f"other batches by {_called(way)} did not work out ({_short(error)})")
                if isinstance(error, NotAffineError):
                    help_ = f"with another {_called(way)} its step is another program: {_ANOTHER}"
                if isinstance(error, TooLongError):
                    break  # by another name it would take as long
        batch = dict(own.batch_names)[named[0]] if named else own.batch or 1
        return self._of_one_batch(own, batch, f"each sample has operators of its own: {_ANOTHER}" if self._loops else help_)

    def _of_one_batch(self, own: Outcome, batch: int, way: str) -> dict:
        self.notes.append(f"other batches than {batch} could not be made: this answer is for that one; {way}")
        self._parts_are_equal = False
        own = self._run(self._request(None))[0] if own.compiles_later else own
        dimension = protocol.fixed(Dimension("batch", batch), batch)
        return self._write([own, own], dimension, own)

    def _named_way(self, name: str) -> str:
        return f"word:{name}" if name.startswith("-") or "." in name else f"any:{name}"

    def _by(self, way: str, own: Outcome | None = None) -> dict:
        own = own or self._as_it_is()
        if way.startswith("any:"):
            name = way[4:]
            ways = [w for w, _ in own.batch_names if w.partition(":")[2] == name.replace("-", "_")] + [f"word:{name}", f"variable:{name}"]
        else:
            ways = [way]
        error: CaptureError = CaptureError(f"nothing of the name {way} was found in {self.label}")
        for one in dict.fromkeys(ways):
            for points in (_POINTS, _POWERS):
                try:
                    return self._by_name(one, own, points)
                except CaptureError as failed:
                    if isinstance(failed, anew.NotCompiled) and own.compiles_later:
                        raise
                    error = failed
                if not isinstance(error, UserCodeError):
                    break  # powers of two help where the script refuses an odd batch
        raise error

    def _by_name(self, one: str, own: Outcome, points) -> dict:
        low, high, check = points
        self._parts_are_equal = own.parts.many_alike()
        self._decides(own, check, one)
        outcomes = self._run(self._request(low, one)) + self._others(high, check, one)
        if len({str(o.sizes) for o in outcomes}) == 1:
            raise CaptureError(f"the batch stayed as it was whatever {_called(one)} was")
        if len({str([row[1][:2] for row in o.raw.parameters]) for o in (own, *outcomes)}) > 1:
            raise CaptureError(f"{_called(one)} decides sizes of the model's weights")
        self.default = dict((*own.other_names, *own.batch_names)).get(one) or own.batch
        if not any(f.setting == "batch" for f in own.facts):
            own = replace(own, facts=[*own.facts, Fact("batch", self.default, f"batch {self.default} ({_called(one)})")])
        return self._line_or_square(outcomes, points, one, own)

    def _line_or_square(self, outcomes: list, points, by: str, own: Outcome | None = None) -> dict:
        """The document of these runs: sizes in proportion to the batch, or with its square, as those of a contrastive loss."""
        notes = list(self.notes)
        try:
            return self._at(*outcomes, sizes=points, own=own)
        except NotAffineError:
            further = _FURTHER[points]
            if not _alike(outcomes):
                raise
        self.notes = notes
        known = dict(zip(points, outcomes))
        more = [known[size] if size in known else self._run(self._request(size, by))[0] for size in further]
        return self._at(*more, sizes=further, own=own or outcomes[0])

    def _at(self, *outcomes, sizes, own: Outcome | None = None) -> dict:
        own = own or outcomes[0]
        default = self.default or own.batch or protocol.BATCH_DEFAULT
        dimension = replace(Dimension("batch", default, degree=len(sizes) - 2), captured=tuple(sizes[:-1]), verified=sizes[-1])
        return self._write(list(outcomes), dimension, own)

    def _write(self, outcomes: list, dimension: Dimension, own: Outcome) -> dict:
        raws, own = [_copied(o.raw) for o in outcomes], replace(own, facts=[replace(f) for f in own.facts])
        sizes = [*dimension.captured, dimension.verified]
        if dimension.degree == 1 and beside.hold_data_sets(raws, sizes):
            self.notes.append("a tensor that holds data of many batches has no size that follows from the batch: the largest was taken")
        if dimension.degree:
            beside.straighten_workspaces(raws, sizes)
        self._host_memory(raws, own)
        self._residents(raws, beside.on_a_line([o.resident_bytes for o in outcomes], sizes), own)
        if not dimension.degree:
            self._drop_validation(own, dimension.default)
        notes = list(dict.fromkeys([*self.notes, *own.notes]))
        if notes:
            raws[0].notes.setdefault("unfaithful", []).extend(notes)
        graphs = self._compiled(raws[0], own)
        head = {"name": self.asked.name or pathlib.Path(self.asked.script).stem, "mode": "train",
                "precision": own.precision, "script": self._script(own)}
        about = {"sample": None, "optimizer": own.optimizer, "training": own.training, "compiled": graphs}
        return step_file.document(Fitter([dimension]), raws, head, self._provenance(own), about)

    def _compiled(self, raw, own: Outcome) -> dict | None:
        """What the step file says of torch.compile's graphs; the script's finding follows it."""
        operators = [e for e in raw.events if e[0] == "o"]
        outside = sum("c" not in e[7] for e in operators)
        if outside < len(operators):
            if self.compile and not any(f.setting == "compile" for f in own.facts):
                own.facts.append(Fact("compile", True, "torch.compile by --compile"))
            about = compiled.about(raw)
            raw.notes.setdefault("unfaithful", []).append(
                f"torch.compile: {len(operators) - outside:,} operators of the step lie in {about['graphs']} runs of graphs, {outside:,} "
                "outside of them run eagerly")
            return about
        lost = False
        for fact in own.facts:
            if fact.setting == "compile" and fact.value:
                fact.value, fact.words = False, f"{fact.words}, of nothing that the step runs"
            elif fact.setting == "compile" and self._compiler_failed:
                fact.words = fact.words.replace("passed over", "run eagerly")
            lost = lost or fact.setting == "compile" and fact.words.endswith("run eagerly")
        return {"by": "nothing", "graphs": 0} if lost or self._compiler_failed else None

    def _host_memory(self, raws: list, own: Outcome) -> None:
        """What the script and its libraries hold on the host, where that is the memory of the step."""
        own_bytes = own.own_bytes if own.own_bytes >= _LEAST_OWN_BYTES else 0
        if self.gpu is not None or own_bytes + own.build_bytes <= 0:
            return
        beside.hold(raws, [own_bytes + own.build_bytes] * len(raws))
        words = [f"{own_bytes / 2**20:.0f} MiB of the script's own data on the host"] if own_bytes else []
        words += [f"{own.build_bytes / 2**20:.0f} MiB that PyTorch's GPU build takes beyond its CPU build"] if own.build_bytes > 0 else []
        words[-1] += f", less {-own.build_bytes / 2**20:.0f} MiB of PyTorch's compiler, which is not loaded" if own.build_bytes < 0 else ""
        own.facts.append(Fact("script-memory", own_bytes + own.build_bytes, " and ".join(words)))

    def _residents(self, raws: list, counts: list, own: Outcome) -> None:
        """What the script keeps on the GPU and no step shows."""
        fact = residents.fact(own.resident_bytes, own.largest_resident)
        if fact is not None:
            beside.hold(raws, counts, "kept beside the step")
            own.facts.append(fact)

    def _drop_validation(self, own: Outcome, batch: int) -> None:
        """A step of one batch alone answers for no larger one."""
        for fact in own.facts:
            if fact.setting == "validation" and fact.value > batch:
                self.notes.append(f"the validation of batch {fact.value} is not counted: the step answers for batch {batch} alone")
                own.facts = [f for f in own.facts if not f.setting.startswith("validation")]
                return

    def _script(self, own: Outcome) -> dict:
        found = [{"setting": f.setting, "value": f.value, "words": f.words, "file": f.site.file, "line": f.site.line} for f in own.facts]
        reads = [{"operator": o, "dtype": d, "answer": a, "file": f, "line": line, "count": n} for o, d, a, f, line, n in own.reads]
        return {"file": self.asked.script, "arguments": list(self.asked.arguments), "found": found, "reads": reads,
                "steps": own.steps, "sources": own.files}

    def _provenance(self, own: Outcome) -> dict:
        import torch

        return {"spec": self.asked.script, "capture": own.device.capture, "torch": str(torch.__version__),
                "python": platform.python_version(),
                "stoker": VERSION, "libraries": own.libraries}


def _copied(raw):
    """A step to write into: the run's own stays as it was, for another document of it."""
    return replace(raw, storages=[list(row) for row in raw.storages], buffers=list(raw.buffers), notes=copy.deepcopy(raw.notes))


def _alike(outcomes: list) -> bool:
    """Whether the runs had the same operators, whatever their sizes."""
    names = [[event[1] for event in o.raw.events if event[0] == "o"] for o in outcomes]
    return all(row == names[0] for row in names)


def _called(way: str) -> str:
    """What carries the batch, in words."""
    kind, _, name = way.partition(":")
    return f"the {name} written in the code" if kind == "literal" else name


def _short(error) -> str:
    return str(error).splitlines()[0][:160]
