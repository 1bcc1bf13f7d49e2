"""What is being done and for how long yet, on standard error: one line that is drawn anew on a terminal, else now and then a line."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time

from .plain import printable

DRAWN_EVERY_S = 0.5
TOLD_EVERY_S = 10.0  # where standard error is no terminal


def span(seconds: float) -> str:
    """8 s, 1 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


class ProgressLine:
    """Says how far something is that takes a while, as a context. On a terminal the line appears within the first second and its
    clock goes on by a timer, without a thread: what is measured meanwhile forks. Elsewhere a line comes at most every ten seconds."""

    def __init__(self, label: str, stream=None, clock=time.monotonic):
        self._label, self._stream, self._clock = label, stream or sys.stderr, clock
        self._start = self._told = clock()
        self._what, self._share, self._ends = "", 0.0, None
        self._shown, self._timer = False, False
        try:
            self._terminal = self._stream.isatty()
        except (AttributeError, ValueError):
            self._terminal = False

    def __enter__(self) -> ProgressLine:
        # A timer of the user's code, or another thread, keeps what it has: then the line moves with what is told alone.
        free = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        if self._terminal and free and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0):
            signal.signal(signal.SIGALRM, lambda number, frame: self._draw())
            signal.setitimer(signal.ITIMER_REAL, DRAWN_EVERY_S, DRAWN_EVERY_S)
            self._timer = True
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __call__(self, what: str, share: float | None = None, left_s: float | None = None) -> None:
        """Now `what` is done. `share` of all of it is over, or it ends in `left_s`; with neither its end is not known."""
        self._what, self._share = what, share or 0.0
        self._ends = None if left_s is None else self._clock() + left_s
        if self._terminal and not self._shown:
            self._draw()  # what begins may be an import, in which no timer comes to word
        self.tick()

    def tick(self) -> None:
        """Redraws the line, for a caller that waits in a loop of its own."""
        now = self._clock()
        if self._terminal:
            if not self._timer and now - self._told >= DRAWN_EVERY_S:
                self._told = now
                self._draw()
        elif now - self._told >= TOLD_EVERY_S:
            self._told = now
            self._write(f"stoker: {self.line()}\n")

    def line(self, columns: int = 1000) -> str:
        """What has no room goes from what is done, not from how long yet."""
        gone = self._clock() - self._start
        left = None
        if self._ends is not None:
            left = max(0.0, self._ends - self._clock())
        elif 0 < self._share < 1:
            left = gone * (1 - self._share) / self._share
        ahead = "" if left is None else f", about {span(left)} left"
        doing, times = printable(f"{self._label}: {self._what}"), f"{', ' if self._what else ''}{span(gone)}{ahead}"
        room = max(10, columns - len(times))
        return (doing if len(doing) <= room else doing[:room - 3] + "...") + times

    def say(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        self._write(text + "\n")

    def close(self) -> None:
        if self._timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._timer = False
        self._clear()

    def _draw(self) -> None:
        columns = max(20, shutil.get_terminal_size().columns)
        self._write("\r\033[K" + self.line(columns - 1)[:columns - 1])
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            self._write("\r\033[K")
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError, RuntimeError):  # closed, or written to by what the timer interrupted
            pass
