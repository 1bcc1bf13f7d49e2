"""`stoker tune --objective energy`: power as a stand-in for NVIDIA's library tells it, and estimated from a forecast."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from stoker_binary import STOKER

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2])
# Throughput is planted: 64 takes 3.2 ms a step, 128 takes 4 ms, 256 takes 6.4 ms.
WATTS = {64: 120, 128: 150, 256: 300}
SCRIPT = """
import sys, time, stoker
from stoker.study import reporting
clock, batch, lr = [0.0], int(sys.argv[1]), float(sys.argv[2])
seconds = {64: 3.2e-3, 128: 4e-3, 256: 6.4e-3}[batch]
reporting.time.monotonic = lambda: clock[0]
for step in range(1, 61):
    time.sleep(0.05)
    clock[0] += seconds
    metrics = {"accuracy": min(step / 60, 0.9) * (1 if lr == 0.01 else 0.7)} if step % 5 == 0 else {}
    if stoker.report(step=step, samples=batch, **metrics):
        break
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    for batch, watts in WATTS.items():
        lines = ("name Stand-in", "total 16000000000", "used 1000000000", "busy 90", f"power {watts * 1000}", "power_limit 300000")
        (tmp_path / f"{batch}.nvml").write_text("".join(f"0 0 {line}\n" for line in lines))
    return tmp_path


@pytest.fixture
def nvml(tmp_path):
    libraries = list(pathlib.Path(STOKER).parent.rglob("libnvidia-ml-stand-in.so"))
    if not libraries:
        pytest.skip("the stand-in for libnvidia-ml.so is not built (target fake_nvml)")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvidia-ml.so.1").symlink_to(libraries[0])
    return dict(os.environ, PYTHONPATH=PACKAGE, LD_LIBRARY_PATH=str(tmp_path / "lib"), FAKE_NVML=str(tmp_path / "nvml.txt"),
                CUDA_VISIBLE_DEVICES="0")


def run(env, cwd, *words, batch="{batch}"):
    # Before the runner opens the library, half a second after the start, stands there what this batch draws.
    command = f"cp {batch}.nvml nvml.txt; exec {sys.executable} train.py {batch} {{lr}}"
    words = ["--objective", "energy", "--metric", "accuracy", *words, "--shell", "--", command]
    return subprocess.run([STOKER, "tune", "--json", "--quiet", *words], cwd=cwd, env=env, capture_output=True, text=True)


def tune(env, cwd, *words):
    done = run(env, cwd, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_batch_by_measured_energy(folder, nvml):
    words = ["--batch", "64,128,256", "--lr", "0.001,0.01", "--gpus", "1", "--threshold", "1", "--refine", "0", "--min-share", "1"]
    found = tune(nvml, folder, *words, "--energy-weight", "1", "--probe-steps", "40", "--no-final")
    # Joules a sample: 6, 4.7 and 7.5 m.
    assert found["choice"]["values"] == {"batch": "128", "lr": "0.01"}
    assert found["objective"] == "energy" and found["energy_weight"] == 1
    reason = next(d["why"] for d in found["decisions"] if d["what"] == "batch 128")
    assert "4.69 mJ a sample" in reason and "by throughput it would be 256" in reason
    assert any("150 W of 300 W, measured" in d["what"] for d in found["decisions"])
    assert found["choice"]["batch"] == {"per_device": 128, "devices": 1, "global": 128}


def test_the_cost_of_reaching_a_target_counts_time_as_zeus_does(folder, nvml):
    words = ["--method", "grid", "--batch", "64,128,256", "--lr", "0.01,0.001", "--gpus", "1", "--target", "0.5", "--stop", "none"]
    found = tune(nvml, folder, *words)
    # The target at step 30, 29 steps after the first report; half of the energy and half of 300 W for as long.
    assert found["choice"]["values"] == {"batch": "64", "lr": "0.01"}
    assert found["choice"]["score"] == pytest.approx(29 * 3.2e-3 * (0.5 * 120 + 0.5 * 300))
    assert found["target"] == 0.5


def test_a_target_that_nobody_reaches_is_said(folder, nvml):
    words = ["--target", "0.99", "--lr", "0.001,0.01", "--gpus", "1"]
    done = run(nvml, folder, *words, batch="64")
    assert done.returncode == 1
    assert "no trial reached accuracy 0.99" in done.stderr and "--target" in done.stderr


def test_without_a_gpu_that_tells_it_power_is_asked_for(folder):
    env = dict(os.environ, PYTHONPATH=PACKAGE, FAKE_NVML=str(folder / "nvml.txt"))
    done = run(env, folder, "--target", "0.3", "--lr", "0.001,0.01", batch="64")
    assert done.returncode == 1
    assert "--model and --gpu" in done.stderr


def test_power_by_forecast_has_a_band(folder):
    env = dict(os.environ, PYTHONPATH=PACKAGE, FAKE_NVML=str(folder / "nvml.txt"))
    words = ["--batch", "64,128,256", "--lr", "0.001,0.01", "--model", "resnet50", "--gpu", "v100-16gb"]
    found = tune(env, folder, *words, "--refine", "0", "--no-final", "--min-share", "1")
    by_forecast = [d["what"] for d in found["decisions"] if d["why"] == "by forecast"]
    assert by_forecast and all("estimated" in what and "[" in what for what in by_forecast)
    # Two rates, and one more as the better is at the end of the grid.
    assert found["spent"]["trials"] == 3, "batches cost no run"


@pytest.mark.parametrize("words, said", [
    (["--lr", "0.1,0.2"], "--target"),
    (["--method", "asha", "--trials", "9", "--min-steps", "10", "--max-steps", "90", "--lr", "0.1,0.2", "--target", "0.5"], "each rung"),
    (["--method", "grid", "--lr", "0.1,0.2"], "--target 0.75"),
    (["--batch", "64,128", "--by", "utilisation"], "by energy already"),
])
def test_what_cannot_go_by_energy_is_refused(tmp_path, words, said):
    done = run(dict(os.environ), tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_target_belongs_to_energy(tmp_path):
    words = ["--metric", "accuracy", "--target", "0.5", "--lr", "0.1,0.2", "--", "true", "{lr}"]
    done = subprocess.run([STOKER, "tune", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "--objective energy" in done.stderr
