"""What is measured: scenarios by name, each with its data set, collate and own batch size."""

from __future__ import annotations

import dataclasses
import glob
import os
import random
from typing import Callable

from . import datasets

OPENCV_DOC = "/usr/share/doc/opencv-doc"  # Debian's opencv-doc: free pictures
PICTURES = "STOKER_PICTURES"  # the variable that names a folder of JPEG files of one's own
_SEED = 1


class Skipped(Exception):
    """This scenario cannot run here; the message says why."""


@dataclasses.dataclass
class Scenario:
    name: str
    what: str
    batch: int
    pool: int                                    # different samples
    make: Callable[[int], object]                # samples -> data set
    collate: Callable | None = None
    sampler: Callable | None = None              # (data set, samples, batch, seed) -> batch sampler
    files: list = dataclasses.field(default_factory=list)  # that its samples read
    batches_differ: bool = False                 # output bytes vary from batch to batch
    own: object = None                           # what the user's function returned
    worker_init: Callable | None = None
    cut: bool = False                            # the loop leaves an epoch after so many batches; else the data set is cut

    def loader(self, point: dict, samples: int, seed: int):
        """The DataLoader of a point; the order of its samples follows from the seed."""
        import torch
        from torch.utils.data import DataLoader

        data = self.make(samples)
        workers = point["workers"]
        arguments = {"num_workers": workers, "collate_fn": self.collate, "worker_init_fn": self.worker_init}
        if workers > 0:
            arguments.update(prefetch_factor=point["prefetch"], persistent_workers=point["persistent"],
                             multiprocessing_context=point["start_method"])
        if not point["in_order"]:
            arguments["in_order"] = False
        if self.sampler is not None:
            return DataLoader(data, batch_sampler=self.sampler(data, samples, point["batch"], seed), **arguments)
        return DataLoader(data, batch_size=point["batch"], shuffle=True, drop_last=point["drop_last"],
                          generator=torch.Generator().manual_seed(seed), **arguments)


@dataclasses.dataclass
class AsItIs(Scenario):
    """A loader of the user's whose order belongs to it: a stream, a sampler, one sample after the other. Only the settings of
    a point are its own; nothing is shuffled."""

    known: object = None  # the pipeline's Source

    def loader(self, point: dict, samples: int, seed: int):
        from torch.utils.data import DataLoader

        source, workers = self.known, point["workers"]
        arguments = {"num_workers": workers, "collate_fn": source.collate, "worker_init_fn": source.worker_init}
        if workers > 0:
            arguments.update(prefetch_factor=point["prefetch"], persistent_workers=point["persistent"],
                             multiprocessing_context=point["start_method"])
        if not point["in_order"]:
            arguments["in_order"] = False
        if source.own_batches:
            return DataLoader(source.dataset, batch_sampler=source.sampler, **arguments)
        arguments["batch_size"] = point["batch"] if source.auto_collation else None
        if source.kind != "iterable":
            arguments["sampler"] = source.sampler  # None: one after the other
        return DataLoader(source.dataset, **arguments)


def _need_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise Skipped("Pillow is not installed") from None


def _pictures(name: str, what: str, paths: list, pool: int, batch: int, missing: str) -> Scenario:
    _need_pillow()
    if len(paths) < 32:
        raise Skipped(missing)
    paths = sorted(paths)
    random.Random(_SEED).shuffle(paths)
    paths = paths[:pool]
    for path in paths:  # in the page cache before anything is timed
        with open(path, "rb") as file:
            file.read()
    return Scenario(name, f"{len(paths)} {what}", batch, len(paths),
                    lambda samples: datasets.Pictures(paths, samples), files=paths)


def pictures(_folder: str) -> Scenario:
    return _pictures("pictures", "JPEG files of opencv-doc: decode, random crop to 224, flip, normalise",
                     glob.glob(OPENCV_DOC + "/**/*.jpg", recursive=True), 240, 32,
                     f"no JPEG files below {OPENCV_DOC} (Debian package opencv-doc)")


def imagenet(_folder: str) -> Scenario:
    place = os.environ.get(PICTURES)
    if not place:
        raise Skipped(f"{PICTURES} names no folder of JPEG files")
    paths = [path for path in glob.glob(glob.escape(place) + "/*") if path.lower().endswith((".jpg", ".jpeg"))]
    return _pictures("imagenet", "ImageNet pictures: the same transforms", paths, 256, 64,
                     f"fewer than 32 JPEG files in {place}, which {PICTURES} names")


def small_records(folder: str, pool: int = 4000) -> Scenario:
    path = os.path.join(folder, "records.bin")
    if not os.path.exists(path):
        datasets.write_records(path, pool)
    return Scenario("small-records", f"{pool} pictures of 32 x 32 in one binary file: read, shift, flip, normalise",
                    128, pool, lambda samples: datasets.SmallRecords(path, pool, samples), files=[path])


def small_files(folder: str, pool: int = 2000) -> Scenario:
    _need_pillow()
    inner = os.path.join(folder, "small-files")
    os.makedirs(inner, exist_ok=True)
    paths = datasets.write_small_files(inner, pool)
    return Scenario("small-files", f"{pool} PNG files of 32 x 32: decode, shift, flip, normalise", 64, pool,
                    lambda samples: datasets.SmallFiles(paths, samples), files=paths)


def _token_set(pool: int):
    made = datasets.Tokens(pool, pool)

    def of(samples: int):
        made.samples = samples
        return made

    return of


def tokens(_folder: str, pool: int = 1000) -> Scenario:
    return Scenario("tokens", f"{pool} texts of 5 to 400 words, split into pieces in pure Python, padded to the longest",
                    32, pool, _token_set(pool), collate=datasets.padded, batches_differ=True)


def tokens_bucketed(_folder: str, pool: int = 1000) -> Scenario:
    return Scenario(
        "tokens-bucketed", f"the same {pool} texts in batches of like length (a batch sampler)", 32, pool,
        _token_set(pool), collate=datasets.padded, batches_differ=True,
        sampler=lambda data, samples, batch, seed: datasets.ByLength(data.lengths(), samples, batch, seed))


def recordings(_folder: str, pool: int = 64) -> Scenario:
    return Scenario("recordings", f"{pool} made-up recordings: cut, noise, Fourier transforms in numpy; a dict of three "
                    "arrays, a label and a name", 32, pool, lambda samples: datasets.Recordings(pool, samples))


def one_slow(_folder: str, pool: int = 400) -> Scenario:
    return Scenario("one-slow", "numpy work, and every hundredth sample waits 100 ms besides", 16, pool,
                    lambda samples: datasets.OneSlow(pool, samples))


MAKERS = {"pictures": pictures, "imagenet": imagenet, "small-records": small_records, "small-files": small_files,
          "tokens": tokens, "tokens-bucketed": tokens_bucketed, "recordings": recordings, "one-slow": one_slow}


def own(spec: str) -> Scenario:
    """The user's data set, from FILE.py:FUNCTION. Of a DataLoader its batch size and collate are kept."""
    from torch.utils.data import DataLoader

    from ..pipeline import source

    made = source.load(spec)
    name = f"{os.path.basename(spec.rpartition(':')[0])}:{spec.rpartition(':')[2]}"
    known = source.of(made, name)  # refuses what is no data set, and empty ones
    loader = made if isinstance(made, DataLoader) else None
    if known.kind == "iterable" or known.sampler is not None or known.sequential or not known.auto_collation:
        what = "a stream" if known.kind == "iterable" else f"{known.samples} samples"
        return AsItIs(name, f"{what} of {name}, in its own order", known.batch, 1, lambda samples: known.dataset, own=made,
                      cut=True, batches_differ=known.own_batches, known=known)
    return Scenario(name, f"{known.samples} samples of {name}", known.batch, 1,
                    lambda samples: datasets.part_of(known.dataset, samples),
                    collate=loader.collate_fn if loader is not None else None, own=made,
                    worker_init=loader.worker_init_fn if loader is not None else None)
