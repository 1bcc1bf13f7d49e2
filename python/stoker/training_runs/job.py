"""One model ready to train: built, filled, on its device, with its optimizer, its loss and where its batches come from."""

from __future__ import annotations

import contextlib
import inspect

import torch
from torch.utils import _pytree as pytree

from .. import model_build, protocol, training
from .. import precision as precisions
from ..errors import CaptureError
from ..measure import trainer
from ..tracing import losses
from ..user_code import user_code
from . import batches, values

_TOLD = ("lr", "momentum", "weight_decay", "nesterov", "amsgrad", "foreach", "fused")  # an optimizer's settings in the rows


def default_batch(function, options: dict) -> int:
    """The batch that a capture function has by itself; BATCH_DEFAULT where it has none."""
    if isinstance(options.get("batch"), int):
        return options["batch"]
    try:
        given = inspect.signature(function).parameters.get("batch")
    except (TypeError, ValueError):
        given = None
    return given.default if given is not None and isinstance(given.default, int) else protocol.BATCH_DEFAULT


def _takes_batch(function) -> bool:
    try:
        return "batch" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Job:
    """`case`: spec, options, batch, precision, optimizer, data, device (docs/guide/validating.md says what they mean)."""

    def __init__(self, case: dict, function, data=None):
        self.case, self.device = case, torch.device(case["device"])
        self.cuda = self.device.type == "cuda"
        self.precision = case["precision"]
        options = dict(case.get("options") or {})
        own_batch = _takes_batch(function)
        if own_batch:
            options["batch"] = case["batch"]
        elsewhere = contextlib.nullcontext() if self.cuda else model_build.without_gpu()
        with user_code(f"{case['spec']} could not be built"), elsewhere:
            self.capture = protocol.from_result(function(**options))
        self._check()
        self.module = self.capture.module.to(device=self.device, dtype=precisions.CAST.get(self.precision)).train()
        self.optimizer = self._optimizer()
        inputs, targets = self.capture.inputs, tuple(self.capture.targets or ())
        if not own_batch:
            inputs, targets = self._with_batch(inputs), self._with_batch(targets)
        self.lookups = values.Lookups()
        if data is not None:
            self.source = batches.FromLoader(data, inputs, self)
        else:
            self.source = batches.Synthetic(inputs, targets, self)
        self.scaler = trainer.scaler(self.precision, self.device.type, self._says("grad_scaler") is not False)
        self.loop = trainer.Loop(self.module, self.optimizer, self.scaler, clip=bool(self.capture.clip))
        self.called = torch.compile(self.module, dynamic=False) if case.get("compile") else self.module
        self.plan = self.output = self.loss = None

    def _says(self, name):
        value = getattr(self.capture, name)
        return value.is_enabled() if callable(getattr(value, "is_enabled", None)) else value

    def _check(self) -> None:
        capture, spec = self.capture, self.case["spec"]
        if not isinstance(capture.module, torch.nn.Module):
            raise CaptureError(f"{spec} returned a {type(capture.module).__name__} where a torch.nn.Module belongs: return "
                               "(module, inputs)")
        if capture.mode == "inference":
            raise CaptureError(f"{spec} is for inference (mode='inference'), and only training steps are measured")
        if not any(p.requires_grad for p in capture.module.parameters()):
            raise CaptureError(f"no parameter of {spec} needs a gradient, so there is no training step to measure: set "
                               "requires_grad of those that are to be trained")

    def _optimizer(self):
        name = self.case.get("optimizer")
        if name is None and self.capture.optimizer is not None:
            training.optimizer(self.capture)  # refuses what is none, or is another model's
            self._refuse_closures()
            return self.capture.optimizer
        return trainer.optimizer(name or "sgd", [p for p in self.module.parameters() if p.requires_grad])

    def _refuse_closures(self) -> None:
        """An optimizer that evaluates the loss itself, as LBFGS does: how often depends on values that no example input has."""
        closure = inspect.signature(self.capture.optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is closure.empty:
            name = type(self.capture.optimizer).__name__
            raise CaptureError(f"{name} evaluates the loss within its step, as often as values make it, which steps on made-up inputs do "
                               f"not show: measure the script that trains with it (stoker validate train.py), or another optimizer with "
                               "--optimizer adam")

    def optimizer_told(self) -> dict:
        """Its name in --optimizer's words and the settings of its first group."""
        described, _ = training.optimizer(protocol.Capture(self.module, None, optimizer=self.optimizer))
        group = described["groups"][0] if described["groups"] else {}
        return {"name": described["name"], **{key: group[key] for key in _TOLD if key in group}}

    def _with_batch(self, tree):
        example = next((leaf.shape[0] for leaf in pytree.tree_leaves(model_build.split_inputs(self.capture.inputs))
                        if isinstance(leaf, torch.Tensor) and leaf.dim()), None)

        def one(leaf):
            same = isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.shape[0] == example
            return values.resized(leaf, self.case["batch"]) if same and example != self.case["batch"] else leaf

        return pytree.tree_map(one, tree)

    # -- the step ------------------------------------------------------------------------------------------------

    def forward(self, args, kwargs, targets) -> None:
        """Output and loss of the step before go when this one's are there, as in a loop with variables of these names."""
        with precisions.autocast(self.precision, self.device.type):
            self.output = self.called(*args, **kwargs)
            if self.plan is None:
                self.plan = losses.choose(self.capture, self.output)
            if self.plan.targets and not targets:
                targets = self.source.make_targets(self.plan.targets)
            self.loss = self.plan.run(self.output, targets)

    def step(self, observer) -> None:
        """As most people write it: copy the batch, zero_grad, forward under autocast, loss, backward, optimizer."""
        args, kwargs, targets = self.source.next(observer)

        def loss():
            with self.lookups or contextlib.nullcontext():
                self.forward(args, kwargs, targets)
            if self.lookups is not None:  # the first step
                self.lookups = None
                losses.check(self.loss)
            return self.loss

        self.loop.step(loss, clipping=lambda: observer.phase("optimizer"))

    def notes(self) -> list:
        found = [self.plan.note] if self.plan is not None and self.plan.note else []
        if self.capture.ema:
            found.append("the moving average of the model that the capture speaks of is not run")
        return found
