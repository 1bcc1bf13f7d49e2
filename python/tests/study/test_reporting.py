"""stoker.report in a trial, and outside of one."""

import json
import subprocess
import sys

import stoker


def reports(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_outside_of_a_trial_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.delenv("STOKER_REPORTS", raising=False)
    monkeypatch.chdir(tmp_path)
    stoker.report(step=1, loss=0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_a_line(monkeypatch, tmp_path):
    file = tmp_path / "reports.jsonl"
    monkeypatch.setenv("STOKER_REPORTS", str(file))
    stoker.report(step=10, loss=0.5, samples=64)
    stoker.report(epoch=2, accuracy=1, name="x")
    first, second = reports(file)
    assert first.pop("monotonic") <= second.pop("monotonic")
    assert first == {"step": 10, "samples": 64, "loss": 0.5}
    assert second == {"epoch": 2, "accuracy": 1, "name": "x"}


def test_numbers_that_json_has_not_are_texts(monkeypatch, tmp_path):
    file = tmp_path / "reports.jsonl"
    monkeypatch.setenv("STOKER_REPORTS", str(file))
    stoker.report(loss=float("nan"), best=float("inf"), worst=-float("inf"))
    line = reports(file)[0]
    assert (line["loss"], line["best"], line["worst"]) == ("nan", "inf", "-inf")


def test_tensors_of_one_element_are_numbers(monkeypatch, tmp_path):
    import torch

    file = tmp_path / "reports.jsonl"
    monkeypatch.setenv("STOKER_REPORTS", str(file))
    stoker.report(loss=torch.tensor([0.25], requires_grad=True), ok=torch.tensor(3))
    assert {k: v for k, v in reports(file)[0].items() if k != "monotonic"} == {"loss": 0.25, "ok": 3.0}


def test_the_first_rank_alone_reports(monkeypatch, tmp_path):
    file = tmp_path / "reports.jsonl"
    monkeypatch.setenv("STOKER_REPORTS", str(file))
    monkeypatch.setenv("RANK", "1")
    stoker.report(loss=1)
    assert not file.exists()
    monkeypatch.setenv("RANK", "0")
    stoker.report(loss=1)
    assert len(reports(file)) == 1


def test_a_folder_that_vanished_does_not_end_the_training(monkeypatch, tmp_path):
    monkeypatch.setenv("STOKER_REPORTS", str(tmp_path / "gone" / "reports.jsonl"))
    stoker.report(loss=1)


def test_it_needs_no_torch():
    code = "import sys, stoker; stoker.report(loss=1); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
