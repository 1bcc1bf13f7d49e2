"""One step for all sizes, from captures at several: same events, every size a polynomial, or a refusal."""

from __future__ import annotations

from . import places
from .errors import NotAffineError
from .polynomial import Fitter, NotPolynomial


def sort_frees(events: list) -> list:
    """Consecutive frees carry no order (caches free in hash order): sorts each run by storage."""
    result, run = [], []
    for event in events:
        if event[0] == "f":
            run.append(event)
            continue
        result.extend(sorted(run))
        run.clear()
        result.append(event)
    return result + sorted(run)


class Merger:
    """Merges raw steps taken at the sizes of `fitter.grid()`."""

    def __init__(self, fitter: Fitter, raws: list):
        self.fitter, self.raws, self.first = fitter, raws, raws[0]
        self._naming = lambda: "the model"  # what is merged, in words: made for a refusal alone, since there are thousands
        self._operators = 0  # merged so far
        self._shapes: dict = {}

    @property
    def _where(self) -> str:
        return self._naming()

    # -- sizes ---------------------------------------------------------------------------------------------------

    def _sizes(self) -> str:
        return "; ".join(", ".join(f"{k} {v}" for k, v in point.items()) for point in self.fitter.grid())

    def _refuse(self, what: str):
        raise NotAffineError(
            f"the step is not the same polynomial program at all sizes: {what} (captured at {self._sizes()}). "
            "Make the model's structure independent of these sizes, or capture it at fixed sizes (--fixed)")

    def size(self, values: tuple, what: str):
        try:
            return self.fitter.fit(values)
        except NotPolynomial:
            self._refuse(f"{what} of {self._where} is {', '.join(map(str, values))}")

    def tensor(self, described: list) -> tuple:
        """(dtype, shape of polynomials, order, storage) from the same tensor in all captures."""
        first = described[0]
        other = next((t for t in described if _identity(t) != _identity(first)), None)
        if other is not None:
            self._refuse(f"{self._where} has a tensor {_show(first)} at first and {_show(other)} later")
        shapes = tuple(t[1] for t in described)
        shape = self._shapes.get(shapes)
        if shape is None:
            shape = tuple(_freeze(self.size(values, "a size")) for values in zip(*shapes))
            self._shapes[shapes] = shape
        order = first[2] if all(t[2] == first[2] for t in described) else "strided"
        return first[0], shape, order, first[3]

    # -- the parts -----------------------------------------------------------------------------------------------

    def events(self) -> list:
        """Events with polynomial shapes; operators as lists as in recorder.Recorder.events."""
        lists = [sort_frees(raw.events) for raw in self.raws]
        merged = []
        for index, same in enumerate(zip(*lists)):
            merged.append(self._event(index, same))
            if same[0][0] == "o":
                self._operators += 1
        lengths = [len(events) for events in lists]
        if len(set(lengths)) > 1:
            self._refuse(f"after {self._where} one capture goes on and another ends")
        return merged

    def _event(self, index: int, same: tuple):
        first = same[0]
        if first[0] != "o":
            if any(other != first for other in same):
                self._differs(index, same)
            return first
        name, module, backward, attributes = first[1], first[2], first[4], first[7]
        number = self._operators
        self._naming = lambda: self._name_operator(first, self.first, number)
        for other in same[1:]:
            if other[0] != "o" or other[1] != name or other[2] != module or other[4] != backward \
                    or len(other[5]) != len(first[5]) or len(other[6]) != len(first[6]):
                self._differs(index, same)
            if other[7] != attributes:
                self._refuse(f"{self._where} has attributes {attributes} at first and {other[7]} later")
        inputs = tuple(self.tensor(list(t)) for t in zip(*(e[5] for e in same)))
        outputs = tuple(self.tensor(list(t)) for t in zip(*(e[6] for e in same)))
        return ("o", name, module, first[3], backward, inputs, outputs, attributes)

    def _differs(self, index: int, same: tuple):
        first = same[0]
        other_index = next(i for i, e in enumerate(same) if e[:3] != first[:3] or i == len(same) - 1)
        names = [self._show_event(raw, index) for raw in (self.raws[0], self.raws[other_index])]
        self._refuse(f"after {self._where}, one capture has {names[0]} and another {names[1]}")

    def _show_event(self, raw, index: int) -> str:
        events = sort_frees(raw.events)
        for event in events[index:]:
            if event[0] == "o":
                return self._name_operator(event, raw, self._operators)
        return "its end"

    def _name_operator(self, event, raw, number: int) -> str:
        """"aten::mm at net.py:12 in encoder": the operator of that number of one capture."""
        module = self.first.modules[event[2]] if event[2] < len(self.first.modules) else ""
        phase = "the backward of " if event[4] else ""
        line = raw.lines[number] if number < len(raw.lines) else None
        at = f" at {places.shown(line[0])}:{line[1]}" if line else ""
        return f"{event[1]}{at} in {phase}{module or 'the model'}"

    def storages(self) -> list:
        result = []
        counts = {len(raw.storages) for raw in self.raws}
        if len(counts) > 1:
            self._refuse("the number of allocations differs")
        for same in zip(*(raw.storages for raw in self.raws)):
            number = len(result)
            self._naming = lambda number=number: f"the storage of {self._maker(number)}"
            if any(s[1] != same[0][1] for s in same):
                self._refuse(f"{self._where} is {same[0][1]} in one capture and something else in another")
            result.append((_freeze(self.size(tuple(s[0] for s in same), "the number of bytes")), same[0][1]))
        return result

    def _maker(self, storage: int) -> str:
        """The operator that the storage was made for, or the tensor that lies in it."""
        for part in ("parameters", "buffers", "inputs"):
            for row in getattr(self.first, part):
                if row[1][3] == storage:
                    return f"'{row[0]}'"
        number = 0
        for event in self.first.events:
            if event[0] == "o":
                if any(t[3] == storage for t in event[6]):
                    return self._name_operator(event, self.first, number)
                number += 1
        return "the model"

    def named(self, part: str) -> list:
        """Parameters, buffers or inputs: rows whose second field is a tensor."""
        lists = [getattr(raw, part) for raw in self.raws]
        if len({len(rows) for rows in lists}) > 1:
            self._refuse(f"the number of {part} differs")
        result = []
        for same in zip(*lists):
            self._naming = lambda name=same[0][0]: f"'{name}'"
            result.append([same[0][0], self.tensor([row[1] for row in same]), *same[0][2:]])
        return result


def _freeze(polynomial):
    return tuple(sorted(polynomial.items())) if isinstance(polynomial, dict) else polynomial


def thaw(polynomial):
    """The dict form of a frozen polynomial."""
    return dict(polynomial) if isinstance(polynomial, tuple) else polynomial


def _identity(tensor) -> tuple:
    """What may not depend on sizes: dtype, number of dimensions, storage."""
    return tensor[0], len(tensor[1]), tensor[3]


def _show(tensor) -> str:
    return f"{tensor[0]}{list(tensor[1])} (storage {tensor[3]})"
