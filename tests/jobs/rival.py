#!/usr/bin/env python3
"""What TraceML (traceml-ai on PyPI) says of the jobs of tests/jobs.

    tests/jobs/rival.py --traceml VENV/bin/traceml --results data/measured/watch/jobs.json [--only PART ...] [--missing]

The job runs under `traceml run --mode summary`, with `traceml_ai.init(mode="auto")` and a `trace_step` around each step of
its loop, as TraceML asks for, and in the surroundings of the case. Kept are its primary diagnosis and its advice.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results
from cases import CASES
from run import HERE, PACKAGE, needs_root, surroundings


def version_of(traceml):
    python = Path(traceml).with_name("python3")
    told = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('traceml-ai'))"],
                          capture_output=True, text=True, check=True)
    return told.stdout.strip()


def word_of(summary):
    """The primary diagnosis, as short as the table wants it, with what it says of the machine."""
    primary, system = summary["primary_diagnosis"], summary.get("system", {}).get("diagnosis") or {}
    word = {"says": primary["status"], "severity": primary["severity"], "why": primary["summary"],
            "next": primary["action"]}
    if system.get("severity") in ("warn", "crit"):
        word["system"] = system["status"]
    return word


def one(a, case):
    with tempfile.TemporaryDirectory() as folder, surroundings(case.around, folder) as before:
        run = [a.traceml, "run", "--mode", "summary", "--logs-dir", f"{folder}/logs", "--run-name", "job",
               str(HERE / case.script), "--args", *case.arguments.split(), "--seconds", str(a.seconds), "--traceml",
               "--observation", f"{folder}/job.obs.jsonl"]
        shell = ["unshare", "-m", "bash", "-c"] if "shm" in case.around else ["bash", "-c"]
        # The arguments hold no blanks, quotes or dollars.
        done = subprocess.run([*shell, before + "exec " + " ".join(run)], capture_output=True, text=True, check=False,
                              timeout=300, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        summary = Path(folder) / "logs" / "job" / "final_summary.json"
        if not summary.exists():
            return {"says": "no summary", "why": (done.stdout + done.stderr)[-200:]}
        return word_of(json.loads(summary.read_text()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--traceml", required=True)
    p.add_argument("--results", required=True)
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--budget", type=float, default=0)
    p.add_argument("--missing", action="store_true")
    p.add_argument("--only", nargs="*", default=[])
    a = p.parse_args()
    end = time.monotonic() + a.budget if a.budget else float("inf")
    version = version_of(a.traceml)
    for case in CASES:
        known = results.load(a.results)["cases"].get(case.name, {})
        if (a.only and not any(part in case.name for part in a.only)) or (a.missing and known.get("rival")):
            continue
        if needs_root(case) and os.geteuid() != 0:
            print(f"{case.name}: skipped, needs root", flush=True)
            continue
        if time.monotonic() > end:
            print(f"{case.name}: skipped, no time", flush=True)
            continue
        try:
            word = one(a, case)
        except subprocess.TimeoutExpired:
            word = {"says": "did not end"}
        word["version"] = version
        print(f"{case.name}: {word['says']} {word.get('system', '')}", flush=True)
        merged = results.load(a.results)
        results.case_of(merged, case)["rival"] = word
        results.save(a.results, merged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
