"""Loops that try a smaller batch when the GPU's memory does not suffice: on a GPU that never runs out, the first one is taken."""

from __future__ import annotations

import ast
import pathlib

from .. import sites

_ERRORS, _FINDERS = {"OutOfMemoryError"}, {"find_executable_batch_size"}
_SAID = "out of memory"


def look_in(world, files: list) -> None:
    """Says where a file of the user's goes on after it ran out of memory."""
    if not world.on_gpu:
        return
    for path in files:
        line = _line_of(path)
        if line:
            world.note(f"{sites.Site(path, line)}: the script goes on when the GPU's memory does not suffice; here it has sufficed for the "
                       "first batch that it tries. The forecast says whether it does, and stoker plan which is the largest that fits")
            return


def _line_of(path: str) -> int:
    try:
        source = pathlib.Path(path).read_text(errors="replace")
        if not any(word in source for word in (*_ERRORS, *_FINDERS, _SAID)):
            return 0
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return 0
    return min((node.lineno for node in ast.walk(tree) if _goes_on(node)), default=0)


def _goes_on(node) -> bool:
    if isinstance(node, ast.ExceptHandler):
        ways = [part for part in ast.walk(node) if isinstance(part, (ast.Continue, ast.Break, ast.Return))]
        if isinstance(node.body[-1], ast.Raise) and not ways:
            return False  # it says what happened, and ends
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(getattr(kind, "attr", getattr(kind, "id", "")) in _ERRORS for kind in kinds):
            return True
        return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and _SAID in part.value for part in ast.walk(node))
    if isinstance(node, ast.FunctionDef):
        return any(_name(decorator) in _FINDERS for decorator in node.decorator_list)
    return isinstance(node, ast.Call) and _name(node.func) in _FINDERS


def _name(node) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))
