"""`stoker sweep --on slurm` on a real Slurm that is brought up on this machine."""

import csv
import io
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from stoker_binary import STOKER

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = pathlib.Path(os.environ.get("STOKER_SHARED", ROOT.parent / "shared")) / "tools" / "slurm"
if not shutil.which("sbatch") or os.geteuid() != 0 or not (TOOLS / "start.sh").exists():
    pytest.skip("no Slurm can be started here (root, slurm-wlm and tools/slurm of the shared folder)", allow_module_level=True)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run(["bash", TOOLS / "start.sh", folder], capture_output=True, text=True)
    if started.returncode:
        pytest.skip("Slurm does not start here: " + started.stderr[-300:])
    yield dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"), STOKER_SLURM_POLL="0.3", LC_ALL="C"), folder
    subprocess.run(["bash", TOOLS / "stop.sh", folder], capture_output=True)


def sweep(env, cwd, *words):
    return subprocess.run([STOKER, "sweep", "--on", "slurm", "--quiet", *words], cwd=cwd, env=env, capture_output=True, text=True)


def rows(env, cwd):
    done = subprocess.run([STOKER, "study", "study.db", "--csv"], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_trials_are_tasks_of_arrays(slurm, tmp_path):
    env, _ = slurm
    done = sweep(env, tmp_path, "--vary", "gpus=1,2", "--repeat", "2", "--gpus", "{gpus}", "--metric", "got=got ([0-9]+)", "--shell", "--",
                 "echo $CUDA_VISIBLE_DEVICES; echo got {gpus}; test {gpus} = 1")
    assert done.returncode == 0, done.stderr
    found = rows(env, tmp_path)
    assert [(row["gpus"], row["state"], row["got"]) for row in found] == [("1", "done", "1")] * 2 + [("2", "failed", "2")] * 2
    assert found[2]["cause"] == "exit_code"
    assert (tmp_path / "study.db.trials" / "000004" / "stdout.txt").read_text().splitlines()[0].count(",") == 1
    scripts = list((tmp_path / "study.db.trials").glob("array-*.sh"))
    assert len(scripts) == 2  # one array for each need


def test_slurms_own_sentence_is_shown(slurm, tmp_path):
    env, _ = slurm
    (tmp_path / "study.toml").write_text("command = 'true'\n[axes]\nn = [1]\n[slurm]\npartition = 'nowhere'\n")
    done = sweep(env, tmp_path, "study.toml")
    assert done.returncode == 3
    assert "invalid partition specified: nowhere" in done.stderr
    assert [row["state"] for row in rows(env, tmp_path)] == ["waiting"]


def test_the_controller_dies_and_slurm_restarts(slurm, tmp_path):
    env, folder = slurm
    words = ("--vary", "n=1..6", "--at-most", "3", "--shell", "--", f"echo {{n}} >> {tmp_path}/ledger; sleep 0.3")
    for wait in (0.2, 0.6, 1.0):
        with subprocess.Popen([STOKER, "sweep", "--on", "slurm", "--quiet", *words], cwd=tmp_path, env=env,
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as controller:
            time.sleep(wait)
            controller.kill()
    os.kill(int((folder / "slurmctld.pid").read_text()), signal.SIGTERM)
    time.sleep(0.5)
    subprocess.run(["/usr/sbin/slurmctld", "-f", folder / "slurm.conf"], check=True, env=env)
    done = sweep(env, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert {row["state"] for row in rows(env, tmp_path)} == {"done"}
    assert sorted((tmp_path / "ledger").read_text().split()) == list("123456")


def test_a_cancelled_job_is_a_cancelled_trial(slurm, tmp_path):
    env, _ = slurm
    with subprocess.Popen([STOKER, "sweep", "--on", "slurm", "--quiet", "--vary", "n=1", "--", "sleep", "1000"], cwd=tmp_path, env=env,
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as controller:
        while not (tmp_path / "study.db.trials" / "000001" / "claim").exists():
            time.sleep(0.05)
        job = rows(env, tmp_path)[0]
        assert job["state"] in ("submitted", "running")
        subprocess.run(["scancel", "--me"], env=env, check=True)
        controller.wait()
    assert rows(env, tmp_path)[0]["state"] == "cancelled"


def test_a_node_that_fails_is_the_cause(slurm, tmp_path):
    env, _ = slurm
    node = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], env=env, capture_output=True, text=True).stdout.split()[0]
    words = [STOKER, "sweep", "--on", "slurm", "--quiet", "--grace", "1s", "--vary", "n=1", "--", "sleep", "1000"]
    with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as controller:
        while not (tmp_path / "study.db.trials" / "000001" / "claim").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        try:
            subprocess.run(["scontrol", "update", f"nodename={node}", "state=down", "reason=test"], env=env, check=True)
            controller.wait()
        finally:
            # Slurm refuses this for a node that has come back by itself (ReturnToService).
            subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], env=env, check=False)
    assert [(row["state"], row["cause"]) for row in rows(env, tmp_path)] == [("failed", "node_failure")]
