"""Where a sample's CPU time goes: by the data set's own transforms where it has a list of them, by stack sampling where not.

Both run in a child of their own after the measurement, so that watching costs the figures nothing. The child may change
what it likes: it works on a copy.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import importlib
import io
import linecache
import signal
import sys
import time

from .. import whose
from ..measure.counters import clock_cost_ns
from .maker import Maker, become_worker

_ENOUGH_NAMED = 0.5  # share of a sample that named stages must cover, where no transform list was found
_SMALL = 0.02  # share below which sampled places are put together
_TICK_S = 0.001
_FEWEST_TICKS, _ENOUGH_TICKS = 40, 150  # an error of 4 points
_MOST_ROWS = 12
_STEP = 8  # samples
_DEPTH = 4  # data sets within data sets (Subset, ConcatDataset) that are looked into
_NAMES = ("transform", "transforms", "target_transform", "augment", "augmentation", "augmentations", "pipeline",
          "preprocess", "loader")
# Library functions that are a stage by themselves: (module, attribute, stage).
_LIBRARY = (("PIL.Image", "open", "open"), ("PIL.ImageFile", "ImageFile.load", "decode"),
            ("PIL.Image", "Image.convert", "convert"), ("PIL.Image", "Image.resize", "resize"),
            ("PIL.Image", "Image.crop", "crop"), ("cv2", "imread", "decode"), ("cv2", "imdecode", "decode"),
            ("cv2", "resize", "resize"), ("cv2", "cvtColor", "convert"), ("numpy", "load", "read"),
            ("torch", "load", "read"))


class Stopwatch:
    """Exclusive CPU time by stage: what a stage calls counts for the stage that is called."""

    def __init__(self):
        self._clock = time.thread_time_ns
        self._cost = clock_cost_ns(self._clock)
        self._open = []  # time spent in stages inside, for each stage that is running
        self.ns = collections.OrderedDict()

    def timed(self, name: str, function):
        @functools.wraps(function, updated=())
        def wrapped(*args, **kwargs):
            self._open.append(0)
            start = self._clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent = max(0, self._clock() - start - self._cost)
                inside = self._open.pop()
                self.ns[name] = self.ns.get(name, 0) + max(0, spent - inside)
                if self._open:
                    self._open[-1] += spent + self._cost

        return wrapped


class NowAndThen:
    """Ten times a second, and the first time."""

    def __init__(self):
        self._next = 0.0

    def due(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 0.1
        return True


def _name_of(thing) -> str:
    if hasattr(thing, "__qualname__"):
        return thing.__qualname__.rpartition(".")[2].replace("<lambda>", "lambda")
    if isinstance(thing, functools.partial):
        return _name_of(thing.func)
    return type(thing).__name__


def _parts(thing):
    """The transforms inside a Compose or a Sequential; None of anything else (a RandomApply is one stage)."""
    if not any(word in type(thing).__name__ for word in ("Compose", "Sequential", "StandardTransform", "Augment")):
        return None
    inner = getattr(thing, "transforms", None)
    if isinstance(inner, (list, tuple)) and inner and all(callable(part) for part in inner):
        return inner
    modules = getattr(thing, "_modules", None)
    if modules and "Sequential" in type(thing).__name__:
        return list(modules.values())
    return None


def _swap(thing, watch: Stopwatch, name: str):
    """A transform that is timed. Its class becomes a subclass, so that isinstance() and attributes go on working."""
    kind = type(thing)
    if not hasattr(thing, "__dict__") or "__call__" not in dir(kind) or hasattr(thing, "__qualname__"):
        return watch.timed(name, thing)
    try:
        thing.__class__ = type(kind.__name__, (kind,), {"__call__": watch.timed(name, kind.__call__)})
        return thing
    except TypeError:
        return watch.timed(name, thing)


def _watch_transform(holder, attribute: str, watch: Stopwatch) -> int:
    """Times what holder.attribute holds; returns the number of stages found."""
    thing = getattr(holder, attribute, None)
    if thing is None or not callable(thing) and not isinstance(thing, (list, tuple)):
        return 0
    parts = list(thing) if isinstance(thing, (list, tuple)) else _parts(thing)
    if parts is None:
        if type(thing).__name__ == "StandardTransform":  # torchvision's pair of transform and target_transform
            return sum(_watch_transform(thing, name, watch) for name in ("transform", "target_transform"))
        timed = _swap(thing, watch, _name_of(thing))
        if timed is not thing:
            setattr(holder, attribute, timed)
        return 1
    if not all(callable(part) for part in parts):
        return 0
    return _watch_list(holder, attribute, thing, parts, watch)


def _watch_list(holder, attribute, thing, parts, watch) -> int:
    count, timed = 0, []
    for part in parts:
        inner = _parts(part)
        if inner is not None:
            count += _watch_list(None, None, part, list(inner), watch)
            timed.append(part)
        else:
            timed.append(_swap(part, watch, _name_of(part)))
            count += 1
    if isinstance(thing, (list, tuple)):
        setattr(holder, attribute, type(thing)(timed))
    elif isinstance(getattr(thing, "transforms", None), (list, tuple)):
        thing.transforms = type(thing.transforms)(timed)
    return count


def watch_transforms(dataset, watch: Stopwatch, depth: int = _DEPTH) -> int:
    """Times the transforms of a data set and of the data sets inside it."""
    count = 0
    # torchvision's data sets keep the same objects in `transform` and in `transforms`: one is enough.
    names = [name for name in _NAMES if name in getattr(dataset, "__dict__", {})]
    if "transform" in names and "transforms" in names and type(dataset.transforms).__name__ == "StandardTransform":
        names.remove("transforms")
        names = [name for name in names if name not in ("transform", "target_transform")] + ["transforms"]
    for name in names:
        if name == "loader" and count == 0:
            continue  # torchvision's pil_loader: PIL's own functions say more
        count += _watch_transform(dataset, name, watch)
    if depth > 0:
        inside = [getattr(dataset, "dataset", None), *(getattr(dataset, "datasets", None) or [])[:16]]
        for inner in inside:
            if inner is not None and inner is not dataset:
                count += watch_transforms(inner, watch, depth - 1)
    return count


def watch_libraries(watch: Stopwatch) -> None:
    """Times the functions of _LIBRARY that are loaded, and reading of files that Python opens."""
    if "PIL.Image" in sys.modules:  # Pillow itself imports this with the first image
        with contextlib.suppress(ImportError):
            importlib.import_module("PIL.ImageFile")
    for module_name, path, stage in _LIBRARY:
        holder = sys.modules.get(module_name)
        *way, last = path.split(".")
        for step in way:
            holder = getattr(holder, step, None)
        function = getattr(holder, last, None)
        if function is not None:
            try:
                setattr(holder, last, watch.timed(stage, function))
            except (AttributeError, TypeError):
                continue
    _watch_files(watch)


def _watch_files(watch: Stopwatch) -> None:
    original = builtins.open

    class TimedFile(io.BufferedReader):
        read = watch.timed("read", io.BufferedReader.read)
        readinto = watch.timed("read", io.BufferedReader.readinto)
        readline = watch.timed("read", io.BufferedReader.readline)

    def opened(file, mode="r", buffering=-1, *args, **kwargs):
        if mode == "rb" and buffering == -1 and not args and not kwargs:
            return TimedFile(io.FileIO(file, "rb"))
        return original(file, mode, buffering, *args, **kwargs)

    builtins.open = watch.timed("read", opened)


# -- stack sampling ---------------------------------------------------------------------------------------------------

_ENTRIES = ("__getitem__", "__getitems__", "__iter__", "__next__")


class Sampler:
    """Asks every millisecond of CPU time which of the user's functions runs. One asking takes some microseconds."""

    def __init__(self):
        self.counts, self.ticks, self.own_ns = collections.Counter(), 0, 0
        self._running = False

    def _tick(self, number, frame) -> None:
        if not self._running:
            return
        start = time.thread_time_ns()
        self.counts[place_of(frame)] += 1
        self.ticks += 1
        self.own_ns += time.thread_time_ns() - start

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, _TICK_S, _TICK_S)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def running(self, on: bool) -> None:
        self._running = on


def place_of(frame) -> str:
    """What __getitem__ is busy with: the function that it called, the user's own or a library's, or its own line."""
    stack = []  # innermost first
    while frame is not None and not whose.is_ours(frame.f_code.co_filename):
        stack.append(frame)
        frame = frame.f_back
    users = [at for at, f in enumerate(stack) if not whose.is_library(f.f_code.co_filename)]
    if not users:
        return "other"
    entries = [at for at in users if stack[at].f_code.co_name in _ENTRIES]
    entry = entries[-1] if entries else users[-1]
    if entry > 0:
        inner = stack[entry - 1]
        name = getattr(inner.f_code, "co_qualname", inner.f_code.co_name).rpartition("<locals>.")[2]
        library = inner.f_globals.get("__name__", "").partition(".")[0]
        return f"{library} {name}" if whose.is_library(inner.f_code.co_filename) else name
    outer = stack[entry]
    text = linecache.getline(outer.f_code.co_filename, outer.f_lineno).strip()
    if not text:
        return f"{outer.f_code.co_name}, line {outer.f_lineno}"
    return f"line {outer.f_lineno}: {text[:36]}{'...' if len(text) > 36 else ''}"


def _sample_stacks(source, maker, indices, seconds: float, send) -> None:
    sampler, now_and_then = Sampler(), NowAndThen()
    sampler.start()
    made, start = 0, time.monotonic()
    try:
        # Linux counts CPU time for such a timer in ticks of 1 to 10 ms.
        while time.monotonic() < start + seconds or sampler.ticks < _ENOUGH_TICKS and time.monotonic() < start + 3 * seconds:
            batch = _step(source, maker, indices, made, lambda: sampler.running(True), lambda: sampler.running(False))
            made += len(batch.rows)
            batch.samples.clear()
            if sampler.ticks >= _FEWEST_TICKS and now_and_then.due():
                rows = [(name, count / sampler.ticks) for name, count in sampler.counts.most_common()]
                send("stages", {"how": "sampling", "rows": rows, "tick_us": 1e-3 * sampler.own_ns / sampler.ticks})
    finally:
        sampler.stop()


def _step(source, maker, indices, made: int, begin, end):
    """A few samples; iterables go on, lists begin anew. Few, so that what a slow machine has made by the end counts."""
    begin()
    if source.kind == "iterable":
        batch = maker.make(min(source.batch, _STEP))
        if batch.ended:
            maker.restart()
    else:
        size = min(source.batch, len(indices), _STEP)
        start = made % len(indices)
        batch = maker.make((indices + indices)[start:start + size])
    end()
    if not batch.rows:
        time.sleep(0.001)
    return batch


# -- the pass ---------------------------------------------------------------------------------------------------------


def transform_pass(source, send, *, seconds: float, indices: list) -> None:
    """Stages by the transforms and libraries; reports nothing where they name too little of a sample."""
    become_worker(source)
    watch = Stopwatch()
    found = watch_transforms(source.dataset, watch)
    watch_libraries(watch)
    maker = Maker(source)
    until = time.monotonic() + seconds
    _step(source, maker, indices, 0, lambda: None, lambda: None)  # warm
    watch.ns.clear()
    made, total, now_and_then = 0, 0, NowAndThen()
    while time.monotonic() < until or not made:
        batch = _step(source, maker, indices, made, lambda: None, lambda: None)
        made += len(batch.rows)
        total += sum(row[2] for row in batch.rows)
        batch.samples.clear()
        rows = [(name, ns / total) for name, ns in watch.ns.items() if ns > 0] if total > 0 else []
        enough = rows and (found or sum(share for _, share in rows) >= _ENOUGH_NAMED)
        if enough and now_and_then.due():
            send("stages", {"how": "transforms", "rows": rows})
        if not made and maker.failures.count > 64:
            return


def sampling_pass(source, send, *, seconds: float, indices: list) -> None:
    become_worker(source)
    maker = Maker(source)
    _step(source, maker, indices, 0, lambda: None, lambda: None)
    _sample_stacks(source, maker, indices, seconds, send)


def table(rows: list, mean_ms: float, *, in_order: bool) -> list:
    """Rows of the file: shares that sum to 1, small ones put together, "other" last."""
    total = sum(share for _, share in rows)
    scale = 1 / total if total > 1 else 1.0
    kept, other = [], max(0.0, 1 - total * scale)
    ordered = rows if in_order else sorted(rows, key=lambda row: -row[1])
    large = sorted(rows, key=lambda row: -row[1])[:_MOST_ROWS]
    for name, share in ordered:
        share *= scale
        if name == "other" or share < (0.002 if in_order else _SMALL) or (name, share / scale) not in large:
            other += share
        else:
            kept.append((name, share))
    if other > 0.0005:
        kept.append(("other", other))
    return [{"name": name, "ms": round(share * mean_ms, 6), "share": round(share, 4)} for name, share in kept]
