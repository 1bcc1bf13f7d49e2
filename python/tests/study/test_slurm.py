"""`stoker sweep --on slurm` on a real Slurm that is brought up on this machine."""

import csv
import io
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from stoker_binary import STOKER

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = pathlib.Path(os.environ.get("STOKER_SHARED", ROOT.parent / "shared")) / "tools" / "slurm"
if not shutil.which("sbatch") or os.geteuid() != 0 or not (TOOLS / "start.sh").exists():
    pytest.skip("no Slurm can be started here (root, slurm-wlm and tools/slurm of the shared folder)", allow_module_level=True)


# A partition whose jobs give way to those of another, at once or after a warning, and one with a short time limit.
PARTITIONS = """PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=preempt_send_user_signal
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=5 PreemptMode=OFF State=UP
PartitionName=low Nodes=ALL MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=warned Nodes=ALL MaxTime=INFINITE PriorityTier=1 GraceTime=5 PreemptMode=REQUEUE State=UP
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=brief Nodes=ALL MaxTime=1 DefaultTime=1 PriorityTier=5 PreemptMode=OFF State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    tools = tmp_path_factory.mktemp("tools") / "slurm"
    shutil.copytree(TOOLS, tools)
    lines = (tools / "slurm.conf.in").read_text().splitlines()
    kept = "\n".join(line for line in lines if not line.startswith("PartitionName"))
    (tools / "slurm.conf.in").write_text(kept + "\n" + PARTITIONS)
    started = subprocess.run(["bash", tools / "start.sh", folder], capture_output=True, text=True)
    if started.returncode:
        pytest.skip("Slurm does not start here: " + started.stderr[-300:])
    yield dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"), STOKER_SLURM_POLL="0.3", LC_ALL="C"), folder
    subprocess.run(["bash", TOOLS / "stop.sh", folder], capture_output=True)


# Trains until it is told to end; then it saves what it has, or goes on from what an earlier attempt saved.
TRAINING = """#!/bin/sh
kept=$STOKER_CHECKPOINT_DIR/step
step=$(cat $kept 2>/dev/null || echo 0)
echo "begin $step" >> ledger
trap 'mkdir -p $STOKER_CHECKPOINT_DIR; echo $step > $kept; echo "saved $step" >> ledger; exit 0' TERM
while [ $step -lt $1 ]; do sleep 0.1; step=$((step + 1)); done
echo "end $step" >> ledger
"""


@pytest.fixture
def training(tmp_path):
    (tmp_path / "train.sh").write_text(TRAINING)
    (tmp_path / "train.sh").chmod(0o755)
    return tmp_path


def study_file(folder, partition, steps, more=""):
    (folder / "study.toml").write_text(
        f'command = "./train.sh {steps}"\n[axes]\nn = [1]\n[resources]\ncores = 2\nmemory = "500M"\ngrace = "1s"\n'
        f'[slurm]\npartition = "{partition}"\n{more}')


def wait_for(path, text="", seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {text!r} after {seconds} s")


def give_way(env, cwd):
    """A job of the partition that goes first, for both cores."""
    words = ["sbatch", "-p", "high", "-c", "2", "--mem=500M", "--output=/dev/null", "--wrap", "sleep 1"]
    subprocess.run(words, env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


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


@pytest.mark.parametrize("partition", ["low", "warned"])
def test_a_trial_that_gives_way_says_so_and_saves_what_it_has(slurm, training, partition):
    env, _ = slurm
    study_file(training, partition, 10000)
    with subprocess.Popen([STOKER, "sweep", "study.toml", "--on", "slurm", "--quiet"], cwd=training, env=env, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as controller:
        wait_for(training / "ledger", "begin")
        give_way(env, training)
        controller.wait()
    found = rows(dict(env), training)
    assert [(row["state"], row["cause"]) for row in found] == [("failed", "preempted")]
    assert "gave its place to another job" in found[0]["reason"]
    lines = (training / "ledger").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "saved"]  # Slurm did not start it a second time


def test_a_trial_that_gave_way_is_run_again_where_that_is_asked_for(slurm, training):
    """It goes on from its checkpoint, as a trial of its own; both are in the store."""
    env, _ = slurm
    study_file(training, "low", 40)
    with subprocess.Popen([STOKER, "sweep", "study.toml", "--on", "slurm", "--quiet", "--retry", "preempted"], cwd=training, env=env,
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as controller:
        wait_for(training / "ledger", "begin")
        time.sleep(0.5)
        give_way(env, training)
        controller.wait()
    assert controller.returncode == 0
    with sqlite3.connect(training / "study.db") as database:
        assert database.execute("SELECT id, state, cause, retry_of FROM trials").fetchall() == [(1, "failed", "preempted", None),
                                                                                               (2, "done", "", 1)]
    assert [row["state"] for row in rows(env, training)] == ["done"]  # tables show the newer one
    begun, saved, again, ended = ((line.split()[0], int(line.split()[1])) for line in (training / "ledger").read_text().splitlines())
    assert begun == ("begin", 0) and saved[0] == "saved" and saved[1] > 0
    assert again == ("begin", saved[1]) and ended == ("end", 40)


def test_a_job_that_slurm_requeues_is_not_run_twice(slurm, training):
    """A site or a user may ask for --requeue: Slurm starts the job again, and the runner finds the trial taken."""
    env, _ = slurm
    study_file(training, "low", 10000, 'options = ["--requeue"]\n')
    with subprocess.Popen([STOKER, "sweep", "study.toml", "--on", "slurm", "--quiet"], cwd=training, env=env, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as controller:
        wait_for(training / "ledger", "begin")
        give_way(env, training)
        controller.wait()
    found = rows(env, training)
    assert [(row["state"], row["cause"]) for row in found] == [("failed", "preempted")]
    assert "put its job back into the queue" in found[0]["reason"]
    assert (training / "ledger").read_text().count("begin") == 1
    queued = subprocess.run(["squeue", "-h", "--me", "-p", "low", "-t", "PENDING"], env=env, capture_output=True, text=True)
    assert queued.stdout.strip() == ""  # what would find its trial taken does not wait there


def test_slurms_time_limit_leaves_time_to_save(slurm, training):
    env, _ = slurm
    study_file(training, "brief", 10000)  # one minute, by the partition
    done = sweep(env, training, "study.toml")
    assert done.returncode == 1, done.stderr  # nothing was measured to its end
    found = rows(env, training)
    assert [(row["state"], row["cause"]) for row in found] == [("timed_out", "time_limit")]
    assert "Slurm's time limit" in found[0]["reason"]
    lines = [line.split()[0] for line in (training / "ledger").read_text().splitlines()]
    assert lines == ["begin", "saved"]
    assert float(found[0]["wall_s"]) < 60
