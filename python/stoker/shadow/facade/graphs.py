"""CUDA graphs as the script finds them: what is captured into one runs eagerly, once, and a replay does nothing.

The forecast replays the step as graphs (--cuda-graphs) where the step has nothing over which none can be captured.
"""

from __future__ import annotations

import ast
import contextlib
import pathlib

import torch

from .. import sites

_NAMES = {"CUDAGraph", "make_graphed_callables", "graph_pool_handle"}
_WORDS = "CUDA graphs"


class CUDAGraph:
    """A graph that holds nothing."""

    def __init__(self, *_, **__):
        return None

    def capture_begin(self, *_, **__):
        return None

    capture_end = replay = reset = instantiate = enable_debug_mode = debug_dump = register_generator_state = capture_begin

    def pool(self):
        return (0, 0)


def install(world) -> None:
    if not world.on_gpu:
        return

    @contextlib.contextmanager
    def graph(cuda_graph, pool=None, stream=None, capture_error_mode="global", **_):
        yield

    def make_graphed_callables(callables, sample_args, *args, **kwargs):
        _found(world, sites.here(2))
        return callables

    cuda = torch.cuda
    for module in (cuda, cuda.graphs):
        for name, answer in (("CUDAGraph", CUDAGraph), ("graph", graph), ("make_graphed_callables", make_graphed_callables),
                             ("graph_pool_handle", lambda: (0, 0)), ("is_current_stream_capturing", lambda: False)):
            setattr(module, name, answer)


def _found(world, site) -> None:
    world.found("cuda-graphs", True, _WORDS, site)


def look_in(world, record, files: list) -> None:
    """Graphs are captured after some eager steps, which is when a run ends: the script's text tells of them."""
    if not world.on_gpu:
        return
    if "cuda-graphs" not in world.facts:
        for path in files:
            line = _line_of(path)
            if line:
                _found(world, sites.Site(path, line))
                break
    fact = world.facts.get("cuda-graphs")
    if fact is None:
        return
    shared = world.facts.get("parallel")
    waits = any(event[0] == "s" for event in record.recorder.events[:record.end()])
    if waits or shared is not None and shared.value != "ddp":
        del world.facts["cuda-graphs"]
        world.note(f"{fact.site}: the script captures CUDA graphs of a part of its step; the forecast is that of the eager step, and "
                   "their private pool comes on top")


def _line_of(path: str) -> int:
    try:
        source = pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return 0
    if not any(name in source for name in _NAMES):
        return 0
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return 0
    return min((node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) in _NAMES), default=0)
