"""stoker validate train.py -- ARGUMENTS: some real steps of a script on this CPU beside their forecast."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from .. import imports
from ..arguments import Parser
from ..binary import EXIT_NO, find_binary
from ..durations import seconds
from ..errors import CaptureError, UserCodeError
from ..measure import contention
from ..plain import percent, printable_lines
from ..version import VERSION

STEPS = 12
LEAST_BUSY = 0.9  # CPU seconds of a second of a step: a loop that waits for nothing has one core at least
_HELD = {True: "yes", False: "NO", None: "not judged: other processes had the CPU"}


def parser() -> Parser:
    p = Parser(prog="stoker validate", description="Sets the forecast of a script beside some real steps of it on this CPU.")
    p.add_argument("script", metavar="SCRIPT.py")
    p.add_argument("--batches", metavar="N,...", help="other batches of its DataLoader than its own")
    p.add_argument("--budget", default="60s", metavar="T", help="how long it may run for each batch (default 60s)")
    p.add_argument("--machine", default="cpu", metavar="FILE", help="machine file of this CPU (stoker calibrate); default: its data sheet")
    p.add_argument("--json", action="store_true")
    return p


def run(arguments: list) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options, own = parser().parse_args(arguments[:at]), arguments[at + 1:]
    if not pathlib.Path(options.script).is_file():
        raise CaptureError(f"there is no file {options.script}: check the path")
    rows = [_row(options, own, batch) for batch in _batches(options.batches)]
    held = all(figure["held"] is not False for row in rows for figure in row["figures"])
    if options.json:
        print(json.dumps({"schema": "stoker-validate-script-1", "schema_version": [1, 1], "stoker": VERSION, "script": options.script,
                          "arguments": own, "held": held, "runs": rows}, indent=2))
    else:
        print(printable_lines("\n".join(_text(options.script, rows))))
    return 0 if held else EXIT_NO


def _batches(text: str | None) -> list:
    if not text:
        return [None]
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise CaptureError(f"--batches {text}: write numbers from 1 up, such as 8,16")
    return found


def _row(options, own: list, batch) -> dict:
    measured = _measured(options, own, batch)
    forecast = _forecast(options, own, batch)
    # A peak of training steps alone is set beside a forecast of them alone.
    alone = _forecast(options, own, batch, "--validation", "0") if forecast["settings"]["validation_batch"] else forecast
    step, peak = alone["time"]["step_ms"], alone["memory"]["device_peak_bytes"]
    judged = measured["busy_s"] > LEAST_BUSY * measured["step_s"] and not contention.objections(measured["foreign_share"],
                                                                                               measured["steal_share"])
    return {"batch": forecast["settings"]["batch"], "steps": measured["steps"], "evaluations": measured["evaluations"],
            "loading_ms": _ms(measured["loading_s"]), "resident_before_bytes": measured["before_bytes"],
            "foreign_share": round(measured["foreign_share"], 4), "steal_share": round(measured["steal_share"], 4),
            "figures": [_figure("step time", "ms", _ms(measured["step_s"]), step, judged),
                        _figure("peak resident memory", "bytes", measured["peak_bytes"], peak), *_validated(measured, forecast, alone)]}


def _validated(measured: dict, forecast: dict, alone: dict) -> list:
    """Figures with the validation after the epoch, where the script was seen to have one and the forecast counts it."""
    if forecast is alone or measured["validated_bytes"] is None:
        return []
    return [_figure("with its validation", "bytes", measured["validated_bytes"], forecast["memory"]["device_peak_bytes"])]


def _ms(value: float | None) -> float | None:
    return None if value is None else value * 1e3


def _figure(name: str, unit: str, measured, forecast: dict, judged: bool = True) -> dict:
    """`held`: whether the band holds it; None where other processes had the CPU meanwhile."""
    held = forecast["low"] <= measured <= forecast["high"] if judged else None
    return {"name": name, "unit": unit, "measured": measured, "forecast": forecast["value"], "low": forecast["low"],
            "high": forecast["high"], "held": held}


def _measured(options, own: list, batch) -> dict:
    """Runs the script in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="stoker-validate-") as folder:
        request, answer, log = (pathlib.Path(folder) / name for name in ("request.json", "answer.json", "log"))
        request.write_text(json.dumps({"script": options.script, "arguments": own, "batch": batch, "steps": STEPS,
                                       "seconds": seconds(options.budget, "--budget"), "answer": str(answer)}))
        with open(log, "w") as out:
            command = [sys.executable, "-c", imports.starting("stoker.shadow.real_run"), str(request)]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                     env=imports.environment(CUDA_VISIBLE_DEVICES=""))
            try:
                child.wait()
            except BaseException:
                os.killpg(child.pid, 9)
                child.wait()
                raise
        if not answer.exists():
            raise UserCodeError(f"{options.script} ended with code {child.returncode} before {STEPS} of its steps were measured; correct "
                                "what the lines above say", "\n".join(log.read_text(errors="replace").splitlines()[-20:]))
        measured = json.loads(answer.read_text())
    if measured["step_s"] is None:
        raise CaptureError(f"{options.script} made too few steps to measure one; a step ends with the step() of an optimizer of "
                           "torch.optim")
    return measured


def _forecast(options, own: list, batch, *more: str) -> dict:
    words = [find_binary(), "predict", options.script, "--gpu", options.machine, "--json", *more]
    words += [*(["--batch", str(batch)] if batch else []), "--", *own]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, STOKER_PYTHON=sys.executable))
    if done.returncode not in (0, EXIT_NO):
        lines = done.stderr.strip().splitlines()
        raise CaptureError(lines[-1].removeprefix("stoker: ") if lines else f"stoker predict ended with code {done.returncode}")
    return json.loads(done.stdout)


def _text(script: str, rows: list) -> list:
    lines = [f"{script}, real steps on this CPU beside their forecast", "",
             f"{'batch':>7}  {'figure':<22}{'measured':>12}{'forecast':>12}  {'90 % band':<22}held"]
    for row in rows:
        for figure in row["figures"]:
            scale, unit = (1, "ms") if figure["unit"] == "ms" else (2**20, "MiB")
            lines.append(f"{row['batch']:>7}  {figure['name']:<22}{figure['measured'] / scale:>8.1f} {unit:<3}"
                         f"{figure['forecast'] / scale:>8.1f} {unit:<3}  {figure['low'] / scale:.1f}-{figure['high'] / scale:.1f}".ljust(79)
                         + _HELD[figure["held"]])
    if (most := max(row["evaluations"] for row in rows)) > 1:
        lines += ["", f"A step evaluates its loss {most} times: time is that of one evaluation."]
    if (others := max(row["foreign_share"] for row in rows)) > contention.MAX_OTHERS:
        lines += ["", f"Other processes had {percent(others)} of the cores while the steps were timed: measure on a machine that is idle."]
    before = max((row["resident_before_bytes"] or 0) for row in rows)
    lines += ["", f"Steps without what the loader took ({max(row['loading_ms'] or 0 for row in rows):.1f} ms a step, in the same process).",
              f"{before / 2**20:.0f} MiB were resident when the first backward had run: of it Python, PyTorch and the script's own data."]
    return lines
