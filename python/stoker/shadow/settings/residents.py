"""Tensors that the script keeps on the GPU and whose memory no step shows: networks that only a validation calls, data of a
later step, weights of the best epoch."""

from __future__ import annotations

import gc

import torch

from ...tracing.recorder import DTYPES
from ..recording import objects
from ..sites import Site
from ..world import Fact
from . import variables
from .averages import Kept, address_of

_LEAST_BYTES = 1 << 20  # less is lost among what the allocator keeps anyway


def look_for(world, watcher, record) -> None:
    """Adds up what lies on the device beside the step and its averages."""
    if not world.on_gpu:
        return
    kept = Kept(watcher, record)
    known = set().union(*(average.addresses for average in world.outcome.averages))
    found: dict[int, torch.Tensor] = {}
    owned = _of_the_script() if world.outcome.compiled_at else None  # a compiler keeps the tensors that it has traced with
    # What came since the newest step began, such as the results of a part that was only counted, is gone in the next.
    early = _addresses(watcher.standing_at_first)
    for tensor in (reference() for reference in watcher.standing):
        if tensor is None or owned is not None and address_of(tensor) not in owned:
            continue
        if address_of(tensor) not in known and kept.is_untouched(tensor, address_of(tensor) in early):
            found.setdefault(address_of(tensor), tensor)
    world.outcome.resident_bytes = sum(t.untyped_storage().nbytes() for t in found.values())
    grown = _grown(watcher, record, kept, known)
    if grown >= _LEAST_BYTES:
        world.note(f"{mebibytes(grown)} that a step makes stay on the GPU when the next one is over: where each step adds as much (a "
                   "replay buffer, a list of results, a sum of losses with its graph), the memory grows beyond this forecast")
    if found:
        largest = max(found.values(), key=lambda t: t.untyped_storage().nbytes())
        world.outcome.largest_resident = f"{DTYPES.get(largest.dtype, largest.dtype)} {'x'.join(map(str, largest.shape))}"


def _addresses(references) -> set:
    """Where the tensors lie that are there still."""
    return {address_of(tensor) for tensor in (reference() for reference in references) if tensor is not None}


def _of_the_script() -> set:
    """Addresses of what the script's variables lead to, and of what networks hold, but for graphs that a compiler has traced."""
    gc.unfreeze()  # what is frozen is not among the collector's objects
    modules = objects.of_kind(lambda kind: issubclass(kind, torch.nn.Module) and not issubclass(kind, torch.fx.GraphModule))
    return {address_of(t) for t in variables.walk()[1]} | {
        address_of(t) for module in modules for t in (*module.parameters(recurse=False), *module.buffers(recurse=False))}


def _grown(watcher, record, kept, known: set) -> int:
    """Bytes that the step has made, or brought to the device, and that outlive the next one, weights and averages left out."""
    others = [other for other in watcher.records if other is not record]
    if not others or watcher.records[-1] is record:
        return 0
    recorder, later = record.recorder, others[-1].recorder
    read_later = {t[3] for event in later.events if event[0] == "o" for t in event[5]}
    made = {event[1] for event in recorder.events if event[0] == "a"}
    there = _addresses(watcher.standing_at_first)  # batches made beforehand
    total = 0
    for number, address in recorder._addresses.items():
        if address in known or address in there or kept.owns(address):
            continue
        if number in made or recorder.kinds[number] == "input" and later._ids.get(address) not in read_later:
            total += recorder.bytes[number]
    return total


def mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


def fact(count: int, largest: str) -> Fact | None:
    """The finding that tells of so many bytes; None: they are too few to matter."""
    if count < _LEAST_BYTES:
        return None
    return Fact("resident", count, f"{mebibytes(count)} on the GPU beside the step (the largest: {largest})", Site())
