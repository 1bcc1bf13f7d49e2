"""Where the time of a training loop goes: at any moment it belongs to exactly one phase, and nothing counts twice."""

from __future__ import annotations

from .layout import OTHER

_GENERATION = 1 << 20  # deeper than phases ever nest


class Timeline:
    """Charges the time between two calls to the phase that was current. Times are nanoseconds of `clock`.

    Phases nest: an inner one interrupts the outer, which gets only its own time. One thread at a time may call
    (autograd's threads do so while the main thread waits for them). These few lines run a dozen times a step: they repeat
    each other instead of calling each other.
    """

    __slots__ = ("clock", "spent", "current", "last", "marks", "inside", "_stack", "_base", "_zeros")

    def __init__(self, count: int, clock, marks=None):
        self.clock = clock
        self.marks = marks  # a DeviceMarks, or None where the host's clock says everything
        self.inside = False  # a step is open
        self._zeros = [0] * count
        self.spent = self._zeros[:]
        self.current = OTHER
        self.last = clock()
        self._stack = []
        self._base = 0  # tokens below it are of steps that are over

    def switch(self, phase: int) -> int:
        """Makes `phase` the current one and returns the time."""
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = phase
        if self.marks is not None:
            self.marks.mark(phase, self.inside)
        return now

    def push(self, phase: int) -> int:
        """Enters a phase; the result is what `pop` wants."""
        stack = self._stack
        token = self._base + len(stack)
        stack.append(self.current)
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = phase
        if self.marks is not None:
            self.marks.mark(phase, self.inside)
        return token

    def pop(self, token: int) -> None:
        """Leaves a phase and whatever was opened in it and never left."""
        stack = self._stack
        depth = token - self._base
        if not 0 <= depth < len(stack):
            return
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = phase = stack[depth]
        del stack[depth:]
        if self.marks is not None:
            self.marks.mark(phase, self.inside)

    def exchange(self, token, phase: int) -> int:
        """Leaves the phase of `token`, if it is still open, and enters `phase` in its place, with one look at the clock."""
        stack = self._stack
        depth = -1 if token is None else token - self._base
        if not 0 <= depth < len(stack):
            return self.push(phase)
        del stack[depth + 1:]
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = phase
        if self.marks is not None:
            self.marks.mark(phase, self.inside)
        return token

    def reset(self, inside: bool) -> int:
        """A step begins or ends: nothing that was open before can be left any more."""
        if self._stack:
            self._stack.clear()
            self._base += _GENERATION
        self.inside = inside
        now = self.clock()
        self.spent[self.current] += now - self.last
        self.last = now
        self.current = OTHER
        if self.marks is not None:
            self.marks.mark(OTHER, inside)
        return now

    def take(self) -> list:
        """The times since the last take, by phase."""
        spent = self.spent
        self.spent = self._zeros[:]
        return spent

    def relabel(self, old: int, new: int) -> None:
        """What was charged to `old` since the last take was `new` after all."""
        self.switch(self.current)
        self.spent[new] += self.spent[old]
        self.spent[old] = 0
        if self.marks is not None:
            self.marks.relabel(old, new)
