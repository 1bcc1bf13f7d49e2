"""Bad data sets: for each a clear finding or error, and a probe that lives."""

import errno
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from torch.utils.data import DataLoader

import pipelines
from places import PYTHON, SUPPORT
from stoker import cli
from stoker.errors import ProbeError, UserCodeError
from stoker.measure import cgroup, machine
from stoker.pipeline import probe_file, probe_pipeline

HERE = SUPPORT / "pipelines.py"


def probe(thing, budget_s=1.5):
    return probe_pipeline(thing, name="x.py:f", budget_s=budget_s)


def finding(doc, name):
    found = next((row for row in doc["findings"] if row["name"] == name), None)
    assert found is not None, [row["name"] for row in doc["findings"]]
    return found


def test_some_samples_raise():
    doc = probe(pipelines.Raises(4, length=32, ms=0.2))
    found = finding(doc, "sample_raised")
    assert found["severity"] == "warning" and found["count"] == 8
    assert "8 of 32 samples raised" in found["advice"] and "ValueError: broken picture" in found["advice"]
    assert len(doc["sample"]["cpu_ms"]) == 24


def test_every_sample_raises():
    with pytest.raises(UserCodeError) as caught:
        probe(pipelines.Raises(1))
    assert "none of" in str(caught.value) and "ValueError: broken picture" in str(caught.value)
    assert "pipelines.py" in caught.value.traceback_text


def test_shapes_differ():
    found = finding(probe(pipelines.Shapes()), "collate_failed")
    assert "float32[3, 8]" in found["advice"] and "float32[3, 9]" in found["advice"]
    assert "sample " in found["advice"] and "collate_fn" in found["advice"]


def test_empty():
    with pytest.raises(ProbeError, match="is empty"):
        probe(pipelines.Spins(length=0))
    with pytest.raises(ProbeError, match="gives no sample"):
        probe(pipelines.Stream(0))


def test_one_element():
    doc = probe(pipelines.Spins(length=1))
    assert len(doc["sample"]["cpu_ms"]) == 1 and [row["batch"] for row in doc["batch"]] == [1]


def test_a_sampler_without_indices():
    with pytest.raises(ProbeError, match="sampler gives no index"):
        probe(DataLoader(pipelines.Spins(), batch_sampler=[]))


def test_unpicklable():
    doc = probe(pipelines.Unpicklable(), budget_s=2.5)
    assert "lambda" in finding(doc, "not_picklable")["advice"]
    assert doc["start"]["picklable"] is False and doc["start"]["spawn_ms"] is None and "lambda" in doc["start"]["why_not"]


def test_threads_and_output():
    assert finding(probe(pipelines.Threads()), "threads_started")["count"] > 0
    printed = finding(probe(pipelines.Prints()), "output_printed")
    assert printed["count"] > 10 and "reading" in printed["advice"]


def test_nothing_is_printed_by_the_probe_itself(capfd):
    probe(pipelines.Prints())
    assert capfd.readouterr() == ("", "")


def test_processes_of_the_data_set_are_ended():
    assert finding(probe(pipelines.Forks(length=16)), "processes_started")["count"] > 0
    running = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in running if b"612.25" in line]


def test_the_directory_is_changed():
    before = os.getcwd()
    finding(probe(pipelines.Moves()), "directory_changed")
    assert os.getcwd() == before


def test_the_process_ends_itself():
    with pytest.raises(ProbeError, match="exit code 7"):
        probe(pipelines.Exits())


def test_a_bus_error():
    with pytest.raises(ProbeError, match="SIGBUS.*/dev/shm"):
        probe(pipelines.Dies("SIGBUS"))


def test_a_process_killed_for_memory():
    with pytest.raises(ProbeError, match="SIGKILL.*memory"):
        probe(pipelines.Dies("SIGKILL"))


def test_a_worker_that_dies_later_keeps_what_was_measured():
    doc = probe(pipelines.DiesLater(), budget_s=3)
    assert "SIGSEGV" in finding(doc, "worker_died")["advice"] and doc["sample"]["cpu_ms"]


def test_a_sample_beyond_the_budget():
    with pytest.raises(ProbeError, match="one sample took more than.*--budget"):
        probe(pipelines.Slow(), budget_s=1)


def test_slow_samples():
    doc = probe(pipelines.Spins(length=64, ms=60), budget_s=2)
    finding(doc, "slow_samples")
    assert all(60 <= ms for ms in doc["sample"]["cpu_ms"])


def test_samples_beyond_memory(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 512e6)
    doc = probe(pipelines.Huge())
    assert finding(doc, "batch_fits_no_memory") and doc["batch"][-1]["batch"] <= 4


def test_shared_memory_too_small(monkeypatch):
    monkeypatch.setattr(machine, "shared_memory_free", lambda: 1 << 20)
    doc = probe(pipelines.Spins(floats=100_000))
    advice = finding(doc, "shm_too_small")["advice"]
    assert "has 1.0 MiB free" in advice and "need 61." in advice and "--shm-size" in advice
    assert doc["batch"][-1]["bytes"] <= 1 << 20


@pytest.mark.parametrize("size, filled", [("64m", 0), ("64m", 60)])
def test_real_shared_memory_of_64_mb(tmp_path, size, filled):
    """As in a container: /dev/shm is a small file system, empty or nearly full."""
    code = textwrap.dedent(f"""
        import sys; sys.path[:0] = [{str(PYTHON)!r}, {str(SUPPORT)!r}]
        import pipelines; from stoker.pipeline import probe_pipeline
        doc = probe_pipeline(pipelines.Spins(length=64, ms=0.1, floats=250_000), name="x", budget_s=2)
        print([row["name"] for row in doc["findings"]], [row["batch"] for row in doc["batch"]])
        """)
    shell = f"mount -t tmpfs -o size={size} tmpfs /dev/shm && " \
            f"head -c {filled}M /dev/zero > /dev/shm/full && exec {sys.executable} -c \"$CODE\""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    done = subprocess.run(["unshare", "-m", "sh", "-c", shell], env=dict(os.environ, CODE=code), capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert "shm_too_small" in done.stdout and "[]" not in done.stdout


def test_half_a_core(monkeypatch, tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert cgroup.quota_in(str(tmp_path), version=2) == 0.5
    (tmp_path / "cpu.cfs_quota_us").write_text("25000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup.quota_in(str(tmp_path), version=1) == 0.25
    monkeypatch.setattr(machine, "usable_cores", lambda: 0.5)
    doc = probe(pipelines.Spins())
    assert doc["parallel"] == {"processes": 1, "efficiency": 1.0} and doc["provenance"]["cores"] == 0.5
    assert "0.5 cores" in finding(doc, "less_than_a_core")["advice"]


def test_a_full_disk_leaves_the_old_file_whole(monkeypatch, tmp_path):
    out = tmp_path / "p.json"
    out.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProbeError, match="No space left on device"):
        probe_file.write({"format": "x"}, str(out))
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize("spec, words", [
    (f"{HERE}:nothing", ["returned None", "return a torch.utils.data.Dataset"]),
    (f"{HERE}:needs", ["needs the argument path", "default"]),
    (f"{HERE}:raises", ["could not be called", "RuntimeError: no data here"]),
    (f"{HERE}:spin", ["needs the argument ms"]),
    (f"{HERE}:loder", ["no function 'loder'", "did you mean loader"]),
    (f"{HERE}", ["names no function", "FILE.py:FUNCTION"]),
    ("nowhere.py:f", ["there is no file nowhere.py"]),
    ("BROKEN:f", ["could not be imported", "SyntaxError"]),
])
def test_what_cannot_be_loaded(spec, words, tmp_path, capsys):
    if spec.startswith("BROKEN"):
        (tmp_path / "broken.py").write_text("def f(:\n")
        spec = f"{tmp_path / 'broken.py'}:f"
    out = tmp_path / "out.json"
    assert cli.main(["probe", spec, "-o", str(out), "--budget", "1s", "--quiet"]) == 3
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("stoker: ") and all(word in said for word in words), said
    assert not out.exists()


def test_a_class_in_the_place_of_an_object():
    with pytest.raises(ProbeError, match=r"class Spins where an object belongs: return Spins\(\.\.\.\)"):
        probe(pipelines.Spins)


def test_no_length():
    class NoLength(pipelines.Spins):
        def __len__(self):
            raise TypeError("no length")

    with pytest.raises(ProbeError, match="__len__"):
        probe(NoLength())


@pytest.mark.parametrize("budget", ["soon", "-3s", "0.01s"])
def test_budgets(budget, capsys):
    assert cli.main(["probe", f"{HERE}:spins", f"--budget={budget}", "--quiet"]) == 3
    assert "stoker: " in capsys.readouterr().err


def test_a_parent_whose_parallel_loops_cannot_be_forked():
    """OpenMP's threads stay behind in a fork; the probe must not wait for them."""
    code = textwrap.dedent(f"""
        import sys; sys.path[:0] = [{str(PYTHON)!r}, {str(SUPPORT)!r}]
        import pipelines, torch; from stoker.pipeline import probe_pipeline
        torch.ones(1 << 22).sqrt().sum()
        doc = probe_pipeline(pipelines.Wide(), name="x", budget_s=3)
        print(doc["sample"]["in_process_ratio"] is not None, len(doc["sample"]["cpu_ms"]) > 4)
        """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr
