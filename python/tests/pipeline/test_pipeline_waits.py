"""What the probe learns of samplers, collating that waits, starts that wait, and objects in the pipe."""

import random
import time
from multiprocessing.reduction import ForkingPickler

import numpy
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler, SequentialSampler

from stoker.pipeline import batch_facts, maker, order, piping, source, starting


class Numbers(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return torch.tensor([index])


class Longer(Sampler):
    def __iter__(self):
        return iter([number % 10 for number in range(95)])

    def __len__(self):
        return 95


class Growing(Sampler):
    """Batches of 1, 2, 3, ... samples; it knows no length."""

    def __iter__(self):
        return iter([list(range(size)) for size in range(1, 9)])


def of(loader):
    return source.of(loader, "test")


@pytest.mark.parametrize("loader, samples", [
    (lambda: DataLoader(Numbers(1000), batch_size=8), 1000),
    (lambda: DataLoader(Numbers(1000), batch_size=8, sampler=RandomSampler(range(1000), num_samples=40)), 40),
    (lambda: DataLoader(Numbers(10), batch_size=8, sampler=Longer()), 95),
    (lambda: DataLoader(Numbers(20), batch_sampler=BatchSampler(SequentialSampler(range(20)), 8, drop_last=True)), 16),
    (lambda: DataLoader(Numbers(20), batch_sampler=BatchSampler(SequentialSampler(range(20)), 8, drop_last=False)), 20),
])
def test_an_epoch_is_what_the_sampler_gives(loader, samples):
    assert of(loader()).epoch_samples == samples


def test_a_sampler_that_was_walked_to_its_end_is_known():
    found = of(DataLoader(Numbers(8), batch_sampler=Growing()))
    batches, _ = found.plan(4096, random.Random(1))
    assert found.sampled == sum(range(1, 9)) == sum(len(batch) for batch in batches)


def test_a_hundred_million_samples_need_no_list():
    chunks = order.Chunks(10**8 + 1, 1)
    assert len(chunks) == 10**8 + 1 and list(order.Chunks(10, 4)[2]) == [8, 9]
    few = order.Chunks(1000, 10)
    lazily = order.stretches(few, 200, 2, random.Random(3))
    listed = order.stretches([few[number] for number in range(len(few))], 200, 2, random.Random(3))
    assert (lazily.batches, lazily.places, lazily.whole) == (listed.batches, listed.places, listed.whole)
    assert sum(len(batch) for batch in order.stretches(chunks, 200, 2, random.Random(3)).batches) <= 400


def test_collating_that_waits_is_told_from_its_cpu_time():
    def patient(samples):
        time.sleep(0.02)
        return torch.stack(samples)

    made = maker.Maker(of(DataLoader(Numbers(4), batch_size=4, collate_fn=patient)))
    cpu_ns, facts = made.collate_shared(made.make([0, 1, 2, 3]))
    assert facts["wait_ns"] > 10e6 > cpu_ns


def test_objects_are_pickled_as_a_queue_pickles_them():
    batch = [numpy.ones(1000), "text" * 500]
    assert batch_facts.crossing_of(batch).pickled == len(ForkingPickler.dumps(batch))


def test_messages_of_each_size_go_through_the_pipe():
    told = []
    piping.pipe_pass(lambda kind, value: told.append((kind, *value)), [100_000, 1_000_000], seconds=0.1)
    assert [(kind, size) for kind, size, _ in told] == [("pipe", 100_000), ("pipe", 1_000_000)]
    assert all(ms > 0 for *_, ms in told)


def wait_a_little(_worker):
    time.sleep(0.2)


def test_an_init_function_that_waits_needs_no_core():
    told = {}
    found = of(DataLoader(Numbers(4), batch_size=4, num_workers=1, worker_init_fn=wait_a_little))
    starting.start_pass(found, lambda kind, value: told.update(value), until=time.monotonic() + 1.0)
    assert 150 < told["wait_ms"] <= told["fork_ms"]
