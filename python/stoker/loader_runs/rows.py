"""The rows file: format "stoker-input-runs", JSON (docs/validating-input.md)."""

from __future__ import annotations

import datetime
import json
import os
import sys

from ..errors import CaptureError
from ..version import VERSION
from . import grid, machine

FORMAT, SCHEMA = "stoker-input-runs", [1, 0]


def empty() -> dict:
    import torch

    model = "unknown"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"format": FORMAT, "schema_version": SCHEMA,
            "provenance": {"date": datetime.date.today().isoformat(), "cpu_model": model, "cores": os.cpu_count(),
                           "python": sys.version.split()[0], "torch": torch.__version__, "stoker_version": VERSION},
            "rule": machine.RULE, "needed": 2, "agreement": machine.AGREEMENT, "reference_ms": None, "skipped": [], "scenarios": []}


def read(path: str) -> dict:
    try:
        with open(path) as file:
            rows = json.load(file)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path} cannot be read as a rows file ({error}); move it away to begin anew") from None
    if not isinstance(rows, dict) or rows.get("format") != FORMAT or rows.get("schema_version", [0])[0] != SCHEMA[0]:
        raise CaptureError(f"{path} is no rows file of this version; move it away to begin anew")
    return rows


def is_descriptor(path: str) -> bool:
    return path.startswith("/dev/fd/")


def write(rows: dict, path: str) -> None:
    """Whole or not at all; in place into a descriptor that the caller gave."""
    write_text(_text(rows), path)


def write_text(text: str, path: str) -> None:
    """A rows file's text, whole or not at all."""
    if is_descriptor(path):
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError as error:
            raise CaptureError(f"{path} cannot be written ({error.strerror}): give --out a file in a folder with room "
                               "that you may write to") from None
        return
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "w") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        raise CaptureError(f"{path} cannot be written ({error.strerror}): give --out a file in a folder with room that "
                           "you may write to") from None
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _text(rows: dict) -> str:
    """A line a point and a line a probe, so that differences can be read."""
    head = {key: value for key, value in rows.items() if key != "scenarios"}
    text = json.dumps(head, indent=1)[:-2] + ',\n "scenarios": ['
    for i, scenario in enumerate(rows["scenarios"]):
        inner = {key: value for key, value in scenario.items() if key not in ("points", "probe")}
        text += ("," if i else "") + "\n  " + json.dumps(inner)[:-1] + ',\n   "probe": ' + json.dumps(scenario["probe"])
        text += ',\n   "points": [' + ",".join("\n    " + json.dumps(p) for p in scenario["points"]) + "]}"
    return text + "\n ]}\n"


def scenario_of(rows: dict, name: str):
    return next((s for s in rows["scenarios"] if s["name"] == name), None)


def point_of(entry: dict, wanted: dict):
    return next((p for p in entry["points"] if grid.key(p) == grid.key(wanted)), None)


def good(point: dict) -> list:
    return [r for r in point["repetitions"] if r["good"]]


def settled(point: dict, needed: int) -> bool:
    """Enough good repetitions, the best of which agree (machine.RULE)."""
    epochs = sorted(r["epoch_ms"] for r in good(point))
    return len(epochs) >= needed and epochs[needed - 1] <= epochs[0] * (1 + machine.AGREEMENT)
