"""Runs a script for real on the CPU for some steps, and says how long a step takes and how much memory was resident.

    python -m stoker.shadow.real_run REQUEST.json

It is a fresh process, since what is resident is to be the script's own. The script is ended after its last step.
"""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import traceback
import weakref

from ..measure import contention

_open, _exit = os.open, os._exit  # before they are led elsewhere
WARM_STEPS = 2  # they allocate what later ones find
VALIDATION_BATCHES = 3  # of the pass that follows the measured steps; the first ones are the largest
LEAST_S = 20.0  # for that pass, however long the steps took
LEAST_MEASURED_S, MOST_STEPS = 1.0, 100  # of short steps so many more are taken that what is between clock ticks is seen


def main(request_file: str) -> None:
    request = json.loads(pathlib.Path(request_file).read_text())
    import torch

    from . import main_module, manners
    from .facade import processes
    from .settings import batches
    from .world import Request, World

    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0
    asked = Request(script=request["script"], arguments=request["arguments"], gpu=None, batch=request["batch"])
    world = World(asked, "")
    run = _Run(request)
    _watch_optimizers(torch, run)
    _watch_backwards(torch, run)
    _watch_loaders(torch, run, request["batch"])
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = lambda *_, **__: False
    module = main_module.prepare(request["script"], request["arguments"])
    os._exit = run.script_exits
    with tempfile.TemporaryDirectory() as scratch:
        overlay = manners.install(scratch, False)
        processes.install(world, overlay)
        try:
            main_module.execute(batches.code(world), module)
        except SystemExit:
            pass
        except Exception:
            if not run.has_measured:
                raise
            traceback.print_exc()  # what came after the measured steps is not asked for
        run.end()


class _Run:
    """Times between the ends of one optimizer's steps, without what its loader took; then the pass that comes after an epoch.

    Without an optimizer each backward ends a step. Where one step evaluates its loss several times, as LBFGS does, a time is that
    of one evaluation within it.

    When enough steps were measured, the loaders that the steps took batches from have no more of them: the script goes on to its
    validation, whose batches come from another loader, and is ended within it.
    """

    def __init__(self, request: dict):
        self._request = request
        self._until = time.monotonic() + request["seconds"]
        self._first: int | None = None
        self._last: float | None = None
        self._times: list[float] = []
        self._parts: list[float] = []
        self._busy: list[float] = []  # CPU seconds of all threads, without those of the loader
        self._cpu = 0.0
        self.loading_cpu = 0.0
        self.loading = 0.0
        self.before = None  # bytes that were resident before the first step ended
        self._given: set[int] = set()  # ids of loaders that gave a batch since the last step
        self._trained_with: set[int] = set()
        self._ended: set[int] = set()  # loaders that have said that they have no more
        self._validated = 0  # batches of other loaders, after the measured steps
        self._peak: int | None = None  # of the measured steps; None: they go on
        self._ending = threading.Lock()
        self._process = self._trains = os.getpid()  # the first one, and the one that made the last step
        self._load: list = []  # usage of the machine before the measured steps and behind them
        self._begun: float | None = None  # when the optimizer's step that runs has begun
        self._backwards = 0  # within it
        self.evaluations = 1  # of the loss, in a step
        self.has_optimizer = False

    @property
    def has_measured(self) -> bool:
        return len(self._times) > WARM_STEPS

    def begins(self) -> None:
        """An optimizer's step begins."""
        if self.before is None:
            self.before = _peak()
        self._begun, self._backwards = time.perf_counter(), 0

    def backward(self) -> None:
        self._backwards += 1
        if not self.has_optimizer:
            self.before = self.before or _peak()
            self.stepped(None)

    def stepped(self, optimizer) -> None:
        now = time.perf_counter()
        self._trains = os.getpid()
        begun, self._begun = self._begun, None
        if self._peak is not None:
            self.end()  # the next epoch
        if self._first is None:
            self._first = id(optimizer)
        if id(optimizer) != self._first:
            return
        if self._last is not None:
            self.evaluations = max(1, self._backwards) if begun is not None else 1
            inside = begun is not None and self.evaluations > 1
            self._times.append((now - begun) / self.evaluations if inside else now - self._last - self.loading)
            self._parts.append(self.loading)
            self._busy.append((time.process_time() - self._cpu - self.loading_cpu) / self.evaluations)
            self._trained_with |= self._given
        self._given = set()
        self._last, self._cpu, self.loading, self.loading_cpu = now, time.process_time(), 0.0, 0.0
        if len(self._times) == WARM_STEPS:
            self._load = [contention.usage()]
        if self._is_enough() or len(self._times) > WARM_STEPS and time.monotonic() > self._until:
            self._leave_epoch()

    def _is_enough(self) -> bool:
        times = self._times[WARM_STEPS:]
        return len(times) >= self._request["steps"] and (sum(times) >= LEAST_MEASURED_S or len(times) >= MOST_STEPS)

    def _leave_epoch(self) -> None:
        self._load.append(contention.usage())
        if not self._trained_with:
            self.end()
        self._peak = _peak()
        watch = threading.Timer(max(LEAST_S, self._until - time.monotonic()), self.end)
        watch.daemon = True
        watch.start()

    def asked(self, loader) -> bool:
        """Whether this loader has another batch; called before it makes one."""
        if self._peak is None:
            self._given.add(id(loader))
            return True
        if id(loader) in self._trained_with:
            if id(loader) in self._ended:
                self.end()  # a loop that begins its next epoch at once
            self._ended.add(id(loader))
            return False
        if self._validated >= VALIDATION_BATCHES:
            self.end()
        self._validated += 1
        return True

    def own_batch(self, loader) -> bool:
        """Whether this loader gives batches of the script's own size: that of a validation is not the training's."""
        return self._peak is not None and id(loader) not in self._trained_with

    def script_exits(self, status) -> None:
        """os._exit: of the script itself or of a process that it forked."""
        if os.getpid() in (self._process, self._trains):
            self.end()
        _exit(status)

    def end(self) -> None:
        self._ending.acquire()  # and not released: the timer's thread may end the run, too
        times = self._times[WARM_STEPS:]
        others, stolen = contention.between(self._load[0], (self._load[1:] or [contention.usage()])[0]) if self._load else (0.0, 0.0)
        if not times and _is_there(self._request["answer"]):
            _exit(0)  # a process that the script forked has trained
        answer = {"steps": len(times), "step_s": statistics.median(times) if times else None,
                  "peak_bytes": _peak() if self._peak is None else self._peak,
                  "validated_bytes": _peak() if self._validated else None,
                  "loading_s": statistics.median(self._parts[WARM_STEPS:]) if times else None, "before_bytes": self.before,
                  "evaluations": self.evaluations, "foreign_share": others, "steal_share": stolen,
                  "busy_s": statistics.median(self._busy[WARM_STEPS:]) if times else None}
        descriptor = _open(self._request["answer"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, json.dumps(answer).encode())
        _exit(0)


def _is_there(path: str) -> bool:
    try:
        os.close(_open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _peak() -> int | None:
    """Bytes of this process that were resident at most, as the kernel counts them."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _watch_optimizers(torch, run) -> None:
    optimizer = torch.optim.Optimizer
    original = optimizer.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        run.has_optimizer = True
        self.register_step_post_hook(lambda one, args, kwargs: run.stepped(one))
        self.register_step_pre_hook(lambda one, args, kwargs: run.begins())

    optimizer.__init__ = __init__


def _watch_backwards(torch, run) -> None:
    original = torch.autograd.backward

    def backward(*args, **kwargs):
        original(*args, **kwargs)
        run.backward()

    torch.autograd.backward = backward


def _watch_loaders(torch, run, batch) -> None:
    loader = torch.utils.data.DataLoader
    init, iterate = loader.__init__, loader.__iter__
    own = weakref.WeakKeyDictionary()  # loader -> the script's own batch, where another was asked for

    signature = inspect.signature(init)

    def __init__(self, *args, **kwargs):
        given = signature.bind(self, *args, **kwargs).arguments
        given.update(num_workers=0, pin_memory=False)
        for name in ("self", "prefetch_factor", "persistent_workers", "timeout", "worker_init_fn", "multiprocessing_context"):
            given.pop(name, None)
        batch_size = given.get("batch_size", 1)
        replaced = batch is not None and given.get("batch_sampler") is None and batch_size is not None
        if replaced:
            given["batch_size"] = batch
        init(self, **given)
        if replaced:
            own[self] = batch_size

    def __iter__(self):
        if self in own and run.own_batch(self):
            self.batch_sampler.batch_size = own[self]
        return _Batches(iterate(self), run, self)

    loader.__init__, loader.__iter__ = __init__, __iter__


class _Batches:
    """A loader's iterator, whose time is told apart from the step's."""

    def __init__(self, inner, run, loader):
        self._inner, self._run, self._loader = inner, run, loader

    def __iter__(self):
        return self

    def __next__(self):
        if not self._run.asked(self._loader):
            raise StopIteration
        begun, busy = time.perf_counter(), time.process_time()
        try:
            return next(self._inner)
        finally:
            self._run.loading += time.perf_counter() - begun
            self._run.loading_cpu += time.process_time() - busy

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)


if __name__ == "__main__":
    main(sys.argv[1])
