"""`stoker sweep` and `stoker study` as a user runs them."""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from stoker_binary import STOKER

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2])
SCRIPT = """
import sys, stoker
batch, lr = int(sys.argv[1]), float(sys.argv[2])
if batch > 64:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB")
for step in range(20):
    stoker.report(step=step, samples=batch, loss=1 / (1 + step * lr))
"""


def stoker_run(*words, cwd, **options):
    env = dict(os.environ, PYTHONPATH=PACKAGE)
    return subprocess.run([STOKER, *map(str, words)], cwd=cwd, capture_output=True, text=True, env=env, **options)


def rows(cwd, *words):
    done = stoker_run("study", "study.db", "--csv", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_matrix_of_a_script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = stoker_run("sweep", "--vary", "batch=32,64,128", "--vary", "lr=0.1,1", "--metric", "loss", "--at-most", 2, "--",
                      sys.executable, "train.py", "{batch}", "{lr}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6 trials: 4 done, 2 out of memory" in done.stdout
    found = rows(tmp_path)
    assert [row["batch"] for row in found] == ["32", "32", "64", "64", "128", "128"]
    assert float(found[1]["loss"]) == pytest.approx(1 / 20)
    assert float(found[0]["samples_per_s"]) > 0
    assert found[4]["cause"] == "cuda_out_of_memory"
    assert float(found[4]["gpu_total_bytes"]) == 4 * 2**30
    answer = json.loads(stoker_run("study", "study.db", "--json", "--by", "lr", "--where", "batch < 100", cwd=tmp_path).stdout)
    assert [group["values"]["lr"] for group in answer["groups"]] == [0.1, 1]
    assert answer["groups"][1]["metrics"]["loss"]["mean"] == pytest.approx(1 / 20)


def test_a_changed_study_is_refused_with_the_difference(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text("command = 'true {n}'\n[axes]\nn = [1, 2]\n")
    assert stoker_run("sweep", "study.toml", cwd=tmp_path).returncode == 0
    assert stoker_run("sweep", "study.toml", cwd=tmp_path).returncode == 0  # nothing left to do
    study.write_text("command = 'true {n}'\nrepeat = 2\n[axes]\nn = [1, 2]\n")
    done = stoker_run("sweep", "study.toml", cwd=tmp_path)
    assert done.returncode == 3
    assert "repeat: 1 there, 2 asked for" in done.stderr


def test_two_controllers_refuse_each_other(tmp_path):
    command = [STOKER, "sweep", "--vary", "n=1", "--", "sleep", "1000"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        while not (tmp_path / "study.db.trials" / "000001" / "claim").exists():
            time.sleep(0.01)
        second = stoker_run("sweep", "--vary", "n=1", "--", "sleep", "1000", cwd=tmp_path)
        assert second.returncode == 3
        assert f"is being run by process {first.pid}" in second.stderr
        assert "run by process" in stoker_run("study", "study.db", cwd=tmp_path).stdout
        first.send_signal(signal.SIGINT)
        while b"no more trials are started" not in first.stderr.readline():
            pass
        first.send_signal(signal.SIGINT)
        assert first.wait() == 1
    assert rows(tmp_path)[0]["state"] == "cancelled"


def test_what_failed_runs_again_when_asked(tmp_path):
    command = "test -e now && echo fine || exit 1"
    words = ("--vary", "n=1,2", "--shell", "--", command)
    assert stoker_run("sweep", *words, cwd=tmp_path).returncode == 1  # nothing was measured
    assert [row["state"] for row in rows(tmp_path)] == ["failed", "failed"]
    (tmp_path / "now").touch()
    done = stoker_run("sweep", "study.db", "--retry", "failed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(row["trial"], row["state"], row["retry_of"]) for row in rows(tmp_path)] == [("3", "done", "1"), ("4", "done", "2")]


def test_a_dry_run_starts_nothing(tmp_path):
    done = stoker_run("sweep", "--vary", "n=1,100000", "--cores", "{n}", "--dry-run", "--", "touch", "x{n}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1  touch x1\n" in done.stdout
    assert "2  not run: needs 100000 cores" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_finished_trials_correct_those_that_wait(tmp_path):
    """A loader that the forecast does not know: trials without workers are left out once that is certain."""
    command = "workers={workers}; echo rate $((20 + workers * 64))"
    done = stoker_run("sweep", "--model", "resnet50", "--gpu", "v100-16gb", "--forecast", "host=cores=16,ram=64G",
                      "--vary", "batch=32,64,128", "--vary", "workers=4,3,2,1,0", "--metric", "samples_per_s=rate ([0-9]+)",
                      "--prune-by-forecast", "--shell", "--",
                      command + "; # {batch}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    left_out = [row for row in found if row["cause"] == "dominated"]
    assert left_out
    assert {row["workers"] for row in left_out} <= {"0", "1"}  # those that really are the slowest
    assert all("certain to be slower than trial" in row["reason"] for row in left_out)
    ran = [row for row in found if row["state"] == "done"]
    assert max(float(row["samples_per_s"]) for row in ran) == 276  # the best was run
    later = [row for row in ran if row["corrected_samples_per_s"]][4:]

    def error(kind):
        return sum(abs(float(row[f"{kind}_samples_per_s"]) / float(row["samples_per_s"]) - 1) for row in later)

    assert error("corrected") < error("forecast")
    assert f"{len(left_out)} that others are certain to beat" in done.stdout
    assert "left: " in done.stderr


OBSERVED = """
import time, stoker
observer = stoker.Observer(batch=8)
for _ in observer.batches([list(range(8))] * 30):
    with observer.step():
        with observer.phase("forward"):
            time.sleep(0.004)
"""


def test_observed_steps_are_metrics(tmp_path):
    (tmp_path / "train.py").write_text(OBSERVED)
    done = stoker_run("sweep", "--vary", "n=1", "--metric", "step_ms", "--", sys.executable, "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    row = rows(tmp_path)[0]
    assert row["state"] == "done"
    assert float(row["step_ms"]) >= 4
    assert float(row["samples_per_s"]) <= 8 / 0.004
    assert float(row["forward_percent"]) > 50
    assert (tmp_path / "study.db.trials" / "000001" / "steps.obs.jsonl").exists()


def test_pruning_needs_a_forecast(tmp_path):
    done = stoker_run("sweep", "--vary", "n=1", "--prune-by-forecast", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "--prune-by-forecast: needs a forecast: --model MODEL" in done.stderr
    assert list(tmp_path.iterdir()) == []
