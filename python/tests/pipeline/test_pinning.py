"""What pin_memory=True reaches, beside PyTorch's own function."""

import collections
import dataclasses
import types

import pytest
import torch
from torch.utils.data._utils import pin_memory as of_torch

from stoker.pipeline import batch_facts, findings, pinning

Pair = collections.namedtuple("Pair", "x y")


def ones(count=8):
    return torch.ones(count)


@dataclasses.dataclass
class Plain:
    x: torch.Tensor
    y: torch.Tensor


@dataclasses.dataclass
class Slotted:
    __slots__ = ("x",)
    x: torch.Tensor


class Pins:
    def __init__(self):
        self.x, self.y = ones(), ones(4)

    def pin_memory(self):
        self.x, self.y = self.x.pin_memory(), self.y.pin_memory()
        return self


class PinsHalf(Pins):
    def pin_memory(self):
        self.x = self.x.pin_memory()
        return self


class GivesOther(Pins):
    def pin_memory(self):
        return {"x": self.x.pin_memory(), "y": self.y.pin_memory()}


class Raises(Pins):
    def pin_memory(self):
        raise AttributeError("no such part")


class Own(dict):
    pass


class Fixed(collections.abc.Sequence):
    def __init__(self, *parts):
        self.parts = parts

    def __getitem__(self, index):
        return self.parts[index]

    def __len__(self):
        return len(self.parts)


BATCHES = {
    "a tensor": (ones(), 0), "a tuple": ((ones(), ones(3), 4, "name"), 0), "a named tuple": (Pair(ones(), [ones(), None]), 0),
    "dicts in dicts": ({"a": {"b": {"c": ones()}}, "d": [ones(), (ones(),)]}, 0), "a dict's heir": (Own(x=ones()), 0),
    "a read-only mapping": (types.MappingProxyType({"x": ones()}), 0), "a sequence": (Fixed(ones(), ones()), 0),
    "a dataclass": (Plain(ones(), ones(4)), 48), "one in a tuple": ((ones(), Plain(ones(), ones(4))), 48),
    "one with slots": ({"x": Slotted(ones())}, 32), "a set": ({ones(), ones(2)}, 40), "a method": (Pins(), 0),
    "a method that forgets": (PinsHalf(), 16), "a method that gives something else": (GivesOther(), 0),
    "a namespace": (types.SimpleNamespace(x=ones()), 32),
    "nothing": (None, 0), "numbers": ([1, 2.5, "text", b"bytes"], 0)}


def storages_of(thing, seen=None):
    """Storages of all tensors that can be reached, by hand."""
    seen = {} if seen is None else seen
    if isinstance(thing, torch.Tensor):
        seen[thing.untyped_storage()._cdata] = thing.untyped_storage()
    elif isinstance(thing, collections.abc.Mapping):
        for part in thing.values():
            storages_of(part, seen)
    elif isinstance(thing, (list, tuple, set, Fixed)):
        for part in thing:
            storages_of(part, seen)
    elif isinstance(thing, Slotted):
        storages_of(thing.x, seen)
    elif hasattr(thing, "__dict__"):
        storages_of(vars(thing), seen)
    return list(seen.values())


@pytest.mark.parametrize("name", BATCHES)
def test_what_is_left_is_what_pytorch_leaves(name, monkeypatch):
    batch, left = BATCHES[name]
    storages = storages_of(batch)
    found = pinning.left_unpinned(batch, storages)
    assert (found["bytes"] if found else 0) == left
    pinned = set()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self, *_: pinned.add(self.untyped_storage()._cdata) or self)
    of_torch.pin_memory(batch)
    assert sum(s.nbytes() for s in storages if s._cdata not in pinned) == left


def test_the_storages_of_a_batch_are_those_of_its_pickle():
    for name in ("a dataclass", "one in a tuple", "a method", "dicts in dicts", "a sequence"):
        batch = BATCHES[name][0]
        assert {s._cdata for s in batch_facts.crossing_of(batch).storages} == {s._cdata for s in storages_of(batch)}, name


def test_the_type_that_hides_the_tensors_is_named():
    assert pinning.left_unpinned((ones(), {"y": Plain(ones(), ones())}), storages_of(Plain(ones(), ones())))["type"] == "Plain"
    assert pinning.left_unpinned(PinsHalf(), storages_of(PinsHalf()))["type"] == "PinsHalf"


def test_a_method_that_raises_is_told():
    found = pinning.left_unpinned(Raises(), storages_of(Raises()))
    assert found["error"] == "AttributeError: no such part"
    rows = findings.Findings()
    rows._pinning(found, {"loader": {"pin_memory": True}})
    assert [row["name"] for row in rows.rows()] == ["pin_memory_raised", "batch_not_pinned"]
    assert all(row["severity"] == "warning" for row in rows.rows())


def test_without_pinning_it_is_a_note():
    rows = findings.Findings()
    rows._pinning({"bytes": 48 << 20, "type": "Batch", "error": None}, {"loader": {"pin_memory": False}})
    assert [(row["severity"], "48.0 MiB" in row["advice"], "Batch" in row["advice"]) for row in rows.rows()] == [("note", True, True)]


def test_pinning_is_put_back():
    before = torch.Tensor.pin_memory
    pinning.left_unpinned(Raises(), [])
    assert torch.Tensor.pin_memory is before
