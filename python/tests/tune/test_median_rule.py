"""The median rule of `stoker tune`, evaluation by evaluation, beside Optuna's MedianPruner on random curves.

Both prune where the best of a trial so far is worse than the median of the others' values at the same step, silent below a warm-up
and with too few others. Two things differ. Others that were stopped count here as far as they came, and Optuna leaves pruned trials
out; and here at least five others must have come to the step, where Optuna asks for five complete trials and one value. Given the
stopped trials as complete ones, and n_min_trials=5, Optuna says the same at each step.
"""

import json
import os
import random
import re
import subprocess
import sys

import pytest

from stoker_binary import STOKER

REPLAY = """
import json, os, sys
with open(os.environ["STOKER_REPORTS"], "a") as file:
    for step, value in enumerate(json.load(open("curves.json"))[int(sys.argv[1])], 1):
        file.write(json.dumps({"monotonic": step, "step": step, "score": value}) + chr(10))
"""
STEPS = 12


def random_curves(count, seed):
    """Curves that rise to different heights at different paces, with noise that makes them cross."""
    chance = random.Random(seed)
    curves = []
    for _ in range(count):
        height, pace = chance.uniform(0.3, 1), chance.uniform(0.1, 0.9)
        curves.append([height * (1 - (1 - pace) ** step) + chance.gauss(0, 0.08) for step in range(1, STEPS + 1)])
    return curves


def stopped_by_stoker(folder, curves, direction, warm_up):
    """For each trial the step at which it was stopped, None where it was not."""
    (folder / "replay.py").write_text(REPLAY)
    (folder / "curves.json").write_text(json.dumps(curves))
    done = subprocess.run(
        [STOKER, "tune", "--method", "grid", "--stop", "median", "--min-steps", str(warm_up), "--vary", f"curve=0..{len(curves) - 1}",
         "--metric", "score", "--direction", direction, "--at-most", "1", "--quiet", "--json",
         "--", sys.executable, "-S", "-E", "replay.py", "{curve}"], cwd=folder, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    whys = " ".join(decision["why"] for decision in json.loads(done.stdout)["decisions"])
    stopped = {int(trial): int(step) for trial, step in re.findall(r"trial (\d+) stopped at step (\d+)", whys)}
    assert len(re.findall(r"trial \d+ (?:stopped )?at step", whys)) == len(curves)
    return [stopped.get(trial) for trial in range(1, len(curves) + 1)]


def stopped_by_optuna(optuna, curves, direction, warm_up, stopped_state, n_min_trials):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=warm_up, n_min_trials=n_min_trials)
    study = optuna.create_study(direction=direction + "imize", pruner=pruner)
    found = []
    for curve in curves:
        trial, at = study.ask(), None
        for step, value in enumerate(curve, 1):
            trial.report(value, step)
            if trial.should_prune():
                at = step
                break
        if at is None or stopped_state == "COMPLETE":
            study.tell(trial, curve[(at or STEPS) - 1])
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        found.append(at)
    return found


@pytest.mark.parametrize(("direction", "warm_up", "seed"), [("max", 1, 3), ("min", 3, 7)])
def test_each_trial_stops_where_optuna_would_stop_it(tmp_path, direction, warm_up, seed):
    optuna = pytest.importorskip("optuna")
    curves = random_curves(24, seed)
    if direction == "min":
        curves = [[-value for value in curve] for curve in curves]
    ours = stopped_by_stoker(tmp_path, curves, direction, warm_up)
    assert ours == stopped_by_optuna(optuna, curves, direction, warm_up, "COMPLETE", 5)
    assert 5 < sum(step is not None for step in ours) < 20  # the curves are such that something is decided
    assert len(set(ours)) > 3
    # With pruned trials left out it is another rule: it must be told apart from ours by these curves.
    assert ours != stopped_by_optuna(optuna, curves, direction, warm_up, "PRUNED", 1)


def test_it_is_silent_with_fewer_than_five_others(tmp_path):
    falling = [[1 - 0.2 * i + 0.01 * step for step in range(STEPS)] for i in range(6)]
    assert stopped_by_stoker(tmp_path, falling, "max", 1) == [None] * 5 + [1]
