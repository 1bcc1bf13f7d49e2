"""`stoker tune` where checkpoints fill the disk: a file system in memory of some megabytes."""

import json
import pathlib
import subprocess
import sys
import time

import pytest

from stoker_binary import STOKER

SCRIPT = pathlib.Path(__file__).with_name("tuned_script.py")
ASHA = ["--method", "asha", "--lr", "1e-4..1e-1", "--trials", "6", "--min-steps", "30", "--max-steps", "270", "--metric", "accuracy",
        "--json", "--quiet"]
MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here: " + mounted.stderr.strip())
    yield folder
    subprocess.run(["umount", "-l", folder], check=False)


def tune(cwd, *words, size):
    command = ["--", sys.executable, SCRIPT, "--lr", "{lr}", "--size", size]
    return subprocess.run([STOKER, "tune", *map(str, [*ASHA, *words, *command])], cwd=cwd, capture_output=True, text=True)


def test_a_full_disk_is_named_nothing_is_lost_and_with_room_it_goes_on(small_disk, tmp_path):
    whole = json.loads(tune(tmp_path, "--store", "whole.db", size=2 * MIB).stdout)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 11 * MIB)
    done = tune(small_disk, size=2 * MIB)
    # The search says it, or, where the last byte is gone, the store does.
    assert done.returncode in (1, 3), done.stderr
    assert "full" in done.stdout + done.stderr and "make room" in done.stdout + done.stderr
    ballast.unlink()
    done = tune(small_disk, size=2 * MIB)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["choice"]["values"] == whole["choice"]["values"]
    assert [d["what"] for d in found["decisions"]] == [d["what"] for d in whole["decisions"]]


def kept(folder):
    return [path for path in (folder / "tune.db.checkpoints").glob("*/last.json")]


def test_checkpoints_of_the_worst_make_room_by_themselves(small_disk):
    # Six paused ones of 2 MiB would take all of it; those that go begin anew when they are promoted.
    done = tune(small_disk, size=2 * MIB)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problem"] == ""
    assert len(kept(small_disk)) == 1, "the best one's are left"


def test_a_number_of_checkpoints_is_kept_to(tmp_path):
    command = ["--", sys.executable, str(SCRIPT), "--lr", "{lr}", "--size", "1000"]
    words = ["--method", "hyperband", "--lr", "1e-4..1e-1", "--min-steps", "30", "--max-steps", "270", "--metric", "accuracy",
             "--quiet", "--json", "--keep-checkpoints", "2"]
    most = 0
    with subprocess.Popen([STOKER, "tune", *words, *command], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, len(kept(tmp_path)))
            time.sleep(0.02)
        found = json.loads(process.stdout.read())
    assert process.returncode == 0
    # One more where a trial runs: it is never taken from under it.
    assert 0 < most <= 4
    assert found["choice"]["score"] > 0.5
    assert len(kept(tmp_path)) == 1


def test_a_search_keeps_the_best_ones_checkpoints_to_the_end(tmp_path):
    command = ["--", sys.executable, str(SCRIPT), "--lr", "{lr}", "--size", "1000"]
    for words in (["--method", "grid"], ["--no-final", "--refine", "0"]):
        store = "-".join(words).strip("-") + ".db"
        # 0.001 and 0.01 lie in the middle of what is run: others follow the best.
        more = ["--store", store, "--lr", "1e-4..1e0", "--metric", "accuracy", "--quiet", "--json"]
        done = subprocess.run([STOKER, "tune", *words, *more, *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        trial = json.loads(done.stdout)["choice"]["trial"]
        left = [path.parent.name for path in (tmp_path / (store + ".checkpoints")).glob("*/last.json")]
        assert left == [str(trial)], words
