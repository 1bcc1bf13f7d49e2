"""Runs the steps of the plan one after another within the time, and keeps whatever each has written."""

import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from stoker import imports
from stoker.measure import signals
from stoker.surveys import about as surveyed

from . import forecasts, plan

ROOT = pathlib.Path(__file__).resolve().parents[2]
MINUTES = 12.0
_RESERVE_S = 4.0  # for writing down, and for processes that end
_FORECAST_SHARE = 0.1  # share of the time, where a binary travels along
_FEWEST_S = 5.0  # no step begins with less
_LATE_S = 8.0  # a step that takes so much longer than it was given is ended
_READER_S = 3.0  # for the last of what a step printed
_INTERRUPTED = 130  # exit code, 128 + SIGINT


def parser():
    p = argparse.ArgumentParser(prog="gpu-day", allow_abbrev=False,
                                description="Calibrates, trains, and measures memory and time on this GPU; docs/guide/measuring-gpus.md")
    p.add_argument("-o", "--output", metavar="DIR", help="default: data/measured/DATE-GPU")
    p.add_argument("--minutes", type=float, default=MINUTES, metavar="M", help=f"all of it takes no longer; default {MINUTES:g}")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: the same on a few small models, to try it")
    p.add_argument("--stoker", metavar="FILE", help="the binary that computes the forecasts (default: build/*/stoker, if it runs)")
    p.add_argument("--list", action="store_true", help="print the steps in order and stop")
    return p


class Record:
    """gpu-day.json: what the results have to be judged by, and how far it came. Whole at any moment."""

    def __init__(self, folder, about):
        self.path, self.about = folder / "gpu-day.json", {**about, "complete": False, "steps": []}
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            sys.exit(f"gpu-day: {folder} holds the results of a day already: name another folder with -o")
        self.write()

    def add(self, step):
        self.about["steps"].append(step)
        self.write()

    def write(self):
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.about, indent=2) + "\n")
        os.replace(partial, self.path)


def _commit():
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
        return done.stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def _environment():
    return imports.environment(STOKER_PYTHON=sys.executable)


def _end_with_parent():
    """In the child, before it becomes the command: it ends when this script does, kill -9 included."""
    signals.at_parents_end(signal.SIGTERM)


def run(command, timeout_s, log):
    """(exit code, seconds); its output goes to the terminal and to the log. None: it was ended after `timeout_s`."""
    started = time.monotonic()
    child = subprocess.Popen(command, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True, preexec_fn=_end_with_parent)
    reader = subprocess.Popen(["tee", "-a", str(log)], stdin=child.stdout)
    child.stdout.close()
    try:
        code = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(child)
        try:
            reader.wait(_READER_S)
        except subprocess.TimeoutExpired:  # something that the command detached holds the pipe
            reader.kill()
            reader.wait()
    return code, time.monotonic() - started


def _end(child):
    """The command and whatever it started: asked first, so that it can put its things away."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def _filled(command, budget, folder):
    return [part.replace("{budget}", f"{budget:.0f}").replace("{folder}", str(folder)) for part in command]


def run_all(options, folder, record, end):
    total = 60 * options.minutes
    binary = forecasts.find(options.stoker, ROOT)
    kept = _FORECAST_SHARE * total if binary else 0.0
    everything = plan.steps(options.device)
    for step in everything:
        left = end - time.monotonic() - _RESERVE_S - kept
        late = min(_LATE_S, 0.1 * total)
        budget = min(step.share * total, step.most, left - late)
        if budget < min(_FEWEST_S, 0.1 * total):
            record.add({"name": step.name, "status": "no time"})
            continue
        command = _filled(step.command, budget, folder)
        print(f"gpu-day: {step.name}, {budget:.0f} s", flush=True)
        try:
            code, seconds = run(command, budget + late, folder / "gpu-day.log")
        except KeyboardInterrupt:
            record.add({"name": step.name, "status": "interrupted"})
            raise
        record.add({"name": step.name, "command": shlex.join(forecasts.told(command, ROOT)), "budget_s": round(budget, 1),
                    "seconds": round(seconds, 1), "exit_code": code,
                    "status": "ok" if code == 0 else "cut off" if code is None else "failed"})
    forecasts.make(binary, options.device, folder, ROOT, end - _RESERVE_S, record)


def main():
    options = parser().parse_args()
    if options.list:
        print("\n".join(f"{step.name}: {shlex.join(step.command)}" for step in plan.steps(options.device)))
        return 0
    if not 0 < options.minutes <= 60:
        sys.exit(f"gpu-day: --minutes {options.minutes:g}: give up to 60")
    end = time.monotonic() + 60 * options.minutes
    about = {**surveyed.describe(options.device), "schema": "stoker-gpu-day-1", "minutes": options.minutes, "commit": _commit()}
    if options.device == "cuda" and not about["nvidia_smi"].get("name"):
        sys.exit("gpu-day: nvidia-smi shows no GPU here; --device cpu --minutes 1 tries the script itself")
    slug = surveyed.slug(about["gpu"])
    folder = pathlib.Path(options.output or ROOT / "data" / "measured" / f"{about['date'][:10]}-{slug}").resolve()
    record = Record(folder, about)
    try:
        run_all(options, folder, record, end)
    except KeyboardInterrupt:
        print(f"gpu-day: interrupted; what there is so far is in {folder}", flush=True)
        return _INTERRUPTED
    done = record.about["steps"]
    record.about["complete"] = all(step["status"] == "ok" for step in done)
    record.write()
    print(f"gpu-day: {folder}: " + ", ".join(f"{step['name']} {step['status']}" for step in done))
    return 0 if any(step["status"] == "ok" for step in done) else 1
