"""Real DataLoaders beside the simulation."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import time

import numpy as np
import torch
from torch.utils.data import DataLoader

from ...measure import machine
from .images import IMAGE_BYTES, Images, children_cpu, images_in, say
from .stages import native_stages, predicted


def cores_left(seconds=0.25):
    """Cores that busy loops get at this moment: what the other load on the machine leaves to a loader."""
    before = children_cpu()
    loops = []
    start = time.perf_counter()
    for _ in range(machine.whole_cores()):
        pid = os.fork()
        if pid == 0:
            while time.perf_counter() - start < seconds:
                pass
            os._exit(0)
        loops.append(pid)
    for pid in loops:
        os.waitpid(pid, 0)
    return (children_cpu() - before) / (time.perf_counter() - start)


def run_epoch(paths, point):
    """One epoch of a real DataLoader: seconds of the epoch and of the first batch, cores that others left."""
    loader = DataLoader(Images(paths), batch_size=point["batch"], num_workers=point["workers"], shuffle=True,
                        prefetch_factor=point["prefetch"] if point["workers"] else None, drop_last=True)
    left = cores_left()
    start = time.perf_counter()
    iterator = iter(loader)
    first = None
    for batch in iterator:  # noqa: B007  (it is held until the next one is there)
        if first is None:
            first = time.perf_counter() - start
        if point["step_ms"]:
            time.sleep(point["step_ms"] * 1e-3)
    del iterator, batch
    epoch = time.perf_counter() - start
    return epoch, first, (left + cores_left()) / 2


def validation_points():
    """Batch, workers, prefetch, step: the grid of docs/models/input.md."""
    points = [(b, w, 2, 0) for b in (8, 32, 128) for w in (0, 1, 2, 4)]
    points += [(32, 2, 4, 0), (32, 1, 2, 60), (32, 2, 2, 40), (32, 2, 2, 80), (32, 2, 4, 40), (32, 4, 2, 60),
               (32, 0, 2, 60), (8, 2, 2, 15), (8, 2, 4, 10), (128, 2, 2, 200), (128, 2, 4, 150), (128, 1, 2, 300)]
    return [{"batch": b, "workers": w, "prefetch": p, "step_ms": s} for b, w, p, s in points]


def simulate(tool, profile, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([tool, "simulate", str(profile)], input=text, text=True, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def validate(args):
    torch.set_num_threads(1)
    paths = images_in(args.folder)
    native, probe = native_stages(args.tool, args.folder, 20)
    profile = json.loads(pathlib.Path(args.profile).read_text())
    x = np.array(list(native.values()))
    megapixels = np.array([1e-6 * key[1] * key[2] for key in native])
    sample_ms = predicted(profile["stages"], x, megapixels)
    repeated = (paths * (args.samples // len(paths) + 1))[:args.samples]
    points = validation_points()
    results = [[] for _ in points]
    for repetition in range(args.repetitions):
        for i, point in enumerate(points):
            results[i].append(run_epoch(repeated, point))
        say(f"repetition {repetition + 1} of {args.repetitions} done")
    rows = []
    for point, runs in zip(points, results):
        # The repetition that others disturbed least, forecast with the cores that they left.
        epoch, first, cores = max(runs, key=lambda run: run[2])
        line = {**point, "sample_ms": [round(float(v), 5) for v in sample_ms], "output_bytes": IMAGE_BYTES + 8,
                "tensors": 2, "cores": cores, "samples": len(repeated)}
        forecast = simulate(args.tool, args.profile, [line])[0]
        rows.append({**point, "cores_left": cores, "epoch_s": epoch, "forecast_s": forecast["epoch_ms"] * 1e-3,
                     "error_percent": 100 * (forecast["epoch_ms"] * 1e-3 / epoch - 1), "first_s": first,
                     "first_error_percent": 100 * (forecast["first_batch_ms"] * 1e-3 / first - 1),
                     "limit": forecast["limit"]})
    report(rows, args)


def report(rows, args):
    print("batch workers prefetch step cores | epoch s forecast  error | first s  error | limit")
    for r in rows:
        print(f"{r['batch']:5d} {r['workers']:7d} {r['prefetch']:8d} {r['step_ms']:4d} {r['cores_left']:5.2f} | "
              f"{r['epoch_s']:7.2f} {r['forecast_s']:8.2f} {r['error_percent']:+5.1f}% | {r['first_s']:7.3f} "
              f"{r['first_error_percent']:+5.1f}% | {r['limit']}")
    for key, name in (("error_percent", "epoch"), ("first_error_percent", "first batch")):
        found = [abs(r[key]) for r in rows]
        print(f"{name}: {len(found)} points, mean error {statistics.mean(found):.1f} %, worst {max(found):.1f} %")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
