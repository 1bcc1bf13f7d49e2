"""PyTorch hooks that mark forward, loss, backward and optimizer, and tell steps apart where the loop does not."""

from __future__ import annotations

from . import facts
from .layout import BACKWARD, FORWARD, LOSS, OK, OPTIMIZER, SKIPPED, ObservationError
from .loops import leading_size

OUTPUTS = 4  # tensors of a model's output that are asked when their gradient comes


def attach(observer, model, optimizer, scaler) -> None:
    torch = facts.loaded_torch()
    if torch is None or not isinstance(model, torch.nn.Module):
        raise ObservationError(f"attach({type(model).__name__}): the first argument is the model, a torch.nn.Module")
    given = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
    optimizers = [inner(one) for one in given if one is not None]
    for found in optimizers:
        if not hasattr(found, "register_step_post_hook"):
            raise ObservationError(f"attach(..., {type(found).__name__}): the second argument is a torch.optim.Optimizer, "
                                   "or a list of them")
    observer.knows_model(model)
    if observer.timeline is None:
        observer.start()
    if observer.hooks is None:
        observer.hooks = Hooks(observer, torch)
    hooks = observer.hooks
    observer.attached = True
    hooks.add_model(model)
    for found in optimizers:
        hooks.add_optimizer(found)
    if scaler is not None and scaler.is_enabled():
        hooks.add_scaler(scaler)


def detach(observer) -> None:
    if observer.hooks is not None:
        observer.hooks.remove()
        observer.hooks = None
        observer.attached = False


def inner(optimizer):
    """The optimizer itself, out of wrappers such as Accelerate's."""
    while not hasattr(optimizer, "_optimizer_step_post_hooks") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _nothing(*args) -> None:
    """A hook that does nothing."""


def _no_hook():
    """What a hook becomes in a copy of the model, in memory or in a file: copies are not recorded."""
    return _nothing


class BeforeForward:
    def __init__(self, hooks: Hooks):
        self._begins, self._failed, self._is_compiling = hooks.forward_begins, hooks.failed, hooks.is_compiling

    def __call__(self, module, args, kwargs) -> None:
        if self._is_compiling():  # the compiler drops the hook here, so that no graph breaks
            return
        try:
            self._begins(args, kwargs)
        except Exception as error:
            self._failed(error)

    def __reduce__(self):
        return _no_hook, ()


class AfterForward:
    def __init__(self, hooks: Hooks):
        self._ends, self._failed, self._is_compiling = hooks.forward_ends, hooks.failed, hooks.is_compiling

    def __call__(self, module, args, output) -> None:
        if self._is_compiling():
            return
        try:
            self._ends(output)
        except Exception as error:
            self._failed(error)

    def __reduce__(self):
        return _no_hook, ()


class Hooks:
    """State between hooks of one observer. Whatever goes wrong in here ends the recording, never the training."""

    def __init__(self, observer, torch):
        self._observer = observer
        self._is_grad_enabled = torch.is_grad_enabled
        self.is_compiling = torch.compiler.is_compiling
        self._task = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # -1: not within a backward
        self._queue = torch.autograd.Variable._execution_engine.queue_callback
        self._tensor = torch.Tensor
        self._undo = []
        self._optimizers = []
        self._stepped = set()
        self._scaler = False
        self._forwards = []  # tokens of the forward passes in progress; None: one that is not recorded
        self._validation_row = False  # a forward pass without gradients is a row of its own
        self._loss = None  # token of the time after a forward pass
        self._backward = None
        self._in_backward = False
        self._optimizer_token = None

    # Registering

    def add_model(self, model) -> None:
        before, after = BeforeForward(self), AfterForward(self)
        compiled = getattr(model, "_compiled_call_impl", None)
        if compiled is None:
            self._undo.append(model.register_forward_pre_hook(before, with_kwargs=True).remove)
            self._undo.append(model.register_forward_hook(after).remove)
            return

        def call(*args, **kwargs):  # model.compile() in place: hooks would be compiled away
            before(model, args, kwargs)
            output = compiled(*args, **kwargs)
            after(model, args, output)
            return output

        model._compiled_call_impl = call
        self._undo.append(lambda: setattr(model, "_compiled_call_impl", compiled))

    def add_optimizer(self, optimizer) -> None:
        def before(optimizer, args, kwargs):
            try:
                self._optimizer_begins()
            except Exception as error:
                self.failed(error)

        def after(optimizer, args, kwargs):
            try:
                self._optimizer_ends(optimizer)
            except Exception as error:
                self.failed(error)

        self._optimizers.append(optimizer)
        self._undo.append(optimizer.register_step_pre_hook(before).remove)
        self._undo.append(optimizer.register_step_post_hook(after).remove)

    def add_scaler(self, scaler) -> None:
        """GradScaler has no hooks, and leaves optimizer.step() out after an overflow: its own methods are wrapped."""
        step, update = scaler.step, scaler.update

        def timed_step(*args, **kwargs):
            token = self._observer.timeline.push(OPTIMIZER) if self._records() else None
            try:
                return step(*args, **kwargs)
            finally:
                if token is not None:
                    self._observer.timeline.pop(token)

        def timed_update(*args, **kwargs):
            try:
                return update(*args, **kwargs)
            finally:
                self._scaler_updated()

        scaler.step, scaler.update = timed_step, timed_update
        self._scaler = True
        self._undo.append(lambda: (scaler.__dict__.pop("step", None), scaler.__dict__.pop("update", None)))

    def remove(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()

    # What the hooks do

    def _records(self) -> bool:
        observer = self._observer
        return observer.is_open and observer.from_this_thread()

    def forward_begins(self, args, kwargs) -> None:
        observer = self._observer
        if self._in_backward:
            if self._task() != -1:
                self._forwards.append(None)  # a checkpoint's second forward: part of backward
                return
            self._in_backward = False  # the last backward raised
        if not observer.ready():
            return
        grad = self._is_grad_enabled()
        if observer.is_open and not observer.explicit and self._all_stepped():
            self._close(OK)
        if not observer.is_open:
            if grad and observer.explicit:
                self._forwards.append(None)
                return
            observer.open_step(None if grad else True)
            self._validation_row = not grad
        self._forwards.append(observer.timeline.exchange(self._loss, FORWARD))
        self._loss = None
        if not observer.knows_samples:
            observer.seen_by_model += leading_size(args) or leading_size(kwargs) or 0
        if not observer.knows_precision:
            observer.see_precision()

    def forward_ends(self, output) -> None:
        observer = self._observer
        if not self._forwards or not observer.from_this_thread():
            return
        token = self._forwards.pop()
        if token is None or not observer.is_open:
            return
        observer.entered[FORWARD] += 1
        if self._is_grad_enabled():
            observer.grad_forwards += 1
            if not self._forwards and self._watch(output):
                self._loss = observer.timeline.exchange(token, LOSS)
                return
        observer.timeline.pop(token)
        if self._validation_row and not self._forwards:
            self._close(OK)

    def _watch(self, output) -> bool:
        if type(output) is self._tensor:  # by far the most common
            if output.requires_grad:
                output.register_hook(self._gradient)
            return output.requires_grad
        found = 0
        for tensor in tensors(output, self._tensor):
            if tensor.requires_grad:
                tensor.register_hook(self._gradient)
                found += 1
                if found == OUTPUTS:
                    break
        return found > 0

    def _gradient(self, gradient) -> None:
        """The gradient has reached the model's output: backward through the model begins."""
        if self._in_backward or self.is_compiling():
            return
        try:
            observer = self._observer
            if observer.is_open:
                self._in_backward = True
                self._backward = observer.timeline.exchange(self._loss, BACKWARD)
                self._loss = None
                self._queue(self._backward_ends)  # runs when this backward is over
        except Exception as error:
            self.failed(error)

    def _backward_ends(self) -> None:
        try:
            self._in_backward = False
            observer = self._observer
            if observer.is_open and self._backward is not None:
                observer.timeline.pop(self._backward)
                self._backward = None
                observer.entered[BACKWARD] += 1
                if not observer.explicit and (not self._optimizers or (self._all_stepped() and not self._scaler)):
                    self._close(OK)
        except Exception as error:
            self.failed(error)

    def _optimizer_begins(self) -> None:
        observer = self._observer
        if not observer.ready():
            return
        if self._in_backward and self._task() == -1:
            self._in_backward = False
        if not observer.is_open:
            if observer.explicit:
                return
            observer.open_step(None)
        self._optimizer_token = observer.timeline.exchange(self._loss, OPTIMIZER)
        self._loss = None

    def _optimizer_ends(self, optimizer) -> None:
        observer = self._observer
        if self._optimizer_token is None or not self._records():
            return
        observer.entered[OPTIMIZER] += 1
        self._stepped.add(id(optimizer))
        if not observer.entered[FORWARD]:
            observer.note("forward_unseen")
        if not observer.explicit and not self._in_backward and not self._scaler and self._all_stepped():
            self._close(OK)
        else:
            observer.timeline.pop(self._optimizer_token)
        self._optimizer_token = None

    def _scaler_updated(self) -> None:
        try:
            observer = self._observer
            if not self._records() or not observer.entered[BACKWARD]:
                return
            skipped = observer.entered[OPTIMIZER] == 0
            if observer.explicit:
                observer.skipped = skipped
            else:
                self._close(SKIPPED if skipped else OK)
        except Exception as error:
            self.failed(error)

    def new_step(self) -> None:
        """A step begins: what an exception left behind is forgotten."""
        self._forwards.clear()
        self._stepped.clear()
        self._loss = self._backward = self._optimizer_token = None
        self._validation_row = False
        self._in_backward = self._in_backward and self._task() != -1

    def _close(self, end: str) -> None:
        self._observer.end_step(end)

    def _all_stepped(self) -> bool:
        return bool(self._optimizers) and len(self._stepped) == len(self._optimizers)

    def failed(self, error) -> None:
        self.remove()
        self._observer.stop(error)


def tensors(value, kind, depth: int = 3):
    """The tensors in a model's output: a tensor, or tuples, lists and dicts (dataclasses by their fields) of them."""
    if isinstance(value, kind):
        yield value
    elif depth == 0:
        return
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part, kind, depth - 1)
    elif hasattr(value, "values") and callable(value.values):
        for part in value.values():
            yield from tensors(part, kind, depth - 1)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors(getattr(value, name), kind, depth - 1)
