"""`stoker tune --on slurm` on a real Slurm that is brought up on this machine."""

import json
import pathlib
import subprocess
import sys
import time

from test_slurm import slurm  # noqa: F401, a fixture; skips this file, too, where no Slurm can be started

from stoker_binary import STOKER

SCRIPT = pathlib.Path(__file__).with_name("tuned_script.py")
LOCALLY = ["--on", "local"]
ASHA = ["--method", "asha", "--lr", "1e-4..1e-1", "--trials", "6", "--min-steps", "30", "--max-steps", "270", "--metric", "accuracy",
        "--width", "2"]


def command(folder, *more):
    return ["--json", "--quiet", "--", sys.executable, str(SCRIPT), "--lr", "{lr}", "--ledger", str(folder / "ledger"), *more]


def tune(env, cwd, *words, code=0):
    done = subprocess.run([STOKER, "tune", *words], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_paused_trials_go_on_from_their_checkpoints_and_the_choice_is_as_here(slurm, tmp_path):  # noqa: F811
    env, _ = slurm
    (tmp_path / "cluster.toml").write_text('[slurm]\npartition = "debug"\n[resources]\ncores = 1\nmemory = "200M"\n')
    found = tune(env, tmp_path, *ASHA, "--on", "slurm", "--cluster", "cluster.toml", *command(tmp_path))
    assert found["problem"] == "" and found["stopped"] == "" and found["spent"]["restarted"] == 0
    begun = [int(line.split()[1]) for line in (tmp_path / "ledger").read_text().splitlines() if line.startswith("begin")]
    assert begun.count(1) == 6 and any(step > 30 for step in begun), "promoted ones go on where they paused"
    here = tune(env, tmp_path, *ASHA, "--store", "here.db", *LOCALLY, *command(tmp_path))
    assert here["choice"]["values"] == found["choice"]["values"]
    assert [d["what"] for d in here["decisions"]] == [d["what"] for d in found["decisions"]]
    # The place is not part of the search: it goes on anywhere, but not with another cluster.
    (tmp_path / "other.toml").write_text('[slurm]\npartition = "low"\n')
    done = subprocess.run([STOKER, "tune", "tune.db", "--on", "slurm", "--cluster", "other.toml"], cwd=tmp_path, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 3 and "other.toml" in done.stderr


def queued(env):
    words = ["squeue", "-h", "-r", "--me", "-o", "%T"]
    return subprocess.run(words, env=env, capture_output=True, text=True).stdout.split()


def test_a_budget_stops_what_runs_and_takes_what_waits_out_of_the_queue(slurm, tmp_path):  # noqa: F811
    env, _ = slurm
    # Two cores each: one runs while the other waits.
    words = ["--method", "random", "--trials", "2", "--stop", "none", "--lr", "1e-4..1e-1", "--metric", "accuracy", "--width", "2",
             "--cores", "2", "--on", "slurm"]
    part = tune(env, tmp_path, *words, "--budget-steps", "60", *command(tmp_path, "--wait", "0.05"), code=1)
    assert "60 steps are used up" in part["stopped"]
    until = time.monotonic() + 60
    while queued(env) and time.monotonic() < until:
        time.sleep(0.2)
    assert queued(env) == []
    lines = (tmp_path / "ledger").read_text().splitlines()
    assert len([line for line in lines if line.startswith("begin")]) == 1, "the second never began"
    whole = tune(env, tmp_path, *words, *command(tmp_path, "--wait", "0.05"))
    assert whole["stopped"] == "" and whole["choice"]["score"] > 0
    # What was stopped saved what it had, and went on from it.
    ended = int(lines[-1].split()[1])
    assert f"begin {ended + 1}" in (tmp_path / "ledger").read_text().splitlines()


def test_the_controller_dies_and_the_choice_is_the_same(slurm, tmp_path):  # noqa: F811
    env, _ = slurm
    words = [*ASHA, "--on", "slurm", "--cores", "1"]
    whole = tune(env, tmp_path, *words, "--store", "whole.db", *command(tmp_path))
    for wait in (0.5, 1.5, 2.5):
        with subprocess.Popen([STOKER, "tune", *words, *command(tmp_path)], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as controller:
            time.sleep(wait)
            controller.kill()
    found = tune(env, tmp_path, *words, *command(tmp_path))
    assert found["choice"]["values"] == whole["choice"]["values"]
    assert [d["what"] for d in found["decisions"]] == [d["what"] for d in whole["decisions"]]
