"""Captures a list of models, one forked process each: python capture_many.py JOBS.jsonl --jobs N.

JOBS.jsonl holds one object a line: {"spec", "precision", "out", "image_size" (or null), "mode", "options" ({}),
"fixed" ({}), "fused_attention" (true)}. Nothing is downloaded: weights are never materialised. A line of JSON per
finished job goes to stdout: {"out", "error" (or null)}.
The libraries are imported once and each capture runs in a fork of that process, which saves most of the time of a
small model.
"""

import argparse
import difflib
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_PER_CAPTURE = 1800  # a model that takes longer is counted as failed
NEAR_ENOUGH = 0.8  # of difflib: "MobeNetV3Large" is mobilenet_v3_large


def simplified(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def resolved(spec: str) -> str:
    """The spec with torchvision's own spelling of a name, and with the full path of a file: one beside this one,
    or one below the project's root where the spec has folders."""
    kind, _, name = spec.rpartition(":")
    if kind.endswith(".py"):
        beside = pathlib.Path(__file__).with_name(kind) if "/" not in kind else ROOT / kind
        return f"{beside}:{name}"
    if kind != "torchvision":
        return spec
    import torchvision

    known = {simplified(n): n for n in torchvision.models.list_models() if "/" not in n}
    close = difflib.get_close_matches(simplified(name), known, n=1, cutoff=NEAR_ENOUGH)
    return f"torchvision:{known[close[0]]}" if close else spec


def work(job: dict, pipe: int) -> None:
    from stoker import front
    from stoker.errors import CaptureError

    error = None
    part = f"{job['out']}.{os.getpid()}.part"
    try:
        if not job.get("fused_attention", True):
            import timm.layers

            timm.layers.set_fused_attn(False)
        front.here(resolved(job["spec"]), part, precision=job["precision"], mode=job.get("mode", "train"), name=None,
                   batch=None, options=job.get("options") or {}, fixed=job.get("fixed") or {},
                   image_size=job.get("image_size"), say=lambda text: None)
        os.replace(part, job["out"])
    except CaptureError as e:
        error = str(e)
    except BaseException as e:  # whatever a model's own code raises is that row's result
        error = f"{type(e).__name__}: {e}"
    os.write(pipe, json.dumps(error).encode()[:60000])
    os._exit(0)


class Running:
    def __init__(self, job: dict):
        self.job, self.start = job, time.monotonic()
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            work(job, write)
        os.close(write)
        self.read = read

    def result(self):
        """None while it runs, else the line to report."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() - self.start < SECONDS_PER_CAPTURE:
                return None
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
            text = b""
        else:
            text = os.read(self.read, 65536)
        os.close(self.read)
        error = json.loads(text) if text else f"the capture died or took over {SECONDS_PER_CAPTURE} s"
        return {"out": self.job["out"], "error": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with open(options.list) as lines:
        waiting = [json.loads(line) for line in lines][::-1]
    total, done, running = len(waiting), 0, []

    from stoker import device
    # The check that fake CUDA came up runs a backward, after which autograd's threads forbid a fork: a child runs it.
    device.prepare(lambda text: print(f"stoker: {text}", file=sys.stderr), works=device.works_in_a_child)
    import torch
    torch.set_num_threads(1)
    from stoker import capturing, front, specs, step_file  # noqa: F401  (imported once, for all forks)
    for name in {job["spec"].partition(":")[0] for job in waiting}:
        if name in ("timm", "torchvision"):
            __import__(name)

    while waiting or running:
        while waiting and len(running) < options.jobs:
            running.append(Running(waiting.pop()))
        time.sleep(0.02)
        for one in list(running):
            line = one.result()
            if line is None:
                continue
            running.remove(one)
            done += 1
            print(json.dumps(line), flush=True)
            failed = "" if line["error"] is None else f": {line['error'].splitlines()[0][:120]}"
            print(f"capture {done}/{total} {one.job['spec']} {one.job['precision']}{failed}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
