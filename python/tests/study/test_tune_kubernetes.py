"""`stoker tune --on kubernetes` by the real `kubectl` against a stand-in API server."""

import json
import pathlib
import subprocess
import sys
import time

from test_kubernetes import cluster  # noqa: F401, a fixture; skips this file, too, where there is no kubectl

from stoker_binary import STOKER

SCRIPT = pathlib.Path(__file__).with_name("tuned_script.py")
ASHA = ["--method", "asha", "--lr", "1e-4..1e-1", "--trials", "5", "--min-steps", "30", "--max-steps", "90", "--metric", "accuracy",
        "--width", "2", "--on", "kubernetes", "--cluster", "cluster.toml", "--json", "--quiet"]


def cluster_file(folder, text=""):
    (folder / "cluster.toml").write_text(f"[kubernetes]\nimage = 'lab/torch'\n{text}\n")


def on_the_claim(folder):
    cluster_file(folder, f"claim = 'data'\nmount = '{folder}'")


def command(folder, *more):
    return ["--", sys.executable, str(SCRIPT), "--lr", "{lr}", "--ledger", str(folder / "ledger"), *more]


def tune(server, cwd, *words):
    return subprocess.run([STOKER, "tune", *words], cwd=cwd, env=server.env, capture_output=True, text=True)


def begun(folder):
    ledger = folder / "ledger"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("begin")]


def test_trials_are_jobs_that_pause_and_go_on(cluster, tmp_path):  # noqa: F811
    on_the_claim(tmp_path)
    done = tune(cluster, tmp_path, *ASHA, *command(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["spent"]["restarted"] == 0 and found["choice"]["score"] > 0
    assert begun(tmp_path).count(1) == 5 and max(begun(tmp_path)) > 30
    assert not cluster.cluster.jobs, "their results are kept"


def test_the_controller_dies_and_goes_on(cluster, tmp_path):  # noqa: F811
    on_the_claim(tmp_path)
    whole = json.loads(tune(cluster, tmp_path, *ASHA, "--store", "whole.db", *command(tmp_path)).stdout)
    for wait in (0.5, 1.5):
        with subprocess.Popen([STOKER, "tune", *ASHA, *command(tmp_path)], cwd=tmp_path, env=cluster.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as controller:
            time.sleep(wait)
            controller.kill()
        cluster.end_watches()
    done = tune(cluster, tmp_path, *ASHA, *command(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["choice"]["values"] == whole["choice"]["values"]


def test_a_pod_that_is_evicted_goes_on_elsewhere(cluster, tmp_path):  # noqa: F811
    on_the_claim(tmp_path)
    with subprocess.Popen([STOKER, "tune", *ASHA, *command(tmp_path, "--wait", "0.03")], cwd=tmp_path, env=cluster.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as controller:
        while not any(pod["status"]["phase"] == "Running" for pod in list(cluster.cluster.pods.values())):
            assert controller.poll() is None, controller.stderr.read()
            time.sleep(0.02)
        name = next(name for name, pod in list(cluster.cluster.pods.items()) if pod["status"]["phase"] == "Running")
        time.sleep(0.3)
        cluster.cluster.evict(name)
        out, err = controller.communicate()
    assert controller.returncode == 0, err
    found = json.loads(out)
    assert found["problem"] == "" and found["choice"]["score"] > 0
    assert found["spent"]["trials"] == 7, "five, a promotion, and one once more"


def test_a_budget_deletes_what_has_not_begun(cluster, tmp_path):  # noqa: F811
    on_the_claim(tmp_path)
    slow = command(tmp_path, "--wait", "0.05")
    done = tune(cluster, tmp_path, *ASHA, "--budget-steps", "40", *slow)
    assert done.returncode == 1, done.stderr
    assert "40 steps are used up" in json.loads(done.stdout)["stopped"]
    assert not cluster.cluster.jobs
    done = tune(cluster, tmp_path, *ASHA, *slow)
    assert done.returncode == 0, done.stderr


def test_without_a_claim_trials_cannot_be_followed(cluster, tmp_path):  # noqa: F811
    cluster_file(tmp_path)
    done = tune(cluster, tmp_path, *ASHA, *command(tmp_path))
    assert done.returncode == 2 and "claim =" in done.stderr


def test_checkpoints_have_the_path_that_pods_see(cluster, tmp_path):  # noqa: F811
    cluster_file(tmp_path, f"claim = 'data'\nmount = '/data'\nhere = '{tmp_path}'\nfolder = '/tmp'")
    with subprocess.Popen([STOKER, "tune", *ASHA, *command(tmp_path)], cwd=tmp_path, env=cluster.env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as controller:
        spec = tmp_path / "tune.db.trials" / "000001" / "trial.json"
        until = time.monotonic() + 60
        while not spec.exists() and time.monotonic() < until:
            time.sleep(0.05)
        controller.kill()
    assert '"/data/tune.db.checkpoints/1"' in spec.read_text()
