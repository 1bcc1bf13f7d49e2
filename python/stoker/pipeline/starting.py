"""Starting one worker: wall time until it is ready for its first index, for each way of starting processes."""

from __future__ import annotations

import inspect
import multiprocessing
import statistics
import time

from ..measure.counters import Counters
from . import pickled, piping

_FORKS = 4
_SLOW_START_MS = 500  # a fork that takes longer is not repeated
_LEAST_WAIT_MS = 50  # of a start, without CPU: less is the machine's own
_PICKLE_TIME_S = 3.0
_ESTIMATE_S = 0.5  # of pickling parts of a data set, and about as much again of unpickling them
_INTERPRETER_S = 2.5  # about what a new interpreter takes until it has imported PyTorch
_LEAST_S = 1.0  # an interpreter that is started with less time left will hardly be ready in it
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
    sender.send([1e3 * time.process_time(), 1e-6 * Counters().queued_ns()])


def start_pass(source, send, *, until: float, own: str = "fork") -> None:
    """Reports whether the data set can be pickled, then fork_ms, then the others while time is left: the loader's own first.

    A start that would take longer than is left is not begun; what the data set's part of it takes is known all the same,
    and what an interpreter takes alone is measured in its place.
    """
    forks, waits = [], []
    for _ in range(_FORKS):
        ms = _started(source, "fork", until, waits)
        if ms is None:
            break
        forks.append(ms)
        if ms > _SLOW_START_MS:
            break  # its init function takes long each time
    wait = min(waits, default=0.0)
    send("start", {"fork_ms": statistics.median(forks) if forks else None, "wait_ms": wait if wait > _LEAST_WAIT_MS else None})
    facts = _data_set_part(source, send, until=until, own=own)
    if not facts["picklable"]:
        return
    interpreter = _INTERPRETER_S
    if own != "fork" and time.monotonic() + _LEAST_S < until:
        server = _wake(send, until) if own == "forkserver" else 0.0
        alone = _started(_Nothing, own, until)
        send("start", {"interpreter_ms": alone})
        interpreter = 1.3e-3 * max(alone, server or 0.0) if alone else _INTERPRETER_S
    expected = interpreter + 1e-3 * max(_ROUND_TRIP * facts["pickle_ms"],
                                           facts["pickle_ms"] + (facts.get("unpickle_ms") or 0))
    for method in sorted(("spawn", "forkserver"), key=lambda method: method != own):
        if method not in multiprocessing.get_all_start_methods() or time.monotonic() + expected > until:
            continue
        if method == "forkserver" and method != own:
            _wake(send, until)
        ms = _started(source, method, until)
        if ms is None:
            return
        expected = 1.2e-3 * ms
        send("start", {f"{method}_ms": ms})


def _data_set_part(source, send, *, until: float, own: str) -> dict:
    """Bytes and times of pickling and unpickling: of the whole, or as parts of it say where the whole takes too long."""
    left = until - time.monotonic()
    what = (source.dataset, source.worker_init, source.collate)
    facts, text = pickled.whole(*what, seconds=min(_PICKLE_TIME_S, 0.3 * left) if own != "fork" else _PICKLE_TIME_S)
    send("start", facts)
    if not facts["picklable"]:
        return facts
    if text is not None:
        facts["unpickle_ms"] = pickled.unpickle_ms(text)
        send("start", {"unpickle_ms": facts["unpickle_ms"]})
    elif not facts["pickled_whole"] or facts["pickled_bytes"] > piping.PIPE_BYTES:
        parts = pickled.estimate(*what, seconds=_ESTIMATE_S)
        if parts is not None:
            parts = {key: max(value, facts.get(key) or 0) for key, value in parts.items()}
            send("start", {"estimated": parts} if not facts["pickled_whole"] else {"unpickle_ms": parts["unpickle_ms"]})
            facts.update(parts)
    return facts


class _Nothing:
    """Stands for a source without a data set: only the interpreter is started."""

    dataset, worker_init = None, None


def _wake(send, until: float):
    """Starts the server that forks, once for all workers, and reports what that takes: no part of one worker's start.

    Where the server runs the main script of a training, that imports PyTorch; a probe's is another one.
    """
    from multiprocessing import forkserver

    if _server_runs_main(forkserver):
        forkserver.set_forkserver_preload(["torch.utils.data"])
    first = _started(_Nothing, "forkserver", until)
    later = _started(_Nothing, "forkserver", until) if first else None
    if not later:
        return None
    send("start", {"server_ms": max(0.0, first - later)})
    return first


def _server_runs_main(forkserver) -> bool:
    """Whether this Python's server gets the main script's path: before 3.13.8 and 3.14.1 it did not (python/cpython#126631)."""
    return "init_main_from_path" in inspect.getsource(forkserver)


def _started(source, method: str, until: float, waits: list | None = None):
    """ms from start() to the message; None when it did not come. Adds to `waits` what of it needed no core."""
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=ready, args=(source.dataset, source.worker_init, sender), daemon=True)
    begin = time.perf_counter()
    process.start()
    sender.close()
    try:
        if not receiver.poll(max(0.05, until - time.monotonic())):
            return None
        cpu_ms, queued_ms = receiver.recv()
        ms = (time.perf_counter() - begin) * 1e3
        if waits is not None:
            waits.append(max(0.0, ms - cpu_ms - queued_ms))
        return ms
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        receiver.close()
