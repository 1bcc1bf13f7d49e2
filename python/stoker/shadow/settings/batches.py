"""How a run gets another batch than the script's own: by its DataLoaders, by its parsed arguments, or by a variable."""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import os
import pathlib
import re

from .. import sites

_LIKE_BATCH = re.compile(r"(batch|^bsz?$|^bs_|_bs$|^mbs$)", re.I)
# What makes tensors of a size that is written out, and what gives them one: of made-up data the batch is often named nowhere.
_MAKERS = {"randn", "rand", "zeros", "ones", "empty", "full", "randint", "normal", "new_zeros", "new_ones", "new_empty", "new_full"}
_SHAPERS = {"view", "reshape", "expand"}
_GIVERS = {"sample", "sample_batch", "get_batch", "next_batch"}  # of a batch from a store of the script's own
_BEFORE_SIZE = {"randint", "normal", "full", "new_full"}  # numbers that stand by themselves are no sizes there
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
    path = world.request.script
    text = pathlib.Path(path).read_bytes()
    tree = ast.parse(text, filename=path)
    world.catches_out_of_memory = b"OutOfMemoryError" in text or b"out of memory" in text
    note(world, tree)
    kind, name = _way(world.request)
    if kind in ("variable", "computed", "literal") and world.request.batch is not None:
        replace = _ReplaceSizes(int(name), world.request.batch) if kind == "literal" else \
            _Replace(name, world.request.batch, kind == "computed")
        _replace_in_modules(replace)
        tree = ast.fix_missing_locations(replace.visit(tree))
    return compile(tree, path, "exec")


def note(world, tree) -> None:
    """Names that whole numbers of a text are given to: those that look like a batch first, all others for want of one."""
    for name, value in _named_numbers(tree):
        way = (f"variable:{name}", value)
        if looks_like_batch(name, value):
            if way not in world.outcome.batch_names:
                world.outcome.batch_names.append(way)
        elif value > 1 and way not in world.outcome.other_names:
            world.outcome.other_names.append(way)
    for value in dict.fromkeys(_whole(number) for number, _ in _written_sizes(tree)):
        if value > 1:
            world.outcome.other_names.append((f"literal:{value}", value))


def _whole(node) -> int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name_of(node) -> str | None:
    """What a target of an assignment is called: a variable, an attribute, or a key that is written out."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    key = node.slice if isinstance(node, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _at(holder, key):
    """What puts another node in the place of one: a field of a node, or an entry of a list."""
    def put(new):
        if isinstance(holder, list):
            holder[key] = new
        else:
            setattr(holder, key, new)

    return put


def _places(node):
    """(name, value's node, what puts another one in its place) of what this node gives names to."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                for k, (one, value) in enumerate(zip(target.elts, node.value.elts)):
                    yield _name_of(one), value, _at(node.value.elts, k)
            else:
                yield _name_of(target), node.value, _at(node, "value")
    elif isinstance(node, ast.keyword):
        yield node.arg, node.value, _at(node, "value")
    elif isinstance(node, ast.arguments):
        given = (node.posonlyargs + node.args)[-len(node.defaults):] if node.defaults else []
        for k, (argument, value) in enumerate(zip(given, node.defaults)):
            yield argument.arg, value, _at(node.defaults, k)
        for k, (argument, value) in enumerate(zip(node.kwonlyargs, node.kw_defaults)):
            yield argument.arg, value, _at(node.kw_defaults, k)
    elif isinstance(node, ast.Dict):
        for k, (key, value) in enumerate(zip(node.keys, node.values)):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value, _at(node.values, k)


def _given_by_position(tree):
    """(name, value, how to replace it) of arguments that calls of the text's own functions give by position: `get_batch(4)`."""
    functions = {node.name: node.args.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            for k, (argument, value) in enumerate(zip(functions[node.func.id], node.args)):
                yield argument.arg, value, _at(node.args, k)


def _written_sizes(tree):
    """(number's node, how to replace it) of first sizes that are written out: `torch.randn(64, 3, 224, 224)`, `labels.view(64)`,
    `range(0, n, 64)`, `data[i:i + 64]`, `memory.sample(64)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            number, put = _first_size(node)
        elif isinstance(node, ast.Subscript):
            number, put = _length_of_slice(node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice)
        else:
            continue
        if number is not None and _whole(number) is not None:
            yield number, put


def _first_size(call) -> tuple:
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called == "range" and len(call.args) == 3:
        return call.args[2], _at(call.args, 2)
    if called not in _MAKERS | _SHAPERS | _GIVERS:
        return None, None
    given = [(value, _at(call.args, k)) for k, value in enumerate(call.args)]
    given += [(one.value, _at(one, "value")) for one in call.keywords if one.arg == "size"]
    for value, put in given:
        if isinstance(value, (ast.Tuple, ast.List)) and value.elts:
            return value.elts[0], _at(value.elts, 0)
        if called not in _BEFORE_SIZE or value not in call.args:
            return value, put
    return None, None


def _length_of_slice(part) -> tuple:
    """[:64], [i:i + 64]"""
    end = part.upper if isinstance(part, ast.Slice) else None
    if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add):
        return end.right, _at(end, "right")
    return (end, _at(part, "upper")) if end is not None and part.lower is None else (None, None)


def _all_places(tree):
    for node in ast.walk(tree):
        yield from _places(node)
    yield from _given_by_position(tree)


def _named_numbers(tree):
    for name, value, _ in _all_places(tree):
        if name and value is not None and (number := _whole(value)) is not None:
            yield name, number


def computed(tree) -> list:
    """Names that say batch and are given what is computed: `minibatch_size = batch_size // 4`."""
    found = [name for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign)) for name, value, _ in _places(node)
             if name and _is_computed(value) and looks_like_batch(name, 1)]
    return list(dict.fromkeys(found))


def _is_computed(value) -> bool:
    """A quotient or a product, or a call that gives a whole number; not a batch itself, as `batch = next(iterator)`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("int", "max", "min", "round")
    return isinstance(value, ast.BinOp) and isinstance(value.op, (ast.FloorDiv, ast.Div, ast.Mult, ast.LShift))


class _Replace:
    """Another number wherever this name is given one; `computed`: or what is computed."""

    def __init__(self, name: str, batch: int, computed: bool):
        self._name, self._batch, self._computed = name, batch, computed

    def _is_number(self, value) -> bool:
        return _whole(value) is not None or self._computed and _is_computed(value)

    def visit(self, tree):
        for name, value, put in list(_all_places(tree)):
            if name == self._name and value is not None and self._is_number(value):
                put(ast.copy_location(ast.Constant(self._batch), value))
        return tree


class _ReplaceSizes:
    """Another first size wherever this one is written out."""

    def __init__(self, size: int, batch: int):
        self._size, self._batch = size, batch

    def visit(self, tree):
        for value, put in list(_written_sizes(tree)):
            if _whole(value) == self._size:
                put(ast.copy_location(ast.Constant(self._batch), value))
        return tree


def _replace_in_modules(replace) -> None:
    """Replaces the batch in the user's modules that the script imports."""
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self, fullname):
        path = os.path.abspath(self.get_filename(fullname))
        if not sites.is_users(path):
            return original(self, fullname)
        tree = replace.visit(ast.parse(pathlib.Path(path).read_bytes(), filename=path))
        return compile(ast.fix_missing_locations(tree), path, "exec")

    importlib.machinery.SourceFileLoader.get_code = get_code


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
