"""Optimizers, backward, loss scaling, clipping, autocast and compilation as the script finds them."""

from __future__ import annotations

import functools

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import sites
from . import keras, profiler


def install(world) -> None:
    profiler.install(world)
    _optimizers(world)
    _backward(world)
    _functions(world)
    _scaler(world)
    _clipping(world)
    _autocast(world)
    _printing(world)
    _moved_to_host(world)


_RUN = ("Muon",)  # PyTorch's own optimizers whose step runs for what it multiplies


def _optimizers(world) -> None:
    Optimizer = torch.optim.Optimizer
    original_init, original_zero, module_zero = Optimizer.__init__, Optimizer.zero_grad, torch.nn.Module.zero_grad
    wrapped: set = set()

    def wrap(cls):
        """PyTorch's own step does nothing but call its closure; a class of the script's own runs."""
        step = cls.__dict__.get("step")
        if step is None or cls in wrapped:
            return
        wrapped.add(cls)
        own = not cls.__module__.startswith("torch.optim") or cls.__name__ in _RUN

        @functools.wraps(step)
        def watched(self, *args, **kwargs):
            watcher = world.watcher
            if watcher.stepping:
                return step(self, *args, **kwargs) if own else None
            closure = args[0] if args and callable(args[0]) else kwargs.get("closure")
            loss = None
            if closure is not None:
                watcher.trains([self])
                with torch.enable_grad():
                    loss = closure()
                if cls.__name__ == "LBFGS":
                    most = self.param_groups[0].get("max_iter")
                    world.note(f"{sites.here()}: LBFGS evaluates the loss up to {most} times in a step; one of them is the step here")
            watcher.before_step(self)
            if own and world.on_gpu:
                try:
                    step(self)
                except Exception:  # its own arithmetic on values that are not there: the step is over all the same
                    world.note(f"{sites.here()}: the step of {cls.__name__} could not be followed and was passed over")
            watcher.after_step(self)
            return loss

        cls.step = watched

    def __init__(self, *args, **kwargs):
        for cls in type(self).__mro__:
            if issubclass(cls, Optimizer) and cls is not Optimizer:
                wrap(cls)
        world.cast_weights()
        original_init(self, *args, **kwargs)
        if not any(o is self for o in world.watcher.optimizers):
            world.watcher.optimizers.append(self)
            name = type(self).__name__
            world.watcher.made_at[id(self)] = (name, sites.here())

    def zero_grad(self, set_to_none=True):
        _zeroed(world, set_to_none)
        original_zero(self, True)

    def zero_of_module(self, set_to_none=True):
        _zeroed(world, set_to_none)
        module_zero(self, True)

    Optimizer.__init__, Optimizer.zero_grad, torch.nn.Module.zero_grad = __init__, zero_grad, zero_of_module


def _zeroed(world, set_to_none) -> None:
    watcher = world.watcher
    if not set_to_none:
        world.found("zero-grad-fills", True, "gradients are filled with zeros", sites.here(2))
    if watcher.last == "step":
        world.found("zero-grad-after", True, "gradients dropped after the step", sites.here(2))
    elif watcher.last == "forward" and not watcher.dropped:
        watcher.zeroed_between = sites.here(2)
    watcher.dropped = True


def _backward(world) -> None:
    original = torch.autograd.backward

    def backward(*args, **kwargs):
        keras.install(world)
        with torch.autograd.set_multithreading_enabled(False):
            world.watcher.backward(lambda: original(*args, **kwargs))

    torch.autograd.backward = backward
    original_grad = torch.autograd.grad

    def grad(outputs, inputs, *args, **kwargs):
        if not isinstance(inputs, (torch.Tensor, torch.autograd.graph.GradientEdge)):
            inputs = tuple(inputs)  # model.parameters() can be walked once
        parameters = inputs if type(inputs) is tuple else (inputs,)
        graph = kwargs.get("create_graph", args[2] if len(args) > 2 else False)
        trains = not graph and parameters and all(isinstance(p, torch.nn.Parameter) for p in parameters)
        with torch.autograd.set_multithreading_enabled(False):
            if not trains:
                return original_grad(outputs, inputs, *args, **kwargs)
            found: list = []

            def run():
                found.extend(original_grad(outputs, parameters, *args, **kwargs))
                world.watcher.handed_out(parameters, found)

            world.watcher.backward(run)  # the script updates its parameters by these gradients itself
            return tuple(found)

    torch.autograd.grad = grad


def _functions(world) -> None:
    """Transforms of torch.func that give gradients: a loop that updates weights by them makes no step that can be told."""
    for name in ("grad", "grad_and_value", "vjp", "jacrev"):
        original = getattr(torch.func, name)

        def asked(*args, original=original, name=name, **kwargs):
            world.by_function = world.by_function or (f"torch.func.{name}", sites.here(2))
            return original(*args, **kwargs)

        setattr(torch.func, name, functools.wraps(original)(asked))


class _Scaler:
    """torch.amp.GradScaler: what it does to loss and gradients is added when the job is known."""

    world = None

    def __init__(self, device="cuda", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True,
                 **_):
        if isinstance(device, (int, float)) and not isinstance(device, bool):  # torch.cuda.amp.GradScaler(init_scale, ...)
            device, init_scale = "cuda", device
        self._enabled, self._scale_value = bool(enabled), float(init_scale)
        if self._enabled:
            self.world.found("grad-scaler", True, "GradScaler", sites.here(2))

    def is_enabled(self):
        return self._enabled

    def scale(self, outputs):
        return outputs

    def unscale_(self, optimizer):
        return None

    def step(self, optimizer, *args, **kwargs):
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        return None

    def get_scale(self):
        return self._scale_value if self._enabled else 1.0

    def state_dict(self):
        return {"scale": self._scale_value, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0}

    def load_state_dict(self, state):
        return None

    def get_growth_factor(self):
        return 2.0

    def get_backoff_factor(self):
        return 0.5

    def get_growth_interval(self):
        return 2000


def _scaler(world) -> None:
    if not world.on_gpu:
        return
    _Scaler.world = world
    grad_scaler = torch.amp.grad_scaler
    torch.amp.GradScaler = grad_scaler.GradScaler = _Scaler
    torch.cuda.amp.GradScaler = torch.cuda.amp.grad_scaler.GradScaler = _Scaler


def _clipping(world) -> None:
    utilities = torch.nn.utils

    def norm_of(parameters):
        first = parameters if isinstance(parameters, torch.Tensor) else next((p for p in parameters if p is not None), None)
        return torch.ones((), device=first.device) if first is not None else torch.ones(())

    def clip_grad_norm_(parameters, max_norm, *args, **kwargs):
        world.found("clip", True, f"gradients clipped to a norm of {max_norm}", sites.here(2))
        if kwargs.get("error_if_nonfinite"):
            world.found("clip-checks", True, "clipping checks for values that are not finite", sites.here(2))
        world.watcher.before_step(None)
        norm = norm_of(parameters)
        world.watcher.resume()
        return norm

    def clip_grad_value_(parameters, clip_value, *args, **kwargs):
        world.note(f"{sites.here(2)}: clip_grad_value_ is not modelled; its few kernels are left out")

    def get_total_norm(tensors, *args, **kwargs):
        return norm_of(tensors)

    def clip_grads_with_norm_(parameters, max_norm, *args, **kwargs):
        world.found("clip", True, f"gradients clipped to a norm of {max_norm}", sites.here(2))

    for module in (utilities, utilities.clip_grad):
        module.clip_grad_norm_, module.clip_grad_value_ = clip_grad_norm_, clip_grad_value_
        module.get_total_norm, module.clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_


def _autocast(world) -> None:
    autocast = torch.amp.autocast_mode.autocast
    enter, leave = autocast.__enter__, autocast.__exit__
    wanted = world.request.precision
    passed_over = wanted == "fp32"
    dtype = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(wanted or "")

    def __enter__(self):
        if self._enabled and not passed_over:
            world.autocast_site = sites.here(2)
            if dtype is not None and self.device == "cuda":
                self.fast_dtype = dtype
            world.watcher.autocasts(self.device, self.fast_dtype)
        if passed_over:
            return self
        return enter(self)

    def __exit__(self, *exception):
        return None if passed_over else leave(self, *exception)

    autocast.__enter__, autocast.__exit__ = __enter__, __exit__


def _moved_to_host(world) -> None:
    """torch.autograd.graph.save_on_cpu, whose tensors leave the GPU between the forward and the backward."""
    original = torch.autograd.graph.save_on_cpu.__init__

    def __init__(self, *args, **kwargs):
        if world.on_gpu:
            world.note(f"{sites.here(2)}: what the forward saves is moved to the host: the step is timed without these copies")
        original(self, *args, **kwargs)

    torch.autograd.graph.save_on_cpu.__init__ = __init__


def _printing(world) -> None:
    """Texts of fake tensors: `f"{loss:.3f}"` wants a number."""
    if not world.on_gpu:
        return
    original = FakeTensor.__format__

    def __format__(self, spec):
        if self.dim() == 0:
            return format(self.item(), spec)
        return original(self, "") if not spec else format(1.0, spec)

    def tolist(self):
        return self.cpu().tolist() if self.dim() else self.item()

    FakeTensor.__format__, FakeTensor.tolist = __format__, tolist
