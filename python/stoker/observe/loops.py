"""The objects that a training loop holds: a step, a phase, the batches of a loader."""

from __future__ import annotations

from typing import Literal

from .layout import EXCEPTION, OK, UNCLOSED, WAIT


class Step:
    """One step as a with-block. An exception passes through and the step counts as aborted; one that is entered and
    never left is recorded as unclosed when its object goes."""

    __slots__ = ("_observer", "_validation", "_batch", "_open")

    def __init__(self, observer, validation, batch):
        self._observer, self._validation, self._batch = observer, validation, batch
        self._open = False

    def __enter__(self) -> Step:
        self._open = self._observer.begin_step(self._validation, self._batch)
        return self

    def __exit__(self, kind, value, traceback) -> Literal[False]:
        if self._open:
            self._open = False
            self._observer.end_step(OK if kind is None else EXCEPTION, kind)
        return False

    def __del__(self):
        if self._open:
            self._open = False
            self._observer.end_step(UNCLOSED)

    def phase(self, name: str) -> Phase:
        return self._observer.phase(name)


class Phase:
    """A part of a step as a with-block."""

    __slots__ = ("_observer", "_number", "_token")

    def __init__(self, observer, number: int):
        self._observer, self._number = observer, number
        self._token = None

    def __enter__(self) -> Phase:
        observer = self._observer
        if observer.ready():
            self._token = observer.timeline.push(self._number)
            if not observer.attached:
                observer.entered[self._number] += 1
        return self

    def __exit__(self, kind, value, traceback) -> Literal[False]:
        if self._token is not None:
            self._observer.timeline.pop(self._token)
            self._token = None
        return False


class Batches:
    """A loader whose next() is timed. Has a length if the loader has one; each iteration over it is an epoch."""

    def __init__(self, observer, loader, validation: bool):
        self._observer, self._loader, self._validation = observer, loader, validation

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self):
        observer = self._observer
        if not observer.ready():
            yield from self._loader
            return
        if not self._validation:
            observer.epoch += 1
        before = observer.validating(self._validation)
        try:
            token = observer.timeline.push(WAIT)
            batches = iter(self._loader)  # starts the workers: the first batch of an epoch waits for them
            while True:
                try:
                    batch = next(batches)
                except StopIteration:
                    observer.timeline.pop(token)
                    return
                observer.timeline.pop(token)
                observer.sees_batch(batch)
                yield batch
                if not observer.ready():
                    yield from batches
                    return
                token = observer.timeline.push(WAIT)
        finally:
            observer.validating(before)


def leading_size(batch) -> int | None:
    """The first dimension of the first tensor in a batch: the tensor itself, or in a tuple, list or dict of them."""
    shape = getattr(batch, "shape", None)
    if shape is None:
        values = batch.values() if hasattr(batch, "values") else batch if isinstance(batch, (tuple, list)) else ()
        try:
            shapes = (getattr(value, "shape", None) for value in values)
            shape = next((found for found in shapes if found is not None and len(found)), None)
        except TypeError:
            return None
    try:
        return int(shape[0]) if shape is not None and len(shape) else None
    except (TypeError, ValueError, RuntimeError):  # symbolic, or no sizes at all
        return None
