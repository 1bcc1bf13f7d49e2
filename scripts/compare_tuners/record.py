"""Records the curves of all configurations of the three tasks."""

from __future__ import annotations

import datetime
import gzip
import json
import pathlib
import platform

FORMAT = "stoker-tuning-curves"


def load(path: pathlib.Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


def save(path: pathlib.Path, data: bytes) -> None:
    """At once or not at all: a run may be ended at any moment."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.replace(path)


def _new() -> dict:
    import torch

    from . import tasks

    return {"format": FORMAT, "schema_version": [1, 0],
            "provenance": {"date": datetime.date.today().isoformat(), "torch": torch.__version__, "python": platform.python_version(),
                           "threads": 1},
            "rates": tasks.RATES, "batches": tasks.BATCHES, "optimizers": tasks.OPTIMIZERS, "evaluations": tasks.EVALUATIONS,
            "tasks": {}, "curves": {}}


def record(path: pathlib.Path, names: list, seeds: int) -> None:
    """Adds what the file has not: task by task, seed by seed. It can be ended at any moment, and started again."""
    import torch

    from . import tasks

    torch.set_num_threads(1)
    found = load(path) if path.exists() else _new()
    for seed in range(seeds):
        for name in names:
            kind = tasks.TASKS[name]
            found["tasks"].setdefault(name, {"metric": kind.metric, "more": kind.more, "samples": kind.samples, "samples_per_s": {}})
            speeds = found["tasks"][name]["samples_per_s"]
            task = None
            for batch in tasks.BATCHES:
                for optimizer in tasks.OPTIMIZERS:
                    key = f"{name}/{seed}/{batch}/{optimizer}"
                    if key in found["curves"]:
                        continue
                    task = task or kind(seed)
                    if f"{batch}/{optimizer}" not in speeds:  # of one network alone; the first evaluation is warm-up
                        tasks.train(task, seed, batch, optimizer, [1e-3], 1)
                        one = tasks.train(task, seed, batch, optimizer, [1e-3], 3)
                        speeds[f"{batch}/{optimizer}"] = round(3 * kind.samples / one["cpu_s"], 1)
                    curves = tasks.train(task, seed, batch, optimizer, tasks.RATES)
                    found["curves"][key] = {part: curves[part] for part in ("held_out", "test")}
                    save(path, gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))
                    print(f"{key}: {curves['cpu_s']:.1f} s of CPU time", flush=True)
