"""How a script's process ends, forks or becomes another program: what was seen of its training is not lost by any of these."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import traceback

from . import landlock, sites
from .facade import processes

_MOST_RESTARTS = 3
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def install(world, run_again) -> None:
    """`run_again()` executes the script from its beginning, within this call, and does not return."""
    _adopt_orphans()
    endings = _Endings(world, run_again)
    world.wait_for_forked = endings.wait_for_forked
    os._exit, os.fork = endings.exit, endings.fork
    os.execv = lambda path, args: endings.execute(path, args, None)
    os.execve = endings.execute


def _adopt_orphans() -> None:
    """What the script starts and lets go of (a daemon) stays below this process, where it is found at the end."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class _Endings:
    def __init__(self, world, run_again):
        self._world, self._run_again = world, run_again
        self._first = os.getpid()
        self._forked: list[int] = []  # processes that the script has forked from this one
        self._restarts = 0
        self._limits = None
        self._exit, self._fork, self._execve = os._exit, os.fork, os.execve

    def fork(self) -> int:
        pid = self._fork()
        if pid == 0:
            self._forked = []
        elif sites.is_users(sys._getframe(1).f_code.co_filename):
            self._forked.append(pid)
        return pid

    def wait_for_forked(self) -> None:
        """A process that has forked and does not train itself may have left that to the other one."""
        while self._forked:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._forked.pop(), 0)

    def exit(self, status) -> None:
        """os._exit: where the script calls it, what was seen until then is handed over."""
        caller = sys._getframe(1)
        if not sites.is_users(caller.f_code.co_filename):
            self._exit(status)
        if not self._world.watcher.script_ended():
            if os.getpid() != self._first:
                self.wait_for_forked()
                self._exit(status)
            site = sites.Site(caller.f_code.co_filename, caller.f_lineno)
            self._world.outcome.kind = "no_step"
            self._world.outcome.error = f"{site} ends its process by os._exit({status}) before it trained"
            self._world.end()

    def execute(self, path, args, env) -> None:
        """os.execv and its like: the script itself is run from its beginning, any other program is refused."""
        words = [os.fsdecode(word) for word in args]
        if os.getpid() != self._first:
            self._other_program(path, words, env)
        site = sites.here(2)
        script = os.path.realpath(self._world.request.script)
        at = next((i for i, word in enumerate(words) if os.path.realpath(word) == script), None)
        command = " ".join(words)[:200]
        if at is None:
            self._world.refuse(f"{site} replaces it by another program, which is not run ({command}): give that one, and its arguments "
                               "behind --")
        self._restarts += 1
        if self._restarts > _MOST_RESTARTS:
            self._world.refuse(f"{site} starts it anew again and again ({command})")
        if env is not None:
            os.environ.clear()
            os.environ.update({os.fsdecode(key): os.fsdecode(value) for key, value in dict(env).items()})
        sys.argv = [self._world.request.script, *words[at + 1:]]
        self._run_again()

    def _other_program(self, path, words: list, env) -> None:
        """In a process that the script forked: as those that it starts by subprocess."""
        if processes._is_refused(words):
            self._exit(0)
        self._limits = self._limits or landlock.Limits(self._world.scratch, self._world.request.network)
        limited = self._limits.before(None)
        if limited is not None:
            limited()
        self._execve(path, words, dict(os.environ if env is None else env))


def hint_of(error: BaseException, world) -> str:
    """The way out of a failure that only the error itself shows: "" where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    if isinstance(error, KeyError) and last.filename.endswith(("os.py", "<frozen os>")) and error.args:
        return f"; it wants the environment variable {error.args[0]}: set it before stoker is called"
    if isinstance(error, IndexError) and "sys.argv" in linecache.getline(last.filename, last.lineno or 0):
        return "; its own arguments follow --"
    return gpus_hint(str(error), world) if isinstance(error, (AssertionError, RuntimeError, ValueError)) else ""


def gpus_hint(said: str, world) -> str:
    """Where a script that has counted the GPUs ends with words about them."""
    site, gpu = world.counted_gpus, world.request.gpu
    if site is None or gpu is None or not any(word in said.lower() for word in ("gpu", "device", "nproc", "rank", "world")):
        return ""
    return f"; {site} asks how many GPUs there are, and is told {gpu.count}: --gpus N says another number"
