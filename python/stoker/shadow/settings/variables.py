"""What the script's own variables lead to. What torch.compile keeps for itself, as large as a step, is not among it."""

from __future__ import annotations

import collections
import sys

import torch

from .. import sites

_DEEPEST = 6  # variables -> an object -> its attributes -> a dict of one -> a list in it -> tensors
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def walk() -> tuple:
    """(dicts and lists, tensors) that variables of the user's files and of their functions that run lead to."""
    level = [vars(module) for module in list(sys.modules.values()) if _is_users(getattr(module, "__file__", None))]
    level.append(vars(sys.modules["__main__"]))
    frame = sys._getframe(1)
    while frame is not None:
        if sites.is_users(frame.f_code.co_filename):
            level.append(frame.f_locals)
        frame = frame.f_back
    holders, tensors, seen = [], [], set()
    for _ in range(_DEEPEST):
        below: list = []
        for thing in level:
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            kind = type(thing)
            if issubclass(kind, torch.Tensor):
                tensors.append(thing)
            elif issubclass(kind, (dict, list, tuple, set, collections.deque)):
                if issubclass(kind, (dict, list)):
                    holders.append(thing)
                below += _within(thing)
            elif _is_users(getattr(sys.modules.get(kind.__module__), "__file__", None)) or kind.__module__ == "__main__":
                below.append(getattr(thing, "__dict__", {}))
        level = below
    return holders, tensors


def count(holder) -> int:
    """How much a dict or a list holds itself: a library's own len() and values() may import hundreds of modules."""
    return dict.__len__(holder) if issubclass(type(holder), dict) else list.__len__(holder)


def elements(holder):
    """An iterator over what a dict or a list holds itself."""
    return iter(dict.values(holder)) if issubclass(type(holder), dict) else list.__iter__(holder)


def _within(holder) -> list:
    """Elements that may lead further; a list of numbers or texts is judged by its first one."""
    if issubclass(type(holder), dict):
        return list(elements(holder))
    values = list(elements(holder) if issubclass(type(holder), list) else holder)
    return [] if values and isinstance(values[0], _PLAIN) else values


def _is_users(file) -> bool:
    return isinstance(file, str) and sites.is_users(file)
