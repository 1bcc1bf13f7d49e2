"""Tells the script's training steps apart, and records them.

A step lasts from one call of an optimizer's `step` to the next; with several optimizers, until the one that came last in
the first round has been called again. Within it each backward ends a part: equal parts are gradient accumulation, and one
of them is the step of the step file.
"""

from __future__ import annotations

import gc
import time
import weakref

import torch

from ...plain import counted
from .. import sites
from ..world import anonymous_bytes
from . import objects, segment, threads, updates
from .script_recorder import ScriptRecorder

_ROUND = 12  # calls of optimizers in which each that is in use has been called
_SOME_STEPS, _LONG_S = 3, 40.0  # of a script whose steps take long, so many are enough: CPU seconds of the run
_MORE = 0.03  # share of operators from which on another step is said to differ
_BESIDE = 0.1  # share of a step's operators from which on others beside it are told
_ENOUGH_PARTS = 2  # equal parts, after which further ones are only counted


def _on_the_device() -> list:
    """Weak references to the tensors there. isinstance would ask lazy objects of libraries for their class, upon which some warn."""
    tensors = objects.of_kind(lambda kind: issubclass(kind, torch.Tensor))
    return [weakref.ref(t) for t in tensors if t.device.type == "cuda" and not torch.nn.parameter.is_lazy(t)]


class Watcher:
    """Follows modules, backwards and optimizers of one run."""

    def __init__(self, world):
        self._world = world
        self.turns = threads.Turns(self)
        self._recorder: ScriptRecorder | None = None
        self.depth = 0  # of modules that are running
        self.in_backward = False
        self.optimizers: list = []  # all that were made
        self.calls: list[int] = []  # ids of optimizers, in the order of their steps
        self.last_of_round: int | None = None
        self.records: list = []  # segment.Record, one a step
        self.standing: list = []  # weak references to tensors that were on the device when the newest record began
        self.standing_at_first: list = []  # those among them that the collector has frozen
        self.record: segment.Record | None = None
        self.backwards = 0  # in this step
        self.roots: dict[int, torch.nn.Module] = {}  # modules that the loop calls itself
        self.loader = None  # the last one that gave a batch
        self.steps = 0
        self.products = updates.Products()  # of the optimizers' own
        self.stepping = False  # an optimizer is at work
        self.last = ""  # what the loop did last: load, forward, evaluation, backward or step
        self.made_at: dict[int, tuple] = {}  # id of an optimizer -> (class, site)
        self.batches = self.batches_of_step = 0  # of DataLoaders: since the last step, and in it
        self.loaders_of_steps: set[int] = set()  # ids of facts of loaders that gave a batch once a step was over
        self.loaders_now: list = []  # facts of loaders that gave a batch since the last step
        self.loaders_of_all: list | None = None  # facts of those that gave one in each step but the first
        self._kept: ScriptRecorder | None = None
        self.backward_at = sites.Site()
        self.dropped = True  # there are no gradients of the step before
        self.zeroed_between: sites.Site | None = None  # where zero_grad stands between a forward and its backward
        self.copied: dict[int, weakref.ref] = {}  # address of a storage that came from the host -> it
        self._collector_off = False
        self._inside: list = []  # gradients of optimizers that step within a backward
        self._boundary_waits = False

    # -- recording -------------------------------------------------------------------------------------------------

    @property
    def recorder(self) -> ScriptRecorder | None:
        """What records the step; None between steps, and in threads beside the one that trains."""
        return self._recorder if self.turns.here() else None

    @recorder.setter
    def recorder(self, recorder) -> None:
        if self.turns.here():
            self._recorder = recorder

    def begin_record(self) -> None:
        """From here on a step is recorded; gradients of the one before are gone, as after zero_grad()."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
        for module in self.roots.values():
            for parameter in module.parameters():
                parameter.grad = None
        standing = _on_the_device() if self._world.on_gpu else []
        if not self._collector_off:
            self.standing_at_first = standing
            gc.collect()
            gc.freeze()
            gc.disable()  # frees would come at times that mean nothing
            self._collector_off = True
        self.standing = self.standing_at_first + standing
        self.recorder = ScriptRecorder("cuda" if self._world.on_gpu else "cpu", self.copied)
        self.record = segment.Record(self.recorder, self._world, partial=not self.steps)
        self.recorder.phase("load")
        self.backwards = 0

    def _end_part(self) -> None:
        """A backward is over: the first part of this step is whole."""
        gc.collect()  # what only cycles held goes now
        self.record.end_part()

    # -- what the script does --------------------------------------------------------------------------------------

    def enters(self, module, args, kwargs) -> None:
        if not self.turns.enter(module):
            return
        self.depth += 1
        if self.depth == 1 and self.only_counts():
            if self.recorder is not None and self.backwards < _ENOUGH_PARTS and self._is_root(module):
                self.record.forward_begins(module, args, kwargs, self.loader)  # what it is given lies beside the first part
            self.recorder = None
        if self.depth == 1 and self.record is not None:
            self.record.called.add(id(module))
        if self.depth == 1 and self._is_root(module):
            self.roots[id(module)] = module
            self.last = "forward" if torch.is_grad_enabled() else "evaluation"
            if self.record is not None and self.record.parts and torch.is_grad_enabled() and not self._in_use():
                self.boundary()  # without an optimizer a forward after a backward begins the next step
            if torch.is_grad_enabled() and module.training:
                if self.record is None:
                    self._own_bytes(module)
                    self.begin_record()
                if self.recorder is not None:
                    found = self._precision(module)
                    if self.record.precision is None or found != "fp32":
                        self.record.precision = found
                    self.record.forward_begins(module, args, kwargs, self.loader)
        if self.recorder is not None:
            self.recorder.enter_module(self.record.index_of(module, self.recorder.module_stack[-1]))

    def _own_bytes(self, module) -> None:
        """What the script holds on the host when it begins to train, beside the weights."""
        weights = sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers())
                      if t.device.type == "cpu" and not torch.nn.parameter.is_lazy(t))
        self._world.outcome.own_bytes = max(0, anonymous_bytes() - self._world.anonymous_at_start - weights)

    def leaves(self, module, out) -> None:
        if self.turns.leave():
            return
        if self.recorder is not None:
            self.recorder.leave_module()
        self.depth -= 1
        if self.depth == 0 and self.recorder is not None and id(module) in self.roots and torch.is_grad_enabled():
            self.record.forward_ends()

    def autocasts(self, device: str, dtype) -> None:
        """The script enters autocast, which a wrapper may do within a model's call."""
        if self.recorder is not None and torch.is_grad_enabled() and device == self.recorder.device_type:
            self.record.precision = "amp-bf16" if dtype is torch.bfloat16 else "amp-fp16"

    def _is_root(self, module) -> bool:
        return next(module.parameters(), None) is not None

    def _precision(self, module) -> str:
        kind = "cuda" if self._world.on_gpu else "cpu"
        if torch.is_autocast_enabled(kind):
            return "amp-bf16" if torch.get_autocast_dtype(kind) is torch.bfloat16 else "amp-fp16"
        dtypes = {p.dtype for p in module.parameters()}
        if len(dtypes) == 1:
            return {torch.float16: "fp16", torch.bfloat16: "bf16"}.get(dtypes.pop(), "fp32")
        return "fp32"

    def backward(self, run) -> None:
        """`run()` is the script's backward."""
        self.turns.take()
        self.trains(self.optimizers)
        if self.in_backward or self.stepping and self.record is None:
            return run()
        if self.record is None:
            self.begin_record()
        self.in_backward = True
        self.backward_at = sites.here(2)
        if self.only_counts():
            self.recorder = None
        recorded = self.recorder is not None
        if recorded:
            self.record.backward_begins()
        try:
            run()
        finally:
            self.in_backward = False
        self.backwards += 1
        self.last = "backward"
        self.record.backwards = self.backwards
        if recorded:
            self._end_part()
        if self._inside:
            self._world.note(f"{self.backward_at}: optimizers step within the backward; the forecast lets them step after it, and keeps "
                             "all gradients until then")
            self._inside = []
        if self._boundary_waits:
            self._boundary_waits = False
            self.boundary()
        if not self.optimizers and not self.roots:
            self.last = "step"
            self.boundary()  # without a model and an optimizer each backward ends a step
        return None

    def trains(self, optimizers: list) -> None:
        """What these optimizers update is about to be trained: all of it on the CPU, where the GPU was never used, ends the run before
        it computes what nobody asks for."""
        weights = [p for o in optimizers for group in o.param_groups for p in group["params"]]
        if self._world.on_gpu and not self._world.used_gpu and weights and all(p.device.type == "cpu" for p in weights):
            self._world.ends_on_cpu()

    def loads(self) -> None:
        """The loop takes a batch, or copies something to the device; between a forward and its backward that belongs to the loss."""
        if self.turns.here() and self.last != "forward":
            self.last = "load"

    def handed_out(self, parameters: list, gradients: list) -> None:
        """Gradients that the script gets from torch.autograd.grad, and no parameter keeps."""
        if self.record is None or self.recorder is None:
            return
        for parameter, gradient in zip(parameters, gradients):
            if gradient is not None:
                self.record.keep_gradient(parameter, gradient)

    def before_step(self, optimizer) -> None:
        """An optimizer's step begins: what it computes belongs to no record."""
        self.turns.take()
        if optimizer is not None and self.recorder is not None and not self.in_backward:
            self.record.update_begins([p for g in optimizer.param_groups for p in g["params"]])
            self.backwards = self.record.backwards = max(self.backwards, len(self.record.parts))
        self._kept, self.recorder = self.recorder, None
        self.products.begin(optimizer)
        self.stepping = True

    def resume(self) -> None:
        self.stepping = False
        self.recorder, self._kept = self._kept, None

    def after_step(self, optimizer) -> None:
        self.resume()
        self.calls.append(id(optimizer))
        self.last, self.dropped = "step", False
        if self.record is not None:
            self.record.updated[id(optimizer)] = len(self.record.parts)
        if self.in_backward:
            self._steps_inside(optimizer)
        elif self.is_boundary(optimizer):
            self.boundary()

    def _steps_inside(self, optimizer) -> None:
        """A hook of the backward calls the step of one parameter's optimizer: the step of all ends with the backward."""
        self._boundary_waits = True
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._inside.append(parameter.grad)  # lives on, whatever the script does with it
                    if self.record is not None and self.recorder is not None:
                        self.record.keep_gradient(parameter, parameter.grad)

    def _in_use(self) -> list:
        return [o for o in self.optimizers if any(p.requires_grad for g in o.param_groups for p in g["params"])]

    def used_optimizers(self) -> list:
        """Optimizers whose step was called."""
        return [o for o in self.optimizers if id(o) in self.calls]

    def only_counts(self) -> bool:
        """Whether this step has shown that it accumulates: further parts are only counted."""
        record, enough = self.record, 1 if self._world.request.parts_are_equal else _ENOUGH_PARTS
        return (record is not None and self.backwards >= enough and self._one_trains() and len(record.parts) >= enough
                and record.equal_parts())

    def _one_trains(self) -> bool:
        """Whether one optimizer updates all that is trained; networks that take turns may be switched off meanwhile."""
        now = self._in_use()
        if len(now) != 1 or all(called == id(now[0]) for called in self.calls):
            return len(now) == 1
        own = {id(p) for g in now[0].param_groups for p in g["params"]}
        return all(id(p) in own for o in self.used_optimizers() for g in o.param_groups for p in g["params"])

    def is_boundary(self, optimizer) -> bool:
        """Whether this optimizer's step ends the step of all."""
        if self.last_of_round is None:
            waiting = {id(o) for o in self._in_use()} - self._covered()
            seen = dict.fromkeys(self.calls)
            if waiting and len(self.calls) < _ROUND:
                return False
            self.last_of_round = id(optimizer) if not waiting else list(seen)[-1]
        return id(optimizer) == self.last_of_round

    def _covered(self) -> set:
        """ids of optimizers that were called, or have no parameter that one of those does not update, as a wrapper around one."""
        updated = {id(p) for o in self.used_optimizers() for g in o.param_groups for p in g["params"]}
        return {id(o) for o in self.optimizers if id(o) in self.calls or all(id(p) in updated for g in o.param_groups for p in g["params"])}

    def boundary(self) -> None:
        """One step of the script is over."""
        self.turns.step_ended()
        self.steps += 1
        self.batches_of_step, self.batches = self.batches, 0
        self._keep_loaders()
        self.recorder = None
        record, self.record = self.record, None
        if record is None or record.is_empty():
            if self._world.on_gpu and self.steps >= 2:
                self._world.ends_on_cpu()
        else:
            self.records.append(record)
        self._world.progress(f"step {self.steps}")
        if len(self.records) >= 2 and segment.same(self.records[-2], self.records[-1]) and self.records[-1] in self._whole() and not (
                self.records[-2].partial and self.records[-1].prepares()):
            self.finish(self.records[-2])
        if self.steps >= self._world.request.most_steps or self.steps >= _SOME_STEPS and time.process_time() > _LONG_S:
            self.finish(self._last_or_largest())
        self.begin_record()

    def _keep_loaders(self) -> None:
        """Those of a validation after an epoch give batches in some steps alone."""
        if self.steps > 1:
            known = self.loaders_now if self.loaders_of_all is None else self.loaders_of_all
            self.loaders_of_all = [facts for facts in known if any(facts is other for other in self.loaders_now)]
        self.loaders_now = []

    def _whole(self) -> list:
        """Steps in which most optimizers have their turn, where some of them take turns of their own."""
        most = max((len(record.updated) for record in self.records), default=0)
        return [record for record in self.records if len(record.updated) == most]

    def _last_or_largest(self):
        """The last step; where the steps have the same operators and differ in size, the largest."""
        if not self.records:
            return None
        last = self._whole()[-1]
        most = _MORE * last.operators()
        alike = [r for r in self.records if r.is_whole() and not r.partial and abs(r.operators() - last.operators()) <= most]
        largest = max(alike, key=lambda record: record.made_bytes(), default=last)
        if largest.made_bytes() <= (1 + _MORE) * min((r.made_bytes() for r in alike), default=largest.made_bytes()):
            return last
        self._world.note(f"the script's batches differ in size: the largest of the {len(alike)} steps that were seen is forecast, and a "
                         "larger one takes more")
        return largest

    def finish(self, record) -> None:
        """Ends the run with this record; None: there was no step to record."""
        from ..settings import findings, residents

        if record is None:
            self._world.outcome.kind = "no_step"
            self._world.end()
        self._world.outcome.steps = self.steps
        self._say_what_differs(record)
        findings.collect(self._world, self, record)
        self._say_what_is_beside()
        self._world.outcome.raw = raw = segment.raw_step(record, self)
        self._say_what_updates_multiply(raw, record)
        residents.look_for(self._world, self, record)
        self._world.end()

    def _say_what_updates_multiply(self, raw, record) -> None:
        """Products of matrices of an optimizer's step become operators of the step that is forecast."""
        count = self.products.append_to(raw, record.backwards if record.equal_parts() else 1)
        if count:
            self._world.note(f"the optimizer's step multiplies matrices: its {counted(count, 'product')} are counted at the end of the "
                             "backward")
        for name in sorted(self.products.decomposed):
            self._world.note(f"{name} in the optimizer's step is not counted")

    def _say_what_differs(self, record) -> None:
        """Another step does more in its backward than the one that is kept, or less: a penalty of every sixteenth step, an episode
        of another length. The first step may be the rest of one."""
        own = record.operators()
        for number, other in enumerate(self.records, 1):
            more = other.operators() - own
            if other is not record and other.is_whole() and (more if number == 1 else abs(more)) > _MORE * own:
                self._world.note(f"the backward of step {number} of the script runs {other.operators():,} operators, that of the one "
                                 f"that is forecast {own:,}: what not every step does is not counted")
                return
        own = record.layers()
        for number, other in enumerate(self.records[1:], 2):
            if other is not record and other.is_whole() and abs(other.layers() - own) > _MORE * own:
                self._world.note(f"step {number} of the script runs {other.layers():,} layers, passes without gradient among them, the one "
                                 f"that is forecast {own:,}: what not every step does is not counted")
                return

    def _say_what_is_beside(self) -> None:
        last = self.records[-1] if self.records else None
        if last is None or last.partial or "ema" in self._world.facts:
            return
        others, own = last.beside()
        if others > _BESIDE * own:
            self._world.note(f"before each step the script runs {counted(others, 'operator')} on the device that no step needs, such as an "
                             f"evaluation, beside {own:,} of the step: their time is not counted")

    def script_ended(self) -> bool:
        """The script is over before two steps were equal: whether there is a record to take."""
        usable = [r for r in (*self.records, *([self.record] if self.record else [])) if r.is_whole()]
        if not usable:
            return False
        if self.steps < 2:
            self._world.note(f"the script made {self.steps or 'no'} step{'s' if self.steps != 1 else ''} before it ended: "
                             "what only later steps show is unknown")
        self.finish(usable[-1])
        return True

    # -- operators that the dispatch answers by itself ---------------------------------------------------------------

    def synchronises(self, reason: str) -> None:
        """The host waits for the device."""
        if self.recorder is None:
            return
        if reason == "item":
            self.recorder.item_calls += 1
        self.recorder.events.append(("s", reason))

    def copied_in(self, func, args, kwargs, out) -> None:
        """A tensor of the host was copied to the device: within a module or a backward an operator, else an input of the step."""
        if self.in_backward and self.recorder is not None:
            self.recorder._record(func, args, kwargs, out)  # what was moved to the host when the forward had saved it
            return
        if not self.depth or not self.turns.here():
            self.loads()
            storage = out.untyped_storage()
            self.copied[storage._cdata] = weakref.ref(storage)
        if self.recorder is None:
            return
        if self.depth:
            self.recorder._record(func, args, kwargs, out)
        else:
            self.recorder.add_storage(out, "input")

    def stands_in(self, tensor) -> None:
        """The tensor is in place of one that a pass would have made."""
        if self.recorder is not None:
            self.record.stand_ins[self.recorder.add_storage(tensor, "transient")] = sites.here(2)

    def says(self, sentence: str) -> None:
        self._world.note(sentence)

    def made(self, func, args, kwargs, out):
        """Records an operator that was answered; hands its result on."""
        if self.recorder is not None:
            self.recorder._record(func, args, kwargs, out)
        return out
