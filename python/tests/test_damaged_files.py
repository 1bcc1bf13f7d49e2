"""Whatever a file that a verb reads holds, the verb answers or refuses in a sentence: no crash, no bug, nothing that steers a terminal.

STOKER_MUTATIONS=500 tries that many damaged copies of each file in place of a few, STOKER_SEED=2 others.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unicodedata

import pytest

import damage
import stoker
from stoker_binary import STOKER

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "files"
COUNT, SEED = int(os.environ.get("STOKER_MUTATIONS", "8")), int(os.environ.get("STOKER_SEED", "1"))
ANSWERS = (0, 1, 2, 3)  # fine, the answer is no, usage, bad input

MACHINE = b"""name = "odd box"
[gpu]
base = "a100-40gb"
count = 4
fp32_tflops = 15.5
[host]
cores = 13
memory = "77GB"
[disk]
bandwidth_mbs = 321
[link]
pcie_gbs = 11.3
"""
PRICES = b"instance,price_per_hour,as_of\naws:g5.xlarge,1.006,2026-01-01\naws:g5.2xlarge,1.2,2026-01-01\n"
SCRIPT = {"file": "/home/me/train.py", "reads": [{"operator": "item", "answer": "0.5", "line": 7, "count": 3}], "found": [
    {"setting": "batch", "value": 8, "words": "batch 8", "line": 3}, {"setting": "workers", "value": 2, "words": "2 workers", "line": 3},
    {"setting": "persistent-workers", "value": False, "words": "workers started anew in each epoch", "line": 3},
    {"setting": "samples", "value": 64, "words": "64 samples", "line": 3}, {"setting": "validation", "value": 4, "words": "4", "line": 9}]}


def step_file() -> bytes:
    step = json.loads(gzip.decompress((GOLDEN / "tiny_cpu.step.gz").read_bytes()))
    return json.dumps({**step, "script": SCRIPT}).encode()


def observation(folder) -> bytes:
    observer = stoker.Observer(str(folder / "seen.obs.jsonl"))
    for _ in range(6):
        with observer.step(), observer.phase("forward"):
            pass
    observer.close()
    return (folder / "seen.obs.jsonl").read_bytes()


def sweep_store(folder) -> bytes:
    subprocess.run([STOKER, "sweep", "--store", "study.db", "--vary", "lr=0.1,0.01", "--", "true"], cwd=folder, capture_output=True,
                   check=True)
    return (folder / "study.db").read_bytes()


def recording(folder) -> bytes:
    subprocess.run([STOKER, "watch", "-o", "seen.rec", "--seconds", "1", "--", sys.executable, "-c", "import time; time.sleep(2)"],
                   cwd=folder, capture_output=True, check=True)
    return (folder / "seen.rec").read_bytes()


def golden(name):
    return lambda folder: (GOLDEN / name).read_bytes()


# File -> (what makes it, how it is packed, the verbs that read it).
READERS = {
    "pipeline.json": (golden("pipeline.probe.json"), None, [["probe", "{}"], ["plan", "--step-ms", "50", "--data", "{}"]]),
    "machine.toml": (lambda folder: MACHINE, None, [["predict", "gpt2", "--gpu", "{}", "--gpus", "2"]]),
    "study.toml": (lambda folder: (ROOT / "examples/studies/loader-grid.toml").read_bytes(), None, [["sweep", "{}", "--dry-run"]]),
    "study.db": (sweep_store, None, [["study", "{}"], ["study", "{}", "--findings"]]),
    "rows.json": (golden("training_rows.json"), None, [["validate", "{}"]]),
    "calibration.json": (golden("cpu_calibration.json"), None, [["calibrate", "{}", "-o", "cpu.toml"]]),
    "prices.csv": (lambda folder: PRICES, None, [["plan", "resnet50", "--gpu", "aws:g5.xlarge", "--price", "{}"]]),
    "found.step.gz": (lambda folder: step_file(), gzip.compress, [["predict", "{}", "--gpu", "cpu"]]),
    "seen.rec": (recording, None, [["explain", "{}"], ["plan", "--from", "{}"]]),
    "steps.obs.jsonl": (observation, None, [["validate", "{}"]])}


def steering(text: str) -> set:
    turning = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"
    return {c for c in text if c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cs") or c in turning)}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_answered_or_refused(tmp_path, name):
    make, pack, verbs = READERS[name]
    seed = make(tmp_path)
    for number, made in enumerate(damage.damaged(seed, COUNT, SEED)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(pack(made) if pack else made)
        for verb in verbs:
            done = subprocess.run([STOKER, *(word.replace("{}", name) for word in verb)], cwd=folder, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=600)
            said = (done.stdout + done.stderr).decode()  # is UTF-8
            assert done.returncode in ANSWERS, (verb, folder, done.returncode, said[-500:])
            assert not steering(said), (verb, folder, steering(said))
            assert "bug in stoker" not in said and "Traceback" not in said, (verb, folder, said[-500:])
            if done.returncode > 1:
                assert said.strip(), (verb, folder)
        shutil.rmtree(folder)


def test_the_damage_is_the_same_each_time():
    copies = list(damage.damaged(b'{"a": 1, "b": [2, "x"]}\n', 50))
    assert copies == list(damage.damaged(b'{"a": 1, "b": [2, "x"]}\n', 50))
    assert len(set(copies)) > 25
