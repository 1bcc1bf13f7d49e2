"""Signals that end a measurement, and the end of the parent process."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_interrupts = 0


def interrupts() -> int:
    """How many interrupts have come so far."""
    return _interrupts


def interrupt(*_) -> None:
    """The handler of signals that end a run."""
    global _interrupts
    _interrupts += 1
    raise KeyboardInterrupt


def check(before: int) -> None:
    """Raises again what was lost since `before` interrupts: Python swallows exceptions of handlers that run within some
    callbacks, of which imports and forks have many."""
    if _interrupts != before:
        raise KeyboardInterrupt


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
