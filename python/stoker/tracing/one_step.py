"""Runs one step of one model at one size, and returns what happened as plain data."""

from __future__ import annotations

import contextlib
import gc
import inspect
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as pytree

from .. import precision as precisions
from .. import training
from . import compiled, fake_model, grad_hooks, held, loss_parts, losses, warnings_of
from .fake_mode import FakeMode
from .functions import AbstractFunctions, PackedFunctions
from .real_eyes import nothing_looks_fake
from .recorder import Recorder
from .surroundings import ModuleNames, quiet_collector
from .values import seeded


@dataclass
class RawStep:
    """One capture at fixed sizes: every size is an integer. `tensor` = (dtype, shape, order, storage id)."""

    storages: list = field(default_factory=list)  # [bytes, kind]
    parameters: list = field(default_factory=list)  # (name, tensor, requires_grad, gradient storage or None,
    #                                                  group, or None where the optimizer has none for it)
    buffers: list = field(default_factory=list)  # (name, tensor)
    inputs: list = field(default_factory=list)  # (name, tensor)
    events: list = field(default_factory=list)
    lines: list = field(default_factory=list)  # of each operator of the events: (file name, line) or None
    modules: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)  # diagnostics
    in_backward: str = ""  # optimizers that stepped in hooks of gradients


def run(built, mode: str, precision: str, device, assumptions=None, saved=None) -> RawStep:
    """Runs one step of `built` (a specs.Built, left as it was) on a device.Device and returns its record.

    `assumptions` (places.Assumptions) say what the model reads where it reads what depends on data. With `saved`
    (compiled.SavedTensors) the model runs under torch.compile.
    """
    fake_mode = FakeMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
    beside = loss_parts.of(built.loss if mode == "train" else None, built.module)
    left_alone = fake_model.restored([built.module, *(module for _, module in beside.modules)], built.optimizer)
    with quiet_collector(), torch.autograd.set_multithreading_enabled(False), left_alone, seeded(), fake_mode, \
            nothing_looks_fake(), torch.jit.optimized_execution(False):
        return _Step(built, mode, precision, device, assumptions, saved, beside).run()


def _once(named: list) -> list:
    """The first name of each tensor."""
    first = {}
    for name, tensor in named:
        first.setdefault(id(tensor), (name, tensor))
    return list(first.values())


class _Step:
    def __init__(self, built, mode, precision, device, assumptions, saved, beside):
        self.built, self.mode, self.precision, self.device_type = built, mode, precision, device.type
        self.model = built.module
        self.beside = beside  # the loss's own modules and tensors
        self.recorder = Recorder(device.type, assumptions)
        self.for_cuda = device.wanted == "cuda"  # on a CPU layers are what PyTorch makes of them there
        self.stand_ins = (AbstractFunctions if self.for_cuda else PackedFunctions)(self.recorder)
        self.steps = grad_hooks.Steps()
        self.raw = RawStep()
        self.compiler = None if saved is None else compiled.Compiler(self.recorder, saved)

    def run(self) -> RawStep:
        torch.backends.mha.set_fastpath_enabled(False)  # its fused layer has no fake implementation
        mover = fake_model.Mover(self.device_type, self.precision, self.for_cuda, self.recorder.values)
        try:
            return self._run(mover)
        finally:
            self.beside.put_back()
            mover.put_back()
            self.steps.forget()

    def _run(self, mover) -> RawStep:
        mover.move(self.model)
        self.beside.move(mover)
        training.follow(self.built.optimizer, mover.replacement)
        self.model.train(self.mode == "train")
        self._describe_model(training.group_of(self.built.optimizer))
        args, kwargs = self._inputs(mover)
        names = ModuleNames(self.recorder, self.model, self.beside.modules)
        self.warnings = warnings_of.Training(self.recorder, self.model)
        self.called, running = self.model, contextlib.nullcontext()
        if self.compiler is not None:
            self.called, running = self.compiler.compiled(self.model), self.compiler.running()
        with self.stand_ins, self.recorder, names, self.warnings, self.steps, running:
            run = {"train": self._train, "forward": self._forward, "inference": self._infer}[self.mode]
            results = run(args, kwargs)
        self.raw.in_backward = "+".join(sorted(self.steps.names))
        self._finish(results, args, kwargs)
        return self.raw

    # -- the model and its inputs --------------------------------------------------------------------------------

    def _describe_model(self, groups) -> None:
        # The forward may put others in their places.
        self.parameters = _once([*self.model.named_parameters(), *self.beside.named_parameters()])
        for name, parameter in self.parameters:
            storage = self.recorder.add_storage(parameter, "parameter")
            self.raw.parameters.append([name, (*self.recorder.describe(parameter), storage), parameter.requires_grad,
                                        None, 0 if groups is None else groups.get(id(parameter))])
        for name, buffer in _once([*self.model.named_buffers(), *self.beside.named_buffers()]):
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
            output = self.called(*args, **kwargs)
            if inspect.isgenerator(output) and self.built.loss is None:
                output = list(output)  # it runs where somebody asks for its parts
            plan = losses.choose(self.built, output)
            targets = self._targets(plan)
            recorder.phase("loss")
            loss = plan.run(output, targets)
        losses.check(loss, recorder.reads)
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

    def _forward(self, args, kwargs):
        """Features with their graph: what autograd saved lives as long as the output."""
        self.recorder.phase("load")
        self.recorder.phase("forward")
        with precisions.autocast(self.precision, self.device_type):
            output = self.called(*args, **kwargs)
        self.recorder.phase("end")
        return [output, None, None]

    def _infer(self, args, kwargs):
        self.recorder.phase("load")
        self.recorder.phase("forward")
        with torch.no_grad(), precisions.autocast(self.precision, self.device_type):
            output = self.called(*args, **kwargs)
        self.recorder.phase("end")
        return [output, None, None]

    # -- afterwards ------------------------------------------------------------------------------------------------

    def _finish(self, results, args, kwargs) -> None:
        recorder = self.recorder
        gc.collect()  # what only cycles held: its frees come after the end
        for row, (_, parameter) in zip(self.raw.parameters, self.parameters):
            if parameter.grad is not None:
                row[3] = recorder.storage_id(parameter.grad)
        gradients = {row[3] for row in self.raw.parameters if row[3] is not None}
        of_inputs = {recorder.storage_id(t.grad) for t in pytree.tree_leaves((args, kwargs))
                     if isinstance(t, torch.Tensor) and t.grad is not None}
        recorder.released = released = []
        results.clear()
        gc.collect()
        recorder.released = []  # what dies from now on is no part of the step
        outputs = set(released) | of_inputs  # both go when the next step brings others
        outputs |= self._replaced(outputs | gradients, args, kwargs)
        freed = {event[1] for event in recorder.events if event[0] == "f"}
        for number, kind in enumerate(recorder.kinds):
            if kind == "transient" and number not in freed:
                kind = "gradient" if number in gradients else "output" if number in outputs else "persistent"
            self.raw.storages.append([recorder.bytes[number], kind])
        self.raw.events = recorder.events
        self.raw.lines = recorder.lines
        self.raw.modules = recorder.modules
        self._notes()

    def _replaced(self, known: set, args, kwargs) -> set:
        """Storages that the model's attributes still hold, and that its next forward replaces by others."""
        recorder = self.recorder
        freed = {event[1] for event in recorder.events if event[0] == "f"}
        left = {n for n, kind in enumerate(recorder.kinds) if kind == "transient" and n not in freed and n not in known}
        if not left or self.mode != "train":
            return set()
        recorder.released = released = []
        before = held.held_bytes(self.model)
        try:
            with self.stand_ins, recorder, recorder.paused(), precisions.autocast(self.precision, self.device_type):
                self.called(*args, **kwargs)
        except Exception:  # a model that runs once only: then nothing is known to be replaced
            return set()
        finally:
            gc.collect()
            recorder.released = []
        grows = held.growth(before, held.held_bytes(self.model))
        if grows is not None:
            self.raw.notes.setdefault("unfaithful", []).append(grows)
        return left & set(released)

    def _notes(self) -> None:
        recorder, notes = self.recorder, self.raw.notes
        if recorder.item_calls:
            notes["item_calls"] = recorder.item_calls
        found = self.warnings.sentences() if self.mode == "train" else []
        if found:
            notes["warnings"] = found
        if recorder.reads:
            notes["reads"] = {place: recorder.reads[place] for place in sorted(recorder.reads)}
        if recorder.math_attention:
            notes["math_attention"] = recorder.math_attention
        if recorder.decomposed and self.for_cuda:
            notes["decomposed"] = dict(sorted(recorder.decomposed.items()))
