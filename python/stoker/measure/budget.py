"""A budget of wall time that began when this process did."""

from __future__ import annotations

import os
import time

from . import signals

_SHARE = 0.97  # the part of a budget that is planned with: what is begun has to end within it


def process_start() -> float:
    """When this process began, on time.monotonic()'s clock: the interpreter's start counts too."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)  # what the ticks count from
        return time.monotonic() - max(0.0, since_boot - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return time.monotonic()


class Budget:
    """Seconds since the process began, of which nearly all are planned with."""

    def __init__(self, seconds: float):
        self.seconds, self._began = seconds, process_start()
        self.end = self._began + _SHARE * seconds
        self._interrupts = signals.interrupts()

    def check_interrupts(self) -> None:
        """Raises an interrupt again that was lost since the budget was made."""
        signals.check(self._interrupts)

    def left(self) -> float:
        return self.end - time.monotonic()

    def spent(self) -> float:
        return time.monotonic() - self._began
