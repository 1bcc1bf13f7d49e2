"""A recording as a page with charts: a document of blocks, which the binary turns into one HTML file."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile

from ..plain import counted, percent
from . import layout
from .reader import Observation
from .summary import Summary
from .text import DESCRIPTIONS, MEMORY, ORDER, advice, ms, ranks, size, verdict
from .text import text as summary_text

POINTS = 360  # of a line or an area: more than a screen has no use for
LISTED = 200  # exceptions and damaged lines
NS_PER_MS = 1e6


def document(found: list, summaries: list) -> dict:
    """`found` are Observations, one a rank; the first is drawn, the others stand beside it."""
    first, summary = found[0], summaries[0]
    sections = [_section("Ranks", "A rank waits for the slowest one.", [_ranks_table(summaries, [o.header for o in found])])
                if len(found) > 1 else None]
    if summary.steps:
        sections += [
            _section("Where the time goes", "Medians of the steps that count; shares are those of their whole time.",
                     [_shares(summary), _phases_table(summary)]),
            _section("Step by step", "Every training step, warm-up included; of several in a row the mean.",
                     [_course(first, summary), _steps(first)]),
            _section("Memory over the run", "", [_memory(first)])]
    notes = [f"{counted(count, 'step')} {end}" for end, count in summary.ends.items()]
    notes += [str(damage) for damage in summary.damaged[:LISTED]]
    title = summary.file if len(found) == 1 else f"{summary.file} and {len(found) - 1} more"
    return {"kind": "observation", "title": title, "subtitle": _subtitle(summary, first.header),
            "headline": {"verdict": "none", "text": verdict(summary) if summary.steps else "No step can be judged",
                         "lines": [ranks(summaries, [o.header for o in found])] * (len(found) > 1)
                         + (["Next: " + advice(summary)] if summary.steps else [])},
            "tiles": _tiles(summary), "sections": [section for section in sections if section],
            "footer": [{"label": "Rule", "items": [f"{summary.rule} ({summary.warm_up} here)"]}]
            + ([{"label": "Noted", "items": notes}] if notes else [])}


def write_page(file, found: list, summaries: list, binary: str) -> None:
    """Writes the page; raises OSError or CalledProcessError, whose stderr says why."""
    text = "\n\n".join(summary_text(summary, one.header) for summary, one in zip(summaries, found))
    with tempfile.TemporaryDirectory() as folder:
        handed = pathlib.Path(folder) / "document.json"
        handed.write_text(json.dumps({"document": document(found, summaries), "text": text}))
        subprocess.run([binary, "page", str(handed), "-o", os.fspath(file)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, text=True)


def _section(title: str, lead: str, blocks: list) -> dict | None:
    blocks = [block for block in blocks if block]
    return {"title": title, "lead": lead, "blocks": blocks} if blocks else None


def _figure(text: str, value: float, note: str = "") -> dict:
    return {"text": text, "v": value, **({"basis": note} if note else {})}


def _spread(spread) -> dict:
    return {"text": ms(spread.median), "v": spread.median, "band": f"median; 95 % of the steps within {ms(spread.p95)}",
            "band_is": "spread", "lo": min(spread.median, spread.p95), "hi": spread.p95}


def _tiles(s: Summary) -> list:
    tiles = []
    if s.step:
        tiles.append({"label": "Step, end to end", "figure": _figure(ms(s.step.median), s.step.median),
                      "note": f"95 % within {ms(s.step.p95)}"})
    if s.samples_per_s:
        tiles.append({"label": "Samples/s", "figure": _figure(f"{s.samples_per_s:,.4g}", s.samples_per_s), "note": ""})
    if any(phase.name == "wait" for phase in s.phases):
        tiles.append({"label": "Waiting for data", "figure": _figure(percent(s.share('wait'), 1), s.share("wait")), "note": ""})
    tiles.append({"label": "Steps that count", "figure": _figure(f"{s.steps:,}", s.steps), "note": f"of {s.recorded:,} recorded"})
    tiles += [{"label": label.capitalize(), "figure": _figure(size(s.memory[name]), s.memory[name]), "note": ""}
              for name, label in MEMORY.items() if name in s.memory]
    return tiles


def _subtitle(s: Summary, header: dict) -> str:
    facts = header["provenance"]
    parts = [header["model"]["class"] if header["model"] else None, header["precision"],
             f"{s.samples_per_step:,.4g} samples a step" if s.samples_per_step else None,
             facts.get("device_name") or facts.get("device"), facts.get("torch") and f"PyTorch {facts['torch']}",
             "times of the device" if s.clock == "device" else "times of the host"]
    return ", ".join(str(part) for part in parts if part)


def _in_order(s: Summary) -> list:
    """Phases that took time, as text.py orders them: charts that show them share their colours."""
    names = [phase.name for phase in s.phases]
    known = [name for name in ORDER if name in names] + [name for name in names if name not in (*ORDER, "other", "own")]
    by_name = {phase.name: phase for phase in s.phases}
    return [by_name[name] for name in [*known, *(name for name in ("other", "own") if name in names)] if by_name[name].share > 0]


def _shares(s: Summary) -> dict:
    rows = [{"label": DESCRIPTIONS.get(phase.name, phase.name), "figure": _figure(percent(phase.share, 1), phase.share),
             "note": f"median {ms(phase.ms.median)}"} for phase in _in_order(s)]
    return {"kind": "stack", "axis": "the time from step to step", "rows": rows}


def _phases_table(s: Summary) -> dict | None:
    rows = [[DESCRIPTIONS.get(phase.name, phase.name), _figure(ms(phase.ms.median), phase.ms.median),
             _figure(ms(phase.ms.p95), phase.ms.p95), _figure(ms(phase.ms.mean), phase.ms.mean),
             _figure(percent(phase.share, 1), phase.share)] for phase in _in_order(s)]
    if s.step is not None:
        rows.append(["step, end to end", _figure(ms(s.step.median), s.step.median), _figure(ms(s.step.p95), s.step.p95),
                     _figure(ms(s.step.mean), s.step.mean), _figure("100 %", 1)])
    return _table([("phase", False), ("median", True), ("95 % within", True), ("mean", True), ("share", True)], rows)


def _table(columns: list, rows: list) -> dict | None:
    return {"kind": "table", "columns": [{"name": name, "numeric": numeric} for name, numeric in columns],
            "rows": rows} if rows else None


def _train_rows(found: Observation) -> list:
    broken = (layout.CLOCK,)
    return [row for row in found.rows if row["kind"] == layout.TRAIN and row["end"] not in broken]


def _groups(rows: list) -> list:
    """Neighbours joined until there are few enough."""
    each = max(1, -(-len(rows) // POINTS))
    return [rows[at:at + each] for at in range(0, len(rows), each)]


def _mean(rows: list, name: str) -> float:
    return sum(row[name] for row in rows) / len(rows) / NS_PER_MS


def _course(found: Observation, summary: Summary) -> dict | None:
    """Milliseconds of every phase over the steps, stacked, by the host's clock."""
    groups = _groups(_train_rows(found))
    if len(groups) < 2:
        return None
    series = [{"label": DESCRIPTIONS.get(phase.name, phase.name), "values": [_mean(group, f"{phase.name}_ns") for group in groups]}
              for phase in _in_order(summary)]
    series = [one for one in series if any(one["values"])]
    if not series:
        return None
    return {"kind": "area", "title": "phases, by the host's clock", "x": {"label": "step", "log": False},
            "y": {"label": "ms", "log": False}, "bytes": False, "stacked": True, "series": series, "overlay": [], "marks": [],
            "levels": [], "at": [group[0]["step"] for group in groups]}


def _steps(found: Observation) -> dict | None:
    """How long each step took, sorted: what the slowest cost."""
    rows = _train_rows(found)
    times = sorted((row["gap_ns"] + row["total_ns"]) / NS_PER_MS for row in rows)
    if len(times) < 2:
        return None
    picked = sorted({round(at * (len(times) - 1) / min(POINTS, len(times) - 1)) for at in range(min(POINTS, len(times) - 1) + 1)})
    return {"kind": "lines", "title": "how long steps take: the share of steps that end within", "ends": [],
            "x": {"label": "ms", "log": times[0] > 0 and times[-1] > 10 * times[0]}, "y": {"label": "% of the steps", "log": False},
            "lines": [{"label": "steps", "x": [times[at] for at in picked],
                       "y": [100 * (at + 1) / len(times) for at in picked], "note": "", "end": "none", "chosen": False,
                       "dots": False}]}


def _memory(found: Observation) -> dict | None:
    names = [name for name in MEMORY if any(one.get(name) for one in found.memory)]
    groups = _groups(found.memory)
    if not names or len(groups) < 2:
        return None
    return {"kind": "area", "x": {"label": "step", "log": False}, "y": {"label": "at most, until then", "log": False},
            "bytes": True, "stacked": False, "overlay": [], "marks": [], "levels": [],
            "at": [group[0]["step"] for group in groups],
            "series": [{"label": MEMORY[name], "values": [max(one.get(name) or 0 for one in group) for group in groups]}
                       for name in names]}


def _ranks_table(summaries: list, headers: list) -> dict | None:
    rows = [[_figure(str(header["rank"]), header["rank"]), _spread(s.step), _figure(percent(s.share('wait'), 1), s.share("wait")),
             _figure(f"{s.steps:,}", s.steps), s.file] for s, header in zip(summaries, headers) if s.steps]
    return _table([("rank", True), ("step", True), ("waits for data", True), ("steps", True), ("file", False)], rows)
