"""Moves a built module onto the fake device: every parameter and buffer becomes a fake tensor of the same shape."""

from __future__ import annotations

import contextlib
import copy

import torch

from .. import model_build
from .. import precision as precisions
from ..errors import CaptureError
from . import grad_hooks, rnn


@contextlib.contextmanager
def restored(modules: list, optimizer=None):
    """Afterwards the modules and the optimizer's groups are what they were: their tensors, and caches that a step filled."""
    holders = [part.__dict__ for module in modules for part in module.modules()]
    holders += getattr(optimizer, "param_groups", [])
    containers = [v for holder in holders for v in holder.values() if type(v).__name__ in _CONTAINERS]
    saved = [(holder, copy.copy(holder)) for holder in holders + containers]
    try:
        yield
    finally:
        for holder, before in saved:
            holder.clear()
            holder.extend(before) if isinstance(holder, list) else holder.update(before)


_CONTAINERS = ("dict", "OrderedDict", "defaultdict", "list", "set")


class Mover:
    """Replaces tensors by fake ones, each once (tied weights stay tied). Use it inside the FakeTensorMode.

    With `one_buffer` the weights of a recurrent layer become views of one buffer, as cuDNN has them.
    """

    def __init__(self, device_type: str, precision: str, one_buffer: bool = True, values=None):
        """`values` (values.Values) learn what counters and flags of the model hold before its first step."""
        self._values = values
        self._device = device_type
        self._precision = precision
        self._one_buffer = one_buffer
        self._done: dict[int, torch.Tensor] = {}
        self._keep = []  # ids stay unique while the originals live
        self._hooked: list[grad_hooks.Exchanged] = []
        self._moved: set[int] = set()  # modules

    @property
    def has_hooks(self) -> bool:
        return bool(self._hooked)

    def fake(self, tensor: torch.Tensor, device: str | None = None, what: str = "an input of the model") -> torch.Tensor:
        known = self._done.get(id(tensor))
        if known is None:
            if tensor.layout is not torch.strided:
                raise CaptureError(f"{what} is a sparse tensor, whose size depends on the data: give a dense one (.to_dense()), or an "
                                   "index of edges and torch.index_add, which asks for what a sparse product does")
            keeps = getattr(tensor, "keeps_type", False)  # adapters beside weights in half precision
            dtype = tensor.dtype if keeps else precisions.parameter_dtype(tensor.dtype, self._precision)
            known = torch.empty_strided(tuple(tensor.shape), tuple(tensor.stride()), dtype=dtype,
                                        device=device or self._device)
            self.remember(tensor, known)
        return known

    def _held(self, tensor: torch.Tensor, device: str | None, what: str) -> torch.Tensor:
        """The fake of a tensor that the model holds besides its parameters: counters and flags keep their values."""
        known = self.fake(tensor, device, what)
        value = model_build.initial_value(tensor)
        if value is not None and self._values is not None:
            self._values.set_initial(known, value)
        return known

    def remember(self, original: torch.Tensor, replacement: torch.Tensor) -> None:
        self._done[id(original)] = replacement
        self._keep.append(original)

    def replacement(self, original: torch.Tensor) -> torch.Tensor | None:
        return self._done.get(id(original))

    def _parameter(self, old: torch.nn.Parameter) -> torch.nn.Parameter:
        known = self._done.get(id(old))
        if known is old or isinstance(known, torch.nn.Parameter):
            return known
        if isinstance(old, torch.nn.parameter.UninitializedTensorMixin):
            raise CaptureError("the model has lazy modules whose parameters have no shape yet: "
                               "run it once on an example, or give the sizes")
        new = torch.nn.Parameter(self.fake(old) if known is None else known, requires_grad=old.requires_grad)
        if grad_hooks.has_hooks(old):
            self._hooked.append(grad_hooks.Exchanged(old, new))
            new = old  # the same object, so that the hooks' dictionaries of parameters hold
        self.remember(old, new)
        return new

    def put_back(self) -> None:
        """Parameters with hooks are what they were."""
        while self._hooked:
            self._hooked.pop().undo()

    def move(self, module: torch.nn.Module) -> None:
        def make(count, dtype):
            return torch.empty(count, dtype=precisions.parameter_dtype(dtype, self._precision), device=self._device)

        originals = {id(p): p for p in module.parameters()}
        parts = [part for part in module.modules() if id(part) not in self._moved]
        self._moved.update(map(id, parts))
        whole = len(parts) == sum(1 for _ in module.modules())
        for old, view in (rnn.flatten_weights(module, make) if self._one_buffer and whole else {}).items():
            self.remember(originals[old], view)
        names = {id(part): name for name, part in module.named_modules()}
        for part in parts:
            inside = f" of module '{names[id(part)]}'" if names[id(part)] else " of the model"
            for name, old in part._parameters.items():
                if old is not None:
                    part._parameters[name] = self._parameter(old)
            for name, old in part._buffers.items():
                if old is not None:
                    part._buffers[name] = self._held(old, None, f"the buffer '{name}'{inside}")
            for name, value in list(part.__dict__.items()):
                if isinstance(value, torch.Tensor):  # a plain attribute: .cuda() would leave it on the host
                    on_gpu = value.device.type == "cuda" or model_build.asked_for_gpu(value)
                    part.__dict__[name] = self._held(value, self._device if on_gpu else "cpu", f"'{name}'{inside}")
            if isinstance(part, torch.nn.RNNBase):
                part._flat_weights = [getattr(part, name, None) for name in part._flat_weights_names]
                part._flat_weight_refs = [None] * len(part._flat_weights)
