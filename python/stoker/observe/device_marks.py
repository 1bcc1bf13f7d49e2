"""CUDA events at the borders of phases: recorded now, read some steps later, so that nothing waits for the device."""

from __future__ import annotations

import collections

from .layout import OTHER

MOST_PENDING = 64  # steps whose events are not over yet; beyond, the oldest goes without device times


class CudaEvents:
    """Makes events of one CUDA device and records them on whatever stream is current there."""

    def __init__(self, torch, index: int):
        self._cuda, self._index = torch.cuda, index

    def new(self):
        return self._cuda.Event(enable_timing=True)

    def record(self, event) -> None:
        event.record(self._cuda.current_stream(self._index))

    def capturing(self) -> bool:
        """While a CUDA graph is captured no timing event may be recorded."""
        return self._cuda.is_current_stream_capturing()


class DeviceMarks:
    """The events of the step in progress, and the rows that wait for theirs."""

    def __init__(self, events):
        self._events = events
        self._free = []
        self._marks = []  # (phase from here on, inside a step, event)
        self._broken = False  # a mark of this step is missing
        self.pending = collections.deque()  # (row, marks), oldest first
        self.unread = 0  # rows that went without device times

    def mark(self, phase: int, inside: bool) -> None:
        try:
            if self._events.capturing():
                self._broken = True
                return
            event = self._free.pop() if self._free else self._events.new()
            self._events.record(event)
            self._marks.append((phase, inside, event))
        except RuntimeError:  # the device has failed: the program's own next call will say how
            self._broken = True

    def relabel(self, old: int, new: int) -> None:
        self._marks = [(new if phase == old else phase, inside, event) for phase, inside, event in self._marks]

    def close_row(self, row: tuple) -> None:
        """The last mark ends `row` and begins the next one."""
        marks = self._marks
        self._marks = [(OTHER, False, marks[-1][2])] if marks else []
        if self._broken:
            self._free += [event for _, _, event in marks[:-1]]
            marks = []
        self._broken = False
        self.pending.append((row, marks))

    def finished(self, phases: int, everything: bool = False) -> list:
        """Rows whose events are over, completed, in order; never waits. `everything`: the others too, without times."""
        done = []
        while self.pending:
            row, marks = self.pending[0]
            times = self._read(marks, phases) if len(marks) > 1 else (None,) * (phases + 2)
            if times is None:
                if not everything and len(self.pending) <= MOST_PENDING:
                    break
                self.unread += 1
                times = (None,) * (phases + 2)
            else:
                self._free += [event for _, _, event in marks[:-1]]
            self.pending.popleft()
            done.append((*row, *times))
        return done

    def last_event(self):
        """The newest event, for who wants to wait for it when training is over."""
        return self._marks[-1][2] if self._marks else None

    @staticmethod
    def _read(marks, phases: int):
        """[gap, total, each phase] in ns, or None while the device is not there yet."""
        try:
            if not marks[-1][2].query():
                return None
            times = [0] * (phases + 2)
            for (phase, inside, event), (_, _, following) in zip(marks, marks[1:]):
                spent = round(event.elapsed_time(following) * 1e6)  # CUDA says milliseconds
                times[1 if inside else 0] += spent
                times[2 + phase] += spent
            return times
        except RuntimeError:  # an event of another stream is not over
            return None
