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
