"""Names outside of the script's variables that carry its batch: words of its command line, environment variables, configurations.

Command lines are parsed by many libraries (click, typer, fire, absl, hydra); a word with another number serves all of them.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import pathlib
import re
import sys

from .. import sites
from .batches import computed, looks_like_batch

_WORD = re.compile(r"^(?P<name>(?:--?|\+{1,2})?[A-Za-z_][\w.-]*)(?:=(?P<value>\d+))?$")


_ORDER = ("parsed", "word", "configuration", "environment", "variable", "computed")


def in_order(known: list, request) -> list:
    """All ways to set the batch, those that surely decide it first."""
    try:
        tree = ast.parse(pathlib.Path(request.script).read_bytes())
        declared = of_text(tree) + [(f"computed:{name}", None) for name in computed(tree)]
    except (OSError, SyntaxError, ValueError):
        declared = []
    given = [way for way in of_arguments(request.arguments) if f"parsed:{_plain(way[0])}" not in dict(known)]
    ways = sorted([*known, *given, *(w for w in declared if not w[0].startswith("word:"))],
                  key=lambda way: _ORDER.index(way[0].partition(":")[0]))
    return ways + [way for way in declared if way[0].startswith("word:") and way[0] not in dict(given)]


def _plain(way: str) -> str:
    return way.partition(":")[2].lstrip("-+").replace("-", "_")


def of_arguments(words: list) -> list:
    """(way, value) of arguments that say batch and are given a whole number."""
    found = []
    for word, following in zip(words, [*words[1:], ""]):
        match = _WORD.match(word)
        if match is None:
            continue
        value = match["value"] or (following if word.startswith("-") and following.isdigit() else None)
        last = match["name"].lstrip("-+").rpartition(".")[2].replace("-", "_")
        if value is not None and looks_like_batch(last, int(value)):
            found.append((f"word:{match['name']}", int(value)))
    return found


def of_text(tree) -> list:
    """(way, value) of options that a script declares by a call, and of environment variables that it asks for."""
    found: list = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found += _environment(node) or _option(node)
        elif isinstance(node, ast.Subscript) and _is_environ(node.value) and (name := _text(node.slice)):
            found += _variable(name, None)
    return found


def _option(node) -> list:
    """click.option("--batch-size", default=32), flags.DEFINE_integer("batch_size", 32, ...)."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if called == "add_argument":
        return []  # argparse, whose values are replaced where they are parsed
    names = [text for text in map(_text, node.args) if text]
    default = next((k.value for k in node.keywords if k.arg == "default"), node.args[1] if len(node.args) > 1 else None)
    value = getattr(default, "value", None)
    for name in names:
        plain = name.lstrip("-").replace("-", "_")
        if isinstance(value, int) and looks_like_batch(plain, value) and (name.startswith("--") or called.startswith("DEFINE_")):
            return [(f"word:{name if name.startswith('-') else '--' + name}", value)]
    return []


def _environment(node) -> list:
    """os.environ.get("BATCH_SIZE", 32), os.getenv("BATCH_SIZE", "32")."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    asks = called == "getenv" or called == "get" and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value)
    if not asks or not node.args:
        return []
    name = _text(node.args[0])
    return _variable(name, getattr(node.args[1], "value", None) if len(node.args) > 1 else None) if name else []


def _variable(name: str, default) -> list:
    text = os.environ.get(name, default)
    value = int(text) if isinstance(text, int) or isinstance(text, str) and text.isdigit() else 0
    return [(f"environment:{name}", value)] if looks_like_batch(name, value) else []


def _is_environ(node) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == "environ"


def _text(node) -> str | None:
    value = getattr(node, "value", None)
    return value if isinstance(node, ast.Constant) and isinstance(value, str) else None


def install(world, hooks: dict) -> None:
    """Notes numbers that say batch in configurations which the script reads, and replaces them; `hooks` are called with modules
    once they are imported."""
    kind, _, name = world.request.batch_by.partition(":")
    wanted = name if kind == "configuration" and world.request.batch is not None else None
    if kind == "environment" and world.request.batch is not None:
        os.environ[name] = str(world.request.batch)

    def noted(value):
        for table in _tables(value):
            for key, number in list(table.items()):
                if isinstance(key, str) and looks_like_batch(key, number):
                    way = (f"configuration:{key}", number)
                    if way not in world.outcome.batch_names:
                        world.outcome.batch_names.append(way)
                    if key == wanted:
                        table[key] = world.request.batch
        return value

    def follow(module, names):
        for function in names:
            if hasattr(module, function):
                setattr(module, function, _followed(getattr(module, function), noted))

    follow(json, ("load", "loads"))
    for module, names in (("yaml", ("load", "safe_load", "full_load", "unsafe_load")), ("tomllib", ("load", "loads")),
                          ("toml", ("load", "loads"))):
        if module in sys.modules:
            follow(sys.modules[module], names)
        else:
            hooks[module] = lambda m, names=names: follow(m, names)


def _followed(original, noted):
    @functools.wraps(original)
    def read(*args, **kwargs):
        value = original(*args, **kwargs)
        return noted(value) if sites.starter() is not None else value

    return read


def _tables(value):
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _tables(part)
