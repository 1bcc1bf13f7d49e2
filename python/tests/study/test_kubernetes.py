"""`stoker sweep --on kubernetes` by the real `kubectl` against a stand-in API server."""

import csv
import io
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from api_server import Server

from stoker_binary import STOKER

if not shutil.which("kubectl"):
    pytest.skip("there is no kubectl (Debian's package kubernetes-client)", allow_module_level=True)


@pytest.fixture
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    server = Server(folder)
    server.env = dict(os.environ, KUBECONFIG=str(server.config), HOME=str(folder), STOKER_KUBERNETES_POLL="0.5",
                      STOKER_IMAGE_PATIENCE="0.5", NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    yield server
    server.close()


def study_file(folder, command, extra="", kubernetes="", claim=True):
    where = f"claim = 'data'\nmount = '{folder}'\n" if claim else f"program = '{STOKER}'\n"
    (folder / "study.toml").write_text(f"command = \"\"\"{command}\"\"\"\nshell = true\n{extra}\n"
                                       f"[kubernetes]\nimage = 'lab/torch'\n{where}{kubernetes}\n")


def sweep(server, cwd, *words):
    return subprocess.run([STOKER, "sweep", "study.toml", "--on", "kubernetes", "--quiet", *words], cwd=cwd, env=server.env,
                          capture_output=True, text=True)


def rows(cwd):
    done = subprocess.run([STOKER, "study", "study.db", "--csv"], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def started(server, cwd, *words):
    return subprocess.Popen([STOKER, "sweep", "study.toml", "--on", "kubernetes", "--quiet", *words], cwd=cwd, env=server.env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def running_pod(server, count=1):
    while True:
        found = [name for name, pod in server.cluster.pods.items() if pod["status"]["phase"] == "Running"]
        if len(found) >= count:
            return found[0]
        time.sleep(0.02)


@pytest.mark.parametrize("claim", [True, False])
def test_trials_are_jobs(cluster, tmp_path, claim):
    axes = "[axes]\nn = [1, 2, 3]\n[metrics]\ngot = 'got ([0-9]+)'\n[resources]\ngpus = '{n}'\n"
    study_file(tmp_path, "echo got {n}; test {n} != 3", axes, claim=claim)
    done = sweep(cluster, tmp_path)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    assert [(row["state"], row["got"]) for row in found] == [("done", "1"), ("done", "2"), ("failed", "3")]
    assert found[2]["cause"] == "exit_code"
    assert found[0]["host"]
    assert (tmp_path / "study.db.trials" / "000002" / "stdout.txt").read_text().strip() == "got 2"
    limits = [job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for job in cluster.cluster.created]
    assert [limit["nvidia.com/gpu"] for limit in limits] == ["1", "2", "3"]
    assert {job["metadata"]["namespace"] for job in cluster.cluster.created} == {"lab"}  # as the context says
    assert not cluster.cluster.jobs  # their results are kept


@pytest.mark.parametrize("claim", [True, False])
def test_the_controller_dies_and_goes_on(cluster, tmp_path, claim):
    study_file(tmp_path, f"echo {{n}} >> {tmp_path}/ledger; sleep 0.4", "[axes]\nn = '1..5'\n", claim=claim)
    for wait in (0.3, 0.7, 1.1):
        controller = started(cluster, tmp_path, "--at-most", "2")
        time.sleep(wait)
        controller.kill()
        controller.communicate()
        cluster.end_watches()
    done = sweep(cluster, tmp_path, "--at-most", "2")
    assert done.returncode == 0, done.stderr
    assert [row["state"] for row in rows(tmp_path)] == ["done"] * 5
    assert sorted((tmp_path / "ledger").read_text().split()) == list("12345")
    assert len(cluster.cluster.created) == 5


@pytest.mark.parametrize("claim", [True, False])
@pytest.mark.parametrize(("what", "state", "cause"), [("evict", "failed", "evicted"), ("preempt", "failed", "preempted"),
                                                      ("out_of_memory", "out_of_memory", "host_out_of_memory")])
def test_what_the_cluster_does_to_a_pod_is_named(cluster, tmp_path, claim, what, state, cause):
    study_file(tmp_path, "sleep 1000", "[axes]\nn = [1]\n[resources]\ngrace = '1s'\n", claim=claim)
    controller = started(cluster, tmp_path)
    pod = running_pod(cluster)
    time.sleep(0.3)
    getattr(cluster.cluster, what)(pod)
    assert controller.wait() == 1  # no trial measured anything
    controller.communicate()
    assert [(row["state"], row["cause"]) for row in rows(tmp_path)] == [(state, cause)]


def test_images_and_nodes_that_there_are_not(cluster, tmp_path):
    study_file(tmp_path, "true", "[axes]\nimage = ['missing/torch', 'lab/torch']\n[resources]\nimage = '{image}'\n")
    done = sweep(cluster, tmp_path)
    found = rows(tmp_path)
    assert [(row["state"], row["cause"]) for row in found] == [("failed", "cannot_start"), ("done", "")]
    assert 'Back-off pulling image "missing/torch"' in found[0]["reason"]
    assert "trial 1 waits: ImagePullBackOff" in done.stderr
    folder = tmp_path / "selector"
    folder.mkdir()
    study_file(folder, "true", "[axes]\ngpu = ['h100']\n", "node_selector = { gpu = '{gpu}' }\n")
    controller = started(cluster, folder)
    assert "didn't match Pod's node affinity/selector" in controller.stderr.readline()
    controller.send_signal(signal.SIGINT)
    controller.stderr.readline()
    controller.send_signal(signal.SIGINT)
    assert controller.wait() == 1
    controller.communicate()
    assert rows(folder)[0]["state"] == "waiting"  # it never began


@pytest.mark.parametrize("claim", [True, False])
def test_ctrl_c_twice_cancels(cluster, tmp_path, claim):
    study_file(tmp_path, "sleep 1000", "[axes]\nn = [1]\n[resources]\ngrace = '1s'\n", claim=claim)
    controller = started(cluster, tmp_path)
    running_pod(cluster)
    time.sleep(0.3)
    controller.send_signal(signal.SIGINT)
    controller.stderr.readline()
    controller.send_signal(signal.SIGINT)
    assert controller.wait() == 1
    controller.communicate()
    assert rows(tmp_path)[0]["state"] == "cancelled"
    assert not cluster.cluster.jobs


def test_kubernetes_own_words_are_shown(cluster, tmp_path):
    study_file(tmp_path, "true", "[axes]\nn = [1]\n")
    cluster.cluster.refusal = 'jobs.batch is forbidden: exceeded quota: lab, requested: count/jobs.batch=1'
    done = sweep(cluster, tmp_path)
    assert done.returncode == 3
    assert "exceeded quota: lab" in done.stderr
    assert rows(tmp_path)[0]["state"] == "waiting"
    cluster.cluster.refusal, cluster.cluster.allowed = None, False
    assert "may not create Jobs there" in sweep(cluster, tmp_path).stderr
    cluster.cluster.allowed = True
    assert sweep(cluster, tmp_path).returncode == 0


def test_kubectl_without_a_context(tmp_path):
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n")
    study_file(tmp_path, "true", "[axes]\nn = [1]\n")
    env = {key: value for key, value in os.environ.items() if key != "KUBERNETES_SERVICE_HOST"}
    done = subprocess.run([STOKER, "sweep", "study.toml", "--on", "kubernetes"], cwd=tmp_path, capture_output=True, text=True,
                          env=dict(env, KUBECONFIG=str(tmp_path / "config"), HOME=str(tmp_path)))
    assert done.returncode == 3
    assert "does not know which cluster is meant" in done.stderr
    assert "kubectl config use-context NAME" in done.stderr


def test_a_store_off_the_claim_and_a_missing_image(cluster, tmp_path):
    study_file(tmp_path, "true", "[axes]\nn = [1]\n")
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace(f"mount = '{tmp_path}'", "mount = '/elsewhere'"))
    done = sweep(cluster, tmp_path)
    assert done.returncode == 3
    assert "does not lie in /elsewhere" in done.stderr
    (tmp_path / "study.db").unlink()
    (tmp_path / "study.toml").write_text(text.replace("image = 'lab/torch'", ""))
    assert sweep(cluster, tmp_path).returncode == 1
    assert [row["state"] for row in rows(tmp_path)] == ["not_run"]


def check(value, kind, models, path):
    """Names and kinds of all fields, by the models that the published OpenAPI document was made into."""
    many = re.fullmatch(r"(?:list\[|dict\(str, |dict\[str, )(.*)[\])]", kind, re.IGNORECASE)
    if many:
        assert isinstance(value, list if kind.lower().startswith("list") else dict), path
        for key, one in enumerate(value) if isinstance(value, list) else value.items():
            check(one, many[1], models, f"{path}.{key}")
        return
    model = getattr(models, kind, None)
    if model is None:
        assert isinstance(value, {"int": int, "str": str, "bool": bool, "object": object}[kind]), f"{path} is no {kind}"
        return
    fields = {name: model.openapi_types[ours] for ours, name in model.attribute_map.items()}
    for name, one in value.items():
        assert name in fields, f"{path}.{name} is no field of {kind}"
        check(one, fields[name], models, f"{path}.{name}")
    checked = {ours: value.get(name) for ours, name in model.attribute_map.items()}
    model(**checked)  # refuses where a field that must be there is not


@pytest.mark.parametrize("claim", [True, False])
def test_manifests_keep_to_the_published_schema(cluster, tmp_path, claim):
    models = pytest.importorskip("kubernetes.client.models")
    needs = "[axes]\nn = [1]\n[resources]\ngpus = 1\ncores = 2\nmemory = '1G'\ntime = '1h'\n"
    pods = ("tolerate = ['nvidia.com/gpu']\nservice_account = 'lab'\npull_secret = 's'\nprologue = 'true'\n"
            "node_selector = { gpu = 'a100' }\n")
    study_file(tmp_path, "true", needs, pods, claim=claim)
    assert sweep(cluster, tmp_path).returncode == 0
    job = cluster.cluster.created[0]
    del job["status"], job["metadata"]["creationTimestamp"]  # by the server
    check(job, "V1Job", models, "job")
