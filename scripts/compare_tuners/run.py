"""Runs tuners on recorded curves, and keeps what each came to."""

from __future__ import annotations

import collections
import datetime
import importlib.metadata
import json
import os
import pathlib
import subprocess

from .record import load, save
from .table import Table, came_to
from .tuners import TUNERS

FORMAT = "stoker-tuner-comparison"


def versions() -> dict:
    found = {}
    for name in ("optuna", "ray"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    done = subprocess.run([os.environ.get("STOKER_BINARY", "stoker"), "--version"], capture_output=True, text=True)
    found["stoker"] = done.stdout.split()[-1] if done.stdout else ""
    return found


def run(curves: list, out: pathlib.Path, names: list, seeds: int, budget: int) -> None:
    """Adds what the file has not. A tuner's seed 0, 1, 2, ... meets the training seed of the same number."""
    new = {"format": FORMAT, "schema_version": [1, 0], "budget": budget, "tasks": {}, "runs": {}}
    found = json.loads(out.read_text()) if out.exists() else new
    found["date"] = datetime.date.today().isoformat()
    found["versions"] = {**found.get("versions", {}), **versions()}  # a tuner that is not installed here may have run elsewhere
    for path in curves:
        recorded = load(path)
        for task, about in recorded["tasks"].items():
            seen = collections.Counter(int(key.split("/")[1]) for key in recorded["curves"] if key.startswith(task + "/"))
            trained = sorted(seed for seed, rows in seen.items() if rows == len(about["samples_per_s"]))
            tables = [Table(recorded, task, trained[seed % len(trained)]) for seed in range(seeds)]
            targets = [abs(table.target()) for table in tables]
            found["tasks"][task] = {"metric": about["metric"], "more": about["more"], "samples": about["samples"], "trained": trained,
                                    "target": f"{min(targets):.3f} to {max(targets):.3f}"}
            for name in names:
                rows = found["runs"].setdefault(name, {}).setdefault(task, {})
                for seed, table in enumerate(tables):
                    if str(seed) in rows:
                        continue
                    rows[str(seed)] = came_to(table, TUNERS[name](table, seed, budget), budget)
                    save(out, (json.dumps(found, indent=1) + "\n").encode())
                    print(f"{task}, {name}, seed {seed}: {rows[str(seed)]}", flush=True)
