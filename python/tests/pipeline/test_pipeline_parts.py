"""The arithmetic of the probe, without processes."""

import random
import time
import tracemalloc

import numpy
import pytest
import torch

import pipelines
from stoker.errors import ProbeError
from stoker.measure import contention
from stoker.pipeline import (
    batch_facts,
    command,
    findings,
    objects,
    one_worker,
    order,
    pickled,
    source,
    speed,
    stages,
    statistics_of,
    streams,
    transport,
)


def rows(round_, *samples, queued=0):
    return {"round": round_, "rows": list(samples), "queued": queued, "bytes_counted": round_ == 0}


def test_the_first_round_only_warms():
    times = statistics_of.SampleTimes([rows(0, (3, 9e6, 9e6, 100), (4, 9e6, 9e6, 50)), rows(1, (3, 2e6, 2e6, 0), (4, 4e6, 4e6, 0)),
                                       rows(2, (4, 6e6, 6e6, 0), (3, 2e6, 2e6, 0))])
    assert times.kept() == [3, 4] and times.cpu_ms() == [2, 5] and times.file_bytes() == [100, 50]


def test_one_round_alone_counts():
    times = statistics_of.SampleTimes([rows(0, (7, 3e6, 1e6, 10))])
    assert times.cpu_ms() == [1] and times.wait_ms() == [2]


def test_imports_are_no_bytes_of_a_sample():
    times = statistics_of.SampleTimes([rows(0, (7, 1, 1, 9000)), rows(0, (7, 1, 1, 100))])
    assert times.file_bytes() == [100]


def test_the_run_queue_is_no_waiting():
    # 6 ms off the core, 4 of them in the run queue: 2 ms were waited, shared as the time off the core.
    times = statistics_of.SampleTimes([rows(0, (1, 5e6, 1e6, 0), (2, 3e6, 1e6, 0), queued=4e6)])
    assert times.wait_ms() == pytest.approx([4 / 3, 2 / 3])


def test_samples_of_a_stream_are_each_their_own():
    times = statistics_of.SampleTimes([rows(0, (-1, 9, 9, 0)), rows(1, (-1, 2e6, 2e6, 0), (-1, 3e6, 3e6, 0))])
    assert times.cpu_ms() == [2, 3]


def test_passes_that_disagree_are_a_spread():
    slow = [rows(1, (1, 2e6, 2e6, 0), (2, 4e6, 4e6, 0)), rows(2, (1, 3e6, 3e6, 0), (2, 6e6, 6e6, 0))]
    assert statistics_of.SampleTimes(slow).repeat_spread() == pytest.approx(.2)
    assert statistics_of.SampleTimes(slow[:1]).repeat_spread() is None


def test_stretches_of_a_fixed_order():
    batches = [list(range(at, at + 4)) for at in range(0, 4000, 4)]
    found = order.stretches(batches, 400, 2, random.Random(1))
    assert not found.whole and 96 <= len(found.batches) <= 108
    assert all(batch[0] == place for batch, place in zip(found.batches, found.places))
    begins = [place for place in found.places if place - 4 not in found.places]
    assert len(begins) == 12 and all(begin % 8 == 0 for begin in begins), "worker 0's turn"
    assert min(begins) == 0 and max(begins) > 3800, "from the beginning to the end"
    whole = order.stretches(batches, 4000, 2, random.Random(1))
    assert whole.whole and sorted(whole.batches) == batches and whole.batches != batches


def test_costs_in_the_order_of_asking():
    costs = {index: (1.0, float(index % 2)) for index in (0, 1, 2, 3, 8, 9)}
    found = order.section([[8, 9], [0, 1], [2, 3]], [8, 0, 2], False, costs, 2, cut=False)
    assert [stretch["first"] for stretch in found["stretches"]] == [0, 8]
    assert found["stretches"][0]["wait_ms"] == [0, 1, 0, 1] and not found["whole"]
    part = order.section([[0, 1, 4]], [0], True, costs, 3, cut=False)
    assert part["stretches"][0]["wait_ms"] == [.5, .5, .5] and not part["whole"], "measured in part"


def test_a_slow_first_sample_is_the_start_of_a_stream():
    row = streams._row({"cpu_ms": [900.0, 1, 1, 1], "wait_ms": [100.0, 0, 0, 0], "ended": False, "digests": []})
    assert row["start_ms"] == 999 and row["cpu_ms"] == [1, 1, 1, 1] and row["samples"] is None


def test_correlations():
    assert statistics_of.correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert statistics_of.correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert statistics_of.correlation([5, 5, 5], [1, 2, 3]) is None
    alike = [float(batch) for batch in range(10) for _ in range(8)]
    names = [batch for batch in range(10) for _ in range(8)]
    assert statistics_of.within_batch(alike, names) == pytest.approx(1)
    rng = random.Random(1)
    assert statistics_of.within_batch([rng.random() for _ in names], names) < 0.2


def test_a_disturbed_batch_does_not_count():
    assert statistics_of.trimmed_mean([1.0] * 9 + [2.0] * 9 + [900.0, 0.0]) == pytest.approx(1.5)


def test_non_negative_least_squares():
    one, tensors, size = [1.0] * 6, [1.0, 2, 4, 8, 1, 1], [0.0, 0, 0, 0, 1e6, 2e7]
    y = [0.3 + 0.2 * t + 1e-7 * b for t, b in zip(tensors, size)]
    assert transport.non_negative([one, tensors, size], y) == pytest.approx([0.3, 0.2, 1e-7])
    assert transport.non_negative([one, tensors], [5.0 - 0.1 * t for t in tensors])[1] == 0


def test_every_text_of_a_batch_is_pickled():
    ready = transport.Ready(8, 1, 4, 1000)
    batch = torch.utils.data.default_collate(ready.__getitems__(range(8)))
    assert batch_facts.crossing_of(batch).pickled > 8000, "one object would be sent once and referred to"


def test_what_is_no_tensor_is_timed():
    crossing = batch_facts.crossing_of({"tensor": torch.zeros(1000), "boxes": [[float(n)] * 4 for n in range(5000)]})
    assert len(crossing.storages) == 1 and crossing.pickled > 40_000
    assert crossing.dump_ns > 0 and crossing.load_ns > 0
    assert batch_facts.crossing_of([torch.zeros(4)]).load_ns == 0


def test_a_large_data_set_is_pickled_in_time():
    facts, text = pickled.whole([[n] for n in range(20_000)], seconds=9)
    assert facts["picklable"] and facts["pickled_whole"] and facts["pickle_ms"] > 0
    assert len(text) == facts["pickled_bytes"] and pickled.unpickle_ms(text) > 0
    part, text = pickled.whole([b"x" * 100_000 for _ in range(1000)], seconds=0)
    assert not part["pickled_whole"] and text is None and part["pickled_bytes"] < 100_000_000
    bad, text = pickled.whole(lambda: 1, seconds=9)
    assert not bad["picklable"] and text is None


class Held:
    def __init__(self, **members):
        self.__dict__.update(members)


@pytest.mark.parametrize("held", [
    Held(rows=[[number, str(number)] for number in range(30_000)]), Held(by_name={str(number): [number] for number in range(30_000)}),
    Held(array=numpy.arange(2_000_000, dtype=numpy.float64)), Held(words=numpy.array([str(n) for n in range(30_000)], dtype=object)),
    Held(text="word " * 1_000_000, few=[1, 2, 3]), Held(inner=[Held(rows=[b"x" * (n % 100) for n in range(20_000)]) for _ in range(3)])])
def test_parts_of_a_data_set_tell_of_all_of_it(held):
    whole, _ = pickled.whole(held, seconds=60)
    parts = pickled.estimate(held, seconds=0.05)
    assert parts["pickled_bytes"] == pytest.approx(whole["pickled_bytes"], rel=0.15)
    assert parts["pickle_ms"] > 0 and parts["unpickle_ms"] > 0


def test_a_data_set_that_cannot_be_pickled_has_no_estimate():
    assert pickled.estimate(Held(act=lambda: 1), seconds=0.05) is None


def test_coefficients_need_enough_cases():
    run = {"wall": 1.0, "cpu": 0.5, "collate": 0.2, "worker": 0.3}
    assert transport.coefficients([[0, run]], None) == {}
    assert transport.coefficients([[number, run] for number in range(6)], {"epoch_reset_ms": 2}).keys() >= {
        "per_batch_main_ms", "epoch_reset_ms"}


def test_foreign_load_of_several_turns():
    quiet = {"cpu": 100, "wall": 100, "queued": 0, "ticks": 10, "stolen": 0}
    busy = {"cpu": 100, "wall": 150, "queued": 50, "ticks": 10, "stolen": 0}
    assert not contention.of_thread([quiet])["disturbed"]
    found = contention.of_thread([quiet, busy])
    assert found["wall_per_cpu"] == 1.25 and found["run_queue_share"] == 0.2 and found["disturbed"]


def test_nested_stages_count_once():
    watch = stages.Stopwatch()
    inner = watch.timed("inner", lambda: pipelines.spin(20))

    def both():
        pipelines.spin(10)
        inner()

    start = time.thread_time()
    watch.timed("outer", both)()
    total = (time.thread_time() - start) * 1e9
    assert watch.ns["inner"] == pytest.approx(20e6, rel=0.1) and watch.ns["outer"] == pytest.approx(10e6, rel=0.1)
    assert sum(watch.ns.values()) <= total


def test_transforms_are_found_and_go_on_working():
    data = pipelines.Transformed()
    kinds = [type(t) for t in data.transform.transforms]
    watch = stages.Stopwatch()
    assert stages.watch_transforms(data, watch) == 2
    assert all(isinstance(t, kind) for t, kind in zip(data.transform.transforms, kinds))
    data[0]
    assert list(watch.ns) == ["Crop", "Flip"]


def test_a_lambda_and_a_function_are_stages():
    class Data:
        transform = None

    data = Data()
    data.transform = pipelines.Compose([lambda x: x, pipelines.pad_nothing])
    watch = stages.Stopwatch()
    assert stages.watch_transforms(data, watch) == 2 and data.transform(3) == 3
    assert list(watch.ns) == ["lambda", "pad_nothing"]


def test_the_table_of_stages_sums_to_one():
    table = stages.table([("a", 0.5), ("b", 0.3), ("tiny", 0.0001)], 10.0, in_order=True)
    assert [(row["name"], row["ms"]) for row in table] == [("a", 5.0), ("b", 3.0), ("other", 2.0)]
    many = stages.table([(f"line {i}", 0.9 / 40) for i in range(40)], 1.0, in_order=False)
    assert len(many) <= 13 and sum(row["share"] for row in many) == pytest.approx(1, abs=0.01)


def test_long_lists_are_sampled():
    class Data:
        pass

    data = Data()
    data.names = [str(i) * 3 + "x" for i in range(50_000)]
    tally = objects.Tally(5)
    tally.walk(data)
    assert tally.objects == pytest.approx(50_000, rel=0.01)
    numpy = pytest.importorskip("numpy")
    data.names = numpy.zeros(1_000_000)
    tally = objects.Tally(5)
    tally.walk(data)
    assert tally.bytes < 1e5, "data of an array have no reference counts"


def test_an_object_that_contains_itself():
    ring = []
    ring.append(ring)
    tally = objects.Tally(1)
    tally.walk(ring)
    assert tally.objects == 1


def test_runs_of_one_worker_are_averaged():
    assert one_worker.joined([]) is None
    run = {"batches": 4, "interval_ms": 10.0}
    assert one_worker.joined([run, {"batches": 6, "interval_ms": 20.0}]) == {
        "batches": 10, "interval_ms": 15.0, "interval_spread": 0.3333}, "how far the two lie apart"


def test_plans_cover_a_data_set_at_random():
    made = source.of(pipelines.Spins(length=1000), "x")
    plan, fixed = made.plan(500, random.Random(1))
    assert fixed is None
    indices = [index for batch in plan for index in batch]
    assert len(indices) == len(set(indices)) == 500 and max(indices) > 900
    assert {len(batch) for batch in plan[:-1]} == {32}


@pytest.mark.parametrize("text, value", [("20s", 20), ("500ms", 0.5), ("2m", 120), ("7", 7)])
def test_times(text, value):
    assert command.seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "1h 2", "-1s", "nan"])
def test_what_is_no_time(text):
    with pytest.raises(ProbeError, match="--budget"):
        command.seconds(text)


@pytest.mark.parametrize("word, python", [("a.py:f", True), ("folder/a.py", True), ("a.py:", True), ("pictures", False),
                                          ("a.py/pictures", False), ("p.json", False)])
def test_which_probes_are_pythons(word, python):
    assert command.is_for_python([word]) is python


def test_findings_are_counted_and_warnings_come_first():
    found = findings.Findings()
    found.add("b", "Note.", severity="note")
    found.add("a", "Warning.", count=2)
    found.add("a", "Warning.", count=3)
    assert [(row["name"], row["count"]) for row in found.rows()] == [("a", 5), ("b", 1)]


def test_batches_of_slow_moments_do_not_count():
    fast = [{"kernel_ms": 3.0 + 0.01 * i} for i in range(6)]
    slow = [{"kernel_ms": 4.0}] * 3
    assert speed.undisturbed(fast + slow) == fast
    assert speed.undisturbed(fast[:2]) == fast[:2]
    mostly_slow = [{"kernel_ms": ms} for ms in (3.0, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.8)]
    assert len(speed.undisturbed(mostly_slow)) == 5, "two in five count in any case"
    assert speed.Recent().ms() > 0


def test_samples_of_slow_moments_alone_count():
    """Which samples count does not depend on how long they took: a slow one is more often in the way of a slow moment."""
    kept, again, alone, stream = ({"rows": [(index, 9, 9, 0)]} for index in (1, 1, 2, -1))
    assert speed.with_every_sample([kept], [kept, again, alone, stream]) == [kept, alone]


def test_transforms_with_keywords_are_timed():
    class Compose:  # as albumentations': each transform takes and returns keywords
        def __init__(self, transforms):
            self.transforms = transforms

        def __call__(self, **data):
            for transform in self.transforms:
                data = transform(**data)
            return data

    class Blur:
        def __call__(self, image):
            return {"image": image + 1}

    data = pipelines.Spins()
    data.transform = Compose([Blur(), Blur()])
    watch = stages.Stopwatch()
    assert stages.watch_transforms(data, watch) == 2
    assert data.transform(image=1) == {"image": 3} and list(watch.ns) == ["Blur"]


def test_modules_in_a_sequential_are_timed():
    import torch
    from torch.utils.data import ConcatDataset, Subset

    inner = pipelines.Transformed()
    inner.transform = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten(0))
    watch = stages.Stopwatch()
    data = Subset(ConcatDataset([inner]), [0, 1])
    assert stages.watch_transforms(data, watch) == 2
    data[0]
    assert list(watch.ns) == ["Identity", "Flatten"]


def test_of_a_strided_array_a_piece_is_copied_and_not_the_whole():
    flat = numpy.arange(16_000_000, dtype=numpy.float64)  # 128 MB, eight times the piece
    strided = flat.reshape(4000, 4000).T
    assert pickled._of_part(strided, 1)["pickled_bytes"] == pickled._of_part(flat, 1)["pickled_bytes"]
    tracemalloc.start()
    try:
        pickled._of_part(strided, 1)
        assert tracemalloc.get_traced_memory()[1] < 6 * pickled._PIECE
    finally:
        tracemalloc.stop()
