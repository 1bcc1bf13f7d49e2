"""Programs that the script starts beneath subprocess: os.spawn*, os.posix_spawn and pty.spawn, with the manners of processes.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys

from .. import sites


def install(world, manners) -> None:
    programs = _Programs(manners)
    os._spawnvef = programs.spawn
    if hasattr(os, "posix_spawn"):
        os.posix_spawn, os.posix_spawnp = programs.posix_spawn, programs.posix_spawnp
    with contextlib.suppress(ImportError):
        import pty

        pty.spawn = programs.in_terminal(pty)


class _Programs:
    def __init__(self, manners):
        self._manners = manners
        self._execve, self._posix_spawn = os.execve, getattr(os, "posix_spawn", None)

    def spawn(self, mode, file, args, env, func):
        """os.spawnv and its like, which call os._spawnvef."""
        environment = os.environ if env is None else env
        file = os.fsdecode(file)
        if func.__name__.startswith("execvp"):
            file = shutil.which(file, path=environment.get("PATH")) or file
        pid = self._start(file, [os.fsdecode(word) for word in args], environment, ())
        if mode == os.P_NOWAIT:
            return pid
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def posix_spawn(self, path, argv, env, **options):
        if sys._getframe(1).f_globals.get("__name__") == "subprocess":  # which has asked already
            return self._posix_spawn(path, argv, env, **options)
        if not os.path.exists(path):
            raise FileNotFoundError(2, "No such file or directory", os.fsdecode(path))
        actions = options.get("file_actions") or ()
        return self._start(os.fsdecode(path), [os.fsdecode(word) for word in argv], env, actions, bool(options.get("setsid")))

    def posix_spawnp(self, path, argv, env, **options):
        found = shutil.which(os.fsdecode(path), path=dict(env).get("PATH", os.environ.get("PATH")))
        return self.posix_spawn(found or path, argv, env, **options)

    def in_terminal(self, pty):
        def spawn(argv, master_read=pty._read, stdin_read=pty._read):
            words = [argv] if isinstance(argv, str) else [os.fsdecode(word) for word in argv]
            program, words = self._allowed(shutil.which(words[0]) or words[0], words)
            limited = self._manners.limits.before(None)
            pid, terminal = pty.fork()
            if not pid:
                self._become(program, words, os.environ, limited)
            pty._copy(terminal, master_read, stdin_read)
            os.close(terminal)
            return os.waitpid(pid, 0)[1]

        return spawn

    def _start(self, file: str, args: list, env, actions, session: bool = False) -> int:
        program, args = self._allowed(file, args)
        limited = self._manners.limits.before(None)
        pid = os.fork()
        if not pid:
            self._become(program, args, env, limited, actions, session)
        return pid

    def _become(self, program: str, args: list, env, limited, actions=(), session: bool = False) -> None:
        """Ends this process, a child, as that program."""
        try:
            if session:
                os.setsid()
            for action in actions:
                _act(*action)
            if limited is not None:
                limited()
            self._execve(program, args, env)
        finally:
            os._exit(127)

    def _allowed(self, file: str, args: list) -> tuple:
        """(program, arguments) to run in place of those: `true` for what is not to be run."""
        words = list(args) if args and os.path.basename(args[0]) == os.path.basename(file) else [file, *args[1:]]
        given = {"args": list(words)}
        self._manners.keep(given, sites.here())
        if given["args"] == words:
            return file, args
        changed = [os.fsdecode(word) for word in given["args"]]
        return shutil.which(changed[0]) or changed[0], changed


def _act(kind, *values) -> None:
    """One of posix_spawn's file actions; what it opens lies where the script's files lie."""
    if kind == os.POSIX_SPAWN_OPEN:
        descriptor, path, flags, mode = values
        opened = os.open(path, flags, mode)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
        os.set_inheritable(descriptor, True)
    elif kind == os.POSIX_SPAWN_DUP2:
        os.dup2(*values)
    elif kind == os.POSIX_SPAWN_CLOSE:
        os.close(*values)
    else:  # POSIX_SPAWN_CLOSEFROM
        os.closerange(values[0], 65_536)
