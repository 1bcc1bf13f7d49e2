"""Children that begin as a new interpreter and are spoken to by lines of JSON (answering.py is their side of it).

Each is a process group of its own, whose members are killed together, and ends by itself when this process does.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

from .. import imports
from . import processes
from .leftovers import Warden

_WORDS = 400  # characters of what a process that died had printed last
_PARENT = "STOKER_MEASURING_PARENT"  # the variable by which a child knows whose end is its own


class TimeUp(Exception):
    """The time was over before the process had answered."""


class Died(Exception):
    """The process ended before it answered; Child.code() and Child.last_words() tell more."""


class Child:
    """`python -m MODULE ARGUMENTS` in a process of its own. `folder` is where it runs, and where MODULE may be found."""

    def __init__(self, module: str, *arguments: str, folder: pathlib.Path | None = None, warden: Warden | None = None, **variables: str):
        self._warden = warden
        self._printed = tempfile.TemporaryFile()
        self._received = b""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._printed, start_new_session=True,
            env=imports.environment(**{_PARENT: str(os.getpid())}, **variables))

        assert process.stdin is not None and process.stdout is not None  # both are pipes
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        if warden is not None:
            warden.tell("+", process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def lives(self) -> bool:
        return self._process.poll() is None

    def tell(self, message) -> None:
        """Sends one message; raises Died where nobody reads any more."""
        try:
            self._stdin.write((json.dumps(message) + "\n").encode())
            self._stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Died from None

    def hear(self, deadline: float):
        """The next message; raises TimeUp once time.monotonic() passes `deadline`, and Died."""
        while True:
            line, newline, rest = self._received.partition(b"\n")
            if newline:
                self._received = rest
                return json.loads(line)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                raise TimeUp
            part = os.read(self._stdout.fileno(), 1 << 16)
            if not part:
                raise Died
            self._received += part

    def code(self) -> int:
        """How a process that has died ended: its exit code, or less the number of the signal."""
        return self._process.wait()

    def last_words(self) -> str:
        """The last line that it printed on standard error."""
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-_WORDS:] if lines else ""

    def why(self) -> str:
        """How a process that has died ended, for people."""
        code, last = self.code(), self.last_words()
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            how = f"the process was ended by {name}"
        else:
            how = f"the process ended with exit code {code}"
        return how + (f": {last}" if last else "")

    def close(self) -> None:
        """Kills what is left of it, a loader's workers too."""
        processes.kill_group(self._process.pid)
        self._process.wait()
        if self._warden is not None:
            self._warden.tell("-", self._process.pid)
        for close in (self._stdin.close, self._stdout.close, self._printed.close):
            with contextlib.suppress(OSError):
                close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def parent() -> int:
    """In a child: the process that started it; 0 where nobody of ours did."""
    return int(os.environ.get(_PARENT, "0"))
