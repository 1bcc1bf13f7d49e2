"""What each worker of an IterableDataset gets: its own stream, with get_worker_info() as a real worker has it.

A stream may be a stripe of the data, some of its shards, nothing, or all of it once more; only the data set knows.
"""

from __future__ import annotations

import hashlib
import pickle
import statistics
import time

from ..measure import forked
from .maker import Maker, become_worker

_USUAL_WORKERS = 2  # where the function returned no DataLoader, or one without workers
_MOST_WORKERS = 16
_MOST_SAMPLES = 2048  # of one stream
_COMPARED = 8  # samples at the beginning of a stream that tell whether two are the same
_SLOW_START = 10  # times the others, and at least _SLOW_START_MS: filling a buffer, opening a connection
_SLOW_START_MS = 50
_WAITS = 0.5  # share of a sample's time above which workers are measured at once: they do not take each other's core
_CHANCE, _APART = 3, 0.1  # standard errors, and share of the sum: means nearer than that are the same
_EVERY_S = 0.1  # between two reports


def counts_to_see(loader) -> list:
    """The numbers of workers whose streams are measured, the loader's own first."""
    own = loader.num_workers if loader is not None else 0
    first = min(_MOST_WORKERS, own) if own >= 2 else _USUAL_WORKERS
    return [first, *(count for count in (_USUAL_WORKERS, 2 * _USUAL_WORKERS) if count != first)]


def work_units(dataset) -> int | None:
    """Shards of a data set that says how many it has: Hugging Face's num_shards (n_shards before), WebDataset's urls."""
    for name in ("num_shards", "n_shards"):
        count = getattr(dataset, name, None)
        if isinstance(count, int) and count > 0:
            return count
    for part in (dataset, *(getattr(dataset, "pipeline", None) or [])):
        urls = getattr(part, "urls", None)
        if isinstance(urls, (list, tuple)) and urls:
            return len(urls)
    return None


def stream_pass(source, send, *, worker: int, workers: int, seconds: float, epoch: int = 0) -> None:
    """Reads the stream of one worker: send("stream", {...}) as it goes. epoch: of another one, its seed is another."""
    become_worker(source, worker, workers, epoch)
    maker = Maker(source)
    begin = told = time.monotonic()
    cpu, wait, digests, ended = [], [], [], False

    def tell():
        send("stream", {"cpu_ms": cpu, "wait_ms": wait, "ended": ended, "digests": digests})

    while len(cpu) < _MOST_SAMPLES and time.monotonic() - begin < seconds and not maker.failures.count:
        batch = maker.make(1)
        for _, wall_ns, cpu_ns, _ in batch.rows:
            cpu.append(round(1e-6 * cpu_ns, 6))
            wait.append(round(1e-6 * max(0, wall_ns - cpu_ns - batch.queued), 6))
        if len(digests) < _COMPARED:
            digests += [_digest(sample) for sample in batch.samples]
        batch.samples.clear()
        forked.drop_output()
        ended = batch.ended
        if ended:
            break
        if time.monotonic() - told > _EVERY_S or len(cpu) < 2:
            told = time.monotonic()
            tell()
    tell()


def _digest(sample) -> str:
    try:
        return hashlib.sha1(pickle.dumps(sample)).hexdigest()
    except Exception:
        return ""


def measured(source, workers: int, seconds: float, run_all, *, waits: float) -> dict | None:
    """The streams of `workers` workers: {"num_workers", "same", "workers": [...]}; None where one gave no answer.

    run_all(works, seconds) runs functions of `send` in children at once and returns their outcomes.
    """
    works = [lambda send, number=number, each=seconds if waits > _WAITS else seconds / workers: stream_pass(
        source, send, worker=number, workers=workers, seconds=each) for number in range(workers)]
    outcomes = run_all(works, seconds) if waits > _WAITS else [
        outcome for work in works for outcome in run_all([work], seconds / workers)]
    found = []
    for outcome in outcomes:
        stream = outcome.last("stream")
        if stream is None:
            # Not one sample in the time: all that is known is that it takes at least so long.
            if outcome.end != "time":
                return None
            stream = {"cpu_ms": [0.0], "wait_ms": [round(1e3 * seconds, 3)], "ended": False, "digests": []}
        found.append(stream)
    return {"num_workers": workers, "same": _same(found), "workers": [_row(stream) for stream in found]}


def seed_spread(source, workers: int, seconds: float, run_all, first: dict) -> float | None:
    """How far worker 0's samples of another epoch, with another seed, lie from those in `first`; None where chance explains it."""
    (outcome,) = run_all([lambda send: stream_pass(source, send, worker=0, workers=workers, seconds=seconds, epoch=1)], seconds)
    stream = outcome.last("stream")
    return None if stream is None else spread_of([c + w for c, w in zip(first["cpu_ms"], first["wait_ms"])],
                                                 [c + w for c, w in zip(stream["cpu_ms"], stream["wait_ms"])][1:])


def spread_of(one: list, other: list) -> float | None:
    """Half the distance of two means over their mean; None below what the spread of the values explains."""
    count = min(len(one), len(other))
    if count < _COMPARED:
        return None
    means = [statistics.fmean(values[:count]) for values in (one, other)]
    error = (sum(statistics.variance(values[:count]) for values in (one, other)) / count) ** 0.5
    distance = abs(means[0] - means[1])
    return distance / sum(means) if distance > max(_CHANCE * error, _APART * sum(means)) else None


def _same(streams: list) -> bool:
    """Whether all workers give the same samples: the data set does not look at get_worker_info()."""
    first = streams[0]["digests"]
    count = min(len(s["digests"]) for s in streams)
    if count == 0 or "" in first[:count] or len(set(first[:count])) < min(2, count):
        return False  # samples that are all alike tell nothing
    return all(s["digests"][:count] == first[:count] for s in streams) and count >= min(_COMPARED, len(first))


def _row(stream: dict) -> dict:
    cpu, wait = list(stream["cpu_ms"]), list(stream["wait_ms"])
    start = 0.0
    if len(cpu) > 2:
        usual = statistics.median(c + w for c, w in zip(cpu[1:], wait[1:]))
        first = cpu[0] + wait[0]
        if first > _SLOW_START_MS and first > _SLOW_START * usual:
            start = round(first - usual, 3)
            cpu[0], wait[0] = statistics.median(cpu[1:]), statistics.median(wait[1:])
    return {"samples": len(cpu) if stream["ended"] else None, "start_ms": start, "cpu_ms": cpu, "wait_ms": wait}
