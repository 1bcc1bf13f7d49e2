"""The rows file: format "stoker-input-runs", JSON (docs/reference/rows-files.md)."""

from __future__ import annotations

import datetime
import json
import sys

from ..measure import machine, rows_file
from ..version import VERSION
from . import grid, judge

FORMAT, SCHEMA = "stoker-input-runs", [1, 0]


def empty() -> dict:
    import torch

    return {"format": FORMAT, "schema_version": SCHEMA,
            "provenance": {"date": datetime.date.today().isoformat(), "cpu_model": machine.cpu_name(), "cores": machine.whole_cores(),
                           "python": sys.version.split()[0], "torch": torch.__version__, "stoker_version": VERSION},
            "rule": judge.RULE, "needed": 2, "agreement": judge.AGREEMENT, "reference_ms": None, "skipped": [], "scenarios": []}


def read(path: str) -> dict:
    return rows_file.read(path, "rows file", FORMAT, SCHEMA)


def write(rows: dict, path: str) -> None:
    rows_file.write_text(_text(rows), path)


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
    """Enough good repetitions, the best of which agree (judge.RULE)."""
    epochs = sorted(r["epoch_ms"] for r in good(point))
    return len(epochs) >= needed and epochs[needed - 1] <= epochs[0] * (1 + judge.AGREEMENT)
