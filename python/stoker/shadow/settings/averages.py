"""Moving averages of the weights: a second model that nothing calls, or tensors that the loop keeps in a dict or a list."""

from __future__ import annotations

import collections
import gc

import torch


def look_for(world, watcher, record) -> None:
    """Finds one average, where the script did not name it itself."""
    if "ema" in world.facts:
        return
    gc.unfreeze()  # what is frozen is not among the collector's objects
    if _of_a_model(record):
        world.found("ema", True, "a second copy of the model's weights (a moving average)")
    elif kind := _of_tensors(watcher, record):
        world.found("ema", True, f"a second copy of the model's weights in a {kind} (a moving average)")


def _of_a_model(record) -> bool:
    """A second model like one that is trained, which nothing calls and no gradient reaches."""
    called = {id(module) for root in record.roots for module in root.modules()} | record.called
    for root in record.roots:
        shapes = [(name, tuple(p.shape)) for name, p in root.named_parameters()]
        if not shapes:
            continue
        for other in gc.get_objects():
            if type(other) is not type(root) or id(other) in called:
                continue
            theirs = list(other.named_parameters())
            if [(name, tuple(p.shape)) for name, p in theirs] == shapes and not any(p.grad is not None for _, p in theirs) and all(
                    p.device == q.device for (_, p), q in zip(theirs, root.parameters())):
                return True
    return False


def _of_tensors(watcher, record) -> str:
    """"dict" or "list" where the script keeps one tensor for each trained parameter; otherwise the empty string."""
    wanted = [collections.Counter(tuple(p.shape) for p in root.parameters() if p.requires_grad) for root in record.roots]
    wanted = [shapes for shapes in wanted if shapes]
    if not wanted:
        return ""
    least = min(sum(shapes.values()) for shapes in wanted)
    kept = _Kept(watcher, record)
    for holder in gc.get_objects():
        if not isinstance(holder, (dict, list)) or len(holder) < least:
            continue
        tensors = list(holder.values() if isinstance(holder, dict) else holder)
        if not all(isinstance(t, torch.Tensor) for t in tensors):
            continue
        shapes = collections.Counter(tuple(t.shape) for t in tensors if kept.beside_the_step(t))
        if any(asked <= shapes for asked in wanted):
            return "dict" if isinstance(holder, dict) else "list"
    return ""


class _Kept:
    """Tells tensors that live beside the step from weights, gradients, an optimizer's state and what a step has made."""

    def __init__(self, watcher, record):
        newest = watcher.record or (watcher.records[-1] if watcher.records else record)
        self._recorder = newest.recorder
        events = self._recorder.events
        forward = next((i for i, e in enumerate(events) if e == ("p", "forward")), len(events))
        self._before = {e[1] for e in events[:forward] if e[0] == "a"}
        own = [t for root in record.roots for t in (*root.parameters(), *root.buffers())]
        for optimizer in watcher.optimizers:
            own += [p for group in optimizer.param_groups for p in group["params"]]
            states = [state for state in optimizer.state.values() if isinstance(state, dict)]
            own += [t for state in states for t in state.values() if isinstance(t, torch.Tensor)]
        own += [t.grad for t in own if t.is_leaf and t.grad is not None]
        self._own = {_address(t) for t in own}

    def beside_the_step(self, tensor) -> bool:
        address = _address(tensor)
        if not address or address in self._own or not tensor.is_floating_point() or not self._recorder._on_device(tensor):
            return False
        number = self._recorder.storage_id(tensor)
        if number is None or number in self._before:
            return True
        # A tensor that the forward only reads, as old weights of a penalty, is counted as a buffer of the step.
        return self._recorder.kinds[number] == "buffer" and tensor._version > 0


def _address(tensor) -> int:
    """Where the tensor's storage stands; 0 where it has none."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0
