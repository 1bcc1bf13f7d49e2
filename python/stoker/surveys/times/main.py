"""Runs the cases within a budget and writes each result as it comes; a second run goes on where the first ended."""

import argparse
import csv
import json
import pathlib
import sys
import time

from ...calibrate.gpu import watch, worker
from ...durations import seconds
from ...errors import CaptureError
from .. import about, models
from . import cases, fit_rows

CHILD = "stoker.surveys.times.child"
BUDGET_S = 480
CASE_LIMIT_S = 60
RESERVE_S = 6  # no case begins with less: it would be cut short
ABOUT = ("gpu", "driver", "torch", "cuda")
TABLES = {
    "operator": ("operators.csv", ("case", "operator", "shape", "kind", "sizes", "precision", "pass", "time_us", "kernel_us",
                                   "call_us", "idle_us", "host_us", "spread", "warm", "calls", "copies", "flops",
                                   "operand_bytes", *watch.COLUMNS, *ABOUT, "status", "note")),
    "step": ("steps.csv", ("case", "model", "spec", "precision", "optimizer", "optimizer_loop", "batch", "flags", "step_ms",
                           "step_ms_low", "step_ms_high", "wall_ms", "forward_ms", "backward_ms", "optimizer_ms", "host_ms",
                           "graph_ms", "steps", "memory_bytes", *watch.COLUMNS, *ABOUT, "status", "note")),
    "host": ("host.csv", ("case", "what", "name", "bytes", "us", "gb_per_s", *ABOUT, "status", "note")),
}


def seconds_of(text):
    """"480", "480s", "8m" -> seconds."""
    try:
        return seconds(text, "--budget")
    except CaptureError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 480, 480s or 8m") from None


def parser():
    p = argparse.ArgumentParser(prog="measure-time", allow_abbrev=False,
                                description="Measures operators and training steps on this GPU; docs/guide/measuring-gpus.md")
    p.add_argument("-o", "--output", metavar="DIR", help="default: data/measured/DATE-GPU; one that exists is gone on with")
    p.add_argument("--budget", type=seconds_of, default=BUDGET_S, metavar="TIME", help=f"stop after this; default {BUDGET_S}s")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a few small cases, to try the script itself")
    p.add_argument("--list", action="store_true", help="print the cases in order and stop")
    return p


class Results:
    """The three tables and machine.json; each row is on disk when it is shown."""

    def __init__(self, folder, about):
        self.folder, self.about, self.counts, self.done = folder, about, {}, set()
        folder.mkdir(parents=True, exist_ok=True)
        self._check_same_machine()
        self._files, self._tables = [], {}
        for kind, (name, columns) in TABLES.items():
            path = folder / name
            fresh = not path.exists() or path.stat().st_size == 0
            if not fresh:
                with open(path, newline="") as file:
                    self.done |= {(kind, row["case"]) for row in csv.DictReader(file)}
            file = open(path, "a", newline="")
            self._tables[kind] = csv.DictWriter(file, columns, extrasaction="ignore", restval="")
            self._files.append(file)
            if fresh:
                self._tables[kind].writeheader()
            file.flush()

    def _check_same_machine(self):
        path = self.folder / "machine.json"
        if not path.exists():
            return
        before = json.loads(path.read_text())
        differing = [key for key in ABOUT if before.get(key) != self.about[key]]
        if differing:
            sys.exit(f"measure-time: {self.folder} was measured with another {', '.join(differing)}: name another folder with -o")
        self.about["runs"] = before.get("runs", [])

    def add(self, case, rows, seen):
        for row in rows:
            self.counts[row["status"]] = self.counts.get(row["status"], 0) + 1
            told = {k: (f"{v:.5g}" if isinstance(v, float) else v) for k, v in {**case, **seen, **row}.items()}
            told |= {key: self.about[key] for key in ABOUT} | {"case": cases.key_of(case)}
            if case["kind"] == "operator":
                kind, sizes = cases.fit_terms(case, row.get("pass", ""))
                told |= {"shape": cases.shape_text(case["shape"]), "kind": kind, "sizes": cases.shape_text(sizes)}
            if case["kind"] == "step":
                told |= {"spec": models.spec_of(case["model"]), "flags": cases.flags(case)}
            self._tables[case["kind"]].writerow(told)
        for file in self._files:
            file.flush()

    def finish(self, run):
        about = {**self.about, "runs": [*self.about.get("runs", []), {**run, "counts": self.counts}]}
        (self.folder / "machine.json").write_text(json.dumps(about, indent=2) + "\n")

    def close(self):
        for file in self._files:
            file.close()


def _say(seconds, case, rows):
    def figure(row):
        for key, unit in (("kernel_us", "us"), ("call_us", "us"), ("step_ms", "ms"), ("us", "us")):
            if row.get(key) is not None:
                return f"{row[key]:,.4g} {unit}"
        return row.get("note", "")

    print(f"{seconds:6.1f} s  {cases.key_of(case)}: " + ", ".join(f"{r['status']} {figure(r)}" for r in rows), flush=True)


def run_all(planned, options, results, measuring, seen):
    """Whether every case has been run, now or before."""
    try:
        measuring.start()
    except worker.NoStart as error:
        sys.exit(f"measure-time: {error}")
    started = time.monotonic()
    for case in planned:
        if (case["kind"], cases.key_of(case)) in results.done:
            continue
        left = options.budget - (time.monotonic() - started)
        if left < min(RESERVE_S, options.budget / 2):
            return False
        case = {**case, "device": options.device}
        rows = measuring.run(case, min(CASE_LIMIT_S, left))
        if not rows and left < CASE_LIMIT_S:
            return False  # the budget cut it: it is the next run's first
        rows = rows or [{"status": "failed", "note": f"took longer than {CASE_LIMIT_S:.0f} s"}]
        results.add(case, rows, seen.latest())
        _say(time.monotonic() - started, case, rows)
    return True


def main():
    options = parser().parse_args()
    planned = cases.planned() if options.device == "cuda" else cases.short()
    if options.list:
        print("\n".join(json.dumps(case) for case in planned))
        return 0
    facts = {**about.describe(options.device), "schema": "stoker-measured-time-1"}
    if options.device == "cuda" and not facts["nvidia_smi"].get("name"):
        sys.exit("measure-time: nvidia-smi shows no GPU here; with --device cpu the script itself can be tried")
    slug = about.slug(facts["gpu"])
    folder = pathlib.Path(options.output or models.SCRIPTS.parent / "data" / "measured" / f"{about['date'][:10]}-{slug}")
    results, measuring, seen = Results(folder, facts), worker.Worker(CHILD), watch.Watch(options.device == "cuda")
    complete, started = False, time.monotonic()
    try:
        complete = run_all(planned, options, results, measuring, seen)
    finally:
        measuring.close()
        seen.close()
        seconds = time.monotonic() - started
        results.finish({"date": facts["date"], "seconds": round(seconds, 1), "complete": complete, "watched": seen.summary()})
        results.close()
        fit_rows.write(folder)
    print(f"{folder}: {results.counts} in {seconds:.0f} s"
          f"{'' if complete else '; the budget ended before the list did: run it again with -o to go on'}")
    return 0 if results.counts.get("ok") or complete else 1
