"""torch.nn.Module as the script finds it: it moves to the fake device, tells who is called, and needs no weights."""

from __future__ import annotations

import collections
import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ...tracing import rnn
from .. import sites
from ..recording import names, values
from . import lazy_weights

_RANDOM_METHODS = ("normal_", "uniform_", "random_", "exponential_", "log_normal_", "cauchy_", "trunc_normal_")


def swap(old, new) -> None:
    """Gives one Python object the other's tensor: whoever holds the parameter holds the new one. PyTorch's own
    torch.utils.swap_tensors refuses fake tensors for the weak references that they have."""
    for name in ("__class__", "__dict__"):
        a, b = getattr(old, name), getattr(new, name)
        setattr(old, name, b)
        setattr(new, name, a)
    torch._C._swap_tensor_impl(old, new)


def install(world) -> None:
    Module = torch.nn.Module
    original_init, original_call, original_apply = Module.__init__, Module.__call__, Module._apply
    original_load = Module.load_state_dict

    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        names.made(self)

    def __call__(self, *args, **kwargs):
        if type(self) in names.TRANSPARENT or isinstance(self, torch.jit.ScriptModule):
            return original_call(self, *args, **kwargs)
        watcher = world.watcher
        if world.compile_root is not None and not watcher.depth:
            world.compile_root(self)
        watcher.enters(self, args, kwargs)
        out = None
        try:
            stand_in = shortcuts.stand_in(self, args, kwargs)
            if stand_in is not None:
                out = stand_in()
            else:
                with around(watcher):
                    out = original_call(self, *args, **kwargs)
                shortcuts.remember(self, args, kwargs, out)
            return out
        finally:
            watcher.leaves(self, out)

    shortcuts = Shortcuts(world)
    around = _autocast_of(world)
    Module.__init__, Module.__call__ = __init__, __call__
    if not world.on_gpu:
        return

    def _apply(self, function, recurse=True):
        if any(_is_there(t) for t in (*self.parameters(), *self.buffers())) or _goes_to_gpu(self, function):
            values.moving_parameters = True
            try:
                _move(self, function, recurse)
            finally:
                values.moving_parameters = False
            return self
        return original_apply(self, function, recurse)

    def load_state_dict(self, state_dict, strict=True, *args, **kwargs):
        if isinstance(state_dict, AnyWeights):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        own = self.state_dict()
        if any(isinstance(t, FakeTensor) for t in own.values()):
            return _compared(world, own, state_dict, strict, type(self) in names.TRANSPARENT)
        return original_load(self, state_dict, strict, *args, **kwargs)

    def flatten_parameters(self):
        """cuDNN's weights lie in one buffer."""
        if not any(isinstance(p, FakeTensor) for p in self.parameters()):
            return
        with torch.no_grad():
            flat = rnn.flatten_weights(self, lambda count, dtype: torch.empty(count, dtype=dtype, device="cuda"))
            for parameter in list(self.parameters()):
                view = flat.get(id(parameter))
                if view is not None:
                    swap(parameter, torch.nn.Parameter(view, requires_grad=parameter.requires_grad))

    lazy_weights.install(swap)
    Module._apply, Module.load_state_dict = _apply, load_state_dict
    torch.nn.RNNBase.flatten_parameters = flatten_parameters
    torch.nn.RNNBase._apply = _rnn_apply
    _untraced()
    _without_weights()
    _pretrained(world)
    torch.backends.mha.set_fastpath_enabled(False)  # its fused layer has no fake implementation


def _autocast_of(world):
    """What is put around a call of the loop's own: autocast, where --precision asks for it."""
    dtype = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(world.request.precision or "")
    nothing = contextlib.nullcontext()
    kind = "cuda" if world.on_gpu else "cpu"

    def around(watcher):
        if dtype is None or watcher.depth != 1 or torch.is_autocast_enabled(kind):
            return nothing
        world.note("autocast is put around the model by --precision; the script itself has none")
        return torch.autocast(kind, dtype=dtype)

    return around


def _untraced() -> None:
    """torch.jit.trace wants values: what is on the GPU runs as Python."""
    trace = torch.jit.trace

    def traced(func, *args, **kwargs):
        on_gpu = isinstance(func, torch.nn.Module) and any(isinstance(p, FakeTensor) for p in func.parameters())
        return func if on_gpu or any(isinstance(t, FakeTensor) for t in pytree.tree_leaves(args)) else trace(func, *args, **kwargs)

    torch.jit.trace = traced


def _rnn_apply(self, function, recurse=True):
    out = torch.nn.Module._apply(self, function, recurse)
    self._flat_weights = [getattr(self, n, None) for n in self._flat_weights_names]
    self._flat_weight_refs = [None] * len(self._flat_weights)
    self.flatten_parameters()
    return out


def _is_there(tensor) -> bool:
    return isinstance(tensor, FakeTensor) or lazy_weights.is_placed(tensor)


def _goes_to_gpu(module, function) -> bool:
    """Whether `function` brings tensors to the GPU: asked of an empty tensor of each kind that the module has."""
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_meta:
            return False
        with torch.no_grad():
            return isinstance(function(torch.empty(0, dtype=tensor.dtype)), FakeTensor)
    return False


def _move(module, function, recurse) -> None:
    if recurse:
        for child in module.children():
            child._apply(function)
    with torch.no_grad():
        for old in module._parameters.values():
            if old is None:
                continue
            if torch.nn.parameter.is_lazy(old):
                lazy_weights.move(old, function)
                continue
            new = function(old.detach())
            if new is not old and not _same_place(old, new):
                made = torch.nn.Parameter(new, requires_grad=old.requires_grad)
                for key, value in old.__dict__.items():
                    if not key.startswith("_"):
                        made.__dict__.setdefault(key, value)
                swap(old, made)
                old.grad = None
        values.moving_parameters = False
        for name, old in module._buffers.items():
            if torch.nn.parameter.is_lazy(old):
                lazy_weights.move(old, function)
            elif old is not None:
                module._buffers[name] = function(old)
        values.moving_parameters = True


def _same_place(old, new) -> bool:
    return new.device == old.device and new.dtype == old.dtype and isinstance(new, FakeTensor) == isinstance(old, FakeTensor) \
        and new.stride() == old.stride()


# From this many elements on (32 MiB in fp32) glibc maps a tensor by itself, and fresh pages are zeros (mallopt(3),
# M_MMAP_THRESHOLD). A smaller one lies where others were: without values it may hold NaN, which a model that stays on the
# CPU would compute with.
_MAPPED_ELEMENTS = 1 << 23


def _without_weights() -> None:
    """Large weights need no values: what nobody writes is never paged in. All other tensors are filled as ever."""
    init = torch.nn.init

    def unless_parameter(original):
        def fill(tensor, *args, **kwargs):
            if isinstance(tensor, torch.nn.Parameter) and tensor.numel() >= _MAPPED_ELEMENTS:
                return tensor
            return original(tensor, *args, **kwargs)

        return fill

    for name in dir(init):
        if name.endswith("_") and not name.startswith("_") and callable(getattr(init, name)) \
                and name not in ("constant_", "ones_", "zeros_"):
            setattr(init, name, unless_parameter(getattr(init, name)))
    for name in _RANDOM_METHODS:
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, unless_parameter(getattr(torch.Tensor, name)))


def _compared(world, own: dict, given, strict: bool, wrapped: bool):
    """What load_state_dict tells of weights that no tensor takes up; a real run would fail where they do not fit, which is said."""
    def plain(name: str) -> str:  # FSDP names parameters as the model inside does, DDP with its own word before them
        return name.removeprefix("module.") if wrapped else name

    here, there = {plain(name): t for name, t in own.items()}, {plain(name): t for name, t in given.items()}
    missing, unexpected = [n for n in here if n not in there], [n for n in there if n not in here]
    others = [n for n in here if n in there and getattr(there[n], "shape", None) is not None and here[n].shape != there[n].shape]
    words = [f"{len(found)} {what} (first: {found[0]})" for found, what in (
        (others, "of another shape"), (missing if strict else [], "missing"), (unexpected if strict else [], "that the model has not"))
        if found]
    if words:
        world.note(f"{sites.here(2)}: load_state_dict would fail, as weights do not fit the model: {', '.join(words)}")
    return torch.nn.modules.module._IncompatibleKeys(missing, unexpected)


class AnyWeights(dict):
    """Weights of a model that nobody fetched: they have whatever shape is asked for."""


def _pretrained(world) -> None:
    def load_state_dict_from_url(url, *args, **kwargs):
        world.note(f"{sites.here()}: weights of {url} were not fetched; they change no figure")
        return AnyWeights()

    import torch.hub

    torch.hub.load_state_dict_from_url = load_state_dict_from_url


# Calls of one model with arguments of the same sizes that are run in a step, before its forward has begun and after. By judgement: a
# step needs a few, a sampler or a validation makes hundreds. Before the first step nothing is recorded: the first call may set up what
# later ones find.
_PASSES_BEFORE, _PASSES_WITHIN, _PASSES_UNRECORDED = 8, 256, 2


class Shortcuts:
    """Calls of a model whose answer is known: passes without gradient, and parts of accumulation that are only counted."""

    def __init__(self, world):
        self._world = world
        self._known: dict = {}
        self._record = None  # the step in which passes are counted
        self._passes: collections.Counter = collections.Counter()

    def _key(self, module, args, kwargs):
        def plain(leaf):
            if isinstance(leaf, torch.Tensor):
                return tuple(leaf.shape), leaf.dtype
            return leaf if isinstance(leaf, (int, float, bool, str, type(None))) else id(leaf)

        leaves, form = pytree.tree_flatten((args, kwargs))
        return id(module), module.training, torch.is_grad_enabled(), tuple(plain(leaf) for leaf in leaves), str(form)

    def _applies(self, key) -> bool:
        return self._world.watcher.only_counts() or not torch.is_grad_enabled() and self._is_one_of_many(key)

    def _is_one_of_many(self, key) -> bool:
        """Whether a pass without gradient, as those of a teacher are, is run too often to be one that the step needs. Those of a
        validation and of an episode come before the step's forward."""
        record = self._world.watcher.record
        if record is not self._record:
            self._record, self._passes = record, collections.Counter()
        self._passes[key] += 1
        most = _PASSES_UNRECORDED if record is None else _PASSES_WITHIN if record.begun else _PASSES_BEFORE
        return self._passes[key] > most

    def _is_call_of_the_loop(self, module) -> bool:
        watcher = self._world.watcher
        return self._world.on_gpu and watcher.depth == 1 and id(module) in watcher.roots

    def stand_in(self, module, args, kwargs):
        if not self._is_call_of_the_loop(module):
            return None
        key = self._key(module, args, kwargs)
        applies = self._applies(key)
        known = self._known.get(key)
        return (lambda: self._fresh(module, *known)) if applies and known is not None else None

    def remember(self, module, args, kwargs, out) -> None:
        if not self._is_call_of_the_loop(module):
            return
        leaves, form = pytree.tree_flatten(out)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return
        if not all(isinstance(leaf, (FakeTensor, int, float, bool, str, type(None))) for leaf in leaves):
            return
        described = [(tuple(t.shape), t.stride(), t.dtype, t.requires_grad) if isinstance(t, FakeTensor) else t for t in leaves]
        self._known[self._key(module, args, kwargs)] = (described, form)

    def _fresh(self, module, described, form):
        anchor = next((p for p in module.parameters() if p.requires_grad), None)
        made = []
        for item in described:
            if not isinstance(item, tuple):
                made.append(item)
                continue
            shape, stride, dtype, wants = item
            tensor = torch.empty_strided(shape, stride, dtype=dtype, device="cuda")
            values.table.forget(tensor)  # an empty tensor is taken for zeros, and a loss would be none
            if not torch.is_grad_enabled():
                self._world.watcher.stands_in(tensor)
            made.append(_Stub.apply(anchor, tensor) if wants and torch.is_grad_enabled() and anchor is not None else tensor)
        return pytree.tree_unflatten(made, form)


class _Stub(torch.autograd.Function):
    """A result with a graph of one node, whose backward gives nothing."""

    @staticmethod
    def forward(ctx, anchor, tensor):
        return torch.empty_like(tensor)  # no view: scripts write into their loss

    @staticmethod
    def backward(ctx, gradient):
        return None, None
