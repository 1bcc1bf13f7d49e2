"""The runs of one capture: forked children that run the script, one after another or two at a time."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pickle
import re
import signal
import sys
import tempfile
import time

from .. import device, shim
from ..errors import CaptureError, UserCodeError
from ..measure import cgroup
from . import sites
from .descent import descendants, end_descendants, held_bytes, held_together
from .world import WHERE, WHERE_SIGNAL, Outcome, Request

TIME_LIMIT_S = 600.0
_WHERE_S = 1.0  # for it to do so
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in ', re.MULTILINE)
_TAIL_LINES = 12
_MOST_LOG_BYTES = 64 << 20
_BUSY_SHARE, _LEAST_BUSY_S = 0.25, 1.0  # with less of a processor a script that is ended has waited for one
_LOOK_S = 1.0  # between looks at what the script has started


def warm_up(say) -> None:
    """Imports PyTorch once for all runs. No backward may run here: autograd's threads do not survive a fork."""
    with contextlib.suppress(shim.ShimError):  # each run says what it does instead
        if not os.environ.get("STOKER_FAKE_CPU"):
            device._keep.append(shim.load(say))
    device._import_torch()
    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401 (random_state.seed() seeds it where it is there)
    import torch.utils.data  # noqa: F401
    from torch._subclasses.fake_tensor import FakeTensorMode

    FakeTensorMode()  # imports what takes seconds


def _available() -> int | None:
    """Bytes that this machine, or the control group that this process is in, can still give, but for a tenth."""
    limit = cgroup.memory_limit()
    counts = [limit[0]] if limit is not None else []
    with contextlib.suppress(OSError, StopIteration):
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        counts.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
    return min(counts) * 9 // 10 if counts else None


def _busy_s(pid: int) -> float:
    """Seconds of a processor that a process has had."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # proc_pid_stat(5): utime and stime
    return 0.0


def _line_in(place: pathlib.Path) -> str:
    """"at train.py line 12": the innermost line of the user's that a run has written down; "" where there is none."""
    try:
        text = (place / WHERE).read_text(errors="replace")
    except OSError:
        return ""
    if "most recent call first" not in text:
        return ""
    threads = sorted(text.split("\n\n"), key=lambda part: "Current thread" not in part)
    for frame in _FRAME.finditer("\n\n".join(threads)):
        if sites.is_users(frame["file"]):
            return f"at {sites.Site(frame['file'], int(frame['line']))}"
    return ""


def _how_it_ended(status: int, line: str) -> str:
    """Words for the end of a process that has handed nothing over."""
    where = f" {line}" if line else ""
    if not os.WIFSIGNALED(status):
        return f"ended its process by itself{where} (exit code {os.WEXITSTATUS(status)}, as os._exit does)"
    number = os.WTERMSIG(status)
    why = ", as the system does where memory is short" if number == signal.SIGKILL else ""
    return f"was ended{where} (signal {number}, {signal.strsignal(number) or 'unknown'}{why})"


class TooLongError(CaptureError):
    """A run that was ended at the time limit: another batch would take as long."""


class Runs:
    """Starts runs and waits for their outcomes; use it in a `with`, which leaves no process and no file behind."""

    def __init__(self, say=None, limit_s: float = TIME_LIMIT_S, host_memory: int | None = None, line=None):
        self._say, self._line = say or (lambda text: None), line
        self._limit_s = limit_s
        self._host_memory = host_memory if host_memory is not None else _available()
        self._children: dict[int, pathlib.Path] = {}

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="stoker-script-")
        return self

    def __exit__(self, *exception):
        for pid in list(self._children):
            self._kill(pid)
        self._folder.cleanup()

    def start(self, request: Request) -> int:
        """The process that runs the script."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self._folder.name))
        progress = place / "progress"
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._in_child(request, place, progress)
        self._children[pid] = place
        return pid

    @staticmethod
    def _in_child(request, place, progress) -> None:
        status = 70
        try:
            from . import child

            def tell(text):
                with open(progress, "w") as out:
                    out.write(text)

            for number in (signal.SIGINT, signal.SIGALRM):  # the parent's line is drawn by a timer
                signal.signal(number, signal.SIG_DFL)
            child.run(request, str(place / "outcome"), str(place), str(place / "log"), tell)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)

    def wait(self, pid: int, label: str) -> Outcome:
        """What the run hands back. A run that takes too long is ended, and said to be."""
        place = self._children[pid]
        start, told, looked = time.monotonic(), "", 0.0
        try:
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    break
                waited = time.monotonic() - start
                if waited > self._limit_s:
                    had, seen = _busy_s(pid), self._seen(place, pid)
                    self._kill(pid)
                    waits = _LEAST_BUSY_S < had < _BUSY_SHARE * waited
                    busy = f" (it had {had:.0f} s of a processor)" if waits else ""
                    raise TooLongError(f"{label} took more than {self._limit_s:.0f} s{busy} and was ended {seen}: give it less to do "
                                       "before it trains, or more time with --time-limit")
                self._check_memory(held_bytes(pid), pid, place, label)
                if waited > looked + _LOOK_S:
                    looked = waited
                    self._check_memory(held_together([pid, *descendants(pid)], self._host_memory), pid, place, label)
                    self._keep_short(place / "log")
                if self._line is not None or waited > 2:
                    told = self._tell(place, label, told)
                time.sleep(0.02)
        except BaseException:
            self._kill(pid)
            raise
        self._end_group(pid)
        self._children.pop(pid, None)
        return self._outcome(place, status, label)

    def _check_memory(self, used: int, pid: int, place, label: str) -> None:
        """Memory that is only reserved, as weights without values are, does not count."""
        if self._host_memory is None or used <= self._host_memory:
            return
        seen = self._seen(place, pid)
        self._kill(pid)
        raise CaptureError(f"{label} took {used / 2**30:.1f} GiB of this machine's memory and was ended {seen}: give it less to load "
                           "before it trains, build a large model on the device (with torch.device(\"cuda\")), or allow more with "
                           "--max-host-memory")

    @staticmethod
    def _keep_short(log: pathlib.Path) -> None:
        """A script that prints without end fills no disk."""
        with contextlib.suppress(OSError):
            if log.stat().st_size > _MOST_LOG_BYTES:
                os.truncate(log, 0)

    def _seen(self, place, pid: int) -> str:
        """"after step 2 (at train.py line 12)", with the line of the user's that runs."""
        try:
            when = f"after {(place / 'progress').read_text()}"
        except OSError:
            when = "before its first step"
        try:
            os.kill(pid, WHERE_SIGNAL)
        except ProcessLookupError:
            return when
        until = time.monotonic() + _WHERE_S
        while not (line := _line_in(place)) and time.monotonic() < until:
            time.sleep(0.02)
        return f"{when} ({line})" if line else when

    def _tell(self, place, label, told) -> str:
        try:
            text = (place / "progress").read_text()
        except OSError:
            text = "waiting for its first step"
        if self._line is not None:
            if text != told:
                self._line(f"{label}: {text}")
            self._line.tick()
        elif text and text != told:
            self._say(f"running {label}: {text}")
        return text

    @staticmethod
    def _tail(place) -> str:
        try:
            return "\n".join((place / "log").read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        except OSError:
            return ""

    def _outcome(self, place, status, label) -> Outcome:
        try:
            outcome = pickle.loads((place / "outcome").read_bytes())
        except OSError:
            raise UserCodeError(f"{label} {_how_it_ended(status, _line_in(place))} before a whole step was seen",
                                self._tail(place)) from None
        outcome.last_words = self._tail(place)
        return outcome

    def _kill(self, pid: int) -> None:
        self._end_group(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        self._children.pop(pid, None)

    @staticmethod
    def _end_group(pid: int) -> None:
        """Ends whatever the script started and left behind: what lies below the child, and all of its session."""
        end_descendants(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
