"""`__main__`, arguments and search path as `python train.py ARGUMENTS` would have them."""

from __future__ import annotations

import ast
import importlib
import pathlib
import sys
import types

from .. import imports


def prepare(script: str, arguments: list) -> types.ModuleType:
    """The module that the script's text is to run in."""
    path = pathlib.Path(script)
    sys.argv = [script, *arguments]
    imports.make_importable(str(path.resolve().parent))
    main = types.ModuleType("__main__")
    main.__file__ = str(path.absolute())
    main.__builtins__ = __builtins__
    _as_part_of_a_package(main, path)
    sys.modules["__main__"] = main
    return main


def execute(code, main: types.ModuleType, names=None) -> None:
    """Runs the compiled script in it; its package comes first, which is code of the user's as much as the script is."""
    if main.__package__:
        importlib.import_module(main.__package__)
    exec(code, main.__dict__, names)


def _as_part_of_a_package(main, path: pathlib.Path) -> None:
    """A script that imports relative to its package is run as `python -m package.train` runs it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    if not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return
    folder, names = path.resolve().parent, []
    deepest = max(node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    while folder.name and ((folder / "__init__.py").exists() or len(names) < deepest):
        names.insert(0, folder.name)
        folder = folder.parent
    imports.make_importable(str(folder))
    main.__package__ = ".".join(names)
