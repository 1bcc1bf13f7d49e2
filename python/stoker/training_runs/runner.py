"""python -m stoker training-runs: trains models for some steps, each repetition in a process of its own, in shuffled order."""

from __future__ import annotations

import itertools
import os
import random
import re
import statistics
import sys
import time

from .. import front
from ..arguments import Parser, pairs
from ..durations import seconds
from ..errors import CaptureError
from ..measure import machine, reference, rows_file, signals
from ..measure.leftovers import Warden
from ..plain import counted, printable_lines
from . import facts, figures, judge, process, rows

_SEED = 20261
_ATTEMPTS = 8  # repetitions of a run at most, in one call
_LATE = 0.05  # share of the budget beyond it: what is still running then is cut off and not used
_TIMED_S, _SHORTEST_S = 1.5, 0.4  # the timed steps of one repetition
_OVERHEAD_S = 4.0  # one repetition beside its steps: the interpreter, PyTorch, the model, warming up
_FEWEST_S = 5.0  # no repetition of unknown length begins with less
_COMPILING = 4  # times as long may a repetition take whose first step compiles C++
_HANG_S, _HANG_SHARE = 60.0, 0.5  # a repetition takes no longer than that, or than this share of the budget
_SAVE_EVERY_S = 10.0
_INTERRUPTED = 130  # exit code, 128 + SIGINT
_KEPT_FREE = 0.05  # share of the machine's memory, so that a model that does not fit fails instead of the machine


def parser():
    p = Parser(
        prog="stoker training-runs",
        description="Runs real training steps on this machine and writes a rows file for stoker validate.",
        epilog="MODEL is what capture takes: FILE.py:FUNCTION, torchvision:NAME, timm:NAME; MODEL@8,16 has batches of its own")
    p.add_argument("models", nargs="+", metavar="MODEL")
    p.add_argument("--out", required=True, metavar="ROWS.json", help="continued when it exists")
    p.add_argument("--device", metavar="D", help="cpu, cuda or cuda:N (default: the first GPU if PyTorch has one)")
    p.add_argument("--batches", default="auto", metavar="N,N", help="auto (default): the model's own batch, half and twice of it")
    p.add_argument("--threads", metavar="N,N", help="of the host (default: PyTorch's own number)")
    p.add_argument("--precision", default="fp32", metavar="P,P", help=", ".join(front.PRECISIONS) + " (default fp32)")
    p.add_argument("--optimizer", metavar="O", help="sgd, adam, adamw, rmsprop, adagrad, adadelta, adamax, nadam or radam "
                   "(default: the capture's, else sgd)")
    p.add_argument("--compile", action="store_true", help="under torch.compile")
    p.add_argument("--data", metavar="FILE.py:FUNCTION", help="a function that returns your DataLoader, in place of synthetic data")
    p.add_argument("--image-size", type=int, metavar="N", help="side of the images (torchvision, timm)")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an argument of the capture function; may repeat")
    p.add_argument("--budget", default="2m", metavar="TIME", help="the whole call takes no longer (default 2m)")
    p.add_argument("--steps", rare=True, type=int, metavar="N", help="timed in each repetition (default: 1.5 s of them, 5 or more)")
    p.add_argument("--repetitions", rare=True, type=int, default=judge.NEEDED, metavar="N",
                   help=f"good ones that each run needs (default {judge.NEEDED})")
    p.add_argument("--attempts", rare=True, type=int, default=_ATTEMPTS, metavar="N",
                   help=f"repetitions of each run at most in this call, good or not (default {_ATTEMPTS})")
    p.add_argument("--end-with-parent", rare=True, action="store_true", help="stop when the process that called this ends")
    p.add_argument("--quiet", rare=True, action="store_true", help="say nothing but errors")
    return p


def numbers(text: str, flag: str) -> list:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1 or len(set(found)) != len(found):
        raise CaptureError(f"{flag} {text}: write whole numbers, 1 or more and each once, with commas between: {flag} 4,8")
    return found


def models_of(given: list, batches: str) -> dict:
    """spec -> its batches (None: to be asked of the model). MODEL@8,16 names them; --batches is for the others."""
    usual = None if batches == "auto" else numbers(batches, "--batches")
    found = {}
    for text in given:
        spec, at, own = text.rpartition("@")
        if not at or not re.fullmatch(r"[0-9,]+", own):
            spec, own = text, None
        chosen = usual if own is None else numbers(own, f"{spec} @")
        if spec in found and chosen is not None:
            chosen = sorted({*(found[spec] or []), *chosen})
        found[spec] = chosen
    return found


def _checked(options) -> None:
    """Refuses what cannot be meant, before anything is started."""
    from ..measure import trainer

    for precision in options.precision.split(","):
        front.check(precision, None, None, options.image_size)
    if options.optimizer is not None and options.optimizer not in trainer.OPTIMIZERS:
        raise CaptureError(f"--optimizer {options.optimizer}: choose from {', '.join(trainer.OPTIMIZERS)}")
    for flag, value in (("--steps", options.steps), ("--repetitions", options.repetitions), ("--attempts", options.attempts)):
        if value is not None and value < 1:
            raise CaptureError(f"{flag} {value}: give 1 or more")
    if options.compile:
        from ..tracing import compiled

        compiled.check_version()
    rows_file.check_place(options.out)


class Run:
    """The state of one call."""

    def __init__(self, options, say, begun: float, warden: Warden):
        import torch

        self.options, self.say, self.warden = options, say, warden
        budget = seconds(options.budget, "--budget")
        self.end, self.hard_end = begun + budget, begun + budget * (1 + _LATE)
        self.hang = max(_HANG_S, _HANG_SHARE * budget) * (_COMPILING if options.compile else 1)
        self.device = facts.check(options.device or ("cuda" if torch.cuda.device_count() else "cpu"))
        self.settings = pairs(options.set, "--set")
        self.threads = numbers(options.threads, "--threads") if options.threads else [torch.get_num_threads()]
        self.observations = itertools.count()
        self.longest = {}  # seconds of the longest repetition, by run and by model
        self.traced = set()  # models whose traceback has been shown
        self.file = None
        self.batches = models_of(options.models, options.batches)
        self._settle_facts()
        torch.set_num_threads(1)  # for the reference kernel
        self.reference = reference.OnEachCore(reference.TRAINING)
        if self.file["reference_ms"] is None:
            self.file["reference_ms"] = round(self.reference.milliseconds(), 4)
        self.file["needed"] = options.repetitions
        self.budget = budget

    def left(self) -> float:
        return self.end - time.monotonic()

    def save(self) -> None:
        if self.file is not None:
            rows.write(self.file, self.options.out)

    # -- what is measured ----------------------------------------------------------------------------------------

    def _settle_facts(self) -> None:
        """The device, the versions and the batches; what needs a CUDA context or the user's code is asked of a child."""
        specs = [spec for spec, batches in self.batches.items() if batches is None]
        if self.device == "cpu" and not specs:
            device, versions = facts.device("cpu"), facts.versions("cpu")
        else:
            found = self._child({"specs": specs, **self._common("fp32")}, self.hard_end)
            if found["status"] != "ok":
                sys.stderr.write(printable_lines(found.get("trace", "")))
                raise CaptureError(found["note"])
            device, versions = found["device"], found["versions"]
            if self.device != "cpu":  # seen from here, where nothing of ours is on it
                device["others_bytes"] = facts.others_bytes(facts.nvidia_smi(facts.selector(self.device)))
            for spec, own in found["batches"].items():
                self.batches[spec] = sorted({max(1, own // 2), own, 2 * own})
        if rows_file.begun(self.options.out):
            self.file = rows.read(self.options.out)
            rows.check_same_machine(self.file, device, versions, self.options.out)
        else:
            self.file = rows.empty(device, versions)

    def _common(self, precision: str) -> dict:
        limit = None
        if self.device == "cpu":
            limit = int(machine.available_memory() - _KEPT_FREE * machine.memory_bytes())
        return {"device": self.device, "precision": precision, "options": self.settings, "image_size": self.options.image_size,
                "compile": self.options.compile, "limit_bytes": limit}

    def wanted(self) -> list:
        """The runs of this call: entries of the rows file."""
        asked = {"optimizer": self.options.optimizer, "options": self.settings, "data": self.options.data,
                 "image_size": self.options.image_size}
        own = {"compile": True} if self.options.compile else {}  # rows of eager steps stay as they are
        asked |= own
        found = []
        for model, batches in self.batches.items():
            for precision, threads, batch in itertools.product(self.options.precision.split(","), self.threads, batches):
                wanted = {"model": model, "batch": batch, "threads": threads, "precision": precision, "asked": asked}
                known = rows.run_of(self.file, wanted)
                if known is None:
                    known = {"model": model, "name": model.rpartition(":")[2], "batch": batch, "threads": threads,
                             "precision": precision, "asked": asked, "optimizer": None, "grad_scaler": False, "steps": 0,
                             "status": rows.WAITING, "note": "", "repetitions": [], **own}
                    self.file["runs"].append(known)
                found.append(known)
        return found

    # -- measuring -----------------------------------------------------------------------------------------------

    def measure(self) -> int:
        """Passes over all runs in shuffled order until each is settled; the number of those that are not."""
        todo, needed = self.wanted(), self.options.repetitions
        each = 0.8 * self.left() / max(1, len(todo) * needed) - _OVERHEAD_S
        timed_s = min(_TIMED_S, max(_SHORTEST_S, each))
        chance, saved = random.Random(_SEED), time.monotonic()
        for _ in range(self.options.attempts):
            order = list(range(len(todo)))
            chance.shuffle(order)
            order.sort(key=lambda i: len(todo[i]["repetitions"]))  # a call that continues takes up where the last one stopped
            for at in order:
                run = todo[at]
                if judge.settled(run, needed) or self.left() < self._expected(run):
                    continue
                self._repetition(run, timed_s)
                self._tell(todo, run)
                if time.monotonic() - saved > _SAVE_EVERY_S:
                    self.save()
                    saved = time.monotonic()
            if all(judge.settled(run, needed) for run in todo):
                break
        missing = sum(not judge.settled(run, needed) for run in todo)
        self.file["complete"] = all(judge.settled(run, needed) for run in self.file["runs"])
        self.save()
        return missing

    def _expected(self, run: dict) -> float:
        """Seconds of a repetition: as long as the run's own, else as a run of the same model, else unknown."""
        return self.longest.get(self._key(run), self.longest.get(run["model"], _FEWEST_S))

    @staticmethod
    def _key(run: dict) -> tuple:
        return run["model"], run["batch"], run["threads"], run["precision"]

    def _child(self, case: dict, deadline: float, begin=lambda: None) -> dict:
        path = os.path.join(self.warden.folder, f"{next(self.observations)}.obs.jsonl")
        try:
            answer = process.run({**case, "observation": path}, deadline, begin, self.warden)
            if answer["status"] == "ok" and "steps" in answer:
                answer["row"] = figures.of(path, answer)
            return answer
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def _repetition(self, run: dict, timed_s: float) -> None:
        readings = []

        def begin():
            self.reference.settle(self.file["reference_ms"] * judge.SETTLED, min(4.0, 0.02 * self.budget))
            readings.append(self.reference.milliseconds())

        smi = facts.nvidia_smi(facts.selector(self.device)) if self.device != "cpu" else {}
        case = {"spec": run["model"], "batch": run["batch"], "threads": run["threads"], "optimizer": self.options.optimizer,
                "data": self.options.data, "steps": self.options.steps, "seconds": timed_s, "end": self.end,
                "others_bytes": facts.others_bytes(smi), **self._common(run["precision"])}
        mark = time.monotonic()
        deadline = min(self.hard_end, mark + self.hang)
        try:
            answer = self._child(case, deadline, begin)
        except process.Cut:
            answer = {"status": "no time"}
            if deadline < self.hard_end:
                answer = {"status": "failed", "note": f"a repetition did not end within {self.hang:.0f} s"}
        took = time.monotonic() - mark
        for key in (self._key(run), run["model"]):
            self.longest[key] = max(took, self.longest.get(key, 0))
        if answer["status"] == "no time":
            return
        self._keep(run, answer)
        if answer["status"] == "ok":
            readings.append(self.reference.milliseconds())
            row = answer["row"]
            row.update(reference_ms=round(statistics.fmean(readings), 4), others_on_gpu=bool(smi.get("processes")))
            run["repetitions"].append(row)
            self.file["reference_ms"] = round(min(self.file["reference_ms"], *readings), 4)
            judge.judge(self.file)

    def _keep(self, run: dict, answer: dict) -> None:
        """What an answer says of its run. One that failed after good repetitions leaves these as they are."""
        if answer["status"] != "ok" and run["repetitions"]:
            run["note"] = f"a later repetition: {answer['note']}"
            return
        run["status"], run["note"] = answer["status"], answer.get("note", "")
        for name in ("name", "optimizer", "grad_scaler", "steps"):
            if name in answer:
                run[name] = answer[name]
        if run["status"] == "oom" and run["batch"] == min(self.batches[run["model"]]):
            run["note"] += " (at the smallest batch)"
        if answer.get("trace") and run["model"] not in self.traced:
            self.traced.add(run["model"])
            sys.stderr.write(printable_lines(answer["trace"].rstrip()) + "\n")

    def _tell(self, todo: list, run: dict) -> None:
        failed = sum(one["status"] == "failed" for one in todo)  # nothing more is to be measured, but nothing was
        settled = sum(judge.settled(one, self.options.repetitions) for one in todo) - failed
        what = f"{run['name']} {run['precision']} batch {run['batch']}, {counted(run['threads'], 'thread')}: "
        if run["status"] == "ok" and run["repetitions"]:
            last = run["repetitions"][-1]
            what += f"{last['step_ms']:.4g} ms a step, {last['resident_peak_bytes'] / 2**20:,.0f} MiB resident"
            what += f" (does not count: {last['why']})" if not last["good"] else ""
        else:
            words = "no time was left for enough steps" if run["status"] == rows.WAITING else f"{run['status']}: {run['note']}"
            what += words.strip()
        what += f"; {settled} of {len(todo)} runs settled" + (f", {failed} failed" if failed else "")
        self.say(f"{what}, {max(0.0, self.left()):.0f} s left")


def main(options, begun: float) -> int:
    _checked(options)

    def say(text):
        if not options.quiet:
            print(f"stoker: {printable_lines(text)}", file=sys.stderr, flush=True)

    signals.catch(options.end_with_parent)
    run = None
    with Warden("stoker-training-runs-") as warden:
        try:
            run = Run(options, say, begun, warden)
            missing = run.measure()
        except process.Cut:
            raise CaptureError(f"--budget {options.budget} was over before the models were loaded: give more") from None
        except KeyboardInterrupt:
            if run is not None:
                run.save()
            say(rows_file.interrupted(options.out) if run is not None else "interrupted")
            return _INTERRUPTED
    return _said(run, missing, say)


def _said(run: Run, missing: int, say) -> int:
    found = run.wanted()
    failed = [one for one in found if one["status"] == "failed"]
    if failed and len(failed) == len(found):
        raise CaptureError(failed[0]["note"])
    if missing:
        cure = "a larger --budget measures the rest" if rows_file.is_descriptor(run.options.out) else "run the same command again to go on"
        say(f"{counted(missing, 'run')} {'is' if missing == 1 else 'are'} not settled so far; {cure}")
    return 0
