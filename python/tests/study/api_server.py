"""A stand-in for the API server of a Kubernetes cluster, for tests with the real `kubectl`.

It keeps Jobs and pods as the API documentation describes them (batch/v1, core/v1): lists, watches, logs, refusals, and it runs
each pod's command as a process of this machine. What nodes and the control plane do to pods is asked of it: `evict`, `preempt`,
an image that is missing, a node selector that no node has.
"""

from __future__ import annotations

import http.server
import itertools
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time
import urllib.parse

GROUPS = {"batch": ("v1", [("jobs", "Job", ["create", "delete", "get", "list", "watch"])]),
          "authorization.k8s.io": ("v1", [("selfsubjectaccessreviews", "SelfSubjectAccessReview", ["create"])])}
CORE = [("pods", "Pod", ["delete", "get", "list", "watch"]), ("pods/log", "Pod", ["get"])]


def resources(group_version: str, kinds: list) -> dict:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": [{"name": name, "singularName": "", "namespaced": not name.startswith("self"), "kind": kind, "verbs": verbs}
                          for name, kind, verbs in kinds]}


def status_of(code: int, reason: str, message: str) -> dict:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


class Cluster:
    """Jobs and pods of one namespace, and the processes behind them."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.lock, self.versions = folder, threading.RLock(), itertools.count(100)
        self.jobs: dict = {}
        self.pods: dict = {}
        self.processes: dict = {}
        self.watchers: list = []
        self.created: list = []
        self.node_labels = {"gpu": "a100"}
        self.allowed, self.refusal = True, None

    def touch(self, thing: dict, kind: str = "MODIFIED") -> None:
        thing["metadata"]["resourceVersion"] = str(next(self.versions))
        if thing["kind"] == "Pod":
            for watcher in self.watchers:
                watcher.put(json.dumps({"type": kind, "object": thing}))

    def create(self, job: dict, namespace: str) -> dict:
        with self.lock:
            name = job["metadata"]["name"]
            if self.refusal:
                return status_of(403, "Forbidden", self.refusal)
            if name in self.jobs:
                return status_of(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
            job["metadata"].update(namespace=namespace, uid=f"uid-{name}", creationTimestamp="2026-01-01T00:00:00Z")
            job["status"] = {"active": 1}
            self.jobs[name] = job
            self.created.append(json.loads(json.dumps(job)))
            self.touch(job)
            pod = {"kind": "Pod", "apiVersion": "v1", "status": {"phase": "Pending"}, "spec": dict(job["spec"]["template"]["spec"]),
                   "metadata": {"name": name + "-x7f2k", "namespace": namespace, "uid": f"uid-pod-{name}",
                                "labels": {**job["spec"]["template"]["metadata"]["labels"], "job-name": name,
                                           "batch.kubernetes.io/job-name": name}}}
            self.pods[pod["metadata"]["name"]] = pod
            self.touch(pod, "ADDED")
        threading.Thread(target=self.run, args=(pod,), daemon=True).start()
        return job

    def wait(self, pod: dict, **status) -> None:
        with self.lock:
            pod["status"].update(status)
            self.touch(pod)

    def run(self, pod: dict) -> None:
        """Scheduler and kubelet."""
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        selector = spec.get("nodeSelector", {})
        if any(self.node_labels.get(label) != value for label, value in selector.items()):
            return self.wait(pod, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                               "message": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."}])
        if container["image"].startswith("missing"):
            return self.wait(pod, containerStatuses=[{"name": "trial", "state": {"waiting": {
                "reason": "ImagePullBackOff", "message": f'Back-off pulling image "{container["image"]}"'}}}])
        private = self.folder / pod["metadata"]["name"]  # a container's /tmp is its own
        private.mkdir(parents=True)
        words = [word.replace("/tmp/stoker-trial", str(private / "stoker-trial")) for word in container["command"]]
        env = {**os.environ, **{one["name"]: one["value"] for one in container.get("env", [])}}
        with self.lock:
            if pod["metadata"]["name"] not in self.pods:
                return None
            with open(private / "log", "wb") as log:
                process = subprocess.Popen(words, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            self.processes[pod["metadata"]["name"]] = process
            spec["nodeName"] = "node-1"
            self.wait(pod, phase="Running")
        return self.finish(pod, process.wait())

    def finish(self, pod: dict, code: int) -> None:
        with self.lock:
            good = code == 0
            code = 128 - code if code < 0 else code
            ended = {"reason": "Completed" if good else "Error", "exitCode": code}
            ended.update(pod.get("ended_by", {}))
            pod["status"].update(phase="Succeeded" if good else "Failed", **pod.get("status_of_end", {}),
                                 containerStatuses=[{"name": "trial", "state": {"terminated": ended}}])
            self.touch(pod)
            job = self.jobs.get(pod["metadata"]["labels"]["job-name"])
            if job:
                job["status"] = {"succeeded" if good else "failed": 1, "conditions": [
                    {"type": "Complete" if good else "Failed", "status": "True", "reason": "" if good else "BackoffLimitExceeded"}]}
                self.touch(job)

    def end(self, pod_name: str, sign: int, container: dict | None = None, **status) -> None:
        """What a node or the control plane does to a pod, with the words that it leaves."""
        pod = self.pods[pod_name]
        pod["status_of_end"], pod["ended_by"] = status, container or {}
        os.killpg(self.processes[pod_name].pid, sign)

    def evict(self, pod_name: str) -> None:
        self.end(pod_name, signal.SIGTERM, reason="Evicted", message="The node was low on resource: ephemeral-storage.")

    def preempt(self, pod_name: str) -> None:
        self.end(pod_name, signal.SIGTERM, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                                                        "message": "default-scheduler: preempting to accommodate a higher priority pod"}])

    def out_of_memory(self, pod_name: str) -> None:
        self.end(pod_name, signal.SIGKILL, container={"reason": "OOMKilled"})

    def delete_job(self, name: str) -> dict | None:
        with self.lock:
            job = self.jobs.pop(name, None)
            if not job:
                return None
            for pod_name in [key for key, pod in self.pods.items() if pod["metadata"]["labels"]["job-name"] == name]:
                threading.Thread(target=self.delete_pod, args=(pod_name,), daemon=True).start()
            return job

    def delete_pod(self, name: str) -> None:
        process = self.processes.get(name)
        if process and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
            time.sleep(0.1)  # the kubelet tells the end before the pod is gone
        with self.lock:
            pod = self.pods.pop(name, None)
            if pod:
                self.touch(pod, "DELETED")


def selected(things: dict, query: dict) -> list:
    wanted = [part.split("=", 1) for part in query.get("labelSelector", [""])[0].split(",") if part]
    return [thing for thing in things.values() if all(thing["metadata"]["labels"].get(key) == value for key, value in wanted)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, *_):
        pass

    def answer(self, value, code: int = 200, kind: str = "application/json") -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> dict:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(text) if text.startswith(b"{") else {}  # kubectl asks about rights in protobuf

    def discover(self, path: str) -> bool:
        groups = {f"/apis/{name}/{version}": resources(f"{name}/{version}", kinds) for name, (version, kinds) in GROUPS.items()}
        known = {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
                 "/api": {"kind": "APIVersions", "versions": ["v1"]},
                 "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                     {"name": name, "versions": [{"groupVersion": f"{name}/{version}", "version": version}],
                      "preferredVersion": {"groupVersion": f"{name}/{version}", "version": version}}
                     for name, (version, _) in GROUPS.items()]},
                 "/api/v1": resources("v1", CORE), **groups}
        if path in known:
            self.answer(known[path])
        return path in known

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        parts = url.path.strip("/").split("/")
        cluster = self.cluster
        if self.discover(url.path):
            return None
        if "pods" in parts and parts[-1] == "log":
            return self.answer((cluster.folder / parts[-2] / "log").read_bytes(), kind="text/plain")
        things, kind = (cluster.pods, "Pod") if "pods" in parts else (cluster.jobs, "Job")
        if "pods" not in parts and "jobs" not in parts:
            return self.answer(status_of(404, "NotFound", "the server could not find the requested resource"), 404)
        if parts[-1] in ("pods", "jobs"):
            if query.get("watch", ["false"])[0] in ("1", "true"):
                return self.watch(query)
            with cluster.lock:
                return self.answer({"kind": kind + "List", "apiVersion": "v1" if kind == "Pod" else "batch/v1",
                                    "metadata": {"resourceVersion": str(next(cluster.versions))}, "items": selected(things, query)})
        with cluster.lock:
            if parts[-1] in things:
                return self.answer(things[parts[-1]])
        return self.answer(status_of(404, "NotFound", f'{parts[-2]} "{parts[-1]}" not found'), 404)

    def watch(self, query: dict) -> None:
        events: queue.Queue = queue.Queue()
        since = int(query.get("resourceVersion", ["0"])[0])
        with self.cluster.lock:
            for pod in selected(self.cluster.pods, query):
                if int(pod["metadata"]["resourceVersion"]) > since:
                    events.put(json.dumps({"type": "MODIFIED", "object": pod}))
            self.cluster.watchers.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while (event := events.get()) is not None:
                line = event.encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        finally:
            self.cluster.watchers.remove(events)

    def do_POST(self):
        body = self.body()
        if "selfsubjectaccessreviews" in self.path:
            return self.answer({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
                                "status": {"allowed": self.cluster.allowed}}, 201)
        namespace = self.path.split("/namespaces/")[1].split("/")[0]
        made = self.cluster.create(body, namespace)
        return self.answer(made, made.get("code", 201))

    def do_DELETE(self):
        self.body()
        name = urllib.parse.urlsplit(self.path).path.rsplit("/", 1)[1]
        job = self.cluster.delete_job(name)
        if job:
            return self.answer(job)
        return self.answer(status_of(404, "NotFound", f'jobs.batch "{name}" not found'), 404)


class Server:
    """The stand-in on a port of its own, with a kubeconfig that names it."""

    def __init__(self, folder: pathlib.Path):
        self.cluster = Cluster(folder / "nodes")
        handler = type("ClusterHandler", (Handler,), {"cluster": self.cluster})
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.config = folder / "kubeconfig"
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.http.server_port}"}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "stand-in", "context": {"cluster": "c", "user": "u", "namespace": "lab"}}]}))

    def end_watches(self) -> None:
        """Servers close watches after a while."""
        for watcher in list(self.cluster.watchers):
            watcher.put(None)

    def close(self) -> None:
        self.end_watches()
        self.http.shutdown()
        for process in self.cluster.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
