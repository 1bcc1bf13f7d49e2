"""One calibration out of two probes of the same pipeline."""

from __future__ import annotations

import copy
import statistics


def better(probes: list) -> dict:
    """The probe with the cheapest samples by CPU time, and of each other quantity the better value of all: what disturbs a
    measurement only ever adds, which is also why the best of several epochs counts. Waiting is no reason to prefer a probe: a
    data set with rare slow samples would look faster with each probe that misses some."""
    probes = sorted(probes, key=_sample_ms)
    best = copy.deepcopy(probes[0])
    others = probes[1:]
    in_process = [p["sample"]["in_process_ratio"] * _sample_ms(p) for p in probes if p["sample"].get("in_process_ratio")]
    if in_process:
        best["sample"]["in_process_ratio"] = round(min(in_process) / _sample_ms(best), 4)
    for row in best.get("batch", []):
        for other in (r for p in others for r in p.get("batch", []) if r["batch"] == row["batch"]):
            _take(row, other, ("collate_shared_ms", "share_ms", "collate_private_ms"), min)
    for part, keys, choose in (("parallel", ("efficiency", "crowded_efficiency"), max),
                               ("start", ("fork_ms", "spawn_ms", "forkserver_ms", "warm_up_ms"), min)):
        for other in others:
            if best.get(part) is None:
                best[part] = copy.deepcopy(other.get(part))
            elif other.get(part) is not None:
                _take(best[part], other[part], keys, choose)
    runs = [p["one_worker"] for p in probes if p.get("one_worker")]
    if runs:
        best["one_worker"] = min(runs, key=lambda run: run["interval_ms"])
    return best


def _sample_ms(probe: dict) -> float:
    return statistics.mean(probe["sample"]["cpu_ms"])


def _take(into: dict, other: dict, keys: tuple, choose) -> None:
    for key in keys:
        values = [v for v in (into.get(key), other.get(key)) if v is not None]
        if values:
            into[key] = choose(values)
