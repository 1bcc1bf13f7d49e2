"""The forecasts for what was trained, as they stand before anything is learnt from it."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from stoker import imports

from . import plan

FILE = "forecasts.jsonl"
COMMANDS = "forecasts.sh"
_LONGEST_S = 60  # one forecast: a capture, and some milliseconds
_HARDLY_S = 3  # no forecast begins with less


def find(given, root):
    """A binary that runs here; None without one."""
    candidates = [pathlib.Path(given)] if given else sorted(root.glob("build/*/stoker"))
    for path in candidates:
        try:
            if subprocess.run([str(path), "--version"], capture_output=True, timeout=20).returncode == 0:
                return path.resolve()
        except (OSError, subprocess.TimeoutExpired):
            continue
    if given:
        print(f"gpu-day: {given} does not run here; the forecasts are left for later", flush=True)
    return None


def told(command, root):
    """A command with paths as seen from the tree."""
    return [os.path.relpath(part, root) if part.startswith(str(root) + os.sep) else part for part in map(str, command)]


def _runs(folder):
    """What was trained, or is to be: (spec, batch, threads, precision, optimizer)."""
    try:
        found = json.loads((folder / plan.TRAINING).read_text())
    except (OSError, ValueError):
        return None, []
    return found["device"], [(r["model"], r["batch"], r["threads"], r["precision"], (r["optimizer"] or {}).get("name", "sgd"))
                             for r in found["runs"]]


def commands(folder, device, root):
    """The command of each forecast, without the binary's name."""
    facts, runs = _runs(folder)
    if facts is None:
        return []
    found = []
    for spec, batch, threads, precision, optimizer in runs:
        flags = ["--gpu", "cpu" if device == "cpu" else facts["name"], "--batch", str(batch), "--precision", precision,
                 "--optimizer", optimizer]
        flags += ["--threads", str(threads)] if device == "cpu" else []
        flags += ["--weight-decay", "0.01"] if optimizer == "adamw" else []
        found.append(["predict", spec, *flags, "--json"])
    return found


def make(binary, device, folder, root, end, record):
    """Writes the commands down, and what they print where a binary and time are at hand."""
    wanted = commands(folder, device, root)
    if not wanted:
        return
    lines = ["#!/bin/sh", "# The forecasts for what was trained, as they stood before. Run it at the root of the tree of the commit that",
             "# gpu-day.json names, with that commit's binary in STOKER and a Python with PyTorch in STOKER_PYTHON."]
    lines += [f'"${{STOKER:-stoker}}" {shlex.join(told(command, root))}' for command in wanted]
    (folder / COMMANDS).write_text("\n".join(lines) + "\n")
    if binary is None:
        record.add({"name": "forecasts", "status": "left for later", "command": f"sh {COMMANDS}"})
        return
    started, made, why = time.monotonic(), 0, ""
    with open(folder / FILE, "a") as out:
        for command in wanted:
            left = end - time.monotonic()
            if left < _HARDLY_S:
                why = "no time"
                break
            answer = _forecast(binary, command, root, min(left, _LONGEST_S))
            made += "forecast" in answer
            why = why or answer.get("error", "")
            out.write(json.dumps({"command": shlex.join(told(command, root)), **answer}) + "\n")
            out.flush()
    status = "ok" if made == len(wanted) else "partly" if made else "failed"
    record.add({"name": "forecasts", "status": status, "made": made, "of": len(wanted), "why": why,
                "seconds": round(time.monotonic() - started, 1)})


def _forecast(binary, command, root, timeout_s):
    environment = imports.environment(STOKER_PYTHON=sys.executable)
    try:
        done = subprocess.run([str(binary), *command], cwd=root, env=environment, capture_output=True, text=True,
                              timeout=timeout_s)
        return {"forecast": json.loads(done.stdout)}
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {timeout_s:.0f} s"}
    except ValueError:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
