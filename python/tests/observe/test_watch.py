"""`stoker watch` over real DataLoaders: what it sees of processes and batches. Never how long they took."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest

import stoker
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


def test_what_the_loop_tells_is_what_its_observation_says(tmp_path):
    report, _ = watched(tmp_path, "--device --step 0.02 --workers 1 --wait 0.004", seconds=5)
    told = report["told"]
    summary = stoker.read_observation(tmp_path / "job.obs.jsonl").summary()
    assert told["steps"] == summary.steps
    assert told["waits"] == pytest.approx(summary.share("wait"), abs=1e-6)
    assert report["waits_for_data"] == told["waits"]
    assert told["samples_per_s"] == pytest.approx(summary.samples_per_s, rel=1e-3)
    again = run("explain", "--json", tmp_path / "run.rec")
    assert json.loads(again.stdout)["told"] == told


def test_loading_without_workers_is_named_where_the_loop_tells(tmp_path):
    report, _ = watched(tmp_path, "--device --step 0.01 --workers 0 --decode 20", seconds=5)
    names = [finding["name"] for finding in report["findings"]]
    assert "loads_in_main_process" in names, report["verdict"]


def test_a_recording_plans_the_next_run(tmp_path):
    watched(tmp_path, "--device --step 0.01 --workers 1 --wait 0.01", seconds=5)
    plan = json.loads(run("plan", "--from", tmp_path / "run.rec", "--host", "cores=8,ram=64G", "--json").stdout)
    assert plan["schema"].startswith("stoker-")
    refused = run("plan", "--from", tmp_path / "run.rec", "--data", tmp_path, "--step-ms", "5", code=2)
    assert "--from" in refused.stderr
    missing = run("plan", "--from", tmp_path / "none.rec", code=3)
    assert "none.rec" in missing.stderr


def test_a_silent_loops_batch_has_to_be_said(tmp_path):
    watched(tmp_path, "--device --step 0.01 --workers 1 --wait 0.01 --silent", seconds=5)
    refused = run("plan", "--from", tmp_path / "run.rec", "--host", "cores=8,ram=64G", code=2)
    assert "--batch" in refused.stderr
    run("plan", "--from", tmp_path / "run.rec", "--batch", "8", "--host", "cores=8,ram=64G")


def test_a_forecast_stands_beside_the_fact(tmp_path):
    watched(tmp_path, "--step 0.02 --workers 1", seconds=5)
    command = ("explain", tmp_path / "run.rec", "--against", "resnet50 --gpu a100-40gb")
    against = json.loads(run(*command, "--json").stdout)["against"]
    assert against["batch"] == 8
    assert against["step_ms"]["low"] <= against["step_ms"]["value"] <= against["step_ms"]["high"]
    assert against["seen_samples_per_s"] > 0
    assert "forecast of resnet50" in run(*command).stdout
    assert "--against" in run("explain", tmp_path / "run.rec", "--against", "--batch 8", code=2).stderr


def run(*arguments, code=0):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def test_a_stopped_process_is_watched_as_stopped(sleeper):
    os.kill(sleeper.pid, signal.SIGSTOP)
    report = json.loads(run("watch", sleeper.pid, "--seconds", "4", "--json").stdout.splitlines()[-1])
    assert report["states"]["elsewhere"] > 0.9
    assert any("no process of the job is Python" in note for note in report["notes"])


def test_a_thread_is_refused_by_name():
    code = ("import threading, time; t = threading.Thread(target=time.sleep, args=(60,), daemon=True); t.start(); "
            "print(t.native_id, flush=True); time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        thread = process.stdout.readline().strip()
        assert f"thread of process {process.pid}" in run("watch", thread, code=3).stderr
    finally:
        process.kill()
        process.wait()


def test_a_process_that_exits_at_once_leaves_its_code(tmp_path):
    done = run("watch", "-o", tmp_path / "a.rec", "--", "sh", "-c", "exit 3", code=3)
    assert "Traceback" not in done.stderr


def test_a_narrow_terminal_is_kept_to(sleeper):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    process = subprocess.Popen([BINARY, "watch", str(sleeper.pid), "--seconds", "4"], stdin=slave, stdout=slave,
                               stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    os.close(slave)
    said = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        said += part
    assert process.wait(60) == 0
    os.close(master)
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said.decode())
    screens, report = plain.split("watched for", 1) if "watched for" in plain else (plain, "")
    # What is drawn over keeps to the terminal; sentences of the report want 40 columns.
    drawn = re.split(r"[\r\n]+", screens)[:-4]
    assert len(drawn) > 4 and max(map(len, drawn)) <= 20
    assert max(map(len, report.splitlines())) <= 40
