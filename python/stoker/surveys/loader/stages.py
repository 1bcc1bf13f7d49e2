"""What the stages of a sample cost in C++ and in Python, on the same images, and the ratios between them."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

import numpy as np
import PIL.Image
import torch
from torchvision import transforms
from torchvision.datasets.folder import default_loader

from .images import DEVIATION, IMAGE_SIZE, MEAN, STAGES, images_in


def python_stages(paths, repetitions):
    """ms per stage and picture: CPU time of this thread, median (mean where crop or flip is random)."""
    torch.set_num_threads(1)  # as in a DataLoader's worker
    crop, flip = transforms.RandomResizedCrop(IMAGE_SIZE), transforms.RandomHorizontalFlip()
    to_tensor, normalize = transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)
    clock = time.thread_time_ns
    times = np.zeros((len(paths), len(STAGES), repetitions))
    kept = []  # a worker holds the samples of the batch that it is making
    order = list(range(len(paths)))
    for repetition in range(repetitions):
        random.shuffle(order)
        for i in order:
            t0 = clock()
            with open(paths[i], "rb") as file:
                file.read()
            t1 = clock()
            picture = default_loader(paths[i])
            t2 = clock()
            picture = crop(picture)
            t3 = clock()
            picture = flip(picture)
            t4 = clock()
            tensor = to_tensor(picture)
            t5 = clock()
            tensor = normalize(tensor)
            t6 = clock()
            # The loader reads while it decodes: what it takes beyond a plain read is decoding.
            times[i, :, repetition] = np.array([t1 - t0, t2 - t1 - (t1 - t0), t3 - t2, t4 - t3, t5 - t4, t6 - t5])
            kept.append(tensor)
            if len(kept) == 32:
                kept.clear()
    times *= 1e-6
    out = np.median(times, axis=2)
    for stage in ("resize", "flip"):
        out[:, STAGES.index(stage)] = times[:, STAGES.index(stage), :].mean(axis=1)
    return np.maximum(out, 0)


def native_stages(tool, folder, budget):
    """Rows of the probe: {(bytes, width, height): stage times in ms}."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "probe.json"
        subprocess.run([tool, "probe", str(folder), str(out), "4096", str(budget)], check=True)
        probe = json.loads(out.read_text())
    rows = {(s[0], s[1], s[2]): [t * 1e-6 for t in s[4:]] for s in probe["samples"]}
    return rows, probe


def paired(folder, tool, repetitions, budget):
    """Native and Python stage times of the same pictures, measured in alternation, and their megapixels."""
    paths = images_in(folder)
    sizes = {}
    for path in paths:
        with PIL.Image.open(path) as picture:
            sizes[path] = (os.path.getsize(path), *picture.size)
    python_parts, native_parts, probe = [], [], None
    for _ in range(2):
        native, probe = native_stages(tool, folder, budget)
        native_parts.append(native)
        python_parts.append(python_stages(paths, repetitions))
    keep = [i for i, p in enumerate(paths) if all(sizes[p] in part for part in native_parts)]
    x = np.mean([[part[sizes[paths[i]]] for i in keep] for part in native_parts], axis=0)
    y = np.mean([part[keep] for part in python_parts], axis=0)
    megapixels = np.array([1e-6 * sizes[paths[i]][1] * sizes[paths[i]][2] for i in keep])
    return x, y, megapixels, probe


def non_negative_fit(columns, y, weight):
    """Least squares with coefficients >= 0, by trying every subset of at most three columns."""
    best, best_error = np.zeros(len(columns)), np.inf
    for size in range(1, len(columns) + 1):
        for subset in itertools.combinations(range(len(columns)), size):
            a = np.stack([columns[c] for c in subset], axis=1)
            k, *_ = np.linalg.lstsq(a * weight[:, None], y * weight, rcond=None)
            error = float((((a @ k - y) * weight) ** 2).sum())
            if (k >= 0).all() and error < best_error * (1 - 1e-9):
                best, best_error = np.zeros(len(columns)), error
                best[list(subset)] = k
    return best


def fit_stages(x, y, megapixels):
    one = np.ones_like(megapixels)
    stages = {}
    for s, name in enumerate(STAGES):
        if name in ("flip", "to_tensor", "normalize"):  # depend on the output's size alone: one ratio
            c, r, p = 0.0, y[:, s].sum() / x[:, s].sum(), 0.0
        else:
            weight = 1 / (y[:, s] + np.median(y[:, s]))
            k = non_negative_fit([one, x[:, s], megapixels], y[:, s], weight)
            # Relative weights favour cheap pictures; a batch costs the sum, so the sum must be right.
            c, r, p = k * y[:, s].sum() / (np.stack([one, x[:, s], megapixels], axis=1) @ k).sum()
        stages[name] = {"constant_ms": round(c, 5), "ratio": round(r, 4), "ms_per_megapixel": round(p, 4)}
    return stages


def predicted(stages, x, megapixels):
    k = [stages[name] for name in STAGES]
    return sum(k[s]["constant_ms"] + k[s]["ratio"] * x[:, s] + k[s]["ms_per_megapixel"] * megapixels
               for s in range(len(STAGES)))


def errors_of(stages, x, y, megapixels):
    total, guess = y.sum(axis=1), predicted(stages, x, megapixels)
    return {"pictures": len(total), "mape_percent": round(100 * float(np.mean(np.abs(guess / total - 1))), 2),
            "mean_error_percent": round(100 * float(guess.mean() / total.mean() - 1), 2),
            "mean_ms": round(float(total.mean()), 4), "native_mean_ms": round(float(x.sum(axis=1).mean()), 4)}
