"""What is probed: a Dataset or a DataLoader, and which samples of it are measured."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib.util
import inspect
import itertools
import pathlib
import random
import sys
import time

from .. import imports
from ..errors import ProbeError
from ..user_code import user_code
from . import order

DEFAULT_BATCH = 32  # where the user named none
_SAMPLER_TIME_S = 1.0  # to walk a sampler of the user's own
_SAMPLER_BATCHES = 4096
_MANY_INDICES = 1 << 20  # fewer are listed in no time


class Indices(list):
    """An index that is a list (a sampler of batches beside batch_size=None), and can be a key."""

    def __hash__(self):
        return hash(tuple(self))


def plain_index(index):
    """What a sampler gave, as an int or as Indices where it is a number or a list of numbers of torch or numpy."""
    if isinstance(index, (int, str, tuple)):
        return index
    if callable(getattr(index, "tolist", None)):
        index = index.tolist()  # a tensor without dimensions becomes a number
    return Indices(map(plain_index, index)) if isinstance(index, list) else index


@dataclasses.dataclass
class Source:
    """The data set with what its loader says about it."""

    name: str
    dataset: object
    loader: object  # the DataLoader, or None
    kind: str  # "map" or "iterable"
    samples: int | None
    batch: int  # asked for
    collate: object
    auto_collation: bool = True  # False: the data set makes whole batches (batch_size=None)
    worker_init: object = None
    sampler: object = None  # the user's: yields indices, or lists of them (batch_sampler)
    own_batches: bool = False
    cap: int | None = None  # samples of a batch that are made at most, where one takes long
    sequential: bool = False  # the loader asks for 0, 1, 2, ...
    epoch_samples: int | None = None  # that the sampler says it gives
    sampler_ms: float = 0.0  # until it gave its first batch
    sampled: int | None = None  # samples of a whole epoch, where walking the sampler came to its end

    def plan(self, most: int, rng: random.Random) -> tuple:
        """(batches of indices, order.Stretches or None); a map-style data set's only.

        `most` samples or fewer: in random order, or where the loader's order is fixed in stretches of neighbours.
        """
        workers = self.loader.num_workers if self.loader is not None else 0
        if self.sequential:
            found = order.stretches(order.Chunks(self.samples, self.batch), most, workers, rng)
            found.batches = [list(batch) for batch in found.batches]
            return found.batches, found
        if self.sampler is not None:
            return self._from_sampler(most, workers, rng)
        self._time_shuffling()
        return self._at_random(most, rng), None

    def _time_shuffling(self) -> None:
        """What the loader's own RandomSampler takes to list its indices, in proportion from a shorter one."""
        from torch.utils.data import RandomSampler

        if self.loader is None or type(self.loader.sampler) is not RandomSampler or self.loader.sampler.replacement:
            return
        if self.samples < _MANY_INDICES:
            return
        begin = time.perf_counter()
        next(iter(RandomSampler(range(_MANY_INDICES))))
        self.sampler_ms = 1e3 * (time.perf_counter() - begin) * self.samples / _MANY_INDICES

    def _at_random(self, most: int, rng: random.Random) -> list:
        count = min(most, self.samples)
        chosen = rng.sample(range(self.samples), count)
        size = min(self.batch, self.cap or self.batch)
        return [chosen[i:i + size] for i in range(0, count, size)]

    def _walk_sampler(self) -> list:
        """Batches of one epoch, as many as the user's sampler gives in a second."""
        begin = time.monotonic()
        found, given = [], 0
        indices = iter(self.sampler)
        batches = indices if self.own_batches else iter(lambda: list(itertools.islice(indices, self.batch)), [])
        for batch in batches:
            found.append([plain_index(index) for index in batch][:self.cap])
            given += len(batch)
            if len(found) == 1:
                self.sampler_ms = 1e3 * (time.monotonic() - begin)
            if len(found) >= _SAMPLER_BATCHES or time.monotonic() > begin + _SAMPLER_TIME_S:
                break
        else:
            self.sampled = given
        return found

    def _from_sampler(self, most: int, workers: int, rng: random.Random) -> tuple:
        """The user's own order: stretches of it where it is the same twice, else batches chosen at random."""
        found, again = self._walk_sampler(), self._walk_sampler()
        both = min(len(found), len(again))
        if both > 1 and found[:both] == again[:both]:
            fixed = order.stretches(found, most, workers, rng)
            return fixed.batches, fixed
        return self._some(found, most, rng), None

    @staticmethod
    def _some(found: list, most: int, rng: random.Random) -> list:
        rng.shuffle(found)
        kept, count = [], 0
        for batch in found:
            if kept and count + len(batch) > most:
                break
            kept.append(batch)
            count += len(batch)
        return kept


def load(spec: str):
    """What FILE.py:FUNCTION returns."""
    path, separator, function_name = spec.rpartition(":")
    if not separator or not path.endswith(".py") or not function_name:
        raise ProbeError(f"'{spec}' names no function: write FILE.py:FUNCTION, a function that returns a Dataset or a "
                         "DataLoader, or a training script with its arguments: FILE.py -- ARGUMENTS")
    file = pathlib.Path(path)
    if not file.is_file():
        raise ProbeError(f"there is no file {path}: check the path before the colon of '{spec}'")
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(module_spec)
    sys.modules.setdefault(file.stem, module)
    imports.make_importable(str(file.resolve().parent))
    with user_code(f"{path} could not be imported"):
        module_spec.loader.exec_module(module)
    function = getattr(module, function_name, None)
    if function is None:
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        close = difflib.get_close_matches(function_name, names, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ProbeError(f"{path} has no function '{function_name}'{hint}")
    if not callable(function) or _is_data(function):
        return function  # a data set or a loader made by the file itself
    _check_arguments(function, spec)
    with user_code(f"{spec} could not be called"):
        return function()


def _is_data(thing) -> bool:
    from torch.utils.data import DataLoader, Dataset

    return isinstance(thing, (Dataset, DataLoader))


def _check_arguments(function, spec: str) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.KEYWORD_ONLY,
                                                                                p.POSITIONAL_OR_KEYWORD)]
    if needed:
        raise ProbeError(f"{spec} needs the argument{'s' if len(needed) > 1 else ''} {', '.join(needed)}: give each a "
                         "default, or write a function without arguments that calls it")


def of(thing, name: str) -> Source:
    """A Source from a DataLoader, a Dataset, or anything with __getitem__ and __len__."""
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    loader = thing if isinstance(thing, DataLoader) else None
    dataset = loader.dataset if loader is not None else thing
    if isinstance(dataset, type):
        raise ProbeError(f"{name} gave the class {dataset.__name__} where an object belongs: return {dataset.__name__}"
                         "(...)")
    iterable = isinstance(dataset, IterableDataset)
    if not iterable and not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise ProbeError(f"{name} returned {_what(dataset)}: return a torch.utils.data.Dataset (with __len__ and "
                         "__getitem__), an IterableDataset, or a DataLoader")
    if isinstance(dataset, (str, bytes, dict)):
        raise ProbeError(f"{name} returned {_what(dataset)}: return a Dataset or a DataLoader")
    samples = _length(dataset, iterable, name)
    if samples == 0:
        raise ProbeError(f"{name} is empty (its length is 0): check the folder or the list that it reads")
    source = Source(name, dataset, loader, "iterable" if iterable else "map", samples, DEFAULT_BATCH, default_collate)
    if loader is not None:
        _read_loader(source, loader)
    source.batch = max(1, min(source.batch, samples or source.batch))
    source.epoch_samples = _epoch_samples(source)
    return source


def _epoch_samples(source: Source):
    """What the loader's sampler says it gives: fewer or more than the data set has, where the user chose it so."""
    if source.loader is None or source.kind == "iterable":
        return source.samples
    try:
        if source.own_batches:
            size = getattr(source.sampler, "batch_size", None)
            whole = not getattr(source.sampler, "drop_last", False)
            return source.samples if not isinstance(size, int) else min(source.samples, len(source.sampler) * size) \
                if whole else len(source.sampler) * size
        return max(1, len(source.loader.sampler))
    except Exception:  # a length that is not known, or wrong code of the user's
        return source.samples


def _what(thing) -> str:
    return "None" if thing is None else f"{'an' if type(thing).__name__[:1].lower() in 'aeiou' else 'a'} " \
                                        f"{type(thing).__name__}"


def _length(dataset, iterable: bool, name: str):
    """len(dataset); None where an IterableDataset does not know it."""
    try:
        return int(len(dataset))
    except (TypeError, NotImplementedError):
        if iterable:
            return None
        raise ProbeError(f"{name} does not know its length: give the data set a __len__ that returns the number of "
                         "samples") from None
    except Exception as error:
        raise ProbeError(f"len() of {name} failed ({type(error).__name__}: {error}): mend its __len__") from None


def _read_loader(source: Source, loader) -> None:
    from torch.utils.data import RandomSampler, SequentialSampler

    source.collate = loader.collate_fn
    source.worker_init = loader.worker_init_fn
    source.auto_collation = loader.batch_size is not None or loader.batch_sampler is not None
    if source.kind == "iterable":
        source.batch = loader.batch_size or 1
        return
    if loader.batch_size is not None:
        source.batch = loader.batch_size
        source.sequential = type(loader.sampler) is SequentialSampler
        if type(loader.sampler) not in (RandomSampler, SequentialSampler):
            source.sampler = loader.sampler
    elif loader.batch_sampler is not None:
        source.sampler, source.own_batches = loader.batch_sampler, True
        size = getattr(loader.batch_sampler, "batch_size", None)
        source.batch = size if isinstance(size, int) and size > 0 else DEFAULT_BATCH
    else:  # what the sampler gives goes to the data set as it is, often a list of indices
        source.batch = 1
        source.sequential = type(loader.sampler) is SequentialSampler
        if type(loader.sampler) not in (RandomSampler, SequentialSampler):
            source.sampler = loader.sampler
            with contextlib.suppress(Exception):  # a length that is not known, or wrong code of the user's
                source.samples = max(1, len(loader.sampler))


def loader_facts(source: Source):
    """The object "loader" of the file; None for a Dataset."""
    loader = source.loader
    if loader is None:
        return None
    from torch.utils.data import RandomSampler, default_collate
    from torch.utils.data._utils.collate import default_convert

    context = loader.multiprocessing_context
    method = context.get_start_method() if context is not None else _default_method()
    return {
        "batch_size": loader.batch_size if loader.batch_size is not None else None if source.own_batches else 1,
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "drop_last": bool(loader.drop_last),
        "in_order": bool(getattr(loader, "in_order", True)),
        "start_method": method if method in ("fork", "spawn", "forkserver") else "fork",
        "shuffle": source.kind == "map" and isinstance(loader.sampler, RandomSampler),
        "timeout_ms": 1e3 * loader.timeout,
        "batch_sampler": source.own_batches,
        "custom_collate": loader.collate_fn not in (default_collate, default_convert),
    }


def _default_method() -> str:
    import multiprocessing

    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
