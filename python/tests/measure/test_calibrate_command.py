"""stoker calibrate-runs as a command: its rows file can be gone on with, errors name their cure, and nothing is left behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch

from places import PYTHON
from stoker.calibrate import rounds, rows, spec
from stoker.errors import CaptureError


def start(*arguments, **more):
    env = dict(os.environ, PYTHONPATH=str(PYTHON), **more)
    return subprocess.Popen([sys.executable, "-m", "stoker", "calibrate-runs", *map(str, arguments)], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_interruptible)


def _interruptible():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who is started in the background ignores it, and so would the child


FIGURES = {("call_us", 0), ("forward_us", 0), ("backward_us", 0), ("optimizer_us", 0), ("view_us", 0), ("step_us", 0),
           ("context_mib", 0), ("copy_gbs", 1), ("l2_gbs", 1), ("fma_gflops", 1), ("fault_us", 1)}


def test_a_run_writes_what_it_measured_and_the_next_goes_on(tmp_path):
    path = tmp_path / "cal.json"
    process = start("--out", path, "--budget", "8s", "--threads", "1")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    first = rows.read(str(path))
    assert first["device"]["kind"] == "cpu" and first["device"]["context_bytes"] > 50 << 20 and not first["complete"]
    assert set(first["load"]) >= {"foreign_share", "steal_share", "disturbed", "why"} and "run the same command again" in error
    for budget in ("12s", "20s", "30s", "50s", "80s"):  # on a busy machine a run may not come to all figures
        process = start("--out", path, "--budget", budget, "--threads", "1", "--quiet")
        _, error = process.communicate(timeout=200)
        assert process.returncode == 0 and error == ""
        again = rows.read(str(path))
        names = {(f["name"], f["threads"]) for f in again["figures"]}
        if names >= FIGURES and len(again["operators"]) > len(first["operators"]):
            break
    assert names >= FIGURES
    assert len(names) == len(again["figures"]) and all(f["value"] > 0 for f in again["figures"])
    assert len(again["operators"]) > len(first["operators"])
    assert all(r["time_us"] > 0 and r["threads"] == 1 for r in again["operators"])
    kept = {(spec.row_key(r), r["threads"]): r for r in again["operators"]}
    for row in first["operators"]:
        if row["repetitions"] >= rounds.LEAST_GOOD:
            assert kept[spec.row_key(row), 1] == row, "what was good is not measured again"


def test_an_interrupted_run_keeps_what_it_measured_and_leaves_nobody_behind(tmp_path):
    path = tmp_path / "cal.json"
    process = start("--out", path, "--budget", "60s", "--threads", "1")
    try:
        deadline, said = time.monotonic() + 95, ""
        while time.monotonic() < deadline and process.poll() is None and "readings" not in said:  # until operators are done
            said = process.stderr.readline()
        assert "readings" in said
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130 and "interrupted; what was measured so far is in" in error
    assert os.listdir(tmp_path) == ["cal.json"] and rows.read(str(path))["operators"]
    begun = start("--out", tmp_path / "other.json")
    try:
        time.sleep(0.3)  # before anything is measured
        begun.send_signal(signal.SIGINT)
        begun.communicate(timeout=30)
    finally:
        begun.kill()
    assert begun.returncode in (130, -signal.SIGINT) and os.listdir(tmp_path) == ["cal.json"]


@pytest.mark.parametrize("arguments, says", [
    (("--device", "tpu"), "no such device"), (("--budget", "soon"), "such as 90s"), (("--budget", "1s"), "give 5s or more"),
    (("--threads", "999"), "name"), (("--for", "nowhere.py:net"), "there is no file nowhere.py"), (("--device", "cuda",
                                                                                                    "--budget", "9s"), "CUDA")])
def test_what_cannot_be_measured_is_refused_in_one_sentence(tmp_path, arguments, says):
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    process = start("--out", tmp_path / "cal.json", *arguments)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3 and says in error and "Traceback" not in error and len(error.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_a_python_without_torch_is_told_the_cure(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    env = dict(os.environ, PYTHONPATH=f"{tmp_path}:{PYTHON}")
    done = subprocess.run([sys.executable, "-m", "stoker", "calibrate-runs", "--out", str(tmp_path / "c.json")], env=env, text=True,
                          capture_output=True)
    assert done.returncode == 3 and "pip install torch" in done.stderr and "STOKER_PYTHON" in done.stderr


def made(**device):
    return rows.empty({"kind": "cpu", "name": "A", "cores": 2, "simd_bits": 512, **device}, {"torch": "2", "cuda": "",
                                                                                             "driver": "", "date": "d"})


def test_a_file_comes_back_as_it_was_and_one_of_another_machine_is_refused(tmp_path):
    path = str(tmp_path / "cal.json")
    file = made()
    rows.put(file, {"kind": "gemm", "function": "mm", "sizes": {"m": 2, "n": 2, "k": 2}, "precision": "fp32", "pass": "forward",
                    "threads": 1,
                    "time_us": 2.0, "spread": 0.1, "warm": True, "repetitions": 7})
    rows.put(file, {**file["operators"][0], "sizes": {"k": 2, "n": 2, "m": 2}, "time_us": 1.0})
    rows.put_figure(file, {"name": "call_us", "threads": 0, "value": 2.0, "spread": 0.0})
    assert len(file["operators"]) == 1 and file["operators"][0]["time_us"] == 1.0
    rows.write(file, path)
    assert rows.read(path) == file and os.listdir(tmp_path) == ["cal.json"]
    assert rows.begun(path, file["device"], file["provenance"])["operators"] == file["operators"]
    granted = rows.begun(path, {**file["device"], "cores": 1}, file["provenance"])
    assert granted["operators"] == file["operators"] and granted["device"]["cores"] == 1, "fewer cores, the same processor"
    for device, about, says in (({**file["device"], "name": "B"}, file["provenance"], "another name"),
                                (file["device"], {**file["provenance"], "torch": "3"}, "another torch")):
        with pytest.raises(CaptureError, match=says):
            rows.begun(path, device, about)
    pathlib.Path(path).write_text("{")
    with pytest.raises(CaptureError, match="cannot be read as a calibration"):
        rows.begun(path, file["device"], file["provenance"])


def test_a_disk_that_fills_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = str(tmp_path / "cal.json")
    rows.write(made(), path)
    before = pathlib.Path(path).read_text()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CaptureError, match="No space left on device.*with room"):
        rows.write(made(name="B"), path)
    assert pathlib.Path(path).read_text() == before and os.listdir(tmp_path) == ["cal.json"]


def test_libraries_are_told_by_pytorchs_own_words():
    assert rows.libraries("  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product\n  - Intel(R) MKL-DNN v3.7.1 (Git Hash x)") == {
        "mkl": "2024.2", "onednn": "3.7.1"}
    assert rows.libraries("") == {"mkl": "", "onednn": ""}


def test_the_file_is_json_with_a_line_for_each_row():
    file = made()
    rows.put_figure(file, {"name": "call_us", "threads": 0, "value": 2.0, "spread": 0.0})
    assert json.loads(rows.text(file)) == file and '\n  {"name": "call_us"' in rows.text(file)
