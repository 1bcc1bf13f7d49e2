"""Nothing stays of a probe: no process, no shared memory, no temporary file; however it ends."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import pytest

from places import PYTHON, SUPPORT

HERE = SUPPORT / "pipelines.py"
MARK = "STOKER_TEST_MARK"
PATIENCE_S = 20  # until what must come has come; nothing is measured with it


def marked(mark):
    """Processes that carry the mark in their environment, children of children included."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _usual_signals():
    for number in (signal.SIGINT, signal.SIGHUP):  # a shell's "&" and nohup ignore them
        signal.signal(number, signal.SIG_DFL)


class Run:
    """A probe in a process of its own, with a temporary folder of its own."""

    def __init__(self, tmp_path, function, *arguments, budget="20s"):
        self.mark, self.folder = uuid.uuid4().hex, tmp_path / "temporary"
        self.folder.mkdir()
        self.out = tmp_path / "out" / "p.json"
        self.out.parent.mkdir()
        self.segments = set(os.listdir("/dev/shm"))
        environment = dict(os.environ, TMPDIR=str(self.folder), PYTHONPATH=str(PYTHON), **{MARK: self.mark})
        environment.pop("STOKER_BINARY", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stoker", "probe", f"{HERE}:{function}", "-o", str(self.out), "--budget", budget,
             "--quiet", "--json", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, preexec_fn=_usual_signals)

    def works(self):
        """Waits until children measure: the probe, its warden, and one child at least."""
        assert until(lambda: len(marked(self.mark)) >= 3 or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.stderr.read()

    def assert_nothing_left(self, written=False):
        assert until(lambda: not marked(self.mark)), marked(self.mark)
        assert until(lambda: not list(self.folder.iterdir())), list(self.folder.iterdir())
        mine = {name for name in set(os.listdir("/dev/shm")) - self.segments
                if name.startswith(("torch_", "sem.")) and not _belongs_to_the_living(name)}
        assert not mine
        assert [p.name for p in self.out.parent.iterdir()] == (["p.json"] if written else [])


def _belongs_to_the_living(name):
    """Segments of other tests and programs that run at the same time."""
    parts = name.split("_")
    return len(parts) > 1 and parts[1].isdigit() and os.path.exists(f"/proc/{parts[1]}")


def test_after_success(tmp_path):
    run = Run(tmp_path, "loader", budget="3s")
    assert run.process.wait() == 0
    run.assert_nothing_left(written=True)


def test_after_an_error(tmp_path):
    run = Run(tmp_path, "always_raises", budget="2s")
    assert run.process.wait() == 3
    assert "none of" in run.process.stderr.read()
    run.assert_nothing_left()


@pytest.mark.parametrize("number, code, wait_s", [
    (signal.SIGINT, 130, 0.0), (signal.SIGINT, 130, 1.5), (signal.SIGTERM, 143, 0.7), (signal.SIGHUP, 129, 0.3),
    (signal.SIGKILL, -9, 0.0), (signal.SIGKILL, -9, 1.5)])
def test_after_a_signal(tmp_path, number, code, wait_s):
    run = Run(tmp_path, "loader")
    run.works()
    time.sleep(wait_s)  # so that the signal meets different phases
    run.process.send_signal(number)
    assert run.process.wait() == code
    run.assert_nothing_left()


def test_processes_of_the_data_set_do_not_outlive_a_killed_probe(tmp_path):
    run = Run(tmp_path, "forks")
    assert until(lambda: len(marked(run.mark)) >= 4)
    run.process.kill()
    run.process.wait()
    run.assert_nothing_left()
