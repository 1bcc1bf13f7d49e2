"""torch.utils.data.DataLoader as the script finds it: without workers, and with the batch that was asked for."""

from __future__ import annotations

import functools
import inspect
import itertools
import multiprocessing
import time
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader

from .. import sites
from . import chance


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
    data: object = None
    start: str = "fork"
    uneven: bool = False  # a sampler of the script's own decides how many samples make a batch, as one of equal durations


def install(world) -> None:
    original_init, original_iter = DataLoader.__init__, DataLoader.__iter__
    signature = inspect.signature(original_init)
    first = world.loaders

    @functools.wraps(original_init)  # Lightning asks for its parameters
    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        facts = _facts(given)
        _look_at_batches(world, given["batch_sampler"], facts)
        earlier = first.get(id(given["dataset"]))
        if earlier is not None and earlier[0] is given["dataset"] and facts.batch in (earlier[1].batch, world.request.batch):
            facts = earlier[1]  # a library's copy of the script's own loader
        first.setdefault(id(given["dataset"]), (given["dataset"], facts))
        _replace(world, given, facts)
        original_init(*bound.args, **bound.kwargs)
        object.__setattr__(self, "_stoker_facts", facts)

    def __iter__(self):
        if world.watcher.turns.loads():
            world.watcher.loader = getattr(self, "_stoker_facts", None)
        return _Batches(original_iter(self), world, self.__dict__.get("_stoker_facts"))

    DataLoader.__init__, DataLoader.__iter__ = __init__, __iter__


class _Batches:
    """A loader's iterator that tells which loader gave the last batch."""

    def __init__(self, inner, world, facts):
        self._inner, self._world, self._facts = inner, world, facts
        self._chance = chance.Chance()

    def __iter__(self):
        return self

    def __next__(self):
        watcher = self._world.watcher
        kept, watcher.recorder = watcher.recorder, None if not self._world.on_gpu else watcher.recorder
        try:
            with self._chance.own():
                batch = next(self._inner)
            if watcher.turns.loads():
                watcher.batches += 1
                if watcher.steps:
                    watcher.loaders_of_steps.add(id(self._facts))
                if self._facts is not None and not any(self._facts is facts for facts in watcher.loaders_now):
                    watcher.loaders_now.append(self._facts)
            return batch
        finally:
            watcher.recorder = kept
            if watcher.turns.loads():
                watcher.loader = self._facts
            watcher.loads()

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
                       samples=_size(given["dataset"]), collate=given["collate_fn"] is not None, site=sites.here(3), data=given["dataset"],
                       start=_start_method(given.get("multiprocessing_context")))


def _start_method(context) -> str:
    """How the loader starts its workers: what it was given, else what the process has set, else Python's default."""
    method = context if isinstance(context, str) else context.get_start_method() if context is not None \
        else multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return method if method in ("fork", "spawn", "forkserver") else "fork"


def _replace(world, given, facts) -> None:
    batch = world.request.batch if world.request.batch_by == "loader" else None
    if world.request.bounded:
        _one_sample(world, given, facts)
    given["num_workers"], given["timeout"], given["pin_memory"] = 0, 0, False
    given["multiprocessing_context"] = None
    for name, value in (("prefetch_factor", None), ("persistent_workers", False), ("worker_init_fn", None)):
        if name in given:
            given[name] = value
    if batch is None or facts.batch is None:
        return
    if world.request.smallest_batch is not None:
        batch = max(1, round(batch * facts.batch / world.request.smallest_batch))
    world.outcome.batch_replaced = True
    if given["batch_sampler"] is None:
        given["batch_size"] = batch
    elif hasattr(given["batch_sampler"], "batch_size"):
        given["batch_sampler"].batch_size = batch
    elif not world.request.bounded:
        given["batch_sampler"] = _Resized(given["batch_sampler"], batch)


_BATCHES_SEEN = 8


def _look_at_batches(world, sampler, facts) -> None:
    """How large the batches of a sampler of the script's own are, which says so by what it gives alone."""
    if sampler is None or facts.batch is not None:
        return
    try:
        batches = iter(sampler)
        sizes = [] if batches is sampler else [len(indices) for indices in itertools.islice(batches, _BATCHES_SEEN)]
    except Exception:
        return  # the loop that asks for them shows why
    facts.batch = max(sizes, default=None)
    facts.uneven = sum(size < facts.batch for size in sizes) > 1  # one alone is what is left of an epoch
    if len(set(sizes)) > 1 and not facts.uneven:
        world.note(f"{facts.site}: batches of {min(sizes)} to {max(sizes)} samples: the largest of the first {len(sizes)} is taken")


class _Resized:
    """Batches of another size, made of the samples that a sampler of the script's own puts together."""

    def __init__(self, sampler, batch: int):
        self._sampler, self._batch = sampler, batch

    def __iter__(self):
        for indices in self._sampler:
            yield list(itertools.islice(itertools.cycle(indices), self._batch))

    def __len__(self):
        return len(self._sampler)

    def __getattr__(self, name):
        if name == "_sampler":  # a copy that is being made has none yet
            raise AttributeError(name)
        return getattr(self._sampler, name)


_SAMPLES_SEEN, _SECONDS = 32, 2.0  # how much of a data set is looked at for its largest sample


class _Same:
    """A sampler that gives one sample always, or batches of it; all else is the sampler's in whose place it stands."""

    def __init__(self, sampler, index, count: int, batch_size: int | None = None):
        self._sampler, self._index, self._count, self.batch_size = sampler, index, count, batch_size

    def __iter__(self):
        for _ in range(self._count):
            yield self._index if self.batch_size is None else [self._index] * self.batch_size

    def __len__(self):
        return self._count

    def set_epoch(self, epoch):
        return None

    def __getattr__(self, name):
        return getattr(self._sampler, name)


def _one_sample(world, given, facts) -> None:
    """Every batch is made of one sample, so that its sizes follow from their number: the largest of the first ones."""
    data, samples = given["dataset"], facts.samples
    if isinstance(data, torch.utils.data.IterableDataset) or not samples or facts.batch is None:
        return
    index = _largest(data, samples)
    if given["batch_sampler"] is not None:
        given["batch_sampler"] = _Same(given["batch_sampler"], index, max(1, samples // facts.batch), facts.batch)
    else:
        given["sampler"], given["shuffle"] = _Same(given["sampler"], index, samples), None
    world.note(f"{facts.site}: samples are taken to be as large as the largest of the first {min(samples, _SAMPLES_SEEN)}")


def _largest(data, samples: int) -> int:
    start, sizes = time.monotonic(), []
    for index in range(min(samples, _SAMPLES_SEEN)):
        sizes.append(_elements(data[index]))
        if time.monotonic() - start > _SECONDS:
            break
    return max(range(len(sizes)), key=sizes.__getitem__)


def _elements(sample) -> int:
    """How much a sample holds: elements of tensors and arrays, characters of text."""
    total = 0
    for leaf in pytree.tree_leaves(sample):
        count = getattr(leaf, "numel", None)
        size = getattr(leaf, "size", None)
        if callable(count):
            total += count()
        elif isinstance(leaf, (str, bytes)):
            total += len(leaf)
        else:
            total += size if isinstance(size, int) else 1
    return total
