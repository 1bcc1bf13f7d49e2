"""`stoker study FILE --plots FOLDER`: what is drawn, what is not and why, and what happens without matplotlib."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from stoker.study.plots import effects, forecast, style
from stoker_binary import STOKER

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2])
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
needs_matplotlib = pytest.mark.skipif(not HAS_MATPLOTLIB, reason="pictures need matplotlib, which this Python does not have")
# Throughput that grows with workers up to three, and a loss that two seeds reach at different times.
SCRIPT = """
import sys, time, stoker
workers, lr, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
for step in range(6):
    time.sleep(0.012 / min(workers, 3))
    stoker.report(step=step, samples=32, loss=1 / (1 + (step + 1) * lr) + seed / 1000)
"""


def stoker_run(*words, cwd, **variables):
    env = dict(os.environ, PYTHONPATH=PACKAGE, STOKER_PYTHON=sys.executable, **variables)
    return subprocess.run([STOKER, *map(str, words)], cwd=cwd, capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studied")
    (folder / "train.py").write_text(SCRIPT)
    done = stoker_run("sweep", "--vary", "workers=1,2,4", "--vary", "lr=0.1,1", "--repeat", 2, "--metric", "loss", "--", sys.executable,
                      "train.py", "{workers}", "{lr}", "{seed}", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_numbers_of_pictures_are_kept_beside_them(studied):
    stoker_run("study", "study.db", "--plots", "numbers", cwd=studied)
    study = json.loads((studied / "numbers" / "study.json").read_text())
    findings = study["findings"]
    assert len(findings["settings"]) == 6
    assert {curve["trial"] for curve in findings["convergence"][0]["curves"]} == set(range(1, 13))
    assert len(findings["convergence"][0]["curves"][0]["points"]) == 6
    scaling = findings["scaling"][0]
    assert scaling["axis"] == "workers" and scaling["explained_by"] in ("law", "ceiling")
    assert scaling["line"][0][0] == 1 and scaling["line"][-1][0] == 8  # to twice the largest number tried


@needs_matplotlib
@pytest.mark.parametrize("kind,begins", [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_pictures(studied, kind, begins):
    done = stoker_run("study", "study.db", "--plots", kind, "--plot-format", kind, cwd=studied)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (studied / kind).glob(f"*.{kind}")}
    shown = ("effects-loss", "effects-samples_per_s", "pareto", "scaling", "convergence-loss")
    assert {f"{name}.{kind}" for name in shown} <= names
    for name in names:
        assert (studied / kind / name).read_bytes().startswith(begins)
        assert name in done.stdout
    assert "no picture of forecast: no trial that is done has a forecast" in done.stdout


@needs_matplotlib
def test_names_are_text_and_no_formulas(tmp_path):
    done = stoker_run("sweep", "--vary", "label=$\\frac{,<b>&,100 %", "--vary", "n=1..3", "--metric", "loss=([0-9.]+)", "--", "echo",
                      "0.{n}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = stoker_run("study", "study.db", "--plots", "out", "--plot-format", "svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "effects-loss.svg").exists()


@pytest.mark.skipif(HAS_MATPLOTLIB, reason="this Python has matplotlib")
def test_without_matplotlib_a_sentence_says_what_to_do(studied):
    done = stoker_run("study", "study.db", "--plots", "none", cwd=studied)
    assert done.returncode == 3
    assert f"{sys.executable} -m pip install matplotlib" in done.stderr
    assert (studied / "none" / "study.json").exists()


def test_a_folder_that_cannot_be_made(studied):
    done = stoker_run("study", "study.db", "--plots", "study.db", cwd=studied)
    assert done.returncode == 3 and "--plots study.db: is no folder" in done.stderr
    done = stoker_run("study", "study.db", "--plots", "x", "--json", cwd=studied)
    assert done.returncode == 2 and "leave out --json" in done.stderr
    assert stoker_run("study", "study.db", "--plot-format", "svg", cwd=studied).returncode == 2


def test_colours_say_what_intervals_say():
    def level(change, low, high):
        return {"change": change, "low": low, "high": high}

    assert effects.colour_of(level(1.2, 1.1, 1.3), 1, True) == style.COLOURS[2]  # better
    assert effects.colour_of(level(1.2, 1.1, 1.3), 1, False) == style.COLOURS[1]  # worse
    assert effects.colour_of(level(1.2, 0.9, 1.6), 1, True) == style.GREY  # it may be nothing
    assert effects.colour_of(level(1.2, None, None), 1, True) == style.GREY
    # An interval without end does not push everything else into a corner.
    low, high = effects.limits_of([level(2, 1.5, 3), level(1.5, 1e-6, 1e6)], True)
    assert low > 0.05 and high < 20


def test_forecasts_are_set_beside_facts_of_trials_that_are_done():
    trials = [{"state": "done", "metrics": {"samples_per_s": 90}, "wall_s": 3, "corrected": {},
               "forecast": {"samples_per_s": 100, "samples_per_s_low": 80, "samples_per_s_high": 120}},
              {"state": "failed", "metrics": {"samples_per_s": 1}, "wall_s": 1, "corrected": {}, "forecast": {"samples_per_s": 100}},
              {"state": "done", "metrics": {}, "wall_s": 2, "corrected": {}, "forecast": {}}]
    assert forecast.pairs_of({"trials": trials}, "samples_per_s", "forecast") == [(100, 80, 120, 90)]
    assert forecast.pairs_of({"trials": trials}, "wall_s", "forecast") == []


def test_names_of_files_and_labels():
    assert style.file_name("effects-a/b c$") == "effects-a_b_c_"
    assert style.plain("$x$\n") == r"\$x\$ "
    assert style.unit_of("peak_bytes") == (1e9, "peak (GB)")
