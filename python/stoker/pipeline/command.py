"""python -m stoker probe FILE.py:FUNCTION [-o FILE] [--budget 20s] [--json]."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import time

from .. import durations
from ..arguments import Parser
from ..errors import CaptureError, ProbeError
from ..measure import signals
from ..plain import counted, printable, printable_lines
from ..progress import ProgressLine
from . import probe_file
from .budget import DEFAULT_BUDGET_S, SHORTEST_BUDGET_S, need_pytorch


def is_for_python(arguments: list) -> bool:
    """Whether a probe is of FILE.py:FUNCTION; folders are the binary's."""
    return any(names_a_function(word) for word in arguments if not word.startswith("-"))


def names_a_function(word: str) -> bool:
    return bool(re.search(r"\.py(:[^/]*)?$", word)) and not os.path.isdir(word)


def parser():
    p = Parser(prog="stoker probe",
                description="Measures a Dataset or DataLoader of your own: what a sample costs, stage by stage, what "
                            "collating and moving batches costs, memory, and what is odd about it.",
                epilog="FILE.py:FUNCTION: a function without arguments that returns a Dataset, an IterableDataset or a "
                       "DataLoader")
    p.add_argument("spec", metavar="FILE.py:FUNCTION", help="or a training script, FILE.py -- ITS ARGUMENTS: its first DataLoader")
    p.add_argument("-o", "--output", metavar="FILE", help="write a probe file that --data takes")
    p.add_argument("--budget", default=f"{DEFAULT_BUDGET_S:g}s", metavar="T",
                   help=f"time to spend (default {DEFAULT_BUDGET_S:g}s)")
    p.add_argument("--json", action="store_true", help="the probe as JSON on standard output")
    p.add_argument("--quiet", action="store_true", help="no progress")
    return p


def seconds(text: str) -> float:
    """What --budget was given, which may have blanks and capitals."""
    try:
        return durations.seconds("".join(text.lower().split()), "--budget")
    except CaptureError:
        raise ProbeError(f"--budget {text} is no time: write --budget 20s") from None


@contextlib.contextmanager
def _prints_on_stderr():
    """What the user's code prints meanwhile: standard output is for the JSON alone."""
    def flush():
        sys.stdout.flush()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)  # what C libraries hold back

    flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        flush()
        os.dup2(kept, 1)
        os.close(kept)


def probe(arguments: list) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:at])
    own = arguments[at + 1:] if at < len(arguments) else None  # a script's
    start = time.monotonic()
    budget = seconds(options.budget)
    binary = None if options.json else _binary_for_the_report()
    with signals.ending_cleanly(), _prints_on_stderr() if options.json else contextlib.nullcontext():
        doc = measure(options.spec, budget, start, quiet=options.quiet, script_arguments=own)
    if options.output:
        probe_file.write(doc, options.output)
    if options.json:
        sys.stdout.write(probe_file.text_of(doc))
    elif binary:
        _report(binary, doc, options.output)
    else:
        print(printable_lines(summary(doc)))
        if options.output:
            _written(options.output)
    return 0


def measure(spec: str, budget_s: float, start: float, *, quiet: bool = False, script_arguments: list | None = None) -> dict:
    """Loads FILE.py:FUNCTION, or the loader of a script that gets arguments, and probes it. The budget runs from `start`."""
    need_pytorch()
    from ..shadow import script_loader
    from . import source
    from .probing import probe_pipeline

    with contextlib.nullcontext() if quiet else ProgressLine(f"probing {spec}") as line:
        if line is not None:
            line("loading it", left_s=budget_s)
        made = source.load(spec) if script_arguments is None else script_loader.loader_of(spec, script_arguments)
        left = max(budget_s / 2, budget_s - (time.monotonic() - start))
        if budget_s >= SHORTEST_BUDGET_S:  # shorter ones are refused as they were given
            left = max(left, SHORTEST_BUDGET_S)
        name = os.path.basename(spec)  # FILE.py:FUNCTION or FILE.py

        def told(what: str, share: float) -> None:
            if line is not None:
                line(what, left_s=left * (1 - share))

        return probe_pipeline(made, name=name, budget_s=left, progress=told)


def _binary_for_the_report():
    from ..binary import StokerError, find_binary

    try:
        return find_binary()
    except StokerError:
        return None


def _report(binary: str, doc: dict, output) -> None:
    """The binary lays the report out; the probe goes to it through a pipe, no file is made."""
    import subprocess

    sys.stdout.flush()
    done = subprocess.run([binary, "probe", "-"], input=probe_file.text_of(doc), text=True)
    if done.returncode:
        print(printable_lines(summary(doc)))
    if output:
        _written(output)


def _written(path) -> None:
    print(f"Written to {printable(path)}; use it with --data {printable(path)}")


def summary(doc: dict) -> str:
    """The answer in few lines, where there is no binary for the whole report."""
    import statistics

    sample = doc["sample"]
    cpu, wait = statistics.fmean(sample["cpu_ms"]), statistics.fmean(sample["wait_ms"])
    lines = [f"{doc['name']}: {doc['samples'] or 'unknown number of'} samples, {doc['output']}",
             f"A sample takes {cpu:.3f} ms of CPU time and waits {wait:.3f} ms ({len(sample['cpu_ms'])} measured)"]
    lines += [f"  {counted(row['batch'], 'sample')}: {row['bytes'] / 1e6:.2f} MB, collated in {row['collate_shared_ms']:.2f} ms"
              for row in doc["batch"]]
    lines += [f"{row['severity']}: {row['advice']}" for row in doc["findings"]]
    return "\n".join(lines)
