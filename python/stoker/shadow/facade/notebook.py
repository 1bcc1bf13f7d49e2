"""A notebook that was exported to a script: its magics do nothing, and cells behind a magic are run as Python.

Only a script that calls `get_ipython()` as such exports do is given one; others ask for it to learn that they are no notebook.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import sys
import types

from .. import sites

_RUN = {"time", "timeit", "capture", "prun", "python", "python3", "debug"}  # magics of cells whose text is Python


class Shell:
    """What `get_ipython()` gives."""

    def __init__(self, world, main):
        self._world, self._names = world, main.__dict__
        self.user_ns = self._names

    def system(self, command, *_):
        self._world.note(f"{sites.here(2)}: the notebook's command is not run: {str(command)[:60]}")

    def getoutput(self, command, *_):
        self.system(command)
        return []

    def run_cell_magic(self, name, line, cell):
        if name in _RUN:
            exec(compile(cell, sites.here(2).file or "<cell>", "exec"), self._names)

    def run_line_magic(self, name, line, *_):
        if name in ("time", "timeit", "prun") and line.strip():
            exec(compile(line, sites.here(2).file or "<cell>", "exec"), self._names)

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line)

    def __getattr__(self, name):
        return _Nothing()


class _Nothing:
    """Whatever is called or asked of it gives it again, but for what it was made with."""

    def __init__(self, *_, **given):
        self.__dict__.update(given)

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def install(world, main, source: bytes) -> None:
    if b"get_ipython()." not in source:
        return
    shell = Shell(world, main)
    builtins.get_ipython = lambda: shell
    if not hasattr(builtins, "display"):
        builtins.display = print
    _displays()


class _Quiet(types.ModuleType):
    """Whatever it is asked for does nothing."""

    __path__: list = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Nothing,), {}) if name[:1].isupper() else _Nothing()  # a widget's class, of which others are derived
        setattr(self, name, made)
        return made


def _displays() -> None:
    """What a notebook draws with, where this Python has no IPython."""
    for library in ("IPython", "ipywidgets", "google.colab"):
        first = library.partition(".")[0]
        if first in sys.modules or importlib.util.find_spec(first) is not None:
            continue
        for name in dict.fromkeys((first, library, f"{first}.display", f"{library}.display")):
            sys.modules[name] = _Quiet(name)
            sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)  # who asks find_spec() gets one
        if library == "IPython":
            sys.modules[first].get_ipython, sys.modules[first].version_info = builtins.get_ipython, (8, 30, 0)
