"""python -m stoker calibrate-runs: measures a device within a budget and writes what it found; goes on where a file stops."""

from __future__ import annotations

import signal
import sys

from ..arguments import Parser
from ..durations import seconds
from ..errors import CaptureError
from ..measure import rows_file, signals
from ..measure.budget import Budget
from ..plain import printable_lines

INTERRUPTED = 130     # exit code, 128 + SIGINT
DEFAULT_BUDGET = "60s"
_LEAST_BUDGET_S = 5.0
NO_TORCH = ("calibrating needs PyTorch and this Python has none: install it (pip install torch), or name an interpreter that has it "
            "in STOKER_PYTHON")


def parser():
    p = Parser(prog="stoker calibrate-runs",
                description="Times operators on this machine's CPU or GPU and writes them for stoker calibrate.")
    p.add_argument("--out", required=True, metavar="CAL.json", help="continued when it exists")
    p.add_argument("--device", default="cpu", metavar="D", help="cpu (default), cuda or cuda:N")
    p.add_argument("--budget", default=DEFAULT_BUDGET, metavar="TIME", help=f"for everything, start included (default {DEFAULT_BUDGET})")
    p.add_argument("--for", dest="models", default="", metavar="SPEC,...", help="measure these models' operators first")
    p.add_argument("--threads", default="", metavar="N,...", help="of the CPU (default: 1 and all cores)")
    p.add_argument("--list", action="store_true", help="say what would be measured, in order, and stop")
    p.add_argument("--end-with-parent", rare=True, action="store_true", help="stop when the process that called this ends")
    p.add_argument("--quiet", action="store_true", help="say nothing but errors")
    return p


def _torch():
    try:
        import torch
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            raise CaptureError(NO_TORCH) from None
        raise CaptureError(f"PyTorch is installed but cannot be imported ({error}): reinstall it") from None
    return torch


def main(arguments: list) -> int:
    options = parser().parse_args(arguments)
    budget = Budget(seconds(options.budget, "--budget"))
    if budget.seconds < _LEAST_BUDGET_S:
        raise CaptureError(f"--budget {options.budget}: importing PyTorch alone takes seconds; give {_LEAST_BUDGET_S:.0f}s or more")
    rows_file.check_place(options.out)
    kind, _, index = options.device.partition(":")
    if kind not in ("cpu", "cuda") or (index and not (kind == "cuda" and index.isdigit())):
        raise CaptureError(f"--device {options.device}: there is no such device; write cpu, cuda or cuda:0")
    if options.end_with_parent:
        signals.at_parents_end(signal.SIGTERM)
    torch = _torch()
    signals.catch()
    if kind == "cpu":
        from . import cpu_run

        run = cpu_run.Run(options, budget, torch)
    else:
        from . import cuda_run

        run = cuda_run.Run(options, budget, torch, int(index or 0))
    if options.list:
        run.list()
        return 0
    return _measured(run, options)


def _measured(run, options) -> int:
    """What was measured is in the file however this ends; before there is anything, so is nothing."""
    try:
        try:
            run.measure()
        finally:
            run.close()
    except KeyboardInterrupt:
        if run.has_rows():
            run.save()
            _say(options, rows_file.interrupted(options.out))
        else:
            _say(options, "interrupted; nothing was written")
        return INTERRUPTED
    run.save()
    _say(options, run.summary())
    return 0


def _say(options, text: str) -> None:
    if not options.quiet:
        print(f"stoker: {printable_lines(text)}", file=sys.stderr, flush=True)
