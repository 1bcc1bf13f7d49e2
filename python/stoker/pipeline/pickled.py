"""What pickling and unpickling a data set take: the whole of it, or an estimate from parts where that is too long to wait for."""

from __future__ import annotations

import collections
import contextlib
import gc
import io
import pickle
import random
import time
from multiprocessing.reduction import ForkingPickler

from .piping import PIPE_BYTES

_MOST_PICKLED = 2 << 30  # bytes: beyond that only "more than this" is reported
_MOST_KEPT = 256 << 20  # pickled bytes that are kept, to be unpickled again
_LONG, _MANY = 256, 200_000  # elements from which on a container is sampled; objects after which shorter ones are, too
_LONG_LATER = 16
_LARGE = 1 << 20  # bytes, from which on an array or a text is
_PIECE = 16 << 20  # bytes of an array that are pickled
_RUN = 32  # elements beside each other that are drawn together
_CHUNK = 64  # elements that are pickled at first; then twice as many, and so on


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


def whole(dataset, worker_init=None, collate=None, *, seconds: float) -> tuple:
    """(facts, the pickled text or None): bytes of the data set as spawn sends it and the CPU time of it, or why it cannot be.

    pickled_whole: False where pickling was broken off; bytes and time are of the part.
    """
    import torch.multiprocessing  # noqa: F401  (registers how tensors travel)

    began, counter = time.monotonic(), _Counter(seconds)
    facts = {"picklable": True, "why_not": None, "pickled_whole": True}
    try:
        took = _dump(counter, (dataset, worker_init, collate))
        if counter.bytes > PIPE_BYTES and 2 * (time.monotonic() - began) < seconds:
            # Once more: a forked child copies each page of objects that it touches for the first time.
            counter = _Counter(seconds)
            took = min(took, _dump(counter, (dataset, worker_init, collate)))
    except _Enough:
        took = 1e3 * (time.monotonic() - began)
        facts["pickled_whole"] = False
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"picklable": False, "why_not": f"{type(error).__name__}: {lines[0] if lines else ''}"[:300],
                "pickled_bytes": None}, None
    facts.update(pickled_bytes=counter.bytes, pickle_ms=took)
    known = facts["pickled_whole"] and counter.parts is not None and counter.bytes > PIPE_BYTES
    return facts, b"".join(counter.parts) if known else None


def _dump(counter: _Counter, what) -> float:
    """ms of CPU time."""
    start = time.thread_time()
    ForkingPickler(counter, None).dump(what)
    return 1e3 * (time.thread_time() - start)


def unpickle_ms(text: bytes):
    """CPU time of reading a pickled data set; None where it cannot be read here."""
    gc.freeze()  # the collector of a new process does not go through what this one holds
    start = time.thread_time()
    try:
        made = pickle.loads(text)
    except Exception:
        return None
    finally:
        took = 1e3 * (time.thread_time() - start)
        gc.unfreeze()
    del made
    return took


class _Outline(ForkingPickler):
    """Pickles everything but what is long: that is put aside, to be sampled."""

    def __init__(self, file):
        super().__init__(file, None)
        self.aside: list = []
        self._met = 0

    def persistent_id(self, thing):
        self._met += 1
        if not _is_long(thing, _LONG if self._met < _MANY else _LONG_LATER):
            return None
        self.aside.append(thing)
        return len(self.aside)


def _is_long(thing, elements: int) -> bool:
    if isinstance(thing, (list, tuple, set, frozenset, dict, collections.deque)):
        return len(thing) > elements
    if isinstance(thing, (str, bytes, bytearray)):
        return len(thing) > _LARGE
    return _is_array(thing) and (thing.nbytes > _LARGE or thing.dtype.hasobject and thing.size > elements)


def _is_array(thing) -> bool:
    return type(thing).__module__ == "numpy" and hasattr(thing, "dtype") and hasattr(thing, "reshape")


def estimate(dataset, worker_init=None, collate=None, *, seconds: float):
    """{pickled_bytes, pickle_ms, unpickle_ms} of the whole from random parts of what is long; None where that fails."""
    try:
        begin, text = time.thread_time(), io.BytesIO()
        outline = _Outline(text)
        outline.dump((dataset, worker_init, collate))
        found = {"pickled_bytes": len(text.getbuffer()), "pickle_ms": 1e3 * (time.thread_time() - begin), "unpickle_ms": 0.0}
        for thing in outline.aside:
            for key, value in _of_part(thing, seconds / len(outline.aside)).items():
                found[key] += value
    except Exception:  # a data set's own way of being pickled may raise anything
        return None
    found["pickled_bytes"] = round(found["pickled_bytes"])
    return found


def _of_part(thing, seconds: float) -> dict:
    if _is_array(thing) and not thing.dtype.hasobject:
        count = max(1, min(thing.size, _PIECE // max(1, thing.itemsize)))
        return _timed([thing.flat[:count]], thing.size / count)  # reshape would copy all of one that is strided
    if isinstance(thing, (str, bytes, bytearray)):
        count = min(len(thing), _PIECE)
        return _timed([thing[:count]], len(thing) / count)
    # The largest part counts: a few elements say nothing of memory that grows and of the collector's passes.
    elements, size = _elements(thing)
    count, until = min(_CHUNK, size), time.monotonic() + seconds
    while True:
        began = time.monotonic()
        part = elements(count)
        found = _timed(part, size / len(part))
        if count == size or time.monotonic() + 2 * (time.monotonic() - began) > until:
            return found
        count = min(2 * count, size)


def _elements(thing) -> tuple:
    """(how to draw so many elements, how many there are)."""
    rng = random.Random(1)
    if isinstance(thing, dict):
        keys = list(thing)
        return (lambda count: {keys[at]: thing[keys[at]] for at in _places(rng, len(keys), count)}), len(keys)
    if _is_array(thing):
        return (lambda count: [thing.flat[at] for at in _places(rng, thing.size, count)]), thing.size
    row = thing if isinstance(thing, (list, tuple)) else list(thing)
    return (lambda count: [row[at] for at in _places(rng, len(row), count)]), len(row)


def _places(rng, size: int, count: int) -> list:
    """Runs of neighbours, which lie beside each other in memory as they do when the whole is pickled."""
    starts = rng.sample(range(0, size, _RUN), min(-(-count // _RUN), -(-size // _RUN)))
    return [at for start in starts for at in range(start, min(start + _RUN, size))][:count]


def _timed(part, weight: float) -> dict:
    counter = _Counter(3600.0)
    start = time.thread_time()
    with contextlib.suppress(_Enough):
        ForkingPickler(counter, None).dump(part)
    took = 1e3 * (time.thread_time() - start)
    back = unpickle_ms(b"".join(counter.parts)) if counter.parts is not None else None
    return {"pickled_bytes": weight * counter.bytes, "pickle_ms": weight * took,
            "unpickle_ms": weight * (took if back is None else back)}
