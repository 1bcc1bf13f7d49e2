"""Stands in for libraries of fused kernels that are not installed, while a model is captured.

A stand-in makes the allocations of the library's own kernels, keeps for the backward what they keep, and writes in place
where they do; its operators are costed as what they are (docs/guide/stand-ins.md). It serves imports of the user's own
code alone: what other libraries do when they find, or do not find, such a library stays as it is. What a library has and
this package has not is refused by name.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import sys

from .. import whose
from ..errors import CaptureError

LIBRARIES = ("apex", "bitsandbytes", "flash_attn", "liger_kernel", "transformer_engine", "triton", "xformers")


class MissingPartError(CaptureError, ImportError):
    """A part of a library that has no stand-in; code that can do without the library catches it as ImportError."""


used: set[str] = set()  # libraries that were stood in for in this process


def install() -> None:
    """From now on the user's imports of absent libraries find their stand-ins. May be called again."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def remove() -> dict:
    """Takes the stand-ins out of the modules; what was taken, by name."""
    found = [name for name, module in sys.modules.items() if name.partition(".")[0] in LIBRARIES
             and isinstance(getattr(getattr(module, "__spec__", None), "loader", None), _Finder)]
    return {name: sys.modules.pop(name) for name in found}


@contextlib.contextmanager
def hidden():
    """Within it no stand-in is among the modules: PyTorch's compiler takes whatever is named triton for the library itself."""
    kept = remove()
    try:
        yield
    finally:
        sys.modules.update(kept)


def _users_import() -> bool:
    """Whether the import statement that is running stands in a file that belongs to no library."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<frozen") and name != __file__ and "importlib" not in name:
            return not (whose.is_pythons(name) or whose.is_packaged(name))
        frame = frame.f_back
    return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last in sys.meta_path, so that an installed library never gets here."""

    def find_spec(self, fullname, path=None, target=None):
        library = fullname.partition(".")[0]
        known = library in used and library != "triton"  # which PyTorch itself looks for
        if library not in LIBRARIES or not (known or _users_import()):
            return None
        if fullname not in _modules(library):
            raise MissingPartError(f"{library} is not installed, and Stoker stands in for parts of it that have no {fullname}: "
                                   "install it, or leave that part out")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        library = module.__name__.partition(".")[0]
        used.add(library)
        module.__dict__.update(_modules(library)[module.__name__])

        def missing(name):
            if name.startswith("__"):
                raise AttributeError(name)
            if f"{module.__name__}.{name}" in _modules(library):  # what the library's own package imports
                return importlib.import_module(f"{module.__name__}.{name}")
            raise MissingPartError(f"{library} is not installed, and Stoker's stand-in has no {module.__name__}.{name}: "
                                   "install it, or leave that part out")

        module.__dict__.setdefault("__getattr__", missing)


def _modules(library: str) -> dict:
    """Module name -> its names, with the packages above each module."""
    tables = importlib.import_module(f".{library}_parts", __name__).MODULES
    everything = {}
    for name in tables:
        parts = name.split(".")
        for end in range(1, len(parts)):
            everything.setdefault(".".join(parts[:end]), {})
    everything.update(tables)
    return everything
