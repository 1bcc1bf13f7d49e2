"""The rows file: format "stoker-training-runs", JSON (docs/reference/rows-files.md)."""

from __future__ import annotations

import json

from ..errors import CaptureError
from ..measure import rows_file
from . import judge

FORMAT, SCHEMA = "stoker-training-runs", [1, 0]
WAITING = "waiting"  # the status of a run of which nothing was measured yet: it is not written
SAME = ("model", "batch", "threads", "precision", "asked")  # what makes two runs the same


def empty(device: dict, provenance: dict) -> dict:
    return {"format": FORMAT, "schema_version": SCHEMA, "provenance": provenance, "device": device, "rule": judge.RULE,
            "needed": judge.NEEDED, "agreement": judge.AGREEMENT, "reference_ms": None, "complete": False, "runs": []}


def read(path: str) -> dict:
    return rows_file.read(path, "rows file", FORMAT, SCHEMA)


def check_same_machine(found: dict, device: dict, provenance: dict, path: str) -> None:
    """Rows of another device or PyTorch are not mixed with new ones."""
    for part, now, names in (("device", device, ("kind", "name", "cores")), ("provenance", provenance, ("torch", "driver"))):
        for name in names:
            before = found.get(part, {}).get(name)
            if before != now.get(name):
                raise CaptureError(f"{path} was measured with another {name} ({before}; here it is {now.get(name)}): name "
                                   "another file with --out")


def write(rows: dict, path: str) -> None:
    rows_file.write_text(_text(rows), path)


def _text(rows: dict) -> str:
    """A line a repetition, so that differences can be read."""
    head = {key: value for key, value in rows.items() if key != "runs"}
    text = json.dumps(head, indent=1)[:-2] + ',\n "runs": ['
    for i, run in enumerate(r for r in rows["runs"] if r["status"] != WAITING):
        inner = {key: value for key, value in run.items() if key != "repetitions"}
        text += ("," if i else "") + "\n  " + json.dumps(inner)[:-1] + ', "repetitions": ['
        text += ",".join("\n    " + json.dumps(r) for r in run["repetitions"]) + "]}"
    return text + "\n ]}\n"


def run_of(rows: dict, wanted: dict):
    return next((r for r in rows["runs"] if all(r.get(key) == wanted[key] for key in SAME)), None)
