"""Observer: records where the time of a training loop's steps goes. docs/guide/observing.md is its manual."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal

from ..study.reporting import in_trial
from . import facts, layout, lifetime
from .device_marks import CudaEvents, DeviceMarks
from .layout import BACKWARD, CLOCK, EXCEPTION, FORWARD, OK, OPTIMIZER, OTHER, OWN, SKIPPED, TRAIN, UNCLOSED, VALIDATION, ObservationError
from .loops import Batches, Phase, Step, leading_size
from .recorder import BLOCK_ROWS, Recorder, check_folder, say, with_label
from .timeline import Timeline

DEFAULT_PATH = "stoker.obs.jsonl"
MEMORY_INTERVAL_NS = 1_000_000_000  # between two readings of memory


class Observer:
    """Records steps into a file. Never waits for the device, never raises in the middle of training.

    path        "run.obs.jsonl"; with several ranks each writes its own, run.rank3.obs.jsonl. A file that is there
                already is kept, and this run's gets a number: run.2.obs.jsonl
    batch       samples a step, where they cannot be seen in what the loader or the model is given, or are seen wrong
    device      "cuda:0", "cpu"; default: the attached model's, else CUDA if the program uses it
    precision   as for --precision; default: what autocast and the model's parameters say
    phases      names of further phases of your own, for phase("NAME")

    Raises ObservationError if the path cannot be used or an argument cannot be meant. One thread records: the first.
    """

    def __init__(self, path: str | os.PathLike | None = None, *, batch: int | None = None, device: str | None = None,
                 precision: str | None = None, phases: Sequence[str] = (), clock=time.perf_counter_ns, events=None, write=os.write):
        path = os.fspath(path or os.environ.get("STOKER_OBSERVATION") or DEFAULT_PATH)
        if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool) or batch < 1):
            raise ObservationError(f"batch={batch!r}: give the number of samples in a step, 1 or more")
        check_folder(path)
        self._names = layout.phase_names(phases)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._clock, self._events = clock, events
        self._recorder = Recorder(path, clock, write)
        self._batch = batch
        self._device = None if device is None else str(device)
        self._precision = precision
        self.knows_precision = precision is not None
        self._model = None
        self._memory: Any = None
        self._memory_due = 0
        self.timeline: Any = None  # made at the first sign of life, when the device is known
        self._owner: int | None = None  # the thread that records
        self._closed = False
        self._said_closed = False
        self.notes = {}  # what was odd, counted by name
        self.hooks: Any = None  # hooks.Hooks, once a model is attached
        self.attached = False
        self.explicit = False  # the loop opens steps itself
        self.is_open = False  # a step is in progress
        self._validating = False
        self._row_began: int | None = None  # ns: where the step before ended
        self._began = 0
        self._zero = 0
        self._steps = 0
        self.epoch = 0  # from 1 on; 0: no batches() yet
        self._nothing = [0] * len(self._names)
        self.entered = self._nothing[:]  # how often each phase was entered in this step
        self.grad_forwards = self.seen_by_loader = self.seen_by_model = 0
        self.skipped = False  # the gradient scaler left the optimizer's step out
        lifetime.register(self)

    @property
    def path(self) -> str:
        """The file; final once the first step has been written."""
        return self._recorder.path

    # What a loop calls

    def step(self, *, validation=None, batch=None) -> Step:
        """`with observer.step():` around one step."""
        return Step(self, validation, batch)

    def phase(self, name: str) -> Phase:
        """`with observer.phase("forward"):` around a part of a step, or of what lies between two steps."""
        return Phase(self, self.number(name))

    def mark(self, name=None) -> None:
        """For loops that with-blocks do not fit: from now on time belongs to this phase; None ends it."""
        number = OTHER if name is None else self.number(name)
        if self.ready():
            self.timeline.switch(number)
            if not self.attached:
                self.entered[number] += 1

    def batches(self, loader, *, validation=False) -> Batches:
        """Iterates over `loader` and records how long the loop waits for it."""
        return Batches(self, loader, validation)

    def attach(self, model, optimizer=None, scaler=None) -> Observer:
        """Lets PyTorch's hooks mark forward, backward and optimizer; without step() they tell steps apart as well.

        Call it after torch.compile and DistributedDataParallel, with what the loop calls. `optimizer` may be a list; a
        step then ends when each has stepped. `scaler` is the GradScaler, if there is one. May be called for several models.
        """
        from .hooks import attach

        attach(self, model, optimizer, scaler)
        return self

    def detach(self) -> None:
        """Takes all hooks off again."""
        from .hooks import detach

        detach(self)

    def close(self) -> None:
        """Writes what is left. Called at exit by itself; steps after it are not recorded."""
        lifetime.forget(self)
        self._close(at_exit=False)

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, kind, value, traceback) -> Literal[False]:
        if self.is_open:
            self.end_step(OK if kind is None else EXCEPTION, kind)
        self.close()
        return False

    def begin_step(self, validation=None, batch=None) -> bool:
        """Opens a step; False if it is not recorded (within another, from another thread, after close)."""
        if not self.ready():
            return False
        if self.is_open:
            if self.explicit:
                self.note("nested_steps")
                return False
            self.end_step(UNCLOSED)
        self.explicit = True
        self.open_step(self._validating or None if validation is None else validation, batch)
        return True

    def end_step(self, end: str = OK, error=None) -> None:
        """Closes the open step; without one it does nothing."""
        if self.is_open:
            self.close_step(end, error)

    # What hooks and adapters use besides

    def number(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise ObservationError(f"no phase {name!r}: use one of {', '.join(self._names)}, or name it when the observer "
                                   f"is made: Observer(..., phases=[{name!r}])") from None

    def ready(self) -> bool:
        """Whether this thread records, and this observer still does."""
        if self._row_began is not None and threading.get_ident() == self._owner and self._recorder.alive:
            return True
        return self._get_ready()

    def _get_ready(self) -> bool:
        if self._closed:
            if not self._said_closed:
                self._said_closed = True
                say(f"{self.path} is closed: the steps after that are not recorded")
            return False
        thread = threading.get_ident()
        if self._owner is None:
            self._owner = thread
        elif thread != self._owner:
            self.note("other_thread")
            return False
        if not self._recorder.alive:
            return False
        if self.timeline is None:
            self.start()
        if self._row_began is None:
            self._row_began = self.timeline.last = self._clock()
        return True

    def from_this_thread(self) -> bool:
        return threading.get_ident() == self._owner

    def start(self) -> None:
        """The device is settled here, at the first step or when a model is attached."""
        if self._device is None:
            self._device = facts.default_device()
        events = self._events
        if events is None and self._device and self._device.startswith("cuda"):
            index = self._device.partition(":")[2]
            torch = facts.loaded_torch()
            events = CudaEvents(torch, int(index) if index else torch.cuda.current_device())
        self._marks = DeviceMarks(events) if events is not None else None
        self.timeline = Timeline(len(self._names), self._clock, self._marks)
        self._zero = self.timeline.last
        self._memory = facts.Memory(self._device)
        self._grad_enabled = getattr(facts.loaded_torch(), "is_grad_enabled", lambda: True)

    def sees_batch(self, batch) -> None:
        self.seen_by_loader += leading_size(batch) or 0

    def stop(self, error: Exception) -> None:
        """A fault of the recording's own ends it; the training goes on."""
        self._recorder.stop(f"the recording failed ({type(error).__name__}: {error}); please report it")

    @property
    def knows_samples(self) -> bool:
        """The samples of the step in progress are known: what the model is given need not be looked at."""
        return bool(self.seen_by_loader or self._batch)

    def note(self, name: str) -> None:
        self.notes[name] = self.notes.get(name, 0) + 1

    def knows_model(self, model) -> None:
        self._model = self._model or model
        if self._device is None:
            self._device = facts.device_of(model)

    def validating(self, value: bool) -> bool:
        """Whether steps count as validation from now on; returns what held before."""
        before, self._validating = self._validating, value
        return before

    def open_step(self, validation, batch=None) -> None:
        """`validation`: True, False, or None where the step itself will show it."""
        if self.hooks is not None:
            self.hooks.new_step()
        self._validation, self._step_batch = validation, batch
        self._grad_at_begin = self._grad_enabled()
        self.is_open = True
        self._began = self.timeline.reset(True)

    def close_step(self, end: str, error=None) -> None:
        if not self.knows_precision:
            self.see_precision()
        timeline = self.timeline
        now = timeline.reset(False)
        self.is_open = False
        step, began, entered = self._steps, self._began, self.entered
        gap, total = began - self._row_began, now - began
        if end != OK or gap < 0 or total < 0 or self.skipped:
            end = self._odd_end(end, error, gap < 0 or total < 0)
        validation = self._validation
        if validation is None:
            validation = not (self.grad_forwards or entered[BACKWARD]) and (
                not self._grad_at_begin or (self.attached and entered[FORWARD] > 0))
        row = (step, self.epoch, VALIDATION if validation else TRAIN, end, began - self._zero, gap, total,
               *timeline.take(), self._step_batch or self._batch or self.seen_by_loader or self.seen_by_model,
               entered[FORWARD], entered[BACKWARD], entered[OPTIMIZER])
        self._row_began = now
        self._steps = step + 1
        self.entered = self._nothing[:]
        self.grad_forwards = self.seen_by_loader = self.seen_by_model = 0
        if self._marks is None:
            self._recorder.add(row)
        else:
            self._marks.close_row(row)
            for done in self._marks.finished(len(self._names)):
                self._recorder.add(done)
        if now >= self._memory_due or now >= self._recorder.due or len(self._recorder.rows) >= BLOCK_ROWS:
            self._keep(now)

    def _odd_end(self, end: str, error, clock_went_back: bool) -> str:
        """How a step ended that did not simply end well."""
        if end == EXCEPTION and error is not None:
            self._recorder.add_line({"exception": {"step": self._steps, "type": error.__name__}})
        elif end == UNCLOSED:
            self.note("unclosed_steps")
        if self.skipped:
            self.skipped = False
            end = SKIPPED if end == OK else end
        return CLOCK if clock_went_back else end

    def see_precision(self) -> None:
        """Called where the user's autocast is in force."""
        self.knows_precision = True
        device = (self._device or "cpu").partition(":")[0]
        self._precision = facts.precision(self._model, device)

    # Inside

    def _keep(self, now: int) -> None:
        """Between steps: reads memory and writes a block, when it is time."""
        self.timeline.switch(OWN)
        try:
            if now >= self._memory_due:
                self._memory_due = now + MEMORY_INTERVAL_NS
                self._recorder.add_line({"memory": {"step": self._steps - 1, **self._memory.read()}})
            if self._recorder.wants_to_write(now):
                self._flush()
        except Exception as error:  # ours, and never the training's
            self.stop(error)
        self.timeline.switch(OTHER)

    def _flush(self) -> None:
        recorder = self._recorder
        if not recorder.is_open and recorder.alive:
            rank, ranks = facts.rank()
            if ranks > 1:
                recorder.path = with_label(recorder.path, f"rank{rank}")
            recorder.open(self._header(rank, ranks))
        recorder.flush()

    def _header(self, rank: int, ranks: int) -> dict:
        on_device = self.timeline is not None and self.timeline.marks is not None
        return {"format": layout.FORMAT, "schema_version": list(layout.SCHEMA_VERSION),
                "provenance": facts.provenance(self._device), "rank": rank, "ranks": ranks,
                "model": facts.model(self._model), "precision": self._precision,
                "batch": self._batch, "hooks": self.attached, "timing": "device" if on_device else "host",
                "columns": layout.columns(self._names, on_device)}

    def _close(self, at_exit: bool, error=None) -> None:
        if self._closed:
            return
        self._closed = True
        if self._recorder.alive and self.is_open:
            self.close_step(UNCLOSED if error is None else EXCEPTION, error)
        self.detach()
        self._row_began = None  # ready() takes the long way, which knows about closed files
        if not self._recorder.alive:
            return
        if self._steps == 0 and at_exit and lifetime.in_child_process():
            self._recorder.forget()  # a script that a DataLoader's worker imported anew
            return
        if self.timeline is not None and self._marks is not None:
            self._collect(wait=error is None)
        self._flush()
        recorder = self._recorder
        recorder.close({"end": {"steps": self._steps, "lost": recorder.lost, "write_ns": recorder.write_ns,
                                "notes": self.notes}})
        if in_trial():
            from .told import tell

            tell(self.path)

    def _collect(self, wait: bool) -> None:
        """Training is over: the only place where the device may be waited for."""
        last = self._marks.last_event()
        try:
            if wait and last is not None:
                last.synchronize()
        except RuntimeError:
            pass  # the device is gone; rows keep their host times
        for row in self._marks.finished(len(self._names), everything=True):
            self._recorder.add(row)
        if self._marks.unread:
            self.notes["device_unread"] = self._marks.unread

    def _abandon(self) -> None:
        """Stops the recording in a forked child, perhaps within a step."""
        self._closed = self._said_closed = True
        self.is_open = False
        self._row_began = None
        self._recorder.forget()


_by_path = {}


def observe_step(path: str | os.PathLike | None = None, *, validation: bool | None = None, batch: int | None = None) -> Step:
    """`with stoker.observe_step():` around each step of a loop; nothing else is needed.

    Records into `path` (default: $STOKER_OBSERVATION, else stoker.obs.jsonl). The step has phase("forward") and so on.
    """
    observer = _by_path.get(path)
    if observer is None:
        observer = _by_path[path] = Observer(path)
    return Step(observer, validation, batch)
