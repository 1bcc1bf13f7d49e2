"""Children that go on from this process by fork, as a DataLoader's workers do. Nothing of them outlives this process.

Each child leads a process group of its own, dies with its parent, and reports through a pipe as it goes: a crash or a
time-out leaves what was measured so far.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback

from ..errors import ProbeError, UserCodeError
from ..user_code import trimmed
from . import signals
from .leftovers import Warden, no_process, quiet_fork
from .processes import end_group, kill_group, remove_segments

_OUTPUT_KEPT = 1 << 20  # bytes of printed text that are kept before they are only counted
_TICK_S = 0.1           # between two calls of `tick`, at most
_WATCH_S = 0.02         # the same in in_child


@dataclasses.dataclass
class Outcome:
    """What a child sent and how it ended."""

    messages: list
    end: str  # "done", "time" (ended by us), "signal", "exit", "error"
    code: int = 0  # where it ended by "signal" or "exit"
    error: dict | None = None  # where it ended by "error": {"type", "message", "traceback"}
    output: str = ""  # what it printed, the beginning
    output_lines: int = 0

    def last(self, kind: str):
        return next((m[1] for m in reversed(self.messages) if m[0] == kind), None)

    def all(self, kind: str) -> list:
        return [m[1] for m in self.messages if m[0] == kind]

    def why(self) -> str:
        """How it ended, for people."""
        if self.end == "time":
            return "it was ended when its time was up"
        if self.end == "signal":
            name = signal.Signals(self.code).name if self.code in signal.valid_signals() else f"signal {self.code}"
            return f"it was killed by {name}"
        if self.end == "exit":
            return f"it ended itself with exit code {self.code}"
        return self.error["message"] if self.error else "it ended"


def refuse_while_starting() -> None:
    """A spawned worker runs the main script again: one that probes at once would probe within the probe."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ProbeError("the script that calls the probe runs again in each spawned worker: put its last lines under "
                         "if __name__ == \"__main__\":")


def threads_here() -> int:
    """Threads of this process, those of libraries included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


class Child:
    """One forked process that runs `work(send)`; send(kind, value) reports. send.receive() waits for what ask() sends.

    daemon   as multiprocessing has it: a child that has to start processes of its own is none
    quiet    what it prints is kept in memory, for its Outcome; else it goes where this process's output goes
    """

    def __init__(self, work, warden: Warden | None, *, daemon: bool, quiet: bool = True):
        self._warden = warden
        keep = quiet and hasattr(os, "memfd_create")
        self._output = os.memfd_create("stoker-output", os.MFD_CLOEXEC) if keep else -1
        context = multiprocessing.get_context("fork")
        self._receiver, sender = context.Pipe(duplex=True)
        self._process = context.Process(target=_live, args=(work, sender, warden, self._output, quiet, os.getpid()),
                                        daemon=daemon)
        interrupts = signals.interrupts()
        try:
            with quiet_fork():
                self._process.start()
        except AssertionError:
            raise ProbeError("a probe starts processes, and this process may not (it is a daemon of multiprocessing): "
                             "call it from the main process") from None
        except OSError as error:
            raise no_process(error) from None
        assert self._process.pid is not None  # it has been started
        self.pid = self._process.pid
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)  # the child does the same: whoever is first
        if warden is not None:
            warden.tell("+", self.pid)
        sender.close()
        self._messages, self._gone = [], False
        if signals.interrupts() != interrupts:  # raised in a callback of os.register_at_fork, where exceptions are lost
            self._end()
            signals.check(interrupts)

    def ask(self, command) -> None:
        """Sends a command; answer() waits for what the child makes of it."""
        try:
            self._receiver.send(command)
        except OSError:
            self._gone = True

    def answer(self, deadline: float, tick=None):
        """The value of the next message "answer"; None when the child died or the time is up: it is of no use then."""
        while not self._gone:
            left = deadline - time.monotonic()
            try:
                if self._receiver.poll(max(0.0, min(left, _TICK_S))):
                    kind, value = self._receiver.recv()
                    if kind == "answer":
                        return value
                    self._messages.append((kind, value))
                    if kind in ("done", "error"):
                        self._gone = True
                    continue
            except (EOFError, OSError):
                self._gone = True
                continue
            if tick is not None:
                tick()
            if left <= 0 or not self._process.is_alive() and not self._receiver.poll(0):
                self._gone = True
        return None

    def collect(self, deadline: float, on_message=None, tick=None, tick_s: float = _TICK_S) -> Outcome:
        """Waits until the child ends or time.monotonic() passes `deadline`; always ends it."""
        end, error = None, None
        late = [m for m in self._messages if m[0] in ("done", "error")]
        if late:  # read by answer()
            end, error = late[-1]
            self._messages = [m for m in self._messages if m[0] not in ("done", "error")]
        try:
            while end is None:
                left = deadline - time.monotonic()
                try:
                    if self._receiver.poll(max(0.0, min(left, tick_s))):
                        kind, value = self._receiver.recv()
                        if kind == "done":
                            end = "done"
                        elif kind == "error":
                            end, error = "error", value
                        else:
                            self._messages.append((kind, value))
                            if on_message is not None:
                                on_message(kind, value)
                        continue
                except (EOFError, OSError):
                    end = "gone"
                    break
                if tick is not None:
                    tick()
                if left <= 0:
                    end = "time"
                elif not self._process.is_alive() and not self._receiver.poll(0):
                    end = "gone"
        finally:
            if end == "gone":
                self._process.join(1)
            code = self._process.exitcode
            self._end()
        if end == "gone":
            return self._outcome("signal" if code is not None and code < 0 else "exit", abs(code or 0), None)
        return self._outcome(end, 0, error)

    def _outcome(self, end, code, error) -> Outcome:
        text, lines = "", 0
        if self._output >= 0:
            with contextlib.suppress(OSError):
                data = os.pread(self._output, _OUTPUT_KEPT, 0)
                text, lines = data.decode(errors="replace"), data.count(b"\n")
            os.close(self._output)
            self._output = -1
        counted = next((m[1] for m in reversed(self._messages) if m[0] == "lines dropped"), 0)
        return Outcome(self._messages, end, code, error, text, lines + counted)

    def _end(self) -> None:
        kill_group(self.pid)
        self._process.join()
        remove_segments(self.pid)
        if self._warden is not None:
            self._warden.tell("-", self.pid)
        self._receiver.close()
        self._process.close()


def in_child(work, timeout_s: float, watch=None, warden: Warden | None = None):
    """work() in a forked process; its result, which has to be JSON, or {"error": text, "trace": text}.

    `watch` is called every few milliseconds meanwhile. The whole group is gone when this returns."""
    child = Child(lambda send: send("result", json.dumps(_result_of(work))), warden, daemon=False, quiet=False)
    pid = child.pid
    try:
        outcome = child.collect(time.monotonic() + timeout_s, tick=watch, tick_s=_WATCH_S)
    finally:
        end_group(pid)
    if outcome.end == "time":
        return {"error": f"did not end within {timeout_s:.0f} s"}
    result = outcome.last("result")
    return json.loads(result) if result is not None else {"error": "the process that ran it died"}


def _result_of(work):
    try:
        return work()
    except UserCodeError as error:  # the user's own frames
        return {"error": f"{type(error).__name__}: {error}", "trace": error.traceback_text.rstrip() + "\n"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def _live(work, sender, warden, output, quiet, parent) -> None:
    """The child's life; never returns, so that nothing of the parent's (atexit, finally) runs here."""
    code = 0
    try:
        signals.die_with_parent(parent)
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        if warden is not None:
            warden.forget_in_child()
            # Where sockets go; nothing public sets it.
            multiprocessing.current_process()._config["tempdir"] = warden.folder  # type: ignore[attr-defined]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if quiet:
            _redirect(output)

        def send(kind, value):
            sender.send((kind, value))

        send.receive = sender.recv  # type: ignore[attr-defined]
        try:
            work(send)
            send("done", None)
        except MemoryError:
            send("error", {"type": "MemoryError", "message": "memory ran out", "traceback": ""})
        except Exception as error:
            send("error", {"type": type(error).__name__, "message": _first_line(error), "traceback": trimmed(error)})
        _flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        os._exit(code)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _redirect(output: int) -> None:
    """Standard output and error into memory, at its end whoever writes."""
    target = output if output >= 0 else os.open(os.devnull, os.O_WRONLY)
    if output >= 0:
        import fcntl

        fcntl.fcntl(output, fcntl.F_SETFL, os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(target, descriptor)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def drop_output(descriptor: int = 1) -> int:
    """In the child: forgets printed text beyond what is kept, so that a talkative data set fills no memory.

    Returns the number of lines that were dropped.
    """
    _flush()
    try:
        size = os.fstat(descriptor).st_size
        if size <= _OUTPUT_KEPT:
            return 0
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            file.seek(_OUTPUT_KEPT)
            dropped = sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 16), b""))
        os.ftruncate(descriptor, _OUTPUT_KEPT)
        return dropped
    except OSError:
        return 0
