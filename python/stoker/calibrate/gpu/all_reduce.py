"""All-reduce by size over all GPUs of this machine, one process each (NCCL)."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import sys
import time

from ...measure import fresh
from ...measure.answering import Answering
from . import stopwatch

SIZES = tuple(1 << power for power in range(10, 29, 2))  # bytes: 1 KiB to 256 MiB
LIMIT_S = 90.0
_READINGS, _WARM_UP = 7, 5
_SECONDS = 0.02  # one reading


def measure(gpus: int, limit_s: float = LIMIT_S, backend: str = "nccl") -> list:
    """[{kind, gpus, bytes, time_us, spread}], times of the slowest rank; empty where it failed or took too long. `backend` gloo runs on
    the CPU, for trying it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(gpus)}
    with contextlib.ExitStack() as ranks:
        first, *_ = [ranks.enter_context(fresh.Child("stoker.calibrate.gpu.all_reduce", backend, **variables, RANK=str(rank)))
                     for rank in range(gpus)]
        try:
            return first.hear(time.monotonic() + limit_s)
        except (fresh.TimeUp, fresh.Died):
            return []


def _one_rank(backend: str) -> list:
    import torch
    import torch.distributed as dist

    rank, gpus = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = "cuda" if backend == "nccl" else "cpu"
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend)
    sizes = SIZES if device == "cuda" else SIZES[:4]
    found = []
    for size in sizes:
        values = torch.ones(size // 4, device=device)

        def run(_):
            dist.all_reduce(values)

        for _ in range(_WARM_UP):
            run(0)
        synchronize = torch.cuda.synchronize if device == "cuda" else (lambda: None)
        once, _ = stopwatch._wall(run, 1, synchronize)
        calls = torch.tensor([max(1, min(100, int(_SECONDS / max(once, 1e-6))))], device=device)
        dist.broadcast(calls, 0)  # all ranks have to call as often
        readings = []
        for _ in range(_READINGS):
            dist.barrier()
            seconds, _ = stopwatch._wall(run, int(calls), synchronize)
            slowest = torch.tensor([seconds], device=device)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            readings.append(1e6 * float(slowest))
            values.fill_(1)
        middle, spread = stopwatch._quartiles(readings)
        found.append({"kind": "all_reduce", "gpus": gpus, "bytes": size, "time_us": float(f"{middle:.5g}"), "spread": round(spread, 4)})
    dist.barrier()
    dist.destroy_process_group()
    return found if rank == 0 else []


def bandwidth_gbs(found: list) -> float:
    """What a ring moves over each link at the largest sizes: 2 (n - 1) / n of the bytes."""
    large = [2 * (row["gpus"] - 1) / row["gpus"] * row["bytes"] / (1e3 * row["time_us"]) for row in found[-3:]]
    return statistics.median(large) if large else 0.0


if __name__ == "__main__":
    answering = Answering()
    rows = _one_rank(sys.argv[1])
    if rows:
        answering.tell(rows)
    answering.leave()
