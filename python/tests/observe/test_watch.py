"""`stoker watch` over real DataLoaders: what it sees of processes and batches. Never how long they took."""

import json
import os
import subprocess
import sys

import pytest

from places import PYTHON, REPOSITORY

pytest.importorskip("torch")
pytest.importorskip("PIL")

BINARY = os.environ.get("STOKER_BINARY")
JOB = REPOSITORY / "tests" / "jobs" / "job.py"

pytestmark = pytest.mark.skipif(not BINARY, reason="STOKER_BINARY names no binary")


def watched(tmp_path, arguments, seconds=4):
    """The report of a watch over a job with planted properties, and the lines before it."""
    command = [BINARY, "watch", "--json", "--every", "1", "-o", str(tmp_path / "run.rec"), "--", sys.executable, str(JOB),
               "--observation", str(tmp_path / "job.obs.jsonl"), "--seconds", str(seconds), *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": str(PYTHON)})
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["kind"] == "report"
    return lines[-1], lines[:-1]


def test_workers_and_batches_are_counted(tmp_path):
    report, lines = watched(tmp_path, "--device --step 0.05 --workers 2 --decode 2")
    (rank,) = report["ranks"]
    assert rank["workers"] == 2
    assert rank["worker_starts"] == 1
    rows = [json.loads(line) for line in (tmp_path / "job.obs.jsonl").read_text().splitlines()]
    steps = sum(isinstance(row, list) for row in rows)
    # Beside a message a batch: the window of two for each worker, and each worker's word to end.
    assert steps / 2 <= rank["batches"] <= steps + 2 * 2 + 2
    assert all(line["kind"] == "interval" for line in lines)
    assert sum(report["states"].values()) == pytest.approx(1)


def test_a_starved_loop_waits_and_a_recording_says_so_again(tmp_path):
    report, _ = watched(tmp_path, "--device --step 0.01 --workers 1 --wait 0.05")
    assert report["findings"], report["verdict"]
    names = [finding["name"] for finding in report["findings"]]
    assert report["waits_for_data"] > 0
    told = subprocess.run([BINARY, "explain", "--json", str(tmp_path / "run.rec")], capture_output=True, text=True,
                          check=True, timeout=60)
    again = json.loads(told.stdout)
    assert [finding["name"] for finding in again["findings"]] == names
    assert again["waits_for_data"] == pytest.approx(report["waits_for_data"], abs=1e-6)


def test_epochs_that_start_workers_anew_are_seen(tmp_path):
    report, _ = watched(tmp_path, "--device --step 0.02 --workers 1 --samples 160", seconds=6)
    assert report["ranks"][0]["worker_starts"] >= 2
    assert report["states"]["starts_workers"] > 0
