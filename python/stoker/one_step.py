"""Runs one step of one model at one size, and returns what happened as plain data."""

from __future__ import annotations

import contextlib
import gc
import inspect
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from . import fake_model, losses, training
from . import precision as precisions
from .functions import AbstractFunctions
from .recorder import ModuleNames, Recorder, quiet_collector


@dataclass
class RawStep:
    """One capture at fixed sizes: every size is an integer. `tensor` = (dtype, shape, order, storage id)."""

    storages: list = field(default_factory=list)  # [bytes, kind]
    parameters: list = field(default_factory=list)  # (name, tensor, requires_grad, gradient storage or None,
    #                                                  group, or None where the optimizer has none for it)
    buffers: list = field(default_factory=list)  # (name, tensor)
    inputs: list = field(default_factory=list)  # (name, tensor)
    events: list = field(default_factory=list)
    modules: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)  # diagnostics


def run(built, mode: str, precision: str, device) -> RawStep:
    """Runs one step of `built` (a specs.Built, left as it was) on a device.Device and returns its record."""
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
    left_alone = fake_model.restored(built.module, built.optimizer)
    with quiet_collector(), torch.autograd.set_multithreading_enabled(False), left_alone, fake_mode:
        return _Step(built, mode, precision, device).run()


class _Step:
    def __init__(self, built, mode, precision, device):
        self.built, self.mode, self.precision, self.device_type = built, mode, precision, device.type
        self.model = built.module
        self.recorder = Recorder(device.type)
        self.for_cuda = device.wanted == "cuda"  # on a CPU layers are what PyTorch makes of them there
        self.stand_ins = AbstractFunctions(self.recorder) if self.for_cuda else contextlib.nullcontext()
        self.raw = RawStep()

    def run(self) -> RawStep:
        torch.backends.mha.set_fastpath_enabled(False)  # its fused layer has no fake implementation
        mover = fake_model.Mover(self.device_type, self.precision, one_buffer=self.for_cuda)
        mover.move(self.model)
        training.follow(self.built.optimizer, mover.replacement)
        self.model.train(self.mode == "train")
        self._describe_model(training.group_of(self.built.optimizer))
        args, kwargs = self._inputs(mover)
        names = ModuleNames(self.recorder, self.model)
        with self.stand_ins, self.recorder, names:
            results = self._train(args, kwargs) if self.mode == "train" else self._infer(args, kwargs)
        self._finish(results, args, kwargs)
        return self.raw

    # -- the model and its inputs --------------------------------------------------------------------------------

    def _describe_model(self, groups) -> None:
        for name, parameter in self.model.named_parameters():
            storage = self.recorder.add_storage(parameter, "parameter")
            self.raw.parameters.append([name, (*self.recorder.describe(parameter), storage), parameter.requires_grad,
                                        None, 0 if groups is None else groups.get(id(parameter))])
        for name, buffer in self.model.named_buffers():
            if buffer.untyped_storage().nbytes():
                storage = self.recorder.add_storage(buffer, "buffer")
                self.raw.buffers.append((name, (*self.recorder.describe(buffer), storage)))

    def _inputs(self, mover):
        def fake(value):
            if not isinstance(value, torch.Tensor):
                return value
            return mover.fake(value).requires_grad_(value.requires_grad and self.mode == "train")

        args, kwargs = pytree.tree_map(fake, (self.built.args, self.built.kwargs))
        names = [n for n in inspect.signature(self.model.forward).parameters]
        for position, value in enumerate(args):
            self._describe_input(names[position] if position < len(names) else f"input{position}", value)
        for name, value in kwargs.items():
            self._describe_input(name, value)
        return args, kwargs

    def _describe_input(self, name, value) -> None:
        flat = [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]
        for i, tensor in enumerate(flat):
            storage = self.recorder.add_storage(tensor, "input")
            label = name if len(flat) == 1 else f"{name}.{i}"
            self.raw.inputs.append((label, (*self.recorder.describe(tensor), storage)))

    # -- the step --------------------------------------------------------------------------------------------------

    def _train(self, args, kwargs):
        recorder = self.recorder
        recorder.phase("load")
        recorder.phase("forward")
        with precisions.autocast(self.precision, self.device_type):
            output = self.model(*args, **kwargs)
            plan = losses.choose(self.built, output)
            targets = self._targets(plan)
            recorder.phase("loss")
            loss = plan.run(output, targets)
        losses.check(loss)
        if plan.note:
            self.raw.notes.setdefault("unfaithful", []).append(plan.note)
        recorder.phase("backward")
        loss.backward()
        recorder.phase("end")
        return [output, loss, targets]

    def _targets(self, plan):
        """The targets are on the device when the step begins: made outside the record, as inputs."""
        made = []
        with self.recorder.paused():
            for name, shape, dtype in plan.targets:
                tensor = torch.empty(shape, dtype=dtype, device=self.device_type)
                self._describe_input(name, tensor)
                made.append(tensor)
        return made

    def _infer(self, args, kwargs):
        self.recorder.phase("load")
        self.recorder.phase("forward")
        with torch.no_grad(), precisions.autocast(self.precision, self.device_type):
            output = self.model(*args, **kwargs)
        self.recorder.phase("end")
        return [output, None, None]

    # -- afterwards ------------------------------------------------------------------------------------------------

    def _finish(self, results, args, kwargs) -> None:
        recorder = self.recorder
        gc.collect()  # what only cycles held: its frees come after the end
        for row, parameter in zip(self.raw.parameters, (p for _, p in self.model.named_parameters())):
            if parameter.grad is not None:
                row[3] = recorder.storage_id(parameter.grad)
        gradients = {row[3] for row in self.raw.parameters if row[3] is not None}
        of_inputs = {recorder.storage_id(t.grad) for t in pytree.tree_leaves((args, kwargs))
                     if isinstance(t, torch.Tensor) and t.grad is not None}
        recorder.released = []
        results.clear()
        gc.collect()
        outputs = set(recorder.released) | of_inputs  # both go when the next step brings others
        freed = {event[1] for event in recorder.events if event[0] == "f"}
        for number, kind in enumerate(recorder.kinds):
            if kind == "transient" and number not in freed:
                kind = "gradient" if number in gradients else "output" if number in outputs else "persistent"
            self.raw.storages.append([recorder.bytes[number], kind])
        self.raw.events = recorder.events
        self.raw.modules = recorder.modules
        self._notes()

    def _notes(self) -> None:
        recorder, notes = self.recorder, self.raw.notes
        if recorder.item_calls:
            notes["item_calls"] = recorder.item_calls
        if recorder.math_attention:
            notes["math_attention"] = recorder.math_attention
        if recorder.decomposed and self.for_cuda:
            notes["decomposed"] = dict(sorted(recorder.decomposed.items()))
