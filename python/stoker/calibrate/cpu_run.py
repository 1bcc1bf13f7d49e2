"""One run on the CPU: figures, then blocks of operators, the most valuable first, until all are measured or the budget ends."""

from __future__ import annotations

import gc
import time

from ..errors import CaptureError
from ..measure import contention, forked, processes
from ..measure.contention import Load
from ..plain import counted, percent
from . import cpu_device, cpu_figures, general, operands, operators, rows, wanted
from . import options as words
from .rounds import LEAST_GOOD, ROUNDS, Flush, Progress, Rounds, Timed, set_threads
from .spec import label, row_key
from .speed import Speed

BLOCK_S = 8.0            # all rounds of one block of operators: the machine's state at one time counts in a part of the rows only
_SAVE_EVERY_S = 15.0
_MOST_POOL = 256 << 20
_FIGURES_SHARE = 0.2     # share of the budget, at most
_LONGEST_CALL_S = 0.5    # a longer call would take too much of the budget's rounds; it is left out
_CONTEXT_LIMIT_S = 60.0
_LAST_S = 0.3            # kept for the last writing
_DISTURBED_SHARE = 0.2   # share of readings thrown away, above which the whole calibration counts as disturbed
_BLOCK_OPERATORS = 150   # oneDNN keeps 1,024 kernels; each operator has one or two for each number of threads
_BLOCK_BYTES = 1 << 30   # operands outside of the pool in one block, estimated


class Run:
    """The state of one call; `file` is what will be written."""

    def __init__(self, options, budget, torch):
        self.options, self.budget = options, budget
        self.progress = Progress(options.quiet)
        # Before anything runs in parallel: a process whose OpenMP threads exist must not fork.
        device = cpu_device.describe()
        self.threads = words.threads_of(options.threads, device["cores"])
        self.file = rows.begun(options.out, device, rows.provenance())
        self.specs = self._wanted(words.models_of(options.models))
        if not options.list:
            self._context()
        operands.keep_memory()
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        self.skipped, self.flush = [], Flush(device["l2_bytes"])
        self.rounds = self.load = self.speed = None
        self._saved = time.monotonic()

    def _wanted(self, models: list) -> list:
        docs = []
        for model in models:
            doc = forked.in_child(lambda: wanted.capture_here(model), wanted.CAPTURE_LIMIT_S)
            if "error" in doc:
                message = doc["error"].partition(": ")[2] or doc["error"]
                raise CaptureError(f"--for {model} cannot be captured: {message}")
            docs.append(doc)
        return wanted.ordered(docs) if docs else general.everything()

    def list(self) -> None:
        print("\n".join(label(spec) for spec in self.specs))

    # -- measuring -----------------------------------------------------------------------------------------------------

    def _context(self) -> None:
        known = next((f for f in self.file["figures"] if f["name"] == "context_mib"), None)
        if known is not None:
            return
        found = cpu_device.context_bytes(_CONTEXT_LIMIT_S)
        if "error" in found:
            self.progress(f"what a process holds before its model is not known: {found['error']}", always=True)
            return
        self.file["device"]["context_bytes"] = found["bytes"]
        rows.put_figure(self.file, {"name": "context_mib", "threads": 0, "value": round(found["bytes"] / 2**20, 2), "spread": 0.0})

    def measure(self) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()  # it would run in the middle of a reading
        self.file["complete"] = False
        self.file["threads"] = sorted({*self.file["threads"], *self.threads})
        before = self.file["load"]
        self.speed, self.load = Speed(before.get("reference_ms")), Load(before)
        self.rounds = Rounds(self.speed, self.load)
        self.rounds.taken = before.get("readings", 0)
        self.rounds.thrown_away = before.get("readings_thrown_away", 0)
        for threads in self.threads:
            set_threads(threads)
            for _ in range(10):
                self.speed.reading(threads)
        pool_bytes = min(_MOST_POOL, self.file["device"]["memory_bytes"] // 16)
        self._figures(pool_bytes)
        self.budget.check_interrupts()
        self._operators(operands.Pool(pool_bytes))

    def _figures(self, pool_bytes: int) -> None:
        import torch

        known = {(f["name"], f["threads"]) for f in self.file["figures"]}
        with torch.enable_grad():
            wanted_figures = [f for f in cpu_figures.figures(self.file["device"], self.threads, pool_bytes)
                              if (f.name, f.threads) not in known]
            if not wanted_figures:
                return
            self.progress(f"{len(wanted_figures)} figures of the host, memory and threads", always=True)
            left = self.budget.left()
            cpu_figures.measure(wanted_figures, self.speed, self.load, time.monotonic() + _FIGURES_SHARE * self.budget.seconds,
                                time.monotonic() + 0.7 * left)
        for figure in filter(lambda f: f.values, wanted_figures):
            rows.put_figure(self.file, figure.row())

    def _missing(self) -> list:
        """Specs in order, with the thread counts at which they are not measured well enough yet."""
        done = {(row_key(row), row["threads"]) for row in self.file["operators"] if row["repetitions"] >= LEAST_GOOD}
        found = []
        for spec in self.specs:
            missing = [t for t in self.threads if (spec.key(), t) not in done]
            if missing:
                found.append((spec, missing))
        return found

    def _operators(self, pool) -> None:
        waiting, total, done = self._missing(), len(self.specs), []
        while waiting and self.budget.left() > _LAST_S:
            block, waiting = self._block(waiting, pool)
            if not block:
                break
            self._measure_block(block)
            done += block
            self.progress(f"{total - len(waiting)} of {total} operators, {self.rounds.thrown_away} of {self.rounds.taken} readings "
                          f"thrown away, {max(0.0, self.budget.left()):.0f} s left")
        if not waiting:
            self._measure_again(done, pool)
        self.file["complete"] = not waiting and not self._missing_but_skipped()

    def _measure_block(self, block: list) -> None:
        self.budget.check_interrupts()
        self.rounds.measure(block, self.threads, time.monotonic() + self.budget.left() - _LAST_S)
        for timed in block:
            timed.call = None  # the operands go, the readings stay
            for threads in timed.readings:
                row = timed.row(threads)
                if row is not None:
                    rows.put(self.file, row)
        if time.monotonic() - self._saved > _SAVE_EVERY_S:
            self.save()

    def _measure_again(self, done: list, pool) -> None:
        """With what is left of the budget: the least certain operators once more, at another time and in other memory."""
        known = {timed.spec.key(): timed for timed in done}
        waiting = [(timed.spec, self.threads) for timed in sorted(done, key=lambda t: -t.doubt())]
        while waiting and self.budget.left() > _LAST_S:
            block, waiting = self._block(waiting, pool, known)
            if not block:
                return
            self._measure_block(block)
            self.progress(f"{len(done) - len(waiting)} operators measured again, {max(0.0, self.budget.left()):.0f} s left")

    def _missing_but_skipped(self) -> bool:
        skipped = {spec.key() for spec, _ in self.skipped}
        return any(spec.key() not in skipped for spec, _ in self._missing())

    def _block(self, waiting: list, pool, known: dict | None = None) -> tuple:
        """(warmed-up operators whose rounds fit into a block and into what is left, those that remain). `known` has readings."""
        block, planned, used = [], 0.0, 0
        at = 0
        while at < len(waiting) and len(block) < _BLOCK_OPERATORS:
            left = self.budget.left() - _LAST_S - planned
            if planned >= BLOCK_S or left <= 0.05 or used > _BLOCK_BYTES:
                break
            spec, _ = waiting[at]
            at += 1
            timed = self._warmed(spec, pool, known)
            if timed is None:
                continue
            cost = 1.05 * ROUNDS * sum(timed.expected_s[t] for t in self.threads)
            if planned + cost > self.budget.left() - _LAST_S:
                if block or cost > self.budget.left():
                    continue  # a shorter one may fit
            planned += cost
            used += timed.call.operand_bytes // 2
            block.append(timed)
        return block, waiting[at:]

    def _warmed(self, spec, pool, known):
        try:
            call = operators.build(spec, pool)
            timed = known[spec.key()].again(call) if known else Timed(spec, call, None if spec.warm else self.flush)
            for count in self.threads:
                set_threads(count)
                timed.warm_up(count)
                if timed.expected_s[count] / timed.calls[count] > _LONGEST_CALL_S:
                    raise RuntimeError(f"one call takes more than {_LONGEST_CALL_S} s")
            return timed
        except (RuntimeError, MemoryError, NotImplementedError, AttributeError, TypeError, ValueError) as error:
            lines = str(error).splitlines()
            self.skipped.append((spec, f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]))
            return None

    # -- the file ------------------------------------------------------------------------------------------------------

    def has_rows(self) -> bool:
        return bool(self.file["operators"] or any(f["name"] != "context_mib" for f in self.file["figures"]))

    def save(self) -> None:
        if self.load is not None:
            self.load.lap()
            shares = self.load.shares()
            taken, thrown = self.rounds.taken, self.rounds.thrown_away
            why = objections(shares, thrown / taken if taken else 0.0)
            self.file["load"] = {**shares, "others_on_gpu": 0, "clocks_changed": False, "reference_ms": self.speed.all_usual(),
                                 "readings": taken, "readings_thrown_away": thrown, "disturbed": bool(why), "why": "; ".join(why)}
        self.file["skipped"] = [{"operator": label(spec), "why": why} for spec, why in self.skipped]
        self.file["provenance"]["seconds"] = f"{self.budget.spent():.1f}"
        rows.write(self.file, self.options.out)
        self._saved = time.monotonic()

    def summary(self) -> str:
        text = (f"{counted(len(self.file['operators']), 'row')} of operators and {counted(len(self.file['figures']), 'figure')} "
                f"{rows.place(self.options.out)} ({self.budget.spent():.0f} s)")
        if self._missing():
            text += f"; {len(self._missing())} of {len(self.specs)} operators are left: {rows.going_on(self.options.out)}"
        if self.file["load"]["disturbed"]:
            text += f"; disturbed: {self.file['load']['why']}"
        return text

    def close(self) -> None:
        processes.reap()


def objections(shares: dict, thrown_share: float) -> list:
    """Why a calibration counts as disturbed; empty: it does not."""
    found = []
    if shares["foreign_share"] > contention.MAX_OTHERS:
        found.append(f"other processes used {percent(shares['foreign_share'], 1)} of the cores' time")
    if shares["steal_share"] > contention.MAX_STEAL:
        found.append(f"the hypervisor took {percent(shares['steal_share'], 1)} of the cores' time")
    if thrown_share > _DISTURBED_SHARE:
        found.append(f"{percent(thrown_share)} of the readings were taken while the cores were slower than usual or others ran")
    return found
