"""Stores that are locked, read-only, too new or on a full disk, and a study file that changes: a sentence with a cure, nothing lost."""

import json
import os
import pathlib
import pwd
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from stoker_binary import STOKER

FINAL = ("done", "failed", "timed_out", "out_of_memory", "cancelled", "not_run")


def stoker_run(*words, cwd, user=None, **variables):
    return subprocess.run([STOKER, *map(str, words)], cwd=cwd, capture_output=True, text=True, env=dict(os.environ, **variables), user=user)


def states(cwd, store="study.db"):
    done = stoker_run("study", store, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [trial["state"] for trial in json.loads(done.stdout)["trials"]]


@pytest.fixture
def nobody(tmp_path):
    """Somebody whom permissions hold: root passes them by."""
    if os.geteuid() != 0:
        return None
    try:
        user = pwd.getpwnam("nobody").pw_uid
    except KeyError:
        pytest.skip("there is no user nobody")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005 and folder != tmp_path:
            if str(folder).startswith("/tmp/pytest-of"):
                folder.chmod(0o755)
            else:
                pytest.skip(f"{folder} is closed to others")
    tmp_path.chmod(0o755)
    if subprocess.run(["test", "-x", STOKER], user=user).returncode:
        pytest.skip("the binary lies where others may not go")
    return user


class Locked:
    """Another process's transaction on the store."""

    def __init__(self, store):
        self.connection = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
        self.connection.execute("BEGIN IMMEDIATE")

    def end(self):
        self.connection.execute("ROLLBACK")
        self.connection.close()


def test_a_study_outlasts_a_lock_of_a_few_seconds(tmp_path):
    assert stoker_run("sweep", "--vary", "n=1..2", "--quiet", "--", "true", "{n}", cwd=tmp_path).returncode == 0
    lock = Locked(tmp_path / "study.db")
    timer = threading.Timer(3, lock.end)
    timer.start()
    done = stoker_run("sweep", "study.db", "--retry", "done", "--quiet", cwd=tmp_path)
    timer.join()
    assert done.returncode == 0, done.stderr
    assert states(tmp_path) == ["done", "done"]


def test_a_store_that_stays_locked(tmp_path):
    command = "sweep", "--vary", "n=1..3", "--quiet", "--", "sh", "-c", "echo {n} >> ledger; sleep 0.3"
    with subprocess.Popen([STOKER, *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, STOKER_DATABASE_PATIENCE="0.2")) as controller:
        while not (tmp_path / "ledger").exists():
            time.sleep(0.02)
        lock = Locked(tmp_path / "study.db")
        error = controller.communicate()[1]
    assert controller.returncode == 3
    assert "is in use by another process" in error and "run again later" in error
    assert len(states(tmp_path)) == 3  # it can be read all the same
    lock.end()
    assert stoker_run(*command, cwd=tmp_path).returncode == 0
    assert states(tmp_path) == ["done"] * 3
    assert sorted((tmp_path / "ledger").read_text().split()) == ["1", "2", "3"]  # none twice


def test_a_store_that_may_only_be_read(tmp_path, nobody):
    assert stoker_run("sweep", "--vary", "n=1..2", "--quiet", "--", "true", "{n}", cwd=tmp_path).returncode == 0
    (tmp_path / "study.db").chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        shown = stoker_run("study", "study.db", cwd=tmp_path, user=nobody)
        assert shown.returncode == 0 and "2 trials: 2 done" in shown.stdout
        for words in (("sweep", "study.db", "--retry", "done"), ("sweep", "--vary", "n=1", "--store", "new.db", "--", "true")):
            done = stoker_run(*words, cwd=tmp_path, user=nobody)
            assert done.returncode == 3
            assert "cannot be made: Permission denied; a study needs a folder that can be written to: --store names one" in done.stderr
    finally:
        tmp_path.chmod(0o755)
    assert states(tmp_path) == ["done", "done"]
    if nobody is not None:  # the folder may be written to, the file may not
        tmp_path.chmod(0o777)
        (tmp_path / "study.db.lock").chmod(0o666)
        done = stoker_run("sweep", "study.db", "--retry", "done", cwd=tmp_path, user=nobody)
        assert done.returncode == 3
        assert "readonly database" in done.stderr and "need write permission" in done.stderr


def test_what_stands_in_the_log_alone_is_read_in_a_folder_that_may_not_be_written_to(tmp_path, nobody):
    """A colleague looks at a study that runs: its newest changes are not in the database file yet."""
    command = "sweep", "--vary", "n=1..40", "--quiet", "--", "sleep", "0.05"
    with subprocess.Popen([STOKER, *command], cwd=tmp_path) as controller:
        while not (tmp_path / "study.db.trials" / "000004" / "result.json").exists():
            time.sleep(0.02)
        os.kill(controller.pid, 9)
    assert (tmp_path / "study.db-wal").stat().st_size > 0
    tmp_path.chmod(0o555)
    try:
        shown = stoker_run("study", "study.db", "--json", cwd=tmp_path, user=nobody)
    finally:
        tmp_path.chmod(0o755)
    assert shown.returncode == 0, shown.stderr
    seen = [trial["state"] for trial in json.loads(shown.stdout)["trials"]]
    assert len(seen) == 40 and seen.count("done") >= 3


def test_a_store_of_a_newer_version(tmp_path):
    assert stoker_run("sweep", "--vary", "n=1", "--quiet", "--", "true", cwd=tmp_path).returncode == 0
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("PRAGMA user_version = 7")
    before = (tmp_path / "study.db").read_bytes()
    for words in (("study", "study.db"), ("sweep", "study.db"), ("sweep", "--vary", "n=1", "--", "true")):
        done = stoker_run(*words, cwd=tmp_path)
        assert done.returncode == 3
        assert "is of schema 7, newer than this stoker knows (1); update stoker" in done.stderr
    assert (tmp_path / "study.db").read_bytes() == before


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_up(small_disk):
    """Each trial prints 300 kB: the disk takes a few. Room is made as often as a sweep stops, and it goes on."""
    line = f"echo begin {{n}} >> {small_disk.parent}/ledger; head -c 300000 /dev/zero"
    command = ("sweep", "--vary", "n=1..12", "--quiet", "--shell", "--", line)
    stops = 0
    for _ in range(30):
        done = stoker_run(*command, cwd=small_disk)
        if done.returncode == 0:
            break
        assert done.returncode == 3
        assert "make room on its disk" in done.stderr, done.stderr
        stops += 1
        for output in (small_disk / "study.db.trials").glob("*/stdout.txt"):
            output.unlink()
    assert done.returncode == 0 and stops > 0
    found = states(small_disk)
    assert len(found) == 12 and set(found) <= set(FINAL)
    begun = sorted((small_disk.parent / "ledger").read_text().split("\n")[:-1])
    assert len(begun) == len(set(begun)) == 12  # each once


def test_a_study_file_that_changes_under_its_study(tmp_path):
    study = tmp_path / "study.toml"
    text = 'command = "sh -c \'echo {n} >> ledger; sleep 0.2\'"\n[axes]\nn = [1, 2, 3]\n'
    study.write_text(text)
    with subprocess.Popen([STOKER, "sweep", "study.toml", "--quiet"], cwd=tmp_path, stdout=subprocess.DEVNULL) as controller:
        while not (tmp_path / "ledger").exists():
            time.sleep(0.02)
        study.write_text(text.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
        meanwhile = stoker_run("sweep", "study.toml", cwd=tmp_path)
        assert meanwhile.returncode == 3 and "is being run by process" in meanwhile.stderr
        controller.wait()
    assert controller.returncode == 0  # as it was when it began
    assert (tmp_path / "ledger").read_text().split() == ["1", "2", "3"]
    done = stoker_run("sweep", "study.toml", cwd=tmp_path)
    assert done.returncode == 3
    assert "holds another study" in done.stderr and "1, 2, 3, 4" in done.stderr and "--store" in done.stderr
    assert pathlib.Path(tmp_path / "ledger").read_text().split() == ["1", "2", "3"]
