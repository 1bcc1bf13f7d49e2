"""Python objects that a data set holds: each worker of a fork copies their pages, because reading counts references."""

from __future__ import annotations

import gc
import random
import sys
import time

_WHOLE = 4096  # containers up to this length are walked in full
_SAMPLE = 2048  # elements, drawn at random, of longer containers
_MOST_VISITED = 2_000_000
_NOT_DATA = (type, type(sys), type(lambda: 0), type(len), property)


class Tally:
    """Objects and their bytes, weighted where a long container was sampled."""

    def __init__(self, seconds: float):
        self.objects = self.bytes = 0.0
        self._seen, self._until, self._rng = set(), time.monotonic() + seconds, random.Random(1)

    def walk(self, root) -> None:
        stack = [(root, 1.0)]
        while stack:
            thing, weight = stack.pop()
            if id(thing) in self._seen or isinstance(thing, _NOT_DATA):
                continue
            self._seen.add(id(thing))
            if len(self._seen) > _MOST_VISITED or (len(self._seen) % 1024 == 0 and time.monotonic() > self._until):
                return
            self.objects += weight
            try:
                self.bytes += weight * self._size(thing)
            except Exception:
                continue
            stack.extend(self._inside(thing, weight))

    @staticmethod
    def _size(thing) -> int:
        """The part of an object that sits beside its reference count; arrays' and tensors' data are never touched."""
        size = sys.getsizeof(thing)
        nbytes = getattr(thing, "nbytes", 0)
        if isinstance(nbytes, int) and type(thing).__module__ in ("numpy", "torch"):
            return max(64, size - nbytes)
        return size

    def _inside(self, thing, weight: float) -> list:
        if isinstance(thing, (list, tuple, set, frozenset)) and len(thing) > _WHOLE:
            some = self._some(thing)
            return [(element, weight * len(thing) / len(some)) for element in some]
        if isinstance(thing, dict) and len(thing) > _WHOLE:
            keys = self._some(thing)
            share = weight * len(thing) / len(keys)
            return [(element, share) for key in keys for element in (key, thing[key])]
        return [(element, weight) for element in gc.get_referents(thing)]

    def _some(self, container) -> list:
        if isinstance(container, (list, tuple)):
            return [container[at] for at in self._rng.sample(range(len(container)), _SAMPLE)]
        step = len(container) // _SAMPLE
        return [element for at, element in enumerate(container) if at % step == 0]


def object_pass(source, send, *, seconds: float) -> None:
    tally = Tally(seconds)
    tally.walk(source.dataset)
    send("objects", {"objects": round(tally.objects), "object_bytes": round(tally.bytes)})
