"""Starting one worker: wall time until it is ready for its first index, for each way of starting processes."""

from __future__ import annotations

import io
import multiprocessing
import statistics
import time

_FORKS = 4
_MOST_PICKLED = 2 << 30  # bytes: beyond that only "more than this" is reported
_PICKLE_TIME_S = 3.0


def ready(dataset, worker_init, sender) -> None:
    """The first lines of a DataLoader's worker, then a message."""
    import random

    import torch
    from torch.utils.data._utils import signal_handling, worker

    signal_handling._set_worker_signal_handlers()
    torch.set_num_threads(1)
    random.seed(1)
    torch.manual_seed(1)
    try:
        import numpy

        numpy.random.seed(1)
    except ImportError:
        pass
    worker._worker_info = worker.WorkerInfo(id=0, num_workers=1, seed=1, dataset=dataset)
    if worker_init is not None:
        worker_init(0)
    sender.send("ready")


class _Counter(io.RawIOBase):
    """Takes everything and keeps the number of bytes."""

    def __init__(self):
        self.bytes, self._until = 0, time.monotonic() + _PICKLE_TIME_S

    def writable(self):
        return True

    def write(self, data):
        self.bytes += memoryview(data).nbytes
        if self.bytes > _MOST_PICKLED or time.monotonic() > self._until:
            raise _Enough
        return memoryview(data).nbytes


class _Enough(Exception):
    pass


def pickled_size(dataset, worker_init=None, collate=None) -> dict:
    """Bytes of the data set as spawn sends it, or why it cannot be sent."""
    from multiprocessing.reduction import ForkingPickler

    import torch.multiprocessing  # noqa: F401  (registers how tensors travel)

    counter = _Counter()
    try:
        ForkingPickler(counter, None).dump((dataset, worker_init, collate))
    except _Enough:
        return {"picklable": True, "why_not": None, "pickled_bytes": counter.bytes}
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"picklable": False, "why_not": f"{type(error).__name__}: {lines[0] if lines else ''}"[:300],
                "pickled_bytes": None}
    return {"picklable": True, "why_not": None, "pickled_bytes": counter.bytes}


def start_pass(source, send, *, until: float) -> None:
    """Reports whether the data set can be pickled, then fork_ms, then spawn_ms and forkserver_ms while time is left."""
    facts = pickled_size(source.dataset, source.worker_init, source.collate)
    send("start", facts)
    send("start", {"fork_ms": statistics.median(_started(source, "fork", until) or 0.0 for _ in range(_FORKS)) or None})
    if not facts["picklable"]:
        return
    took = 0.0
    for method in ("spawn", "forkserver"):
        if method not in multiprocessing.get_all_start_methods() or time.monotonic() + took > until:
            continue
        if method == "forkserver":
            from multiprocessing import forkserver

            forkserver.ensure_running()  # once for all workers: not part of one worker's start
        ms = _started(source, method, until)
        if ms is None:
            return
        took = 1.2e-3 * ms
        send("start", {f"{method}_ms": ms})


def _started(source, method: str, until: float):
    """ms from start() to the message; None when it did not come."""
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=ready, args=(source.dataset, source.worker_init, sender), daemon=True)
    begin = time.perf_counter()
    process.start()
    sender.close()
    try:
        if not receiver.poll(max(0.05, until - time.monotonic())):
            return None
        receiver.recv()
        return (time.perf_counter() - begin) * 1e3
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        receiver.close()
