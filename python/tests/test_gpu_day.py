"""scripts/gpu-day: its short form runs on a CPU, and what a GPU's day would run is there."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

from places import REPOSITORY  # noqa: E402

sys.path.insert(0, str(REPOSITORY / "scripts"))

from gpu_day import forecasts, main, plan  # noqa: E402

# What a step says that its share was too short for on a busy machine; it fails then.
STARVED = {"small batches": "was over before the models were loaded", "memory": "; the budget ended before the list did\n",
           "time": "; the budget ended before the list did: run it again"}


def run(*arguments):
    return subprocess.run([sys.executable, str(REPOSITORY / "scripts" / "gpu-day"), *map(str, arguments)], capture_output=True, text=True)


def test_the_short_form_runs_through_on_a_cpu(tmp_path):
    for minutes in ("1.25", "5"):  # on a busy machine the first may come to no training at all
        folder = tmp_path / f"day-{minutes}"
        done = run("--device", "cpu", "--minutes", minutes, "-o", folder)
        training = folder / plan.TRAINING
        if done.returncode == 0 and training.exists() and json.loads(training.read_text())["runs"]:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    about = json.loads((folder / "gpu-day.json").read_text())
    steps = {step["name"]: step for step in about["steps"]}
    assert list(steps)[:5] == ["calibration", "large batches", "small batches", "memory", "time"]
    log = (folder / "gpu-day.log").read_text()
    for name, step in steps.items():  # a busy machine may cut off any of them, and leave no time for the later ones
        if name != "forecasts":  # which need a binary, and captures within what time is left
            assert step["status"] in ("ok", "cut off", "no time") or name in STARVED and STARVED[name] in log, (step, log[-3000:])
    assert steps["large batches"]["status"] in ("ok", "cut off"), steps
    assert "Traceback" not in log and "calibrating" in log
    runs = json.loads((folder / "training.json").read_text())["runs"]
    assert runs and {r["status"] for r in runs} == {"ok"} and {r["precision"] for r in runs} <= {"fp32", "amp-bf16"}
    text = (folder / "forecasts.sh").read_text()
    assert text.count("predict scripts/measure_time/models.py:") == len(runs) and "--threads" in text
    assert about["torch"] and "commit" in about
    again = run("--device", "cpu", "--minutes", "1", "-o", folder)
    assert again.returncode == 1 and "name another folder with -o" in again.stderr


def test_every_step_of_a_gpus_day_is_there():
    for device in ("cuda", "cpu"):
        steps = plan.steps(device)
        assert sum(min(step.share, step.most / 720) for step in steps[:-1]) < 0.9, "the last one has something left"
        for step in steps:
            program = step.command[1] if step.command[1] != "-m" else f"python/stoker/{step.command[3].replace('-', '_')}"
            assert (REPOSITORY / program).exists() or (REPOSITORY / "python/stoker" / program.split("/")[-1].replace("_runs", "")).exists()
        for name, path, large, small in plan.zoo(device):
            assert re.search(rf"^def {name}\(batch=", (REPOSITORY / path).read_text(), re.MULTILINE) and large > small
    assert len(plan.ZOO) == 8


def test_a_step_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    script = "import subprocess, time; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); time.sleep(600)"
    code, _ = main.run([sys.executable, "-c", script], 6.0, tmp_path / "log")
    pid = int((tmp_path / "log").read_text().split()[0])
    assert code is None
    deadline = time.monotonic() + 10
    while (state := _state(pid)) not in ("gone", "Z") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert state in ("gone", "Z")


def _state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_ctrl_c_is_recorded(tmp_path):
    folder = tmp_path / "day"
    process = subprocess.Popen([sys.executable, str(REPOSITORY / "scripts" / "gpu-day"), "--device", "cpu", "--minutes", "1",
                                "-o", str(folder)],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        deadline = time.monotonic() + 120
        while not (folder / "gpu-day.log").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == 130 and "interrupted; what there is so far is in" in said and "Traceback" not in said
    assert json.loads((folder / "gpu-day.json").read_text())["steps"] == [{"name": "calibration", "status": "interrupted"}]


def test_forecasts_are_left_for_later_where_no_binary_runs(tmp_path):
    assert forecasts.find("/bin/false", REPOSITORY) is None and forecasts.find(None, tmp_path) is None
    asked = {"model": "train.py:net", "batch": 8, "threads": 2, "precision": "tf32", "optimizer": {"name": "adamw"}}
    failed = {**asked, "optimizer": None, "precision": "fp32"}
    (tmp_path / plan.TRAINING).write_text(json.dumps({"device": {"name": "NVIDIA H100"}, "runs": [asked, failed]}))
    first, second = forecasts.commands(tmp_path, "cuda", REPOSITORY)
    assert first == ["predict", "train.py:net", "--gpu", "NVIDIA H100", "--batch", "8", "--precision", "tf32", "--optimizer", "adamw",
                     "--weight-decay", "0.01", "--json"]
    assert second[-3:] == ["--optimizer", "sgd", "--json"]

    class Steps(list):
        add = list.append

    steps = Steps()
    forecasts.make(None, "cuda", tmp_path, REPOSITORY, 0, steps)
    assert steps[0]["status"] == "left for later" and os.path.exists(tmp_path / forecasts.COMMANDS)


def test_without_a_gpu_the_day_does_not_begin(tmp_path):
    done = run("-o", tmp_path / "day")
    if done.returncode == 0:
        pytest.skip("there is a GPU here")
    assert "--device cpu --minutes 1" in done.stderr and os.listdir(tmp_path) == []
