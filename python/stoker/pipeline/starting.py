"""Starting one worker: wall time until it is ready for its first index, for each way of starting processes."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import statistics
import time

_FORKS = 4
_MOST_PICKLED = 2 << 30  # bytes: beyond that only "more than this" is reported
_PICKLE_TIME_S = 3.0
_FEW_BYTES = 1 << 16  # what a pipe holds: below, nobody waits
_MOST_KEPT = 256 << 20  # pickled bytes that are kept, to be unpickled again
_INTERPRETER_S = 2.5  # about what a new interpreter takes until it has imported PyTorch
_ROUND_TRIP = 2.2  # sending a data set takes about so many times its pickling


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
    """Takes everything, counts its bytes and keeps them while they are few."""

    def __init__(self, seconds: float):
        self.bytes, self._until = 0, time.monotonic() + seconds
        self.parts: list | None = []

    def writable(self):
        return True

    def write(self, data):
        size = memoryview(data).nbytes
        self.bytes += size
        if self.parts is not None:
            self.parts.append(bytes(data))
            if self.bytes > _MOST_KEPT:
                self.parts = None
        if self.bytes > _MOST_PICKLED or time.monotonic() > self._until:
            raise _Enough
        return size


class _Enough(Exception):
    pass


def pickled_size(dataset, worker_init=None, collate=None, *, seconds: float = _PICKLE_TIME_S) -> tuple:
    """(facts, the pickled text or None): bytes of the data set as spawn sends it and the CPU time of it, or why it cannot be.

    pickled_whole: False where pickling was broken off; bytes and time are of the part.
    """
    from multiprocessing.reduction import ForkingPickler

    import torch.multiprocessing  # noqa: F401  (registers how tensors travel)

    counter = _Counter(seconds)
    start = time.thread_time()
    facts = {"picklable": True, "why_not": None, "pickled_whole": True}
    try:
        ForkingPickler(counter, None).dump((dataset, worker_init, collate))
    except _Enough:
        facts["pickled_whole"] = False
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"picklable": False, "why_not": f"{type(error).__name__}: {lines[0] if lines else ''}"[:300],
                "pickled_bytes": None}, None
    facts.update(pickled_bytes=counter.bytes, pickle_ms=1e3 * (time.thread_time() - start))
    known = facts["pickled_whole"] and counter.parts is not None and counter.bytes > _FEW_BYTES
    return facts, b"".join(counter.parts) if known else None


def _unpickle_ms(text: bytes):
    """CPU time of reading a pickled data set; None where it cannot be read here."""
    start = time.thread_time()
    try:
        made = pickle.loads(text)
    except Exception:
        return None
    took = 1e3 * (time.thread_time() - start)
    del made
    return took


def start_pass(source, send, *, until: float, own: str = "fork") -> None:
    """Reports whether the data set can be pickled, then fork_ms, then the others while time is left: the loader's own first.

    A start that would take longer than is left is not begun; what the data set's part of it takes is known all the same.
    """
    send("start", {"fork_ms": statistics.median(_started(source, "fork", until) or 0.0 for _ in range(_FORKS)) or None})
    left = until - time.monotonic()
    facts, text = pickled_size(source.dataset, source.worker_init, source.collate,
                         seconds=max(_PICKLE_TIME_S, 0.3 * left) if own != "fork" else _PICKLE_TIME_S)
    send("start", facts)
    if not facts["picklable"]:
        return
    if text is not None:
        facts["unpickle_ms"] = _unpickle_ms(text)
        send("start", {"unpickle_ms": facts["unpickle_ms"]})
        del text
    expected = _INTERPRETER_S + 1e-3 * max(_ROUND_TRIP * facts["pickle_ms"],
                                           facts["pickle_ms"] + (facts.get("unpickle_ms") or 0))
    for method in sorted(("spawn", "forkserver"), key=lambda method: method != own):
        usable = method in multiprocessing.get_all_start_methods() and facts["pickled_whole"]
        if not usable or time.monotonic() + expected > until:
            continue
        if method == "forkserver":
            from multiprocessing import forkserver

            forkserver.ensure_running()  # once for all workers: not part of one worker's start
        ms = _started(source, method, until)
        if ms is None:
            return
        expected = 1.2e-3 * ms
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
