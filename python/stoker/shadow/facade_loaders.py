"""torch.utils.data.DataLoader as the script finds it: without workers, and with the batch that was asked for."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from . import sites


@dataclass
class LoaderFacts:
    """A DataLoader's settings as the script gave them."""

    batch: int | None
    workers: int
    prefetch: int | None
    pin: bool
    persistent: bool
    drop_last: bool
    shuffle: bool
    samples: int | None
    collate: bool
    site: sites.Site


def install(world) -> None:
    original_init, original_iter = DataLoader.__init__, DataLoader.__iter__
    signature = inspect.signature(original_init)
    first: dict = {}  # id of a data set -> it, and what its first loader was given

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        facts = _facts(given)
        earlier = first.get(id(given["dataset"]))
        if earlier is not None and earlier[0] is given["dataset"] and facts.batch in (earlier[1].batch, world.request.batch):
            facts = earlier[1]  # a library's copy of the script's own loader
        first.setdefault(id(given["dataset"]), (given["dataset"], facts))
        _replace(world, given, facts)
        original_init(*bound.args, **bound.kwargs)
        object.__setattr__(self, "_stoker_facts", facts)

    def __iter__(self):
        world.watcher.loader = getattr(self, "_stoker_facts", None)
        return _Batches(original_iter(self), world, self.__dict__.get("_stoker_facts"))

    DataLoader.__init__, DataLoader.__iter__ = __init__, __iter__


class _Batches:
    """A loader's iterator that tells which loader gave the last batch."""

    def __init__(self, inner, world, facts):
        self._inner, self._world, self._facts = inner, world, facts

    def __iter__(self):
        return self

    def __next__(self):
        watcher = self._world.watcher
        kept, watcher.recorder = watcher.recorder, None if not self._world.on_gpu else watcher.recorder
        try:
            return next(self._inner)
        finally:
            watcher.recorder = kept
            watcher.loader, watcher.last = self._facts, "load"

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def _size(data) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError):
        return None


def _facts(given) -> LoaderFacts:
    sampler = given["batch_sampler"]
    batch = getattr(sampler, "batch_size", None) if sampler is not None else given["batch_size"]
    return LoaderFacts(batch=batch, workers=given["num_workers"] or 0, prefetch=given.get("prefetch_factor"),
                       pin=bool(given["pin_memory"]), persistent=bool(given.get("persistent_workers")),
                       drop_last=bool(given["drop_last"]),
                       shuffle=bool(given["shuffle"]) or isinstance(given["sampler"], torch.utils.data.RandomSampler),
                       samples=_size(given["dataset"]), collate=given["collate_fn"] is not None, site=sites.here(3))


def _replace(world, given, facts) -> None:
    batch = world.request.batch if world.request.batch_by == "loader" else None
    given["num_workers"], given["timeout"], given["pin_memory"] = 0, 0, False
    given["multiprocessing_context"] = None
    for name, value in (("prefetch_factor", None), ("persistent_workers", False), ("worker_init_fn", None)):
        if name in given:
            given[name] = value
    if batch is None or facts.batch is None:
        return
    if given["batch_sampler"] is None:
        given["batch_size"] = batch
    elif hasattr(given["batch_sampler"], "batch_size"):
        given["batch_sampler"].batch_size = batch
