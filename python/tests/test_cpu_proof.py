"""Recorded training steps on a CPU beside the forecasts of the present code (data/measured/cpu): relative errors only."""

import json
import os
import subprocess
import sys

import pytest

from places import PYTHON, REPOSITORY

pytest.importorskip("torch")

BINARY = os.environ.get("STOKER_BINARY")


@pytest.mark.skipif(not BINARY, reason="STOKER_BINARY names no binary")
def test_forecasts_of_six_models_that_the_calibration_does_not_know(tmp_path):
    env = {**os.environ, "STOKER_PYTHON": sys.executable, "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path),
           "PYTHONPATH": str(PYTHON)}
    measured = REPOSITORY / "data" / "measured" / "cpu"
    done = subprocess.run([BINARY, "validate", measured / "training.json", "--machine", measured / "machine.toml", "--json"],
                          cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    step, peak = found["summaries"]["step"], found["summaries"]["peak memory"]
    assert step["runs"] == 36 and len({run["name"] for run in found["runs"]}) == 6
    assert step["median"] <= 0.10 and peak["median"] <= 0.05, "the bars that are reached: docs/accuracy.md"
    assert step["coverage"] >= 0.9, "the step's band is one of 90 %"
    pairs, right = (sum(ranking[name] for ranking in found["rankings"]) for name in ("pairs", "right"))
    assert right >= 0.9 * pairs, "batches by throughput, where they differ by more than the noise"
