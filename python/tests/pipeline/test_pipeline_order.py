"""Order and shares: what each worker meets, by real loaders whose samples sleep."""

import itertools
import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from stoker.pipeline import probe_pipeline


class Blocks(Dataset):
    """Every second block of eight samples sleeps."""

    def __len__(self):
        return 96

    def __getitem__(self, index):
        if index // 8 % 2:
            time.sleep(3e-3)
        return torch.zeros(8)


class Stripes(IterableDataset):
    """Samples in turn to each worker; worker 1 of several sleeps for each of its own."""

    def __init__(self, samples=240, shares=None):
        self.samples, self.shares = samples, shares

    def __iter__(self):
        info = get_worker_info()
        number, workers = (info.id, info.num_workers) if info else (0, 1)
        part = range(self.samples) if self.shares == "none" else itertools.islice(range(self.samples), number, None, workers)
        if self.shares == "first":
            part = range(self.samples) if number == 0 else ()
        for index in part:
            if workers > 1 and number == 1:
                time.sleep(4e-3)
            yield torch.full((4,), float(index))


def probed(loader):
    return probe_pipeline(loader, name="t.py:f", budget_s=6)


def names(doc):
    return {row["name"] for row in doc["findings"]}


def test_a_fixed_order_is_kept():
    doc = probed(DataLoader(Blocks(), batch_size=8, num_workers=2))
    waits = [wait for stretch in doc["order"]["stretches"] for wait in stretch["wait_ms"]]
    batches = [sum(waits[at:at + 8]) for at in range(0, len(waits), 8)]
    assert len(batches) == 12 and doc["order"]["whole"]
    assert all(slow > 20 for slow in batches[1::2]) and all(fast < 20 for fast in batches[::2])


@pytest.mark.parametrize("loader", [DataLoader(Blocks(), batch_size=8, shuffle=True), Blocks()])
def test_a_shuffled_order_is_none(loader):
    assert probed(loader)["order"] is None


def test_a_sampler_that_repeats_itself_has_an_order():
    batches = [list(range(at, at + 8)) for at in range(88, -1, -8)]
    doc = probed(DataLoader(Blocks(), batch_sampler=batches, num_workers=2))
    (stretch,) = doc["order"]["stretches"]
    assert stretch["wait_ms"][0] > 2 and stretch["wait_ms"][8] < 2, "from the last block on"


def test_each_worker_is_seen_with_its_own_samples():
    doc = probed(DataLoader(Stripes(), batch_size=4, num_workers=2))
    found = next(row for row in doc["streams"] if row["num_workers"] == 2)
    fast, slow = found["workers"]
    assert sum(fast["wait_ms"]) / len(fast["wait_ms"]) < 2 and sum(slow["wait_ms"]) / len(slow["wait_ms"]) > 3
    assert fast["samples"] == 120 and not found["same"]
    assert "streams_differ" in names(doc)


def test_workers_that_get_nothing_or_everything_are_named():
    doc = probed(DataLoader(Stripes(40, "first"), batch_size=4, num_workers=2))
    assert [row["samples"] for row in doc["streams"][0]["workers"]] == [40, 0]
    assert "workers_without_samples" in names(doc)
    doc = probed(DataLoader(Stripes(40, "none"), batch_size=4, num_workers=2))
    assert doc["streams"][0]["same"] and "streams_repeat" in names(doc)
