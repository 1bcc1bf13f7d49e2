"""Where the time of a training loop goes: at any moment it belongs to exactly one phase, so that nothing counts twice."""

from __future__ import annotations

from .layout import OTHER


class Timeline:
    """Charges the time between two calls to the phase that was current. Times are nanoseconds of `clock`.

    Phases nest: an inner one interrupts the outer, which gets only its own time. One thread at a time may call (autograd's
    threads do so while the main thread waits for them).
    """

    __slots__ = ("clock", "spent", "current", "last", "marks", "inside", "_stack", "_generation", "_count")

    def __init__(self, count: int, clock, marks=None):
        self.clock = clock
        self.marks = marks  # a DeviceMarks, or None where the host's clock says everything
        self.inside = False  # a step is open
        self.spent = [0] * count
        self.current = OTHER
        self.last = clock()
        self._count = count
        self._stack = []
        self._generation = 0

    def switch(self, phase: int) -> int:
        """Makes `phase` the current one and returns the time."""
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = phase
        if self.marks is not None:
            self.marks.mark(phase, self.inside)
        return now

    def push(self, phase: int) -> tuple:
        """Enters a phase; the result is what `pop` wants."""
        token = (self._generation, len(self._stack))
        self._stack.append(self.current)
        self.switch(phase)
        return token

    def pop(self, token: tuple) -> None:
        """Leaves a phase and whatever was opened in it and never left."""
        generation, depth = token
        if generation != self._generation or depth >= len(self._stack):
            return
        before = self._stack[depth]
        del self._stack[depth:]
        self.switch(before)

    def reset(self, phase: int, inside: bool) -> int:
        """A step begins or ends: nothing that was open before can be left any more."""
        self._stack.clear()
        self._generation += 1
        self.inside = inside
        return self.switch(phase)

    def take(self) -> list:
        """The times since the last take, by phase."""
        spent, self.spent = self.spent, [0] * self._count
        return spent

    def relabel(self, old: int, new: int) -> None:
        """What was charged to `old` since the last take was `new` after all."""
        self.switch(self.current)
        self.spent[new] += self.spent[old]
        self.spent[old] = 0
        if self.marks is not None:
            self.marks.relabel(old, new)
