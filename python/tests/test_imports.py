"""The package's modules import from left to right, and never in a circle."""

import ast
import pathlib

import pytest

import stoker

PACKAGE = pathlib.Path(stoker.__file__).resolve().parent
# What each is for stands in the package's docstring.
ROOMS = ("base", "capture", "measure", "shadow", "study", "observe", "tune", "pipeline", "calibrate", "loader_runs", "training_runs",
         "surveys", "cli")
# Modules beside the folders; the others belong to capture.
BASE = ("plain", "arguments", "binary", "caches", "results", "durations", "errors", "imports", "objects", "places", "polynomial",
        "protocol", "user_code", "version", "whose")


def type_checking_only(node) -> bool:
    """`if TYPE_CHECKING:`, whose imports never run."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(tree):
    """Import statements that run at some time, those within functions too."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not type_checking_only(node):
            waiting.extend(ast.iter_child_nodes(node))


def modules_of(package: pathlib.Path) -> dict:
    """Name -> file of every module."""
    found = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def targets(name: str, file: pathlib.Path, node, modules: dict):
    """The modules of this package that one import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    base = node.module or ""
    if node.level:
        package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        base = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])])
    for alias in node.names:
        full = f"{base}.{alias.name}"
        if full in modules or base in modules:
            yield full if full in modules else base


def graph_of(package: pathlib.Path) -> dict:
    """Module -> modules that it imports."""
    modules = modules_of(package)
    return {name: {target for node in imports_of(ast.parse(file.read_text())) for target in targets(name, file, node, modules)} - {name}
            for name, file in modules.items()}


def circle_in(graph: dict) -> list:
    """One circle of imports as its modules in order; empty where there is none."""
    done, way = set(), []

    def visit(name):
        if name in way:
            return way[way.index(name):]
        if name in done:
            return []
        way.append(name)
        found = next(filter(None, map(visit, sorted(graph[name]))), [])
        way.pop()
        done.add(name)
        return found

    return next(filter(None, map(visit, sorted(graph))), [])


def room_of(name: str) -> str:
    """The room of ROOMS that a module belongs to."""
    parts = name.split(".")
    if len(parts) == 1 or parts[1] in ("__main__", "cli"):
        return "cli"
    folder = (PACKAGE / parts[1]).is_dir()
    return parts[1] if folder and parts[1] in ROOMS else "base" if parts[1] in BASE else "capture"


def test_no_module_imports_itself_by_way_of_others():
    assert circle_in(graph_of(PACKAGE)) == []


def test_rooms_import_from_left_to_right():
    rank = {room: number for number, room in enumerate(ROOMS)}
    wrong = [f"{name} ({room_of(name)}) imports {other} ({room_of(other)})" for name, others in graph_of(PACKAGE).items()
             for other in others if rank[room_of(other)] > rank[room_of(name)]]
    assert wrong == []


def test_every_room_and_module_that_is_named_exists():
    documented = [line.split()[0] for line in stoker.__doc__.splitlines() if line.startswith("    ") and line.split()[0] in ROOMS]
    assert tuple(documented) == ROOMS
    rooms = {room_of(name) for name in modules_of(PACKAGE)}
    assert rooms == set(ROOMS)
    assert all((PACKAGE / f"{name}.py").exists() for name in BASE)


@pytest.mark.parametrize("files, circle", [
    ({"a": "from . import b", "b": "def f():\n    from .c import x", "c": "import p.a"}, ["p.a", "p.b", "p.c"]),
    ({"a": "from . import b", "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import x"}, []),
    ({"a": "from .b import x", "b": "from ..p import c", "c": "x = 1"}, [])])
def test_circles_are_found_where_they_are(tmp_path, files, circle):
    package = tmp_path / "p"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text + "\n")
    assert circle_in(graph_of(package)) == circle
