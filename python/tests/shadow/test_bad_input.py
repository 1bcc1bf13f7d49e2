"""Scripts that fork, leave, wait, ask or take without end: what is captured all the same, and what is said of the others."""

import os
import subprocess
import sys
import time

import pytest
from test_scripts import found, line_of
from test_wild_styles import notes

import bad_scripts as bad
import many_captures
from stoker.shadow import descent, shell_script
from stoker.shadow.facade import cuda

SHORT = ("--time-limit", "8")
SMALL = ("--max-host-memory", "1G", "--time-limit", "300")
FLAGS = {"WAITS": SHORT, "TRIES_AGAIN": SHORT, "SHARES_MEMORY": SMALL, "FORKS_TAKE_MEMORY": SMALL}


@pytest.fixture(scope="module")
def answers(tmp_path_factory, on_cuda) -> dict:
    """What a capture says of each script."""
    scripts = {name: text for name, text in vars(bad).items() if name.isupper() and name != "HEAD"}
    return many_captures.of(scripts, FLAGS, tmp_path_factory.mktemp("bad"))


@pytest.mark.parametrize("name", ["DAEMON", "CHILD", "LEAVES", "BEHIND", "STARTS_ITSELF"])
def test_a_script_that_trains_is_captured_whatever_else_it_does(answers, name):
    assert answers[name]["code"] == 0, answers[name]["said"]
    facts = found(answers[name])
    assert (facts["batch"], facts["optimizer"]) == (10, "sgd")


def test_what_was_seen_before_os_exit_is_taken(answers):
    doc = answers["LEAVES_EARLY"]
    assert doc["optimizer"]["name"] == "sgd" and "the script made 1 step before it ended" in notes(doc)


def test_a_question_that_the_script_survives_is_said(answers):
    line = line_of(bad.ASKS_AND_GOES_ON, "input(")
    assert f"train.py line {line} reads standard input, which was empty" in notes(answers["ASKS_AND_GOES_ON"])


def at(text: str, part: str) -> str:
    return f"train.py line {line_of(text, part)}"


@pytest.mark.parametrize(("name", "words"), [
    ("BECOMES_ANOTHER", at(bad.BECOMES_ANOTHER, "os.execvp") + " replaces it by another program, which is not run (python other.py"),
    ("STARTS_ITSELF_FOR_EVER", "train.py line 2 starts it anew again and again"),
    ("ENDS_AT_ONCE", at(bad.ENDS_AT_ONCE, "os._exit") + " ends its process by os._exit(4) before it trained"),
    ("READS_JSON", "it reads its standard input (" + at(bad.READS_JSON, "json.load") + "), which is empty here"),
    ("STOPS_TO_DEBUG", "it reads its standard input (" + at(bad.STOPS_TO_DEBUG, "breakpoint")),
    ("WANTS_VARIABLE", "it wants the environment variable MY_DATA_ROOT: set it before stoker is called"),
    ("WANTS_ARGUMENT", "IndexError: list index out of range); correct " + at(bad.WANTS_ARGUMENT, "sys.argv[") + "; its own arguments"),
    ("MIXES_DEVICES", "correct " + at(bad.MIXES_DEVICES, "def forward") + "; move all that meets there to one device"),
    ("OF_ANOTHER_WIDTH", "correct " + at(bad.OF_ANOTHER_WIDTH, "def forward") + "; the layer there takes as many features as"),
    ("TRAINS_NOTHING", "correct " + at(bad.TRAINS_NOTHING, "loss.backward") + "; nothing that the loss comes from is trained"),
    ("WANTS_OPTION", "sys.exit(2) before it trained; its own arguments follow --"),
    ("COUNTS_GPUS", at(bad.COUNTS_GPUS, "device_count") + " asks how many GPUs there are, and is told 1: --gpus N"),
    ("LEAVES_FOR_GPUS", at(bad.LEAVES_FOR_GPUS, "device_count") + " asks how many GPUs there are, and is told 1: --gpus N"),
    ("FAULTS", "was ended at " + at(bad.FAULTS, "string_at") + " (signal 11, ")])
def test_what_cannot_be_captured_says_the_line_and_the_way_out(answers, name, words):
    assert answers[name]["code"] == 3
    assert words in answers[name]["said"]


def test_a_failure_behind_the_first_step_is_said_with_the_line_and_the_way_out(answers):
    line = at(bad.CARRIES_ITS_GRAPH, "loss.backward")
    assert f"what later steps show is unknown; correct {line}; what is carried from one step to the next" in notes(
        answers["CARRIES_ITS_GRAPH"])


@pytest.mark.parametrize(("name", "part"), [("WAITS", "while not"), ("TRIES_AGAIN", "time.sleep")])
def test_a_script_that_takes_too_long_says_where_it_is(answers, name, part):
    said, text = answers[name]["said"], getattr(bad, name)
    assert "took more than 8 s" in said
    loop = range(line_of(text, part) - 3, line_of(text, part) + 2)  # lines of the loop, whichever runs
    assert any(f"before its first step (at train.py line {line})" in said for line in loop)


@pytest.mark.parametrize("name", ["SHARES_MEMORY", "FORKS_TAKE_MEMORY"])
def test_memory_is_counted_wherever_the_script_takes_it(answers, name):
    assert "of this machine's memory and was ended before its first step (at train.py line" in answers[name]["said"]


def test_processes_below_are_found_and_ended():
    child = subprocess.Popen([sys.executable, "-c", "import os, time; os.fork() and os.fork(); time.sleep(600)"])
    until = time.monotonic() + 60
    while len(descent.descendants(child.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    below = descent.descendants(child.pid)
    assert len(below) == 2 and child.pid in descent.descendants(os.getpid())
    descent.end_descendants(child.pid)
    while [pid for pid in below if descent.held_bytes(pid)] and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in below if descent.held_bytes(pid)]
    child.kill()
    child.wait()


def test_what_processes_share_is_counted_once():
    text = "import os, time; kept = b'x' * (64 << 20); os.fork(); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", text])
    until = time.monotonic() + 60
    while not descent.descendants(child.pid) and time.monotonic() < until:
        time.sleep(0.02)
    both = [child.pid, *descent.descendants(child.pid)]
    assert descent.held_together(both, None) > 2 * (64 << 20)
    assert 64 << 20 < descent.held_together(both, 80 << 20) < 100 << 20
    descent.end_descendants(child.pid)
    child.kill()
    child.wait()


@pytest.mark.parametrize(("visible", "count"), [(None, 4), ("", 0), ("-1", 0), ("0", 1), ("2,3", 2), ("0,-1,2", 1), ("0,1,2,3,4", 4)])
def test_gpus_that_the_script_leaves_visible(monkeypatch, visible, count):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cuda._seen(4) == count


@pytest.mark.parametrize(("text", "words"), [
    ("set -e\ntorchrun --nproc_per_node 2 train.py --epochs 3\n", "line 2 starts it: torchrun --nproc_per_node 2 train.py --epochs 3: give "
     "that script, and its arguments after -- (train.py -- --epochs 3)"),
    ("python prepare.py\n# python old_train.py\nCUDA_VISIBLE_DEVICES=0 python3 -u \\\n  src/train.py --lr 1 > log.txt 2>&1 &\n",
     "line 3 starts it: CUDA_VISIBLE_DEVICES=0 python3 -u src/train.py --lr 1 > log.txt 2>&1 &: give that script, and its arguments "
     "after -- (src/train.py -- --lr 1)"),
    ("exec python -m tools.fit --x 1\n", "line 1 starts it: exec python -m tools.fit --x 1: give tools/fit.py"),
    ("./fit.py --a\n", "line 1 starts it: ./fit.py --a: give that script, and its arguments after -- (./fit.py -- --a)"),
    ("cd x\nsource env.sh && bash inner.sh\n", "line 2 starts another script"),
    ("pip install torch\ncp train.py there\n", "no line of it starts Python")])
def test_shell_scripts_name_the_line_that_starts_python(tmp_path, text, words):
    (tmp_path / "job.sh").write_text(text)
    assert words in shell_script.refusal(str(tmp_path / "job.sh"))


def test_a_notebook_says_how_it_becomes_a_script():
    assert "jupyter nbconvert --to script train.ipynb" in shell_script.refusal("train.ipynb")
