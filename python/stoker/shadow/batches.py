"""How a run gets another batch than the script's own: by its DataLoaders, by its parsed arguments, or by a variable."""

from __future__ import annotations

import argparse
import ast
import pathlib
import re

_LIKE_BATCH = re.compile(r"(batch|^bsz?$|^bs_|_bs$|^mbs$)", re.I)
_UNLIKE_BATCH = re.compile(r"(eval|test|val|num_batch|n_batch|batches|log|print|interval)", re.I)


def looks_like_batch(name: str, value) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool) and value > 0 and bool(_LIKE_BATCH.search(name))
            and not _UNLIKE_BATCH.search(name))


def _way(request) -> tuple:
    kind, _, name = request.batch_by.partition(":")
    return kind, name


def arguments(request) -> list:
    """The script's arguments, with another batch where one of them carries it."""
    kind, name = _way(request)
    if kind != "word" or request.batch is None:
        return list(request.arguments)
    result, done = [], False
    words = list(request.arguments)
    while words:
        word = words.pop(0)
        key = word.split("=", 1)[0]
        if key.lstrip("-+").replace("-", "_") != name.lstrip("-+").replace("-", "_"):
            result.append(word)
            continue
        done = True
        if "=" in word:
            result.append(f"{key}={request.batch}")
        else:
            result += [word, str(request.batch)]
            words[:1] = []
    if not done:
        result.append(f"{name}={request.batch}" if "." in name or name.startswith("-") else f"--{name}={request.batch}")
    return result


def install(world) -> None:
    """Notes what argparse gives to the script, and replaces what carries the batch."""
    original = argparse.ArgumentParser.parse_known_args
    kind, name = _way(world.request)

    def parse_known_args(self, *args, **kwargs):
        namespace, rest = original(self, *args, **kwargs)
        for key, value in list(vars(namespace).items()):
            if looks_like_batch(key, value):
                world.outcome.batch_names.append((f"parsed:{key}", value))
        if kind == "parsed" and world.request.batch is not None and hasattr(namespace, name):
            setattr(namespace, name, world.request.batch)
        return namespace, rest

    argparse.ArgumentParser.parse_known_args = parse_known_args


def code(world):
    """The compiled script; variables that may carry a batch are noted."""
    path = pathlib.Path(world.request.script)
    source = path.read_bytes()
    tree = ast.parse(source, filename=world.request.script)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Constant):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and looks_like_batch(target.id, node.value.value):
                    world.outcome.batch_names.append((f"variable:{target.id}", node.value.value))
    kind, name = _way(world.request)
    if kind == "variable" and world.request.batch is not None:
        tree = ast.fix_missing_locations(_Replace(name, world.request.batch).visit(tree))
    return compile(tree, world.request.script, "exec")


class _Replace(ast.NodeTransformer):
    """Another number wherever this variable is given one."""

    def __init__(self, name: str, batch: int):
        self._name, self._batch = name, batch

    def visit_Assign(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int) \
                and any(isinstance(t, ast.Name) and t.id == self._name for t in node.targets):
            node.value = ast.copy_location(ast.Constant(self._batch), node.value)
        return node


class _Names(dict):
    """Names of the script's own level, in which one always has the batch's value."""

    def __init__(self, globals_: dict, name: str, batch: int):
        super().__init__()
        self._globals, self._name, self._batch = globals_, name, batch

    def __setitem__(self, key, value):
        if key == self._name and isinstance(value, int) and not isinstance(value, bool):
            value = self._batch
        self._globals[key] = value

    def __getitem__(self, key):
        return self._globals[key]

    def __delitem__(self, key):
        del self._globals[key]

    def __contains__(self, key):
        return key in self._globals

    def items(self):
        return self._globals.items()

    def keys(self):
        return self._globals.keys()

    def __iter__(self):
        return iter(self._globals)


def names(world, main):
    """What `exec` takes as the script's own names."""
    kind, name = _way(world.request)
    if kind == "variable" and world.request.batch is not None:
        return _Names(main.__dict__, name, world.request.batch)
    return main.__dict__
