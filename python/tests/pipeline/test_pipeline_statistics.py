"""Statistics of a pipeline's probe against definitions, simulated data and NumPy."""

import random
import statistics

import pytest

from stoker.pipeline.order import section, stretches
from stoker.pipeline.statistics_of import SampleTimes, correlation, means_by_key, trimmed_mean, within_batch


def rows(*samples):
    """Rows (index, wall ns, CPU ns, bytes) of (index, CPU ms, wait ms, bytes)."""
    return [(index, (cpu + wait) * 1e6, cpu * 1e6, read) for index, cpu, wait, read in samples]


def test_the_mean_without_a_tenth_at_either_end():
    assert trimmed_mean([1000] + [10] * 8 + [-1000]) == 10
    assert trimmed_mean([1, 2, 6]) == 3
    assert trimmed_mean(list(range(1, 21))) == statistics.fmean(range(3, 19))


def test_correlation_is_pearsons():
    numpy = pytest.importorskip("numpy")
    rng = random.Random(4)
    for _ in range(50):
        x = [rng.gauss(0, 1) for _ in range(20)]
        y = [a * rng.choice((-1, 1, 3)) + rng.gauss(0, 1) for a in x]
        assert correlation(x, y) == pytest.approx(numpy.corrcoef(x, y)[0, 1], abs=1e-12)
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert correlation([1, 2], [1, 2]) is None


def test_likeness_within_batches_is_the_share_of_variance_between_them():
    # A cost is a batch's part plus its own; the share of variance that belongs to batches is what simulation set.
    rng = random.Random(9)
    for between, inside in ((1.0, 1.0), (3.0, 1.0), (0.0, 1.0)):
        values, batches = [], []
        for batch in range(4000):
            common = rng.gauss(0, between)
            for _ in range(8):
                values.append(10 + common + rng.gauss(0, inside))
                batches.append(batch)
        truth = between**2 / (between**2 + inside**2)
        assert within_batch(values, batches) == pytest.approx(truth, abs=0.03)
    assert within_batch([1, 2, 3, 4], [0, 0, 1, 1]) == 0, "two batches tell nothing"
    assert within_batch([1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2]) == 1


def test_samples_are_joined_over_rounds_and_the_first_round_only_warms():
    batches = [
        {"round": 0, "queued": 0, "rows": rows((0, 9, 5, 700), (1, 9, 0, 200))},
        {"round": 1, "queued": 0, "bytes_counted": True, "rows": rows((1, 2, 1, 200), (0, 4, 0, 100))},
        {"round": 2, "queued": 0, "rows": rows((0, 6, 0, 0), (1, 2, 3, 0))},
    ]
    times = SampleTimes(batches)
    assert times.rounds == 3
    assert times.cpu_ms() == pytest.approx([5, 2])
    assert times.wait_ms() == pytest.approx([0, 2])
    assert times.file_bytes() == [100, 200], "what the first sample imported is not its own"
    # Round 1 took 4 + 3 of a mean of 5 + 4, round 2 6 + 5: with two passes the widest counts.
    assert times.repeat_spread() == pytest.approx(2 / 9)


def test_what_was_spent_in_the_run_queue_is_no_waiting():
    batches = [{"round": 1, "queued": 2e6, "rows": rows((0, 1, 3, 0), (1, 1, 1, 0))}]
    # Two of the four milliseconds of wall time were another's on the core, shared out by what each lost.
    assert SampleTimes(batches).wait_ms() == pytest.approx([1.5, 0.5])


def test_means_by_key():
    assert means_by_key([("a", 1), ("b", 5), ("a", 3)]) == {"a": 2, "b": 5}


def test_a_short_epoch_is_measured_whole_and_in_its_order():
    batches = [[0, 1], [2, 3], [4, 5], [6]]
    chosen = stretches(batches, most=100, workers=2, rng=random.Random(1))
    assert chosen.whole
    assert sorted(zip(chosen.places, chosen.batches)) == [(0, [0, 1]), (2, [2, 3]), (4, [4, 5]), (6, [6])]
    costs = {index: (index + 0.5, 10.0 * index) for index in range(7)}
    order = section(chosen.batches, chosen.places, chosen.whole, costs, own_batch=2, cut=False)
    assert order == {"whole": True, "stretches": [{"first": 0, "cpu_ms": [i + 0.5 for i in range(7)],
                                                   "wait_ms": [10.0 * i for i in range(7)]}]}


@pytest.mark.parametrize("workers", [0, 1, 3, 4])
def test_stretches_of_a_long_epoch_begin_at_worker_zeros_turn(workers):
    batches = [list(range(8 * number, 8 * number + 8)) for number in range(500)]
    chosen = stretches(batches, most=400, workers=workers, rng=random.Random(2))
    assert not chosen.whole
    assert len(chosen.batches) == len(set(chosen.places)), "no batch is measured twice"
    assert all(place == batch[0] for place, batch in zip(chosen.places, chosen.batches))
    assert 400 <= sum(map(len, chosen.batches)) <= 2 * 400
    numbers = sorted(place // 8 for place in chosen.places)
    begins = [number for number in numbers if number - 1 not in numbers]
    assert all(number % max(1, workers) == 0 for number in begins)
    assert numbers[0] == 0 and numbers[-1] >= 400, "the end of the data set is among them"


def test_an_epoch_that_was_measured_in_part_says_where():
    batches = [[0, 1], [2, 3], [4, 5]]
    order = section(batches, [0, 2, 4], True, {0: (1, 0), 1: (3, 0), 5: (7, 1)}, own_batch=2, cut=False)
    assert order == {"whole": False, "stretches": [{"first": 0, "cpu_ms": [1, 3], "wait_ms": [0, 0]},
                                                   {"first": 4, "cpu_ms": [7, 7], "wait_ms": [1, 1]}]}
    assert section(batches, [0, 2, 4], True, {}, own_batch=2, cut=False) is None
