"""Writes an observation: rows wait in a ring and go to the file in blocks, between steps."""

from __future__ import annotations

import collections
import json
import os
import sys
import time

from ..plain import printable_lines
from .layout import CLOCK, OK, TEXTS, ObservationError

BLOCK_ROWS = 256  # some 30 kB, half a millisecond of formatting
INTERVAL_NS = 5_000_000_000  # a crash loses at most this, or one block
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
RING_ROWS = 16_384  # where writing is slow; then the oldest are lost, and counted
SLOW_NS = 20_000_000  # a write that takes longer met a slow disk ...
REST = 100  # ... and after one of t, there is none for 100 t: slow writes cost at most 1 % of the time

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def numbered(path: str, n: int) -> str:
    """run.obs.jsonl, run.2.obs.jsonl, run.3.obs.jsonl, ..."""
    return path if n == 1 else with_label(path, str(n))


def with_label(path: str, label: str) -> str:
    """Puts a word before what a file's name ends with: run.obs.jsonl -> run.LABEL.obs.jsonl."""
    folder, name = os.path.split(path)
    for suffix in (".obs.jsonl", ".jsonl"):
        if name.endswith(suffix) and name != suffix:
            return os.path.join(folder, f"{name[:-len(suffix)]}.{label}{suffix}")
    return os.path.join(folder, f"{name}.{label}")


def check_folder(path: str) -> None:
    if os.path.isdir(path):
        raise ObservationError(f"cannot record to {path}: it is a folder; name a file in it, "
                               f"{os.path.join(path, 'run.obs.jsonl')}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ObservationError(f"cannot record to {path}: there is no folder {folder}; make it, or give another path")
    if not os.access(folder, os.W_OK):
        raise ObservationError(f"cannot record to {path}: the folder {folder} cannot be written to; give another path")


class Recorder:
    """One observation file. Nothing here raises after the file is open: a failed write ends the recording, said once."""

    def __init__(self, path: str, clock, write=os.write):
        self.path = path
        self.rows = collections.deque(maxlen=RING_ROWS)  # tuples, in the order of the columns
        self.due = 0  # ns: the next write comes here even if the block is not full
        self.alive = True
        self.lost = 0  # rows that the ring dropped
        self.written = 0
        self.write_ns = 0
        self._clock, self._write = clock, write
        self._lines = []  # objects that go before the next block's rows
        self._file: int | None = None  # descriptor
        self._size = 0
        self._blocks = 0
        self._not_before = 0  # ns: the next write comes no earlier
        self._format = ""

    def open(self, header: dict) -> None:
        """Makes the file, under a number if there is one already: no run replaces another's."""
        base, n = self.path, 1
        while True:
            path = numbered(base, n)
            try:
                self._file = os.open(path, NEW_FILE, 0o644)
                break
            except FileExistsError:
                n += 1
            except OSError as error:
                self.stop(f"cannot make {path}: {error.strerror}")
                return
        self.path = path
        self._format = "[" + ",".join('"%s"' if name in TEXTS else "%s" for name in header["columns"]) + "]"
        self._lines.insert(0, header)  # memory may have been read before

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def add(self, row: tuple) -> None:
        if len(self.rows) == RING_ROWS:
            self.lost += 1
        self.rows.append(row)

    def add_line(self, line: dict) -> None:
        self._lines.append(line)

    def wants_to_write(self, now: int) -> bool:
        return now >= self.due or (len(self.rows) >= BLOCK_ROWS and now >= self._not_before)

    def flush(self) -> None:
        """Writes what there is as one block."""
        if not self.alive or self._file is None:
            return
        begin = self._clock()
        lines = [_encode(line) for line in self._lines]
        rows = self.rows
        if rows:
            block = {"block": self._blocks, "rows": len(rows), "lost": self.lost, "wall_s": round(time.time(), 3),
                     "clock_ns": begin, "write_ns": self.write_ns}
            lines.append(_encode(block))
            lines += self._rows_as_text()
        if lines:
            self._append(("\n".join(lines) + "\n").encode())
        if self.alive:
            self._blocks += bool(rows)
            self.written += len(rows)
            rows.clear()
            self._lines.clear()
        took = self._clock() - begin
        self.write_ns += took
        self._not_before = begin + (took * (REST + 1) if took > SLOW_NS else 0)
        self.due = max(begin + INTERVAL_NS, self._not_before)

    def _rows_as_text(self) -> list:
        """By one format: faster than a JSON encoder, and rows hold only whole numbers, None and known words."""
        text = "\n".join(map(self._format.__mod__, self.rows)).replace("None", "null")
        lines = text.split("\n")
        if ",-" in text:  # a clock went back within a step
            lines = [line.replace(f'"{OK}"', f'"{CLOCK}"', 1) if ",-" in line else line for line in lines]
        return lines

    def _append(self, data: bytes) -> None:
        done = 0
        try:
            while done < len(data):
                done += self._write(self._file, data[done:])
            self._size += len(data)
        except OSError as error:
            try:
                os.ftruncate(self._file, self._size)  # leaves whole blocks only
            except OSError:
                pass
            self.stop(f"cannot write to {self.path}: {error.strerror}")

    def stop(self, why: str) -> None:
        """Ends the recording and says so; training goes on."""
        if self.alive:
            self.alive = False
            self._release()
            say(f"{why}; recording stops after {self.written:,} steps, training goes on")

    def close(self, last: dict) -> None:
        if self.alive:
            self.flush()
            self._lines.append(last)
            self.flush()
            self.alive = False
            self._release()

    def forget(self) -> None:
        """Lets go of the file in a forked child: it is the parent's."""
        self.alive = False
        self.rows.clear()
        self._lines.clear()
        self._release()

    def _release(self) -> None:
        if self._file is not None:
            try:
                os.close(self._file)
            except OSError:
                pass
            self._file = None


def say(text: str) -> None:
    try:
        sys.stderr.write(f"stoker: {printable_lines(text)}\n")
    except (OSError, ValueError, AttributeError):  # no stderr left: nothing to be done about it
        pass
