"""Files of the user's that bear the name of a module which PyTorch or this package needs: libraries are given their own.

`python train.py` finds random.py beside the script in place of Python's, and PyTorch then fails to import. Here each
importer gets what it means: a library its own module, the user's code the user's. What was passed over is told.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

from . import whose

# What PyTorch imports from outside, and libraries of models and pictures.
_OTHERS = {"torch", "numpy", "stoker", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "typing_extensions", "filelock",
           "fsspec", "packaging", "setuptools", "PIL", "torchvision", "torchaudio", "transformers", "timm", "tokenizers", "yaml",
           "psutil", "safetensors", "huggingface_hub", "requests", "regex", "tqdm"}
_NEEDED = _OTHERS | set(getattr(sys, "stdlib_module_names", ("types", "random", "token", "typing", "queue", "copy", "code",
                                                             "select", "signal", "string", "struct", "numbers", "operator")))
_folders: list[str] = []
_passed_over: dict[str, str] = {}


def starting(module: str | None = None) -> str:
    """What `python -c` runs in place of `python -m`: until this package is imported, the working directory is not searched."""
    what = "from stoker.cli import run\nsys.exit(run())"
    if module is not None:
        what = f"from stoker import imports\nimports.run_module({module!r})"
    return f"import sys\nsys.path[:1] = [folder for folder in sys.path[:1] if folder]\n{what}"


def environment(**more: str) -> dict:
    """The environment of a child that imports this package, wherever it runs.

    An empty entry of PYTHONPATH is the working directory, which would be searched before Python's own modules.
    """
    above = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    path = os.pathsep.join(filter(None, [above, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
    return {**os.environ, "PYTHONPATH": path, **more}


def make_importable(folder: str) -> None:
    """Puts a folder of the user's in front of the search path, as Python does for the script that it runs."""
    if folder not in _folders:
        _folders.append(folder)
    sys.path.insert(0, folder)


def passed_over() -> list:
    """A sentence for each file of the user's in whose place libraries were given their own module."""
    found = dict(_passed_over)
    for folder in _folders:
        for name in _NEEDED & sys.modules.keys():
            file = os.path.join(folder, f"{name}.py")
            loaded = getattr(sys.modules[name], "__file__", None)
            if os.path.exists(file) and not (loaded and os.path.exists(loaded) and os.path.samefile(file, loaded)):
                found[name] = file
    return [f"{os.path.relpath(file)} has the name of the module '{name}', which libraries need: they were given their own here, but "
            f"`python` alone gives them yours; rename the file" for name, file in sorted(found.items())]


class _Librarian:
    """Stands first among the finders."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None or name not in _NEEDED or not _folders or not _asked_by_library():
            return None
        theirs = importlib.machinery.PathFinder.find_spec(name, [f for f in sys.path if f not in _folders])
        if theirs is None:
            return None
        users = importlib.machinery.PathFinder.find_spec(name, _folders)
        if users is not None and users.origin and users.origin != theirs.origin:
            _passed_over[name] = users.origin
        return theirs


def _asked_by_library() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen importlib") and f"{os.sep}importlib{os.sep}" not in file:
            return not whose.is_users(file)
        frame = frame.f_back
    return False


def install() -> None:
    """The user's code may import from the working directory, which `starting` has kept from the search path."""
    if not any(isinstance(finder, _Librarian) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Librarian())
    if sys.path and sys.path[0] in ("", os.getcwd()):  # python -m stoker
        _folders.append(sys.path[0])
    else:
        make_importable("")


def run_module(name: str) -> None:
    import runpy

    install()
    runpy.run_module(name, run_name="__main__", alter_sys=True)
