"""What the probe learns of samplers, collating that waits, starts that wait, and objects in the pipe."""

import random
import time
from multiprocessing.reduction import ForkingPickler

import numpy
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler, SequentialSampler

from stoker.pipeline import batch_facts, interleaved, maker, order, passes, piping, source, starting, streams


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


@pytest.mark.parametrize("shared", [False, True])
def test_copying_into_shared_memory_is_told_from_collating(shared):
    def collate(samples):
        made = torch.ones(1_000_000)
        return made.share_memory_() if shared else made

    made = maker.Maker(of(DataLoader(Numbers(4), batch_size=4, collate_fn=collate)))
    cpu_ns, facts = made.collate_shared(made.make([0, 1, 2, 3]))
    assert facts["bytes"] == 4_000_000 and 0 <= facts["share_ns"] <= cpu_ns
    assert (facts["share_ns"] > 0) is not shared


class Lists(Numbers):
    """Samples that are there already, and take long to pickle."""

    def __getitem__(self, index):
        return self.made

    made = [[number] for number in range(20_000)]


def test_a_few_batches_tell_what_pickling_takes():
    def told(dataset):
        found = maker.Maker(of(DataLoader(dataset, batch_size=2, collate_fn=list)))
        return [found.collate_shared(found.make([0, 1])) is not None for _ in range(20)]

    assert told(Lists(4)) == [True] * 6 + [False] * 14, "pickling is a quarter of the time at most"
    assert told(Numbers(4))[:6] == [True] * 6


def test_slices_are_planned_by_what_slices_took():
    data = of(DataLoader(Numbers(1000), batch_size=10))
    plan = [list(range(start, start + 10)) for start in range(0, 1000, 10)]
    found = interleaved.Interleaved(data, None, plan=plan, sizes=[], seconds=10, wall_ms=0.1, tick=None)
    assert len(found._some(plan, 0.2)) == 100
    found._learn([{"rows": [None] * 10}], 0.02)
    assert len(found._some(plan, 0.2)) == 10, "2 ms a sample with all that a slice does besides"
    found._learn([{"rows": [None] * 10}], 1e-6)
    assert len(found._some(plan, 0.2)) == 100, "a sample takes what it takes"


def test_processes_beside_each_other_stop_in_time():
    class Child:
        def ask(self, command):
            self.seconds = command["until"] - command["begin"]

        def answer(self, deadline, tick):
            return {"rows": []}

    found = interleaved.Interleaved(of(DataLoader(Numbers(10), batch_size=10)), None, plan=None, sizes=[], seconds=10, wall_ms=1,
                                    tick=None)
    child = Child()
    assert found._main_rows([child, child], [[0] * 10], False, 2.0) == [] and child.seconds == pytest.approx(2)
    found._main_rows([child, child], [[0] * 10], False, 0.01)
    assert child.seconds == pytest.approx(1.5 * 40e-3), "40 samples of 1 ms are made all the same"


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
    starting.start_pass(found, lambda kind, value: told.update(value), until=time.monotonic() + 5.0)
    assert 150 < told["wait_ms"] <= told["fork_ms"]


class Opens(Numbers):
    """Opens something at its first sample."""

    opened = False

    def __getitem__(self, index):
        if not self.opened:
            time.sleep(0.7)
            self.opened = True
        return torch.tensor([index])


def first_look(loader, **arguments):
    told = {}
    passes.first_look(of(loader), lambda kind, value: told.update({kind: value}), **arguments)
    return told


def test_a_slow_first_sample_is_no_measure_of_the_others():
    told = first_look(DataLoader(Opens(500), batch_size=4))
    assert told["sample"]["first_wall_ms"] >= 700 and len(told["speed"]["walls"]) > 3
    assert max(told["speed"]["walls"]) < 700
    assert len(first_look(DataLoader(Opens(500), batch_size=4), slow_s=0.1)["speed"]["walls"]) == 1, "too slow to wait for more"


def test_samples_at_random_places_stand_beside_a_fixed_order():
    costs = {index: (1.0, 0.0) for index in range(8)}
    batches = [[0, 1, 2, 3], [4, 5, 6, 7]]
    found = order.section(batches, [0, 4], False, costs, 4, False, anywhere=[2.0, 4.0] * 8)
    assert found["random_ms"] == 3.0 and found["random_error_ms"] == pytest.approx(1.0327955589886444 / 4)
    assert "random_ms" not in order.section(batches, [0, 4], False, costs, 4, False, anywhere=[2.0])


def test_seeds_that_decide_the_cost_of_a_stream_are_told_from_chance():
    assert streams.spread_of([1.0, 1.1] * 10, [3.0, 3.1] * 10) == pytest.approx(2.0 / 4.1)
    assert streams.spread_of([1.0, 9.0] * 10, [2.0, 9.0] * 10) is None, "values vary by more"
    assert streams.spread_of([1.0, 1.001] * 10, [1.1, 1.101] * 10) is None, "too near to matter"
    assert streams.spread_of([1.0], [9.0]) is None


def test_a_first_sample_that_opens_something_is_the_starts():
    rows = [(7, 1500e6, 1e6, 9000), (8, 3e6, 1e6, 100), (9, 3e6, 1e6, 100)]
    assert interleaved._without_imports({"rows": rows})["rows"][0] == (7, 3e6, 1e6, 100)
    rows[0] = (7, 30e6, 1e6, 100)
    assert interleaved._without_imports({"rows": rows})["rows"][0] == rows[0], "an uneven one stays"
