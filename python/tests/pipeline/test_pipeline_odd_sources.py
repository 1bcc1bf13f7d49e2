"""Sources that are put together in unusual ways, and what a probe makes of samples that never come."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, StackDataset, Subset, random_split

import pipelines
import stoker
from places import PYTHON
from stoker import cli
from stoker.errors import ProbeError
from stoker.measure import forked, leftovers, machine, signals
from stoker.pipeline import interleaved, maker, passes, probe_pipeline
from stoker.pipeline import source as sources


def probe(thing, budget_s=1.5):
    return probe_pipeline(thing, name="x.py:f", budget_s=budget_s)


def probe_of(thing, samples):
    """With all samples: what a busy machine leaves out, it measures in a larger budget."""
    for budget_s in (1.5, 5, 16):
        doc = probe(thing, budget_s)
        if len(doc["sample"]["cpu_ms"]) == samples:
            break
    return doc


def names(doc):
    return [row["name"] for row in doc["findings"]]


class ByList(pipelines.Spins):
    """A sample is a batch: its index is a list."""

    def __getitem__(self, index):
        assert isinstance(index, list), f"an index of type {type(index).__name__}"
        pipelines.spin(0.1 * len(index))
        return torch.zeros(len(index), 10)


class Hangs(pipelines.Spins):
    """Waits for what never comes, at one index."""

    def __init__(self, at, **arguments):
        super().__init__(**arguments)
        self.at = at

    def __getitem__(self, index):
        if index == self.at:
            time.sleep(600)
        return super().__getitem__(index)


class FromStorage(Hangs):
    """Hangs at every index that it meets after the first twelve different ones; the probe takes it to read from storage."""

    seen = ()

    def __getitem__(self, index):
        type(self).seen = {*self.seen, index}
        if len(self.seen) > 12:
            time.sleep(600)
        return pipelines.Spins.__getitem__(self, index)


@pytest.mark.parametrize("wrapped, whole", [
    (lambda: Subset(pipelines.Spins(), range(32)), False),
    (lambda: Subset(Subset(pipelines.Spins(), range(32)), range(16)), False),
    (lambda: StackDataset(pipelines.Spins(), pipelines.Spins()), False),
    (lambda: StackDataset(a=pipelines.Spins(), b=pipelines.Spins()), False),
    (lambda: Subset(pipelines.Getitems(), range(32)), True),
    (lambda: StackDataset(pipelines.Spins(), pipelines.Getitems()), True),
    (lambda: pipelines.Getitems(), True), (lambda: pipelines.Spins(), False)])
def test_wrappers_make_batches_in_one_call_where_what_they_hold_does(wrapped, whole):
    assert maker.makes_batches(wrapped()) is whole


def test_a_broken_sample_of_a_split_costs_itself_and_not_its_batch():
    part, _ = random_split(pipelines.Raises(8, length=64, ms=0.2), [32, 32], torch.Generator().manual_seed(0))
    broken = sum(index % 8 == 0 for index in part.indices)
    doc = probe_of(part, 32 - broken)
    (found,) = [row for row in doc["findings"] if row["name"] == "sample_raised"]
    assert found["count"] == broken > 0 and len(doc["sample"]["cpu_ms"]) == 32 - broken
    assert len(set(doc["sample"]["cpu_ms"])) > 1, "each has a time of its own"


def test_a_batch_in_one_call_that_raises_is_made_sample_by_sample():
    class Picky(pipelines.Getitems):
        def __getitems__(self, indices):
            if 5 in indices:
                raise ValueError("five")
            return [torch.zeros(3) for _ in indices]

    made = maker.Maker(sources.of(Picky(), "x"))
    batch = made.make([4, 5, 6])
    assert [row[0] for row in batch.rows] == [4, 6] and len(batch.samples) == 2
    assert made.failures.count == 1 and made.failures.first["index"] == 5


def test_a_sampler_of_lists_beside_batch_size_none():
    data = ByList(length=64)
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(SequentialSampler(data), 8, drop_last=False))
    doc = probe_of(loader, 8)
    assert doc["samples"] == 8 and len(doc["sample"]["cpu_ms"]) == 8 and "sample_raised" not in names(doc)
    assert doc["output"] == "float32[8, 10]" and all(ms >= 0.8 for ms in doc["sample"]["cpu_ms"])


def test_indices_of_torch_and_numpy_become_plain_ones():
    numpy = pytest.importorskip("numpy")
    assert [type(sources.plain_index(i)) for i in (torch.tensor(3), numpy.int64(3), 3)] == [int, int, int]
    listed = sources.plain_index(torch.tensor([1, 2]))
    assert listed == [1, 2] and isinstance(listed, list) and hash(listed) == hash(sources.plain_index([1, 2]))
    assert sources.plain_index("key") == "key" and sources.plain_index((1, "a")) == (1, "a")


class Shuffled:
    """A sampler that yields tensors without dimensions."""

    def __iter__(self):
        return iter(torch.randperm(32))

    def __len__(self):
        return 32


def test_a_sampler_of_tensors_names_each_sample_once():
    doc = probe_of(DataLoader(pipelines.Spins(length=32, ms=0.3), batch_size=8, sampler=Shuffled()), 32)
    assert len(doc["sample"]["cpu_ms"]) == 32


@pytest.mark.parametrize("data", [Hangs(20, length=64, ms=0.5), FromStorage(0, length=4000, ms=0.5)])
def test_a_sample_that_hangs_is_said_and_the_probe_ends(data, monkeypatch):
    if isinstance(data, FromStorage):
        monkeypatch.setattr(maker.Counters, "fetched", lambda self, known=[0]: known.__setitem__(0, known[0] + 1) or known[0])
    try:
        doc = probe(DataLoader(data, batch_size=4), budget_s=2)
        assert "sample_hangs" in names(doc)
    except ProbeError as error:  # where it hangs at once
        assert "time was up" in str(error)


def test_a_slice_is_waited_for_no_longer_than_it_may_take():
    class Child:
        def ask(self, command):
            pass

        def answer(self, deadline, tick):
            self.left = deadline - time.monotonic()
            return {}

    def left(limit_s, batches, until_s=None):
        now = time.monotonic()
        measured = interleaved.Interleaved(sources.of(pipelines.Spins(), "x"), None, plan=None, sizes=[], seconds=10, wall_ms=100,
                               tick=None, limit=now + limit_s)
        measured.worker = Child()
        measured._ask(measured.worker, batches, until=None if until_s is None else now + until_s)
        return measured.worker.left

    many = [[0] * 10] * 400  # 400 s
    assert left(1e6, many) == pytest.approx(10 + 1.5 + 6 * 400, abs=1)
    assert left(1e6, many, until_s=3) == pytest.approx(3 + 1.5 + 6 * 1, abs=1), "one batch after the time is up"
    assert left(20, many) == pytest.approx(20, abs=1) and left(-5, many) == pytest.approx(1.5, abs=1)


def test_loaders_without_workers_need_no_shared_memory(monkeypatch):
    monkeypatch.setattr(machine, "shared_memory_free", lambda: 1 << 20)
    data = pipelines.Spins(floats=100_000)
    assert "shm_too_small" not in names(probe(DataLoader(data, batch_size=32)))
    assert "shm_too_small" in names(probe(DataLoader(data, batch_size=32, num_workers=1)))


PRINTING = """
import os
import torch

print("loading")
os.system("echo from a program")


class Data(torch.utils.data.Dataset):
    def __len__(self):
        print("asked for its length")
        return 8

    def __getitem__(self, index):
        return torch.zeros(3)


def dataset():
    print("made")
    return Data()
"""


def test_what_a_function_prints_does_not_spoil_the_json(tmp_path):
    (tmp_path / "talks.py").write_text(textwrap.dedent(PRINTING))
    for budget in ("1s", "8s"):  # a busy machine may need more than a second for its first sample
        done = subprocess.run([sys.executable, "-m", "stoker", "probe", "talks.py:dataset", "--budget", budget, "--quiet", "--json"],
                              env=dict(os.environ, PYTHONPATH=str(PYTHON)), cwd=tmp_path, capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 8
    assert all(line in done.stderr for line in ("loading", "from a program", "made", "asked for its length"))


def test_the_first_look_reports_at_growing_intervals():
    source, warden = sources.of(pipelines.Spins(length=4000, ms=0.0), "x"), leftovers.Warden()
    try:
        child = forked.Child(lambda send: passes.first_look(source, send), warden, daemon=True)
        speeds = child.collect(time.monotonic() + 60).all("speed")
    finally:
        warden.close()
    assert sum(len(value["walls"]) for value in speeds) <= 4 * len(speeds[-1]["walls"]), "not all so far with each sample"
    assert len(speeds[0]["walls"]) == 1 and len(speeds[-1]["walls"]) == speeds[-1]["tried"] - 1


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.ending_cleanly():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_no_room_for_a_temporary_folder(monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(ProbeError, match="No space left on device.*TMPDIR"):
        stoker.probe(pipelines.Spins())


def without_pytorch(tmp_path, *arguments):
    installed = tmp_path / "installed"  # a torch.py of the user's own would be passed over
    installed.mkdir(exist_ok=True)
    (installed / "torch.py").write_text("raise ImportError('none here')\n")
    return subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=f"{installed}{os.pathsep}{PYTHON}"))


def test_without_pytorch_a_probe_says_so(tmp_path):
    (tmp_path / "data.py").write_text("def dataset():\n    return [1]\n")
    script = "import stoker\ntry:\n    stoker.probe([1])\nexcept stoker.ProbeError as error:\n    print(error)"
    done = without_pytorch(tmp_path, "-c", script)
    assert "needs PyTorch" in done.stdout and "STOKER_PYTHON" in done.stdout, done.stderr
    done = without_pytorch(tmp_path, "-m", "stoker", "probe", "data.py:dataset")
    assert done.returncode == 3 and "needs PyTorch" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("verb, arguments", [("probe", ["x.py:f", "--budge", "3s"]), ("observation", ["--jso", "x"]),
                                             ("loader-runs", ["--ou", "x"])])
def test_usage_errors_name_their_own_help(verb, arguments, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([verb, *arguments])
    assert end.value.code == 2 and f"(stoker {verb} --help)" in capsys.readouterr().err
