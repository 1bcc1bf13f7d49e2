"""torch.compile as the script finds it: what it compiles is traced by Dynamo and recorded graph by graph, as a capture's --compile does.

A graph's choice of what it keeps for the backward is made in one run, at the largest batch, and held in the others.
"""

from __future__ import annotations

import contextlib
import functools

import torch
from torch import overrides

from ...tracing import compiled
from ...tracing.functions import AbstractFunctions
from .. import sites
from ..recording import names

_COMPILERS = ("/torch/_dynamo/", "/torch/_functorch/", "/stoker/tracing/compiled.py")
_PASSED = ("/eval_frame.py", "/external_utils.py")  # frames that any call of compiled code has
_MODES = {"reduce-overhead": "its CUDA graphs are not counted: --cuda-graphs does",
          "max-autotune": "kernels that it picks by measuring are taken for those of the default mode"}


def install(world) -> None:
    facade = _Facade(world)
    torch.compile = facade.compile
    torch.nn.Module.compile = lambda self, *args, **kwargs: facade.in_place(self, *args, **kwargs)
    if world.request.compile:
        world.compile_root = facade.root


class _Counter:
    """Where attention's stand-in counts what no fused kernel takes."""

    math_attention = 0


class _Facade:
    def __init__(self, world):
        self._world = world
        self._original = torch.compile
        self._compiler: _Compiler | None = None
        self._counter = _Counter()
        self._obeyed = False  # the script's own calls of torch.compile

    # -- what the script calls -------------------------------------------------------------------------------------

    def compile(self, model=None, *args, **kwargs):
        site = sites.here(2)
        if model is None:
            return lambda function: self._compile(function, site, kwargs)
        return self._compile(model, site, kwargs)

    def in_place(self, module, *args, **kwargs) -> None:
        """`model.compile()`: the module calls what was compiled."""
        if self._takes(sites.here(3), kwargs):
            call = module._call_impl
            module.__dict__["_compiled_call_impl"] = self._called(lambda: self._by_dynamo(call, kwargs), call)

    def root(self, module) -> None:
        """Compiles a model that the script leaves as it is."""
        if "_compiled_call_impl" in module.__dict__ or self._obeyed or next(module.parameters(), None) is None:
            return
        module.__dict__["_compiled_call_impl"] = self._called(lambda: self._whole(module), module._call_impl)
        self._is_compiled_at("--compile")

    def _compile(self, model, site, kwargs):
        if not self._takes(site, kwargs):
            return model
        if not isinstance(model, torch.nn.Module):
            return functools.wraps(model)(self._entered(model, self._called(lambda: self._by_dynamo(model, kwargs), model)))
        done = self._original(model, backend="eager")  # the wrapper alone: what it calls is set below
        names.TRANSPARENT.add(type(done))
        done.forward = _forward(model, self._called(lambda: self._whole(model, kwargs), model._call_impl))
        return done

    def _takes(self, site, kwargs) -> bool:
        """Whether the compiled step is recorded; says what is done."""
        world, wanted = self._world, self._world.request.compile
        mode, backend = kwargs.get("mode") or "default", kwargs.get("backend") or "inductor"
        words = "torch.compile" + (f" ({mode})" if mode != "default" else "")
        if kwargs.get("disable"):
            return False
        if wanted is False:
            world.found("compile", False, f"{words}, passed over", site)
            return False
        if backend != "inductor":
            world.note(f"{site}: what torch.compile's back end {getattr(backend, '__name__', backend)} fuses is not known: the step is "
                       "the eager one")
            world.found("compile", False, f"{words}, run eagerly", site)
            return False
        limit = _MODES.get(mode.removesuffix("-no-cudagraphs")) if mode != "reduce-overhead" or world.on_gpu else None
        if limit is not None:
            world.note(f"{site}: torch.compile(mode=\"{mode}\"): {limit}")
        self._obeyed = True
        world.found("compile", True, words, site)
        self._is_compiled_at(str(site))
        return True

    def _is_compiled_at(self, words: str) -> None:
        compiled.check_version()
        self._world.outcome.compiled_at = words
        self._world.outcome.saved = self._world.outcome.saved or []

    def _may_wait(self) -> bool:
        """Whether this run, whose batch nothing has replaced, is asked for what it finds alone: its step is captured at other batches. The
        outcome says so."""
        outcome = self._world.outcome
        outcome.compiles_later = self._world.request.may_compile_later and not outcome.batch_replaced
        return outcome.compiles_later

    # -- how it runs -------------------------------------------------------------------------------------------------

    def _whole(self, model, kwargs=None):
        """As torch.compile(model) does it: Dynamo begins no frame in PyTorch's own layers, so that of a model such as nn.Sequential is
        begun around it (torch/_dynamo/eval_frame.py, OptimizedModule._initialize)."""
        call = model._call_impl
        if torch._dynamo.trace_rules.check(model.forward):
            call = torch._dynamo.external_utils.wrap_inline(call)
        return self._by_dynamo(call, kwargs, model)

    def _by_dynamo(self, what, kwargs=None, of=None):
        if self._compiler is None:
            torch._dynamo.trace_rules.add("stoker.shadow")  # what watches the script is no part of it
            self._compiler = _Compiler(self._world)
        of = of if of is not None else what if isinstance(what, torch.nn.Module) else getattr(what, "__self__", None)
        return self._original(what, backend=self._compiler.backend(of), dynamic=False, fullgraph=bool((kwargs or {}).get("fullgraph")))

    def _called(self, make, plain):
        """Calls what Dynamo makes, with the stand-ins that it can follow. Passes of a validation before the first step, of which nothing
        is recorded, call what was given to it: to compile them would take seconds."""
        counter, watcher = self._counter, self._world.watcher
        made = functools.cache(make)

        @functools.wraps(plain)
        def call(*args, **kwargs):
            if (watcher.record is None and not torch.is_grad_enabled()) or self._may_wait():
                return plain(*args, **kwargs)
            function = made()
            with _followed(counter):
                return function(*args, **kwargs)

        return call

    def _entered(self, function, called):
        """A compiled function that calls a model: the model's own call is seen by Dynamo alone."""
        watcher = self._world.watcher

        def call(*args, **kwargs):
            module = _module_in(function, args) if watcher.depth == 0 else None
            if module is None:
                return called(*args, **kwargs)
            out = None
            watcher.enters(module, [a for a in args if a is not module], kwargs)
            try:
                out = called(*args, **kwargs)
                return out
            finally:
                watcher.leaves(module, out)

        return call


def raised_by_compiler(error: BaseException) -> bool:
    """Whether Dynamo, AOTAutograd or what stands for Inductor failed, and not the code that they were given."""
    if type(error).__module__.startswith(("torch._dynamo", "torch._functorch", "torch._inductor")):
        return True
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        if any(part in file for part in _COMPILERS) and not file.endswith(_PASSED):
            return True
        trace = trace.tb_next
    return False


def _forward(module, called):
    """The call of a compiled wrapper: the model is called as ever, so that it is seen, and calls what was compiled."""

    def forward(*args, **kwargs):
        module.__dict__["_compiled_call_impl"] = called
        try:
            return module(*args, **kwargs)
        finally:
            module.__dict__.pop("_compiled_call_impl", None)

    return forward


def _module_in(function, args):
    """The first model that a function is given or refers to."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if not _is_empty(cell)]
    code, variables = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    named = [variables[name] for name in getattr(code, "co_names", ()) if name in variables]
    for one in (getattr(function, "__self__", None), *args, *cells, *named):
        if isinstance(one, torch.nn.Module) and next(one.parameters(), None) is not None:
            return getattr(one, "_orig_mod", one)
    return None


def _is_empty(cell) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:
        return True


@contextlib.contextmanager
def _followed(counter):
    """Inside, attention and recurrent layers are those of a capture through a function, and modules call their forward as
    PyTorch has it: both Dynamo can trace."""
    functional, module = torch.nn.functional, torch.nn.Module
    kept = functional.scaled_dot_product_attention, module.__call__
    functional.scaled_dot_product_attention, module.__call__ = torch._C._nn.scaled_dot_product_attention, module._wrapped_call_impl
    try:
        if torch._C._len_torch_function_stack():
            with overrides._pop_mode_temporarily(), AbstractFunctions(counter):
                yield
        else:
            yield
    finally:
        functional.scaled_dot_product_attention, module.__call__ = kept


class _Live:
    """The recorder of the step that is recorded, if any, under the names of modules that a graph's nodes have."""

    def __init__(self, world):
        self._world = world
        self.modules: list = []

    @contextlib.contextmanager
    def inside_graph(self):
        recorder = self._world.watcher.recorder
        if recorder is None:
            yield
            return
        with recorder.inside_graph():
            yield

    def at_node(self, module: tuple, sequence: int) -> None:
        watcher = self._world.watcher
        if watcher.recorder is not None:
            watcher.recorder.at_node(watcher.record.index_of_path(*module), sequence)


class _Compiler(compiled.Compiler):
    """The back end of all that the script compiles."""

    def __init__(self, world):
        self.saved = compiled.SavedTensors()
        self.saved.hold(world.request.saved)
        super().__init__(_Live(world), self.saved)
        world.outcome.saved = self.saved.decided
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(self.running())

    def module_of(self, node, part) -> tuple:
        """(what was compiled, path of the node's module from there)."""
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        path = next(reversed(list(stack.values())), ("",))[0]
        return part, compiled.module_name(path)
