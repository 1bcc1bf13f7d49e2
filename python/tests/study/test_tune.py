"""`stoker tune` as a user runs it."""

import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
import tune_torture

from stoker_binary import STOKER

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2])
# Reports whose clock is planted, so that throughput does not depend on the machine; accuracy is best at a rate of 0.004.
SCRIPT = """
import math, sys, time, stoker
from stoker.study import reporting
clock = [0.0]
reporting.time.monotonic = lambda: clock[0]
batch, lr, steps = int(sys.argv[1]), float(sys.argv[2]), 300
if batch > 512:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB")
best = 0.9 - 0.1 * math.log10(lr / 0.004) ** 2
folder = stoker.checkpoint_dir()
first = 1
if folder and (folder / "step").exists():
    first = int((folder / "step").read_text()) + 1
for step in range(first, steps + 1):
    time.sleep(0.001)
    clock[0] += 1e-3 + batch * 1e-5
    metrics = {"accuracy": best * (1 - math.exp(-step / 60))} if step % 10 == 0 else {}
    enough = stoker.report(step=step, samples=batch, loss=1 / step, **metrics)
    if folder and (enough or step % 50 == 0):
        (folder / "step").write_text(str(step))
    if enough:
        break
"""
COMMAND = ["--", sys.executable, "train.py", "{batch}", "{lr}"]


def tune(*words, cwd, **options):
    env = dict(os.environ, PYTHONPATH=PACKAGE)
    return subprocess.run([STOKER, "tune", *map(str, words)], cwd=cwd, capture_output=True, text=True, env=env, **options)


def answer(*words, cwd, code=0):
    done = tune(*words, cwd=cwd)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def test_batch_then_rate(folder):
    words = ["--batch", "64..2048x2", "--lr", "1e-4..1e-1", "--metric", "accuracy", "--json", *COMMAND]
    found = answer(*words, cwd=folder)
    # 512 has 83,660 samples a second, 256 86 % of it, and 1024 does not fit.
    assert found["choice"]["values"] == {"batch": "512", "lr": "0.005"}
    what = [decision["what"] for decision in found["decisions"]]
    assert "batch 2048 not measured" in what
    assert found["problem"] == "" and found["stopped"] == ""
    assert found["spent"]["saved_s"] > 0
    # A second run starts nothing; the store alone gives its answer.
    assert answer(*words, cwd=folder)["choice"] == found["choice"]
    assert answer("tune.db", "--json", cwd=folder)["decisions"] == found["decisions"]


@pytest.mark.parametrize("method", ["asha", "random"])
def test_kills_of_controller_and_runners_change_nothing(method):
    assert tune_torture.torture(STOKER, method, 3, random.Random(5)) == []


def test_kill_at_any_moment_and_go_on(folder):
    words = ["--batch", "128,256", "--lr", "1e-4..1e-1", "--metric", "accuracy", "--json", *COMMAND]
    undisturbed = answer("--store", "whole.db", *words, cwd=folder)
    env = dict(os.environ, PYTHONPATH=PACKAGE)
    chance = random.Random(1)
    for _ in range(12):
        process = subprocess.Popen([STOKER, "tune", "--quiet", *words], cwd=folder, env=env, stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 0.8))
        process.send_signal(signal.SIGKILL)
        process.wait()
    found = answer(*words, cwd=folder)
    assert found["choice"]["values"] == undisturbed["choice"]["values"]
    assert found["choice"]["score"] == undisturbed["choice"]["score"]
    same = [decision["what"] for decision in found["decisions"]]
    assert same == [decision["what"] for decision in undisturbed["decisions"]]


def test_a_budget_that_ends_in_the_middle_goes_on_with_a_larger_one(folder):
    words = ["--lr", "1e-4..1e-1", "--metric", "accuracy", "--json"]
    command = ["--", sys.executable, "train.py", "64", "{lr}"]
    part = answer(*words, "--budget-steps", 450, *command, cwd=folder, code=1)
    assert "450 steps are used up" in part["stopped"]
    assert part["choice"] is not None
    whole = answer(*words, *command, cwd=folder)
    assert whole["stopped"] == "" and whole["choice"]["values"] == {"lr": "0.005"}


@pytest.mark.parametrize("body, words, said", [
    ("pass", [], "accuracy"),
    ("for i in range(30): stoker.report(step=i, accuracy=float('nan'))", [], "diverged"),
    ("for i in range(30): stoker.report(step=i, accuracy=1 - i / 100)", [], "--direction min"),
    ("raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB')", [],
     "out of memory"),
    ("raise ValueError('no such file')", [], "no such file"),
])
def test_what_cannot_be_decided_is_said(tmp_path, body, words, said):
    (tmp_path / "train.py").write_text(f"import stoker\n{body}\n")
    done = tune("--lr", "0.01,0.1", "--metric", "accuracy", *words, "--", sys.executable, "train.py", "{lr}", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert said in done.stderr.splitlines()[-1]


OOM = "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB')"
RANDOM = ["--method", "random", "--trials", "4"]
RUNGS = ["--method", "asha", "--trials", "4", "--min-steps", "10", "--max-steps", "40"]


@pytest.mark.parametrize("method", [RANDOM, RUNGS], ids=["random", "asha"])
@pytest.mark.parametrize("body, trials, said", [
    ("for i in range(30): stoker.report(step=i, acc=0.5)", 1, "it told acc"),
    ("for i in range(60): stoker.report(step=i, accuracy=float('nan'))", 4, "no finite number in any report"),
    ("for i in range(60): stoker.report(step=i, accuracy=0.5 if i < 5 else float('nan'))", 4, "all 4 settings diverged"),
    ("for i in range(60): stoker.report(step=i, accuracy=1 - i / 100)", 4, "--direction min"),
    (OOM, 4, "every trial ran out of memory"),
    ("raise ValueError('no such file')", 3, "the first 3 trials all failed"),
], ids=["absent", "never finite", "diverged", "worse", "out of memory", "failed"])
def test_a_search_that_cannot_decide_says_why(tmp_path, method, body, trials, said):
    (tmp_path / "train.py").write_text(f"import stoker\n{body}\n")
    words = ["--lr", "1e-4..1e-1", "--metric", "accuracy", "--json", "--", sys.executable, "train.py", "{lr}"]
    done = tune(*method, *words, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert said in done.stderr.splitlines()[-1]
    assert json.loads(done.stdout)["spent"]["trials"] == trials


def test_noise_beyond_decision_says_how_many_repetitions_would_settle_it(tmp_path):
    body = ("import random\n"
            "for i in range(60): stoker.report(step=i, accuracy=0.5 + random.Random(f'{sys.argv[1]} {i}').gauss(0, 0.1))")
    (tmp_path / "train.py").write_text(f"import stoker, sys\n{body}\n")
    words = ["--lr", "1e-4..1e-1", "--stop", "none", "--metric", "accuracy", "--json", "--", sys.executable, "train.py", "{lr}"]
    found = answer(*RANDOM, *words, cwd=tmp_path)
    why = [d["why"] for d in found["decisions"] if "cannot be told apart" in d["what"]]
    assert len(why) == 1 and "repetitions" in why[0]


def test_settings_that_diverge_when_they_go_on_are_not_chosen(tmp_path):
    # The best at the first rung diverges behind it.
    body = ("lr = float(sys.argv[1])\nfor i in range(1, 91):\n"
            "    bad = lr > 0.01 and i > 35\n    if stoker.report(step=i, accuracy=float('nan') if bad else lr + i / 1000): break")
    (tmp_path / "train.py").write_text(f"import stoker, sys\n{body}\n")
    found = answer("--method", "asha", "--lr", "0.001,0.005,0.02", "--trials", "6", "--min-steps", "30", "--max-steps", "90", "--metric",
                   "accuracy", "--seed", "2", "--json", "--", sys.executable, "train.py", "{lr}", cwd=tmp_path)
    assert found["choice"]["values"]["lr"] in ("0.001", "0.005")
    assert any("diverged" in d["what"] for d in found["decisions"]), "one of 0.02 was tried"


@pytest.mark.parametrize("words", [["--method", "asha", "--trials", "4", "--min-steps", "30", "--max-steps", "270"],
                                   ["--method", "hyperband", "--min-steps", "100", "--max-steps", "300"],
                                   ["--method", "random", "--trials", "3"], ["--method", "grid"], []],
                         ids=["asha", "hyperband", "random", "grid", "greedy"])
def test_a_budget_that_ends_in_the_middle_interrupts_a_trial_once(folder, words):
    command = ["--lr", "1e-4..1e-1", "--metric", "accuracy", "--json", *words]
    script = ["--", sys.executable, "train.py", 64, "{lr}"]
    whole = answer("--store", "whole.db", *command, *script, cwd=folder)
    part = answer(*command, "--budget-steps", 130, *script, cwd=folder, code=1)
    assert "130 steps are used up" in part["stopped"]
    # On a loaded machine a trial may end, after its 300 steps, before the stop reaches it.
    assert part["spent"]["trials"] <= 6 and part["spent"]["steps"] <= 300, "what was stopped is not begun again"
    found = answer(*command, *script, cwd=folder)
    assert found["stopped"] == "" and found["choice"]["values"] == whole["choice"]["values"]
    # What was interrupted has another number.
    said = [[re.sub(r"trial [0-9]+", "trial", d["what"]) for d in answered["decisions"]] for answered in (found, whole)]
    assert said[0] == said[1]


def test_the_width_belongs_to_the_search(folder):
    words = ["--method", "asha", "--lr", "1e-4..1e-1", "--trials", 6, "--min-steps", 30, "--max-steps", 270, "--metric", "accuracy",
             "--json"]
    script = ["--", sys.executable, "train.py", 64, "{lr}"]
    found = answer(*words, "--at-most", 3, *script, cwd=folder)
    # Neither another number of places nor the store alone is another search.
    for again in ([*words, "--at-most", 2, *script], ["tune.db", "--json"]):
        assert answer(*again, cwd=folder)["decisions"] == found["decisions"]


@pytest.mark.parametrize("words, said", [
    (["--lr", "0.1", "--metric", "accuracy", "--", "true", "{lr}"], "has one value"),
    (["--lr", "0.1,0.2", "--metric", "quality_of_life", "--", "true", "{lr}"], "--direction"),
    (["--lr", "0.1,0.2", "--", "true", "{lr}"], "--metric"),
    (["--lr", "0.1,0.2", "--metric", "accuracy", "--", "true"], "the command has no {lr}"),
    (["--metric", "accuracy", "--", "true"], "--batch 512..16384x2"),
    (["--lr", "0,0.2", "--metric", "accuracy", "--", "true", "{lr}"], "no number above 0"),
    (["--lr", "0.1,0.2", "--metric", "accuracy", "--budget-money", "3", "--", "true", "{lr}"], "--price"),
    (["--lr", "0.1,0.2", "--metric", "accuracy", "--budget", "soon", "--", "true", "{lr}"], "is no time"),
])
def test_what_cannot_be_meant_is_refused(tmp_path, words, said):
    done = tune(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


ASHA = ["--method", "asha", "--lr", "1e-4..1e-1", "--trials", 9, "--min-steps", 30, "--max-steps", 270, "--metric", "accuracy", "--json"]


def test_promotion_pauses_and_goes_on_from_the_scripts_own_checkpoints(folder):
    found = answer(*ASHA, "--", sys.executable, "train.py", 64, "{lr}", cwd=folder)
    assert found["problem"] == "" and found["spent"]["restarted"] == 0
    assert any("cut-off" in decision["why"] for decision in found["decisions"])
    # Nine at 30 steps, three of them to 90, one to 270: pauses are within some steps of the rung.
    assert found["spent"]["steps"] == pytest.approx(9 * 30 + 3 * 60 + 180)
    assert len(list((folder / "tune.db.checkpoints").iterdir())) == 1, "the best one's are kept"
    again = answer(*ASHA, "--width", 3, "--store", "wide.db", "--", sys.executable, "train.py", 64, "{lr}", cwd=folder)
    parallel = answer(*ASHA, "--width", 3, "--at-most", 3, "--store", "parallel.db", "--", sys.executable, "train.py", 64, "{lr}",
                      cwd=folder)
    assert again["choice"]["values"] == parallel["choice"]["values"]
    assert [d["what"] for d in again["decisions"]] == [d["what"] for d in parallel["decisions"]]


def test_a_script_that_cannot_resume_begins_anew_and_is_counted(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT.replace("stoker.checkpoint_dir()", "None"))
    found = answer(*ASHA, "--", sys.executable, "train.py", 64, "{lr}", cwd=tmp_path)
    assert found["spent"]["restarted"] == 4
    assert any("began anew" in decision["why"] for decision in found["decisions"])


@pytest.mark.parametrize("words, said", [
    (["--method", "asha", "--trials", 9], "--min-steps 100 --max-steps 2700"),
    (["--method", "asha", "--min-steps", 10, "--max-steps", 90], "--trials 27"),
    (["--method", "grid", "--trials", 9], "follows from the method"),
    (["--vary", "depth=1,2"], "greedy chooses batch and learning rate alone"),
    (["--method", "random", "--trials", 9, "--vary", "depth=1,2"], "the command has no {depth}"),
])
def test_a_search_that_cannot_be_meant_is_refused(tmp_path, words, said):
    done = tune(*words, "--lr", "1e-4..1e-1", "--metric", "accuracy", "--", "true", "{lr}", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("method", ["tpe", "random --sampler sobol"])
def test_optuna_draws_where_it_is_installed(folder, method):
    pytest.importorskip("optuna")
    words = ["--method", *method.split(), "--lr", "1e-4..1e-1", "--trials", 5, "--metric", "accuracy", "--json"]
    found = answer(*words, "--", sys.executable, "train.py", 64, "{lr}", cwd=folder)
    again = answer(*words, "--store", "again.db", "--", sys.executable, "train.py", 64, "{lr}", cwd=folder)
    assert found["choice"]["values"] == again["choice"]["values"]


@pytest.mark.parametrize("said, kept", [([], "30s"), (["--grace", "10s"], "10s"), (["--grace", "5s"], "5s")])
def test_a_grace_that_is_said_goes_before_the_clusters(folder, said, kept):
    (folder / "cluster.toml").write_text('[resources]\ngrace = "30s"\n')
    answer("--method", "random", "--trials", "2", "--lr", "1e-3..1e-1", "--metric", "accuracy", "--cluster", "cluster.toml",
           "--json", "--quiet", *said, "--", sys.executable, "train.py", "64", "{lr}", cwd=folder)
    with sqlite3.connect(folder / "tune.db") as store:
        [definition] = store.execute("SELECT value FROM study WHERE key = 'definition'").fetchone()
    assert json.loads(definition)["resources"]["grace"] == kept
