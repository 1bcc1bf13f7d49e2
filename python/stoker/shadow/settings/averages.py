"""Moving averages of the weights: models beside one that is trained, or tensors that the loop keeps in a dict or a list."""

from __future__ import annotations

import collections
import gc
from dataclasses import dataclass

import torch

from ..recording import names, objects
from . import variables


@dataclass
class Average:
    """A copy of one model's weights that the loop keeps up to date."""

    of: str  # what stands before the names of that model's parameters; empty: it is the only one
    kind: str  # model, dict or list
    addresses: set  # of its storages


def look_for(world, watcher, record) -> list:
    """The averages that the script keeps; they are said as a fact."""
    gc.unfreeze()  # what is frozen is not among the collector's objects
    kinds = {type(root) for root in record.roots}
    kept, things = Kept(watcher, record), objects.of_kind(lambda kind: kind in kinds or issubclass(kind, (dict, list)))
    found = _models(record, kept, [thing for thing in things if type(thing) in kinds])
    if world.outcome.compiled_at:
        things = variables.walk()[0]  # the compiler keeps lists of what it has traced with, which are as large
    found += _of_tensors(record, kept, things, set().union(*(average.addresses for average in found)))
    if found:
        kind = "" if found[0].kind == "model" else f" in a {found[0].kind}"
        words = (f"a second copy of the model's weights{kind} (a moving average)" if len(found) == 1 else
                 f"{len(found)} copies of the model's weights (moving averages)")
        world.found("ema", True, words)
    return found


def _models(record, kept, others: list) -> list:
    """Models like one that is trained, which nothing calls and no gradient reaches, and which the step writes."""
    called = {id(module) for root in record.roots for module in root.modules()} | record.called
    found, seen = [], set()
    for prefix, root in zip(names.prefixes(record.roots), record.roots):
        shapes = [(name, tuple(p.shape)) for name, p in root.named_parameters()]
        if not shapes or not any(p.requires_grad for p in root.parameters()):
            continue
        for other in others:
            if type(other) is not type(root) or id(other) in called or id(other) in seen:
                continue
            theirs = list(other.named_parameters())
            if [(name, tuple(p.shape)) for name, p in theirs] == shapes and not any(p.grad is not None for _, p in theirs) and all(
                    p.device == q.device for (_, p), q in zip(theirs, root.parameters())) and kept.writes(theirs[0][1]):
                seen.add(id(other))
                tensors = [*other.parameters(), *other.buffers()]
                found.append(Average(prefix, "model", {address_of(t) for t in tensors} - {0}))
    return found


def _of_tensors(record, kept, things: list, known: set) -> list:
    """Dicts and lists in which the script keeps one tensor for each trained parameter of a model."""
    wanted = [(prefix, collections.Counter(tuple(p.shape) for p in root.parameters() if p.requires_grad))
              for prefix, root in zip(names.prefixes(record.roots), record.roots)]
    wanted = [(prefix, shapes) for prefix, shapes in wanted if shapes]
    found: list = []
    if not wanted:
        return found
    least = min(sum(shapes.values()) for _, shapes in wanted)
    for holder in things:
        if not issubclass(type(holder), (dict, list)) or variables.count(holder) < least:
            continue
        if not issubclass(type(next(variables.elements(holder))), torch.Tensor):
            continue  # most of them: their other elements are not looked at
        tensors = list(variables.elements(holder))
        if not all(isinstance(t, torch.Tensor) for t in tensors):
            continue
        beside = [t for t in tensors if kept.beside_the_step(t)]
        shapes = collections.Counter(tuple(t.shape) for t in beside)
        of = next((prefix for prefix, asked in wanted if asked <= shapes), None)
        addresses = {address_of(t) for t in beside}
        if of is None or addresses & known:
            continue
        known |= addresses
        found.append(Average(of, "dict" if issubclass(type(holder), dict) else "list", addresses))
    return found


class Kept:
    """Tells tensors that live beside the step from weights, gradients, an optimizer's state and what a step has made."""

    def __init__(self, watcher, record):
        newest = watcher.record or (watcher.records[-1] if watcher.records else record)
        self._recorder = newest.recorder
        self._record = record
        events = self._recorder.events
        forward = next((i for i, e in enumerate(events) if e == ("p", "forward")), len(events))
        self._before = {e[1] for e in events[:forward] if e[0] == "a"}
        self._made = {e[1] for e in events if e[0] == "a"}
        self._written = [{t[3] for e in r.recorder.events if e[0] == "o" for t in e[6]} for r in (newest, record)]
        own = [t for root in record.roots for t in (*root.parameters(), *root.buffers())]
        for optimizer in watcher.optimizers:
            own += [p for group in optimizer.param_groups for p in group["params"]]
            states = [state for state in optimizer.state.values() if isinstance(state, dict)]
            own += [t for state in states for t in state.values() if isinstance(t, torch.Tensor)]
        own += [t.grad for t in own if t.is_leaf and t.grad is not None]
        own += [t._local_tensor for t in own if hasattr(t, "_local_tensor")]  # the shard of a DTensor
        self._own = {address_of(t) for t in own}

    def writes(self, tensor) -> bool:
        """Whether one of the last steps has written it."""
        recorders = (self._recorder, self._record.recorder)
        return any(r.storage_id(tensor) in written for r, written in zip(recorders, self._written))

    def beside_the_step(self, tensor) -> bool:
        """Whether it is a tensor of numbers on the device that the script keeps, be it made before the step's forward."""
        if not tensor.is_floating_point() or not self._is_others(tensor):
            return False
        number = self._recorder.storage_id(tensor)
        if number is None or number in self._before:
            return True
        # A tensor that the forward only reads, as old weights of a penalty, is counted as a buffer of the step.
        return self._recorder.kinds[number] == "buffer" and (tensor._version > 0 or self.writes(tensor))

    def is_untouched(self, tensor, early: bool = False) -> bool:
        """Whether it lies on the device, and neither the step that is forecast nor the newest one has made it or counts it.

        early   it was there before the first step, so that what the newest one takes is a batch that was made beforehand
        """
        if not self._is_others(tensor):
            return False
        number, recorded = self._recorder.storage_id(tensor), self._record.recorder.storage_id(tensor)
        if number in self._made or number is not None and not early and self._recorder.kinds[number] == "input":
            return False
        return recorded is None or recorded not in self._record.counted and self._record.recorder.kinds[recorded] == "buffer"

    def owns(self, address: int) -> bool:
        """Whether weights, gradients or an optimizer's state lie there."""
        return address in self._own

    def _is_others(self, tensor) -> bool:
        if tensor.layout is not torch.strided or not self._recorder._on_device(tensor):
            return False
        address = address_of(tensor)
        return bool(address) and address not in self._own


def address_of(tensor) -> int:
    """Where the tensor's storage stands; 0 where it has none."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0
