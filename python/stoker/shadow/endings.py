"""How a script's process ends, forks or becomes another program: what was seen of its training is not lost by any of these."""

from __future__ import annotations

import contextlib
import os
import sys

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
        self._limits = self._limits or landlock.Limits(self._world.scratch, self._world.request.network)
        if processes.is_refused(words, self._limits):
            self._exit(0)
        limited = self._limits.before(None)
        if limited is not None:
            limited()
        self._execve(path, words, dict(os.environ if env is None else env))
