"""Triton kernels of the script's own: a launch is one kernel that reads its tensors and writes those that its text stores into.

What it computes is not known: every tensor moves once, which is said. stoker.kernel(...) says it better.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

from torch._subclasses.fake_tensor import FakeTensor

from ...errors import CaptureError
from ...standins import custom_kernels, triton_parts
from .. import sites

_STORING = {"store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg", "atomic_and", "atomic_or", "atomic_xor"}


def install(world) -> None:
    """Launches that nothing is said of, of Triton's stand-in and of Triton itself."""
    custom_kernels.unknown = lambda name, function: _read_off(world, name, function)


def launches(world, module) -> None:
    """Triton is installed: a launch with tensors that have no data goes no further."""
    original = module.JITFunction.run

    def run(self, *args, grid=None, warmup=False, **kwargs):
        if not any(isinstance(a, FakeTensor) for a in (*args, *kwargs.values())):
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        given = {k: v for k, v in kwargs.items() if k not in triton_parts._OPTIONS}
        custom_kernels.launch(self.__name__, self.fn, args, given)
        return None

    module.JITFunction.run = run


def untuned(module) -> None:
    """Which variant is fastest is not measured: the first one is taken."""
    original = module.Autotuner.run

    def run(self, *args, **kwargs):
        if not any(isinstance(a, FakeTensor) for a in (*args, *kwargs.values())):
            return original(self, *args, **kwargs)
        first = self.configs[0].kwargs if self.configs else {}
        return self.fn.run(*args, **{**kwargs, **first})

    module.Autotuner.run = run


def _read_off(world, name: str, function) -> custom_kernels.Registration:
    """What the kernel writes, by its text."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        tree = None
    writes = _written(tree) if tree is not None else ()
    site = sites.here(2)
    if not writes:
        raise CaptureError(f"{site}: what the Triton kernel {name} writes cannot be read off its text: say it by stoker.kernel(\"{name}\", "
                           "writes=[\"out_ptr\"])")
    products = any(isinstance(node, ast.Attribute) and node.attr == "dot" for node in ast.walk(tree))
    world.note(f"{site}: the Triton kernel {name} counts as one that moves each of its tensors once" + (
        ", and its matrix products as nothing" if products else "") + f"; stoker.kernel(\"{name}\", ...) says what it does")
    return custom_kernels.Registration(writes, partly=True)


def _written(tree) -> tuple:
    """Parameters that the pointers of its stores come from."""
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if function is None:
        return ()
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    comes_from: dict = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in _names(target):
                    comes_from.setdefault(name, []).append(node.value)

    def roots(node, seen: frozenset) -> set:
        """The pointer of an address: what stands first in a sum of it and offsets."""
        if isinstance(node, ast.BinOp):
            return roots(node.left, seen) or roots(node.right, seen)
        if isinstance(node, ast.Call):
            inner = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            return set().union(*(roots(part, seen) for part in inner)) if inner else set()
        if isinstance(node, ast.Subscript):
            return roots(node.value, seen)
        if not isinstance(node, ast.Name) or node.id in seen:
            return set()
        found = {node.id} if node.id in parameters else set()
        for value in comes_from.get(node.id, []):
            found |= roots(value, seen | {node.id})
        return found

    stores = [node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
              and node.func.attr in _STORING and node.args]
    found = set().union(*(roots(node.args[0], frozenset()) for node in stores)) if stores else set()
    return tuple(name for name in parameters if name in found)


def _names(target) -> list:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
