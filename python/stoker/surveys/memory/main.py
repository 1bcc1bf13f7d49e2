"""Runs the cases within a budget and writes each result as it comes."""

import argparse
import csv
import json
import pathlib
import sys
import time

from .. import about, models
from . import cases
from .pool import Pool
from .search import tries

BUDGET_S = 480
CASE_LIMIT_S = 60
RESERVE_S = 8  # no case begins with less: it would be cut short
COLUMNS = ("model", "spec", "precision", "optimizer", "optimizer_loop", "batch", "cudnn_benchmark", "gpu", "driver", "torch",
           "cuda", "allocated_peak_bytes", "reserved_peak_bytes", "device_peak_bytes", "context_bytes", "status", "note",
           "flags", "limit_bytes")


def parser():
    p = argparse.ArgumentParser(prog="measure-memory", allow_abbrev=False,
                                description="Measures what training steps take on this GPU; docs/guide/measuring-gpus.md")
    p.add_argument("-o", "--output", metavar="DIR", help="default: data/measured/GPU-DATE")
    p.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS", help=f"stop after this; default {BUDGET_S}")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--short", action="store_true", help="a few small cases of each kind")
    p.add_argument("--list", action="store_true", help="print the cases in order and stop")
    return p


class Results:
    """memory.csv for the bench, results.jsonl with everything, metadata.json; each row is on disk when it is shown."""

    def __init__(self, folder, metadata):
        self.folder, self.metadata, self.counts = folder, metadata, {}
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "memory.csv").exists():
            sys.exit(f"measure-memory: {folder} holds results already: name another folder with -o")
        self._csv = open(folder / "memory.csv", "w", newline="")
        self._lines = open(folder / "results.jsonl", "w")
        self._table = csv.DictWriter(self._csv, COLUMNS, extrasaction="ignore")
        self._table.writeheader()
        self.finish(False)

    def add(self, case, row):
        self._lines.write(json.dumps({"case": case, **row}) + "\n")
        self._lines.flush()
        self.counts[row["status"]] = self.counts.get(row["status"], 0) + 1
        if case["kind"] != "step":
            return
        spec = models.spec_of(case["model"])
        machine = {key: self.metadata[key] for key in ("gpu", "driver", "torch", "cuda")}
        self._table.writerow({**machine, "note": "", **case, **row, "spec": spec, "flags": cases.flags(case),
                              "cudnn_benchmark": int(case["cudnn_benchmark"])})
        self._csv.flush()

    def finish(self, complete, seconds=0.0):
        self.metadata.update(complete=complete, seconds=round(seconds, 1), counts=self.counts)
        (self.folder / "metadata.json").write_text(json.dumps(self.metadata, indent=2) + "\n")


class Session:
    def __init__(self, options, results, pool):
        self.options, self.results, self.pool = options, results, pool
        self.others = results.metadata["others_bytes"]
        self.start = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.start

    def left(self):
        return self.options.budget - self.seconds()

    def run(self, case):
        case = {**case, "device": self.options.device, "others_bytes": self.others}
        if case["kind"] == "snapshot":
            name = f"{case['model']}-{case['precision']}-{case['optimizer']}-{case['batch']}.pickle.gz"
            case["file"] = str(self.results.folder.resolve() / name)
        row = self.pool.run(case, min(CASE_LIMIT_S, max(self.left(), 1)))
        self.results.add(case, row)
        self._say(case, row)
        return row

    def _say(self, case, row):
        what = " ".join(str(case[k]) for k in ("model", "precision", "optimizer", "optimizer_loop", "batch") if k in case)
        peak = row.get("device_peak_bytes")
        figure = f"{peak / 2**20:,.0f} MiB" if peak else row.get("note", "")
        print(f"{self.seconds():6.1f} s  {case['kind']} {what} {cases.flags(case) if 'model' in case else ''}: "
              f"{row['status']} {figure}", flush=True)

    def search(self, model, precision, limit):
        def attempt(batch):
            if self.left() < RESERVE_S:
                return {"status": "out of time"}
            return self.run(cases.step(model, precision, "adamw", "foreach", batch, iterations=3, limit_bytes=limit))

        for _ in tries(attempt):
            pass

    def all(self, planned):
        """Whether every case ran."""
        for case in planned:
            if self.left() < RESERVE_S:
                return False
            if case == "searches":
                for search in cases.SEARCHES if self.options.device == "cuda" else ():
                    self.search(*search)
            else:
                self.run(case)
        return True


def main():
    options = parser().parse_args()
    planned = cases.short() if options.short else cases.planned()
    if options.list:
        print("\n".join(json.dumps(case) for case in planned))
        return 0
    metadata = about.describe(options.device)
    if options.device == "cuda" and not metadata["nvidia_smi"].get("name"):
        sys.exit("measure-memory: nvidia-smi shows no GPU here; with --device cpu --short the script itself can be tried")
    slug = about.slug(metadata["gpu"])
    folder = pathlib.Path(options.output or models.SCRIPTS.parent / "data" / "measured" / f"{slug}-{metadata['date'][:10]}")
    results = Results(folder, metadata)
    pool = Pool()
    session = Session(options, results, pool)
    try:
        complete = session.all(planned)
    finally:
        pool.close()
    results.finish(complete, session.seconds())
    print(f"{folder}: {results.counts} in {session.seconds():.0f} s{'' if complete else '; the budget ended before the list did'}")
    return 0 if results.counts.get("ok") else 1
