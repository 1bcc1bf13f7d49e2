"""Parts of the probe's file, put together from what was measured."""

from __future__ import annotations

import datetime
import platform
import statistics

from ..measure import machine
from ..version import VERSION
from . import statistics_of

_LEAST_WAIT_NS, _WAIT_SHARE = 500_000, 0.1  # below it, of the CPU time beside it: scheduling, no wait of the user's
_MUCH_MS = 20  # of waiting at a start: less is the machine's own


def if_much(ms: float):
    return round(ms, 3) if ms > _MUCH_MS else None


def own_method(doc: dict) -> str:
    """The start method of the loader that was given, else the one that is measured in any case."""
    return (doc["loader"] or {}).get("start_method", "fork")


def start_facts(warm_ups: list, warm_up_waits: list, sampler_ms: float) -> dict:
    """The object "start" before a worker was started."""
    facts = dict.fromkeys(("fork_ms", "spawn_ms", "forkserver_ms", "picklable", "why_not", "pickled_bytes", "pickled_whole", "pickle_ms",
                           "unpickle_ms", "estimated", "interpreter_ms", "server_ms", "warm_up_ms", "warm_up_wait_ms", "wait_ms"))
    facts.update(picklable=True, pickled_whole=True, sampler_ms=if_much(sampler_ms))
    if warm_ups:
        facts["warm_up_ms"] = round(max(0.0, statistics.median(warm_ups)), 4)
    if warm_up_waits:
        facts["warm_up_wait_ms"] = if_much(statistics.median(warm_up_waits))
    return facts


def batch_row(size: int, batches: list) -> dict:
    facts = [batch["facts"] for batch in batches]
    mean = statistics.fmean
    collate = statistics_of.trimmed_mean([batch["collate_ns"] for batch in batches])
    wait, share = mean(f["wait_ns"] for f in facts), statistics_of.trimmed_mean([f["share_ns"] for f in facts])
    return {"batch": size, "samples": round(mean(f["samples"] for f in facts), 3),
            "bytes": round(mean(f["bytes"] for f in facts)), "tensors": round(mean(f["tensors"] for f in facts), 3),
            "collate_shared_ms": round(collate * 1e-6, 6), "collate_private_ms": None,
            "share_ms": round(share * 1e-6, 6),
            "pickled_bytes": round(mean(f["pickled"] for f in facts)),
            "pickle_ms": round(1e-6 * statistics.median(f["dump_ns"] for f in facts), 6),
            "unpickle_ms": round(1e-6 * statistics.median(f["load_ns"] for f in facts), 6), "pipe_ms": None,
            "collate_wait_ms": round(wait * 1e-6, 6) if wait > max(_LEAST_WAIT_NS, collate * _WAIT_SHARE) else 0.0}


def rounded(values: list, digits: int) -> list:
    return [round(v, digits) for v in values]


def provenance() -> dict:
    import torch

    return {"stoker_version": VERSION, "date": datetime.date.today().isoformat(), "cpu_model": machine.cpu_name(),
            "cores": machine.usable_cores(), "python": platform.python_version(), "torch": torch.__version__}
