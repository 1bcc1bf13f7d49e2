"""Linux's counters of this process, read through descriptors that stay open: 1 to 4 us a reading."""

from __future__ import annotations

import os

_BUFFER = 512


class Counters:
    """Run-queue wait of the calling thread, bytes read by this process. Zero where Linux does not tell."""

    def __init__(self):
        self._schedule = _opened("/proc/thread-self/schedstat")
        self._io = _opened("/proc/self/io")
        first = self.bytes_read()
        self._own_bytes = self.bytes_read() - first  # what one reading adds to the count

    def queued_ns(self) -> int:
        """Nanoseconds in the run queue: ready to run, and another on the core."""
        text = _read(self._schedule)
        return int(text.split()[1]) if text else 0

    def bytes_read(self) -> int:
        """Bytes handed over by read() and its kin, from the page cache or not."""
        text = _read(self._io)
        return int(text.split()[1]) if text else 0

    def fetched(self) -> int:
        """Bytes that storage really delivered."""
        return _field(_read(self._io), b"read_bytes:")

    def bytes_since(self, before: int) -> int:
        return max(0, self.bytes_read() - before - self._own_bytes)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _read(descriptor: int) -> bytes:
    if descriptor < 0:
        return b""
    try:
        return os.pread(descriptor, _BUFFER, 0)
    except OSError:
        return b""


def _field(text: bytes, name: bytes) -> int:
    at = text.find(name)
    return int(text[at + len(name):].split(None, 1)[0]) if at >= 0 else 0


def clock_cost_ns(clock) -> int:
    """What two readings of a clock take between them, so that it can be taken off."""
    best = min(clock() * -1 + clock() for _ in range(2000))
    return max(0, best)


def memory_of(pid="self") -> dict:
    """Private dirty bytes (of files' and anonymous pages, without /dev/shm's) and the high-water mark of RSS."""
    private = shared_memory = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Private_Dirty:"):
                    private = int(line.split()[1]) * 1024
                elif line.startswith("Pss_Shmem:"):
                    shared_memory = int(line.split()[1]) * 1024
    except OSError:
        return {"private": 0}
    return {"private": max(0, private - shared_memory)}
