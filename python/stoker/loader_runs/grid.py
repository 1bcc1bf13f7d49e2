"""Which settings of the DataLoader are measured."""

from __future__ import annotations

import math
import random
import statistics

DEFAULTS = {"workers": 2, "prefetch": 2, "in_order": True, "step_ms": 0.0, "cores": 2, "persistent": False,
            "start_method": "fork", "cold": False, "drop_last": False}
SEARCHED_WORKERS = (0, 1, 2, 3, 4, 6)  # the exhaustive search of the recommendation check
TARGET_S, LONGEST_S = 1.3, 3.2         # one epoch, by the probe's cost of a sample
_BATCH_MS = 1.0                        # about what handing over a batch costs; only the length of epochs rests on it

# Beyond the search of every scenario: (scenario, what differs from its own batch and DEFAULTS).
_FURTHER = [
    ("pictures", {"batch": 8}), ("pictures", {"batch": 128}), ("pictures", {"workers": 0, "step_ms": 60.0}),
    ("pictures", {"step_ms": 100.0}), ("pictures", {"step_ms": 500.0}), ("pictures", {"prefetch": 1}),
    ("pictures", {"prefetch": 4, "step_ms": 40.0}), ("pictures", {"cores": 1}), ("pictures", {"cores": 1, "workers": 4}),
    ("pictures", {"cold": True}), ("pictures", {"persistent": True}), ("pictures", {"start_method": "spawn", "workers": 1}),
    ("imagenet", {"batch": 8, "step_ms": 20.0}), ("imagenet", {"batch": 256}),
    ("small-records", {"batch": 8}), ("small-records", {"prefetch": 8, "step_ms": 10.0}),
    ("small-files", {"batch": 256, "workers": 4}), ("small-files", {"step_ms": 30.0}),
    ("tokens", {"batch": 8}), ("tokens", {"step_ms": 10.0}), ("tokens-bucketed", {"batch": 128}),
    ("recordings", {"batch": 8}), ("recordings", {"step_ms": 60.0}),
    ("one-slow", {"in_order": False}), ("one-slow", {"in_order": False, "workers": 4}),
    ("one-slow", {"step_ms": 15.0}), ("one-slow", {"in_order": False, "step_ms": 15.0, "prefetch": 4}),
]


def point(scenario, **settings) -> dict:
    return {"batch": scenario.batch, **DEFAULTS, **settings}


def key(point: dict) -> tuple:
    """What makes two points the same; the number of samples follows from the rest."""
    return tuple(point[name] for name in ("batch", *DEFAULTS))


def search(scenario) -> list:
    return [point(scenario, workers=workers) for workers in SEARCHED_WORKERS]


def full(scenario) -> list:
    return search(scenario) + [point(scenario, **settings) for name, settings in _FURTHER if name == scenario.name]


def own(scenario) -> list:
    """For a user's data set: workers, a smaller and a larger batch, a step, deeper prefetching, one core."""
    if scenario.cut:  # its own order, in which who waits for whom is the question
        some = [point(scenario, workers=workers) for workers in SEARCHED_WORKERS[:5]]
        return some + [point(scenario, in_order=False), point(scenario, prefetch=4), point(scenario, step_ms=50.0)]
    return [point(scenario, workers=workers) for workers in SEARCHED_WORKERS[:5]] + [
        point(scenario, batch=max(1, scenario.batch // 4)), point(scenario, batch=2 * scenario.batch),
        point(scenario, step_ms=50.0), point(scenario, step_ms=50.0, prefetch=4), point(scenario, cores=1)]


def quick(scenario) -> list:
    return [point(scenario, workers=workers) for workers in (0, 1, 2)]


def drawn(scenario, count: int, seed: int) -> list:
    """Combinations that nobody chose."""
    chance = random.Random(f"{scenario.name} {seed}")
    found = []
    while len(found) < count:
        workers = chance.choice((0, 1, 2, 3, 4, 6))
        found.append(point(scenario, workers=workers, batch=chance.choice((8, 16, 32, 64, 128, 256)),
                           prefetch=chance.choice((1, 2, 3, 4, 8)) if workers else 2,
                           step_ms=chance.choice((0.0, 0.0, 5.0, 20.0, 80.0, 200.0)), cores=chance.choice((1, 2, 2))))
    return found


def sample_ms(probe: dict, workers: int) -> float:
    """About what a sample takes with so many workers, on the clock; of streams that differ the slowest."""
    def mean(row: dict) -> float:
        times = [sum(both) for both in zip(row["cpu_ms"], row.get("wait_ms") or [0.0] * len(row["cpu_ms"]))]
        return statistics.fmean(times) if times else 0.0

    streams = [mean(row) for found in probe.get("streams") or [] for row in found["workers"]] if workers > 1 else []
    return max([mean(probe["sample"]), *streams])


def cut_samples(point: dict, sample_ms: float, most: int | None, scale: float) -> int:
    """Samples after which a loop leaves an epoch that cannot be cut to length: whole batches, a few rounds of the workers
    at least where that does not take long."""
    busy = max(1, min(point["workers"], 2))
    each_s = 1e-3 * max((sample_ms + _BATCH_MS / point["batch"]) / busy, point["step_ms"] / point["batch"])
    if point["workers"] == 0:
        each_s = 1e-3 * (sample_ms + point["step_ms"] / point["batch"])
    window = point["batch"] * (point["workers"] * point["prefetch"] + 2)
    wanted = max(scale * TARGET_S / each_s, min(window, LONGEST_S / each_s), 3 * point["batch"])
    batches = math.ceil(wanted / point["batch"])
    if most:
        batches = min(batches, max(1, most // point["batch"] - 1))
    return batches * point["batch"]


def samples_of(scenario, point: dict, sample_ms: float, scale: float = 1.0) -> int:
    """Samples of one epoch: about TARGET_S long, a whole number of times the scenario's pool so that the mean cost is
    that of the probe, and enough batches to fill the window where that does not take too long."""
    busy = max(1, min(point["workers"], point["cores"]))
    each_s = 1e-3 * max((sample_ms + _BATCH_MS / point["batch"]) / busy, point["step_ms"] / point["batch"])
    if point["workers"] == 0:
        each_s = 1e-3 * (sample_ms + point["step_ms"] / point["batch"])
    if point["cold"]:
        return scenario.pool  # each file is cold once
    wanted = scale * TARGET_S / max(each_s, 1e-6)
    window = point["batch"] * (point["workers"] * point["prefetch"] + 2)
    wanted = max(wanted, min(window, scale * LONGEST_S / max(each_s, 1e-6)))
    if scenario.pool * each_s > 2 * LONGEST_S:  # a slow loop over many cheap samples: a part has to do
        return math.ceil(wanted / point["batch"]) * point["batch"]
    return max(1, math.ceil(wanted / scenario.pool - 0.25)) * scenario.pool
