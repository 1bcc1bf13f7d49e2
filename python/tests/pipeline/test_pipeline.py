"""The probe of a Dataset or DataLoader: what it measures. No test asserts on a wall time; CPU time is spun exactly."""

import json
import os
import statistics
import sys

import pytest
import torch
from torch.utils.data import DataLoader

import pipelines
from places import REPOSITORY, SUPPORT
from stoker import cli
from stoker.pipeline import probe_pipeline

HERE = SUPPORT / "pipelines.py"


def probe(thing, budget_s=1.5):
    return probe_pipeline(thing, name="pipelines.py:x", budget_s=budget_s)


def probe_until(thing, has, budget_s):
    """A probe of which has(doc) is true: what a busy machine found no time for, it finds in a larger budget."""
    for factor in (1, 3, 9):
        doc = probe(thing, factor * budget_s)
        if has(doc):
            break
    return doc


def finding(doc, name):
    return next((row for row in doc["findings"] if row["name"] == name), None)


@pytest.fixture(scope="module")
def spun():
    return probe_until(pipelines.Spins(ms=1.0), lambda doc: len(doc["batch"]) > 1 and doc["batch"][0]["collate_private_ms"], 3)


def test_cpu_time_is_the_samples_own(spun):
    cpu = spun["sample"]["cpu_ms"]
    # What is spun is exact on the thread's clock; the tensor comes on top.
    assert 1.0 <= statistics.fmean(cpu) < 1.3
    assert spun["samples"] == 64 and spun["kind"] == "map" and spun["loader"] is None
    assert spun["sample"]["within_batch_correlation"] == 0


def test_batches_are_measured_at_several_sizes(spun):
    rows = spun["batch"]
    assert [row["batch"] for row in rows] == sorted({row["batch"] for row in rows}) and len(rows) >= 2
    for row in rows:
        assert row["bytes"] == row["samples"] * (4000 + 8) and row["tensors"] == 2
        assert row["collate_shared_ms"] > 0 and row["collate_private_ms"] > 0


def test_waiting_is_told_from_working():
    doc = probe(pipelines.Sleeps(ms=1.0))
    assert statistics.fmean(doc["sample"]["wait_ms"]) >= 1.9
    assert statistics.fmean(doc["sample"]["cpu_ms"]) < 1.5


def test_a_loader_keeps_its_settings():
    doc = probe(pipelines.loader())
    assert doc["loader"] == {
        "batch_size": 16, "num_workers": 3, "prefetch_factor": 4, "pin_memory": False, "persistent_workers": False,
        "drop_last": True, "in_order": True, "start_method": "fork", "shuffle": True, "batch_sampler": False, "timeout_ms": 0.0,
        "custom_collate": False}
    assert 16 in [row["batch"] for row in doc["batch"]]


def test_batches_of_the_users_own_sampler():
    doc = probe_until(pipelines.buckets(), lambda doc: len(doc["batch"]) > 1, 3)
    assert doc["loader"]["batch_sampler"] and doc["loader"]["custom_collate"] and doc["loader"]["batch_size"] is None
    # A bucket's samples are alike, buckets differ.
    assert doc["sample"]["within_batch_correlation"] > 0.5
    assert {row["batch"] for row in doc["batch"]} == {2, 8}


def test_worker_init_runs_in_the_worker():
    doc = probe(pipelines.with_init())
    assert finding(doc, "sample_raised") is None and "STOKER_TEST_WORKER" not in os.environ


@pytest.mark.parametrize("stream, length", [(pipelines.Stream(None), None), (pipelines.Stream(300), None),
                                            (pipelines.SizedStream(300), 300)])
def test_iterable_data_sets(stream, length):
    doc = probe(DataLoader(stream, batch_size=10), budget_s=1.5)
    assert doc["kind"] == "iterable" and doc["samples"] == length
    assert statistics.fmean(doc["sample"]["cpu_ms"]) >= 0.2


def test_bytes_that_go_through_the_pipe():
    pytest.importorskip("numpy")
    doc = probe(pipelines.Nested(), budget_s=1.5)
    assert doc["output"].startswith("dict(image: dict(pixels: float32[3, 4]")
    row = doc["batch"][-1]
    assert row["tensors"] == 4  # pixels, two sizes, the array as a tensor
    assert row["pickled_bytes"] > 5 * row["samples"] / 3  # the texts


def test_command_writes_json(tmp_path, capsys):
    out = tmp_path / "p.json"
    assert cli.main(["probe", f"{HERE}:spins", "-o", str(out), "--budget", "1.5s", "--json", "--quiet"]) == 0
    doc = json.loads(out.read_text())
    assert doc["name"] == "pipelines.py:spins" and json.loads(capsys.readouterr().out) == doc
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_the_binary_reads_what_was_written(with_binary, tmp_path):
    import subprocess

    out = tmp_path / "p.json"
    done = subprocess.run([with_binary, "probe", f"{HERE}:loader", "-o", str(out), "--budget", "2s"],
                          capture_output=True, text=True, env=dict(os.environ, STOKER_PYTHON=sys.executable))
    assert done.returncode == 0, done.stderr
    assert "One worker prepares" in done.stdout and "in batches of 16" in done.stdout
    again = subprocess.run([with_binary, "probe", str(out)], capture_output=True, text=True)
    assert again.returncode == 0 and "One worker prepares" in again.stdout


def test_the_users_data_set_is_left_alone():
    data = pipelines.Transformed()
    before, threads = data.transform, torch.get_num_threads()
    probe(data, budget_s=1.5)
    assert data.transform is before and torch.get_num_threads() == threads
    assert torch.utils.data.get_worker_info() is None


def test_moving_batches_and_starting_workers():
    doc = probe_until(pipelines.Spins(ms=0.2), lambda doc: {"per_batch_main_ms", "fork_per_worker_ms"} <= set(doc["transport"])
                      and doc["start"]["fork_ms"] is not None and doc["start"]["pickled_bytes"] is not None, budget_s=8)
    moving, start = doc["transport"], doc["start"]
    assert "per_batch_main_ms" in moving, "a machine too busy to move five batches in 72 s"
    assert moving["per_batch_main_ms"] > 0 and moving["fork_per_worker_ms"] >= 0
    assert set(moving) <= set(json.loads((REPOSITORY / "data/coefficients/input.json").read_text())["transport"]) | {
        "pickle_main_ns_per_byte", "pickle_worker_ns_per_byte"}
    assert start["fork_ms"] > 0 and start["picklable"] and start["pickled_bytes"] > 100
    assert doc["memory"]["objects"] > 0 and not doc["memory"]["copied_on_read"]


def test_transport_of_an_earlier_probe_is_taken_over():
    doc = probe_pipeline(pipelines.Spins(ms=0.2), name="x", budget_s=1.5, transport={"per_batch_main_ms": 0.5})
    assert doc["transport"]["per_batch_main_ms"] == 0.5


def test_python_objects_are_counted():
    doc = probe(pipelines.Objects())
    memory = doc["memory"]
    assert memory["objects"] == pytest.approx(100_000, rel=0.02)
    # Each string, its place in the list, and up to an eighth of the list that is kept free.
    assert memory["object_bytes"] == pytest.approx(100_000 * (sys.getsizeof(pipelines.Objects().paths[0]) + 8), rel=0.05)
    assert memory["copied_on_read"] and finding(doc, "objects_copied")


def share(doc, name):
    return sum(row["share"] for row in doc["sample"]["stages"] if name in row["name"])


def test_stages_by_the_transforms():
    doc = probe_until(pipelines.Transformed(), lambda doc: doc["sample"]["stages"], budget_s=4)
    assert doc["sample"]["stages_how"] == "transforms"
    assert [row["name"] for row in doc["sample"]["stages"]] == ["Crop", "Flip", "other"]
    assert share(doc, "Crop") == pytest.approx(0.6, abs=0.05) and share(doc, "Flip") == pytest.approx(0.2, abs=0.05)


def test_stages_by_stack_sampling():
    doc = probe_until(pipelines.Sampled(), lambda doc: doc["sample"]["stages"], budget_s=4)
    assert doc["sample"]["stages_how"] == "sampling"
    assert share(doc, "parse") == pytest.approx(0.8, abs=0.15) and share(doc, "augment") == pytest.approx(0.2, abs=0.15)


def test_stages_of_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(8):
        image.effect_noise((256, 256), 50).convert("RGB").save(tmp_path / f"{number}.jpg")
    doc = probe_until(pipelines.Pictures(str(tmp_path)), lambda doc: doc["sample"]["stages"], budget_s=4)
    names = [row["name"] for row in doc["sample"]["stages"]]
    assert doc["sample"]["stages_how"] == "transforms" and {"decode", "resize"} <= set(names)
    assert sum(row["share"] for row in doc["sample"]["stages"]) == pytest.approx(1, abs=0.01)
    assert statistics.fmean(doc["sample"]["file_bytes"]) == pytest.approx(
        statistics.fmean(p.stat().st_size for p in tmp_path.iterdir()), rel=0.02)


def test_a_data_set_that_makes_whole_batches():
    doc = probe(DataLoader(pipelines.Whole(), batch_size=None), budget_s=2)
    assert doc["loader"]["batch_size"] == 1 and doc["output"] == "float32[16, 10]"
    assert [row["bytes"] for row in doc["batch"] if row["batch"] == 1] == [640]


def test_a_data_set_with_getitems():
    doc = probe(pipelines.Getitems(), budget_s=2)
    assert statistics.fmean(doc["sample"]["cpu_ms"]) == pytest.approx(0.5, rel=0.2)


def test_a_real_worker_is_timed():
    doc = probe_until(pipelines.Spins(ms=1.0), lambda doc: doc["one_worker"], budget_s=4)
    one = doc["one_worker"]
    # Each sample spins 1 ms of the worker's thread; the clocks of the process are read a batch or two apart.
    assert one["batch"] == 32 and one["batches"] >= 1
    assert 32 <= one["make_cpu_ms"] < 64 and one["first_make_cpu_ms"] >= 32 and one["worker_cpu_ms"] > 0


def test_a_sampler_of_the_users_own():
    from torch.utils.data import SubsetRandomSampler

    data = DataLoader(pipelines.Raises(2), sampler=SubsetRandomSampler(range(1, 64, 2)), batch_size=8)
    doc = probe_until(data, lambda doc: len(doc["sample"]["cpu_ms"]) == 32, 3)
    assert finding(doc, "sample_raised") is None, "only the sampler's indices are made"
    assert len(doc["sample"]["cpu_ms"]) == 32 and doc["loader"]["shuffle"] is False


def test_the_public_function(tmp_path):
    import stoker

    told = []
    doc = stoker.probe(pipelines.Spins(ms=0.2), tmp_path / "p.json", budget_s=1.5, progress=lambda what, share: told.append(what))
    assert doc["name"] == "Spins" and json.loads((tmp_path / "p.json").read_text()) == doc
    assert "samples" in told and told[-1] == "done"
    with pytest.raises(stoker.ProbeError, match="budget"):
        stoker.probe(pipelines.Spins(), budget_s=0)
