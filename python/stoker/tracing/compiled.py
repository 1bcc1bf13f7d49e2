"""A step as torch.compile runs it: Dynamo's graphs, parted by AOTAutograd's own partitioner, on fake tensors.

What each graph keeps for its backward and what the backward computes again is decided by min_cut_rematerialization_partition,
once, at the largest captured sizes; other sizes keep the same tensors, so that the captures agree. The graphs run operator by
operator under the recorder. Which operators share a kernel is not decided here (src/rewrite/compiled.h).
"""

from __future__ import annotations

import contextlib
import functools
import re
import warnings

import torch

from .. import standins
from ..errors import CaptureError

LOWEST_TORCH = (2, 6)
_STEP = re.compile(r"\._modules\['([^']+)'\]|\['([^']+)'\]|\.([A-Za-z_]\w*)|\[(\d+)\]|\.(\d+)")


def check_version() -> None:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < LOWEST_TORCH:
        raise CaptureError(f"--compile needs PyTorch {LOWEST_TORCH[0]}.{LOWEST_TORCH[1]} or newer, and this is {torch.__version__}: "
                           "pip install -U torch, or leave the flag out for the eager step")


def warm_up() -> None:
    """Imports the compiler, for this process and those that are forked from it; decompositions ask lowering, and do not import it."""
    with standins.hidden():
        import torch._dynamo.backends.common
        import torch._functorch.partitioners
        import torch._inductor.decomposition
        import torch._inductor.lowering  # noqa: F401


class SavedTensors:
    """What each graph of a model keeps, by the names of its nodes: decided once, held at other sizes.

    `parts`: names of the modules that are compiled, "" for the whole model.
    """

    def __init__(self, parts=("",)):
        self.parts = tuple(parts)
        self._decided: list = []
        self._graph = 0

    @property
    def decided(self) -> list:
        """Names of the nodes that each graph keeps, in the order of the graphs."""
        return self._decided

    def hold(self, decided) -> None:
        """Takes over what another process has decided."""
        self._decided[:] = decided or []

    def begin(self) -> None:
        """The graphs of another capture of the same model follow, in the same order."""
        self._graph = 0

    def __call__(self, choose, graph, *args, **kwargs):
        number = self._graph
        self._graph += 1
        if number == len(self._decided):
            chosen = choose(graph, *args, **kwargs)
            self._decided.append([node.name for node in chosen])
            return chosen
        nodes = {node.name: node for node in graph.nodes}
        names = self._decided[number]
        if any(name not in nodes for name in names):
            raise CaptureError("torch.compile makes other graphs at other sizes of this model, so that one step cannot describe "
                               "them: hold the sizes that its code looks at with --fixed, or leave --compile out")
        return [nodes[name] for name in names]


@contextlib.contextmanager
def _deciding(saved: SavedTensors):
    from torch._functorch import partitioners

    original = partitioners.choose_saved_values_set
    partitioners.choose_saved_values_set = lambda graph, *args, **kwargs: saved(original, graph, *args, **kwargs)
    saved.begin()
    try:
        yield
    finally:
        partitioners.choose_saved_values_set = original


class _Graph:
    """One graph of a compiled function, run node by node: a value is let go after its last use, as in generated code."""

    def __init__(self, compiler, module, part: str):
        self._compiler, self._module, self._part = compiler, module, part
        self._nodes = list(module.graph.nodes)
        self._modules = [compiler.module_of(node, part) for node in self._nodes]
        last = {}
        for node in self._nodes:
            for used in node.all_input_nodes:
                last[used] = node
        self._ends: dict = {}
        for used, user in last.items():
            self._ends.setdefault(user, []).append(used)
        for node in self._nodes:
            if node not in last:
                self._ends.setdefault(node, []).append(node)

    def __call__(self, given: list):
        values: dict = {}
        recorder = self._compiler.recorder
        with recorder.inside_graph():
            for node, module in zip(self._nodes, self._modules):
                if node.op == "placeholder":
                    values[node] = given.pop(0)
                    continue
                if node.op == "output":
                    result = torch.fx.node.map_arg(node.args[0], lambda n: values[n])
                    values.clear()
                    return result
                recorder.at_node(module, node.meta.get("seq_nr", -1))
                values[node] = self._run(node, values)
                for used in self._ends.get(node, ()):
                    del values[used]
        raise AssertionError("a graph without an output")

    def _run(self, node, values):
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
        if node.op == "get_attr":
            value = self._module
            for name in node.target.split("."):
                value = getattr(value, name)
            return value
        if node.op == "call_module":
            return self._module.get_submodule(node.target)(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)


class Compiler:
    """The back end of torch.compile for one capture."""

    def __init__(self, recorder, saved: SavedTensors):
        self.recorder, self._saved = recorder, saved
        self._names: dict = {}
        self._changed: list = []  # modules that call their graphs

    def compiled(self, model):
        """What runs in place of `model`, inside of `self.running()`."""
        torch._dynamo.reset()

        def compile_part(part: str, what):
            return torch.compile(what, backend=self.backend(part), dynamic=False)

        if self._saved.parts == ("",):
            return compile_part("", model)
        for part in self._saved.parts:
            module = model.get_submodule(part)
            module.__dict__["_compiled_call_impl"] = compile_part(part, module._call_impl)
            self._changed.append(module)
        return model

    def backend(self, part=""):
        """What torch.compile takes for `backend`."""
        warm_up()
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._inductor.decomposition import select_decomp_table

        compiler = functools.partial(self._compile, part)
        return aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler,
                            keep_inference_input_mutations=True, partition_fn=min_cut_rematerialization_partition,
                            decompositions=select_decomp_table())

    @contextlib.contextmanager
    def running(self):
        self._names = {name: index for index, name in enumerate(self.recorder.modules)}
        try:
            warnings.filterwarnings("ignore", message="Using `torch.compile")  # our hooks know when they are traced
            with _deciding(self._saved), torch._dynamo.config.patch(suppress_errors=False):
                yield
        finally:
            while self._changed:
                self._changed.pop().__dict__.pop("_compiled_call_impl")

    def _compile(self, part, module, example_inputs):
        graph = _Graph(self, module, part)

        def run(given: list):
            return graph(given)

        run._boxed_call = True  # takes a list, which it empties
        return run

    def module_of(self, node, part: str) -> int:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        for path, _ in reversed(list(stack.values())):
            name = ".".join(filter(None, (part, module_name(path))))
            while name is not None:
                if name in self._names:
                    return self._names[name]
                name = name.rpartition(".")[0] if "." in name else None
        return self._names.get(part, 0)


def parts(module: torch.nn.Module) -> list:
    """Names of the parts of `module` that its code has given to torch.compile; "" for all of it."""
    if _is_optimized(module):
        return [""]
    found: list = []
    for name, part in module.named_modules():
        mine = _is_optimized(part) or getattr(part, "_compiled_call_impl", None) is not None
        plain = name.replace("_orig_mod.", "").removesuffix("._orig_mod")
        if mine and not any(plain == other or plain.startswith(f"{other}.") or other == "" for other in found):
            found.append(plain)
    return [""] if "" in found else found


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model as it is without torch.compile; what `parts` named is compiled anew while it is captured."""
    while _is_optimized(module):
        module = module._orig_mod
    for part in list(module.modules()):
        part.__dict__.pop("_compiled_call_impl", None)
        for name, child in list(part._modules.items()):
            if _is_optimized(child):
                part._modules[name] = child._orig_mod
    return module


def _is_optimized(module) -> bool:
    return type(module).__name__ == "OptimizedModule"


def about(raw) -> dict:
    """What a step file says of the graphs that its operators name."""
    graphs = {event[7]["c"] for event in raw.events if event[0] == "o" and "c" in event[7]}
    return {"by": "inductor", "graphs": len(graphs)}


def module_name(path: str) -> str:
    """"L['fn'].layers.0.attention" or "L['self']._modules['layers']._modules['0']" -> "layers.0"."""
    parts = [next(filter(None, groups)) for groups in _STEP.findall(path.removeprefix("L"))]
    return ".".join(part for part in parts[1:] if part not in ("_modules", "_orig_mod"))
