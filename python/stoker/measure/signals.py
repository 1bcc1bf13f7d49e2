"""Signals that end a measurement, and the end of the parent process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_interrupts = 0
_last: BaseException = KeyboardInterrupt()


def interrupts() -> int:
    """How many interrupts have come so far."""
    return _interrupts


def interrupt(*_) -> None:
    """The handler of signals that end a run."""
    _come(KeyboardInterrupt())


def _come(ends_with: BaseException) -> None:
    global _interrupts, _last
    _interrupts, _last = _interrupts + 1, ends_with
    raise ends_with


def check(before: int) -> None:
    """Raises again what was lost since `before` interrupts: Python swallows exceptions of handlers that run within some
    callbacks, of which imports and forks have many."""
    if _interrupts != before:
        raise _last


@contextlib.contextmanager
def ending_cleanly():
    """Within it SIGTERM and SIGHUP raise SystemExit with the shell's code, 128 and the number, so that children are ended
    on the way out, and Ctrl-C KeyboardInterrupt; one that was lost is raised where the block ends.

    What is ignored stays so: nohup ignores SIGHUP, a shell's "&" SIGINT."""
    def stop(number, frame):
        _come(SystemExit(128 + number))

    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: stop, signal.SIGHUP: stop}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()
              if signal.getsignal(number) != signal.SIG_IGN}
    interrupts_before = _interrupts
    try:
        yield
        check(interrupts_before)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def catch(end_with_parent: bool = False) -> None:
    """From here on Ctrl-C and SIGTERM raise KeyboardInterrupt, and the parent's end does where that is wanted."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    if end_with_parent:
        at_parents_end(signal.SIGTERM)


def at_parents_end(number: int) -> None:
    """Asks the system for this signal when the parent process ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def die_with_parent(parent: int) -> None:
    """Ends this process when its parent does; at once where the parent, whose id the caller knows, has ended already."""
    at_parents_end(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave, so that it can be waited for and counted."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # not Linux
