"""A training script in place of a model: predict, plan and their Python functions."""

import json
import os
import subprocess
import sys

import pytest

import stoker
import training_scripts as scripts
from places import PYTHON


def ask(binary, folder, *words):
    done = subprocess.run([binary, *words], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON), XDG_CACHE_HOME=str(folder / "cache"),
                                   STOKER_PYTHON=sys.executable))
    return done.returncode, done.stdout, done.stderr


def test_a_script_is_forecast_with_what_was_found_in_it_and_remembered(tmp_path, with_binary, on_cuda):
    (tmp_path / "train.py").write_text(scripts.CLASSIFIER)
    words = ("predict", "train.py", "--gpu", "t4", "--json", "--", "--epochs", "2")
    code, out, said = ask(with_binary, tmp_path, *words)
    assert code == 0, said
    answer = json.loads(out)
    found = next(text for text in answer["assumed"] if text.startswith("found in train.py: "))
    assert "batch 16 (line" in found and "2 workers (line" in found
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.step.gz")}
    assert len(kept) == 1
    again = ask(with_binary, tmp_path, *words)
    assert json.loads(again[1])["memory"] == answer["memory"]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.step.gz")} == kept
    os.utime(tmp_path / "train.py", ns=(1, 1))
    ask(with_binary, tmp_path, *words)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.step.gz")} != kept


def test_arguments_of_its_own_are_of_a_script_alone(tmp_path, with_binary):
    code, _, said = ask(with_binary, tmp_path, "predict", "resnet50", "--gpu", "t4", "--", "--epochs", "2")
    assert code == 2
    assert "only a training script" in said


def test_functions_of_python_take_a_script(tmp_path, with_binary, on_cuda, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text(scripts.CLASSIFIER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert stoker.fits(script, 32, "t4", script_arguments=["--epochs", "2"])
    assert stoker.predict(script, "t4", batch=32, script_arguments=["--epochs", "2"])["memory"]["fits"]
    with pytest.raises(stoker.StokerError, match="required: --epochs"):
        stoker.predict(script, "t4")


def _python(folder, *words):
    done = subprocess.run([sys.executable, "-m", "stoker", *words], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON), XDG_CACHE_HOME=str(folder / "cache")))
    return done.returncode, done.stdout, done.stderr


def test_the_loader_of_a_script_is_probed(tmp_path):
    (tmp_path / "train.py").write_text(scripts.CLASSIFIER)
    code, out, said = _python(tmp_path, "probe", "train.py", "--budget", "5s", "--json", "--", "--epochs", "2", "--batch-size", "24")
    assert code == 0, said
    probe = json.loads(out)
    assert "train.py" in out and probe["samples"] == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]
    code, _, said = _python(tmp_path, "probe", "train.py", "--")
    assert code == 3 and "before it asked a DataLoader for a batch; its arguments follow --" in said


def test_real_steps_of_a_script_stand_beside_its_forecast(tmp_path, with_binary):
    (tmp_path / "train.py").write_text(scripts.CLASSIFIER)
    code, out, said = _python(tmp_path, "validate-script", "train.py", "--json", "--budget", "600s", "--batches", "8,12",
                              "--", "--epochs", "9")
    assert code in (0, 1), said
    answer = json.loads(out)
    assert answer["schema"] == "stoker-validate-script-1" and answer["arguments"] == ["--epochs", "9"]
    assert [run["batch"] for run in answer["runs"]] == [8, 12] and min(run["steps"] for run in answer["runs"]) >= 12
    assert all(0 <= run["foreign_share"] <= 1 and run["evaluations"] == 1 for run in answer["runs"])
    step, peak = answer["runs"][0]["figures"][:2]
    assert step["measured"] > 0 and peak["measured"] > 100 * 2**20  # Python and PyTorch take more than that
    assert all(f["held"] in (None, f["low"] <= f["measured"] <= f["high"]) for f in (step, peak))
    (tmp_path / "train.py").write_text(scripts.FAILS)
    code, _, said = _python(tmp_path, "validate-script", "train.py")
    assert code == 3 and "FileNotFoundError" in said


def test_a_validation_stands_beside_a_forecast_that_counts_it(tmp_path, with_binary):
    (tmp_path / "train.py").write_text(scripts.VALIDATED)
    code, out, said = _python(tmp_path, "validate-script", "train.py", "--json", "--batches", "4")
    assert code in (0, 1), said
    (run,) = json.loads(out)["runs"]
    steps, whole = run["figures"][1:]
    assert (run["batch"], whole["name"]) == (4, "with its validation")
    # 512 images of 8 channels in 64 x 64 take 64 MiB, of which a step of batch 4 knows nothing.
    assert whole["measured"] > steps["measured"] + 50 * 2**20 and whole["forecast"] > steps["forecast"] + 50 * 2**20


def test_a_calibration_measures_the_operators_of_a_script(tmp_path):
    (tmp_path / "train.py").write_text(scripts.ON_CPU)
    code = ("from stoker.calibrate import wanted; "
            "print(sorted({spec.kind for spec in wanted.specs_of(wanted.capture_here('train.py'))}))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 0, done.stderr
    assert "'convolution'" in done.stdout or "'conv" in done.stdout
