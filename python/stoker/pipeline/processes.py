"""Child processes for measurements. Nothing of them outlives this process, however it ends.

Each child leads a process group of its own, dies with its parent (PR_SET_PDEATHSIG), writes what it prints into
memory, and reports through a pipe as it goes: a crash or a time-out leaves what was measured so far. A warden process
kills the groups that are left when this process dies without a word (kill -9), grandchildren included.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import glob
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings

from ..errors import ProbeError
from ..user_code import trimmed

_PR_SET_PDEATHSIG = 1
_OUTPUT_KEPT = 1 << 20  # bytes of printed text that are kept before they are only counted
_TICK_S = 0.1


@dataclasses.dataclass
class Outcome:
    """What a child sent and how it ended."""

    messages: list
    end: str  # "done", "time" (ended by us), "signal", "exit", "error"
    code: int = 0  # of "signal" and "exit"
    error: dict | None = None  # of "error": {"type", "message", "traceback"}
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


class Warden:
    """Kills the process groups of the children and removes their folder when this process is gone, or done.

    One small process for a probe. `folder`: where multiprocessing puts the sockets of the children.
    """

    def __init__(self):
        try:
            self.folder = tempfile.mkdtemp(prefix="stoker-probe-")
        except OSError as error:
            raise ProbeError(f"no temporary folder can be made ({error.strerror or error}): free some space, or name a "
                             "folder with room in TMPDIR") from None
        reader, self._writer = os.pipe()
        try:
            with _quiet_fork():
                self._pid = os.fork()
        except OSError as error:
            os.rmdir(self.folder)
            raise _no_process(error) from None
        if self._pid == 0:
            _guard(reader, self._writer, self.folder)
        os.close(reader)

    def tell(self, sign: str, pid: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writer, f"{sign}{pid}\n".encode())

    def forget_in_child(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._writer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _no_process(error: OSError) -> ProbeError:
    return ProbeError(f"no process could be started ({error.strerror}): raise the limit of processes or of memory")


def _guard(reader: int, writer: int, folder: str) -> None:
    """The warden's life: reads "+PID" and "-PID" until the other end is closed."""
    try:
        os.setsid()
        os.close(writer)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for descriptor in range(3):
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        text, alive = b"", set()
        while True:
            part = os.read(reader, 4096)
            if not part:
                break
            text += part
            *lines, text = text.split(b"\n")
            for line in lines:
                pid = int(line[1:])
                alive.add(pid) if line[:1] == b"+" else alive.discard(pid)
        for pid in alive:
            kill_group(pid)
            remove_segments(pid)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)


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


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def remove_segments(pid: int) -> None:
    """Shared memory that PyTorch had made and not yet unlinked when the process was killed."""
    for path in glob.glob(f"/dev/shm/torch_{pid}_*"):
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.contextmanager
def _quiet_fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads beside fork; a DataLoader forks too
        yield


def die_with_parent(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class Child:
    """One forked process that runs `work(send)`; send(kind, value) reports. send.receive() waits for what ask() sends."""

    def __init__(self, work, warden: Warden, *, daemon: bool):
        self._warden = warden
        self._output = os.memfd_create("stoker-output", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else -1
        context = multiprocessing.get_context("fork")
        self._receiver, sender = context.Pipe(duplex=True)
        # A DataLoader's workers are daemons; a child that has to start processes of its own is none.
        self._process = context.Process(target=_live, args=(work, sender, warden, self._output, os.getpid()),
                                        daemon=daemon)
        try:
            with _quiet_fork():
                self._process.start()
        except AssertionError:
            raise ProbeError("a probe starts processes, and this process may not (it is a daemon of multiprocessing): "
                             "call it from the main process") from None
        except OSError as error:
            raise _no_process(error) from None
        with contextlib.suppress(OSError):
            os.setpgid(self._process.pid, self._process.pid)  # the child does the same: whoever is first
        warden.tell("+", self._process.pid)
        sender.close()
        self._messages, self._gone = [], False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command) -> None:
        """Sends a command; answer() waits for what the child makes of it."""
        try:
            self._receiver.send(command)
        except OSError:
            self._gone = True

    def answer(self, deadline: float, tick=None):
        """The value of the next message "turn"; None when the child died or the time is up: it is of no use then."""
        while not self._gone:
            left = deadline - time.monotonic()
            try:
                if self._receiver.poll(max(0.0, min(left, _TICK_S))):
                    kind, value = self._receiver.recv()
                    if kind == "turn":
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

    def collect(self, deadline: float, on_message=None, tick=None) -> Outcome:
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
                    if self._receiver.poll(max(0.0, min(left, _TICK_S))):
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
        pid = self._process.pid
        kill_group(pid)
        self._process.join()
        remove_segments(pid)
        self._warden.tell("-", pid)
        self._receiver.close()
        self._process.close()


def _live(work, sender, warden, output, parent) -> None:
    """The child's life; never returns, so that nothing of the parent's (atexit, finally) runs here."""
    code = 0
    try:
        die_with_parent(parent)
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        warden.forget_in_child()
        multiprocessing.current_process()._config["tempdir"] = warden.folder  # where sockets go, nothing public sets it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _redirect(output)

        def send(kind, value):
            sender.send((kind, value))

        send.receive = sender.recv
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
