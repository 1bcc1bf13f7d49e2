"""python -m stoker capture SPEC -o FILE: captures one step of a model and says what was captured."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import time

from . import front, sources, spec_words
from .arguments import Parser, pairs
from .errors import CaptureError
from .plain import counted, printable_lines
from .progress import ProgressLine


def parser() -> argparse.ArgumentParser:
    p = Parser(
        prog="stoker capture", description="Captures one training step of a model, without a GPU, into a step file.",
        epilog="SPEC: torchvision:NAME, timm:NAME, hf:ORG/NAME or FILE.py:FUNCTION (returns module and example inputs)")
    p.add_argument("spec", metavar="SPEC")
    p.add_argument("-o", "--output", metavar="FILE", help="default: NAME.step.gz")
    p.add_argument("--precision", default="fp32", metavar="P", help=", ".join(front.PRECISIONS) + " (default fp32)")
    p.add_argument("--mode", default=None, metavar="M", help="train, forward (the graph is kept, no backward) or inference (default train)")
    p.add_argument("--device", default="cuda", metavar="D", help="what the step is for: cuda (default; any GPU) or cpu")
    p.add_argument("--compile", "--torch-compile", action="store_true", help="the step as torch.compile runs it")
    p.add_argument("--batch", type=int, metavar="N", help="the default batch that the file records")
    p.add_argument("--image-size", type=int, metavar="N", help="side of the images (torchvision, timm)")
    p.add_argument("--name", rare=True, help="what the model is called in reports")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="an argument of the capture function or the model's constructor; may repeat")
    p.add_argument("--fixed", action="append", default=[], metavar="DIMENSION=SIZE",
                   help="hold a dimension at one size; may repeat")
    p.add_argument("--assume", action="append", default=[], metavar="FILE:LINE=VALUE",
                   help="what the model reads at a line of its code, where that depends on data: true, false, a number, "
                        "all rows of a mask or a share of them (25%%); rows=VALUE for all numbers of rows that the data decides; "
                        "may repeat")
    p.add_argument("--lora", metavar="r=N[,targets=A,B]",
                   help="freeze the model and train adapters of this rank beside the named linear layers (all-linear: each)")
    p.add_argument("--qlora", action="store_true", help="the same with the frozen linear layers in four bits (NF4)")
    p.add_argument("--sources", rare=True, action="store_true", help="write down, by path, the files that the capture depends on")
    p.add_argument("--json-progress", rare=True, action="store_true", help="progress as JSON lines on stderr")
    p.add_argument("--quiet", rare=True, action="store_true", help="say nothing but errors")
    p.add_argument("--json", action="store_true", help="what was written, as JSON on standard output")
    return p


def _sizes(items: list) -> dict:
    found = pairs(items, "--fixed")
    for name, size in found.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise CaptureError(f"--fixed {name}={size}: the size must be a whole number, 1 or more")
    return found


@contextlib.contextmanager
def reporting(options, label: str):
    """(say, progress): how notes and progress reach stderr. progress(done, of, what) of runs; progress.line where there is one."""
    if options.quiet:
        yield (lambda text: None), None
        return
    if options.json_progress:
        def emit(row):
            sys.stderr.write(json.dumps(row) + "\n")
            sys.stderr.flush()

        yield (lambda text: emit({"note": text})), lambda done, of, what: emit({"done": done, "of": of, "what": what})
        return
    with ProgressLine(f"capturing {label}") as line:
        line("starting PyTorch")
        yield (lambda text: line.say(f"stoker: {printable_lines(text)}")), Progress(line)


class Progress:
    """A capture's runs on a line. Their first says how long the others will take: it alone imports and builds the model."""

    def __init__(self, line: ProgressLine):
        self.line = line
        self._start, self._first_over = time.monotonic(), 0.0

    def __call__(self, done: int, of: int, what: str) -> None:
        now = time.monotonic()
        if done == 1:
            self._first_over = now
        left = None
        if done == 1:
            left = (now - self._start) * (of - done)  # too long rather than too short
        elif done > 1:
            left = (now - self._first_over) / (done - 1) * (of - done)
        self.line(f"run {min(done + 1, of)} of {of}, {what}", left_s=left)


def _at_defaults(polynomial, dimensions) -> int:
    if isinstance(polynomial, int):
        return polynomial
    sizes = {d["name"]: d["default"] // d["unit"] for d in dimensions}
    total = 0
    for monomial, coefficient in polynomial.items():
        for factor in filter(None, monomial.split("*")):
            name, _, power = factor.partition("^")
            coefficient *= sizes[name] ** int(power or 1)
        total += coefficient
    return total


def summary(doc: dict, path: str) -> str:
    """What people read at the end."""
    seen = {p["storage"] for p in doc["parameters"]}
    weights = sum(_at_defaults(doc["storages"][s][0], doc["dimensions"]) for s in seen)
    at = "; ".join(f"{d['name']} {', '.join(map(str, d['captured']))}, verified at {d['verified'][0]}"
                   if d["degree"] else f"{d['name']} fixed at {d['default']}" for d in doc["dimensions"])
    lines = [f"{path}: {doc['name']}, {doc['mode']}, {doc['precision']}; {counted(len(doc['events']), 'event')}, "
             f"{weights / 2**20:,.1f} MiB of weights", f"  captured on {doc['provenance']['capture']} ({at})"]
    notes = doc["diagnostics"]
    for name, count in notes.get("decomposed", {}).items():
        lines.append(f"  note: {name} was taken apart {counted(count, 'time')}; CUDA runs one kernel")
    for place, value in notes.get("reads", {}).items():
        taken = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"  note: {place} reads what depends on data or on random numbers, taken as {taken} (--assume {place}=VALUE)")
    if notes.get("item_calls"):
        lines.append(f"  note: the host reads {counted(notes['item_calls'], 'value')} back from the device in each step (.item())")
    if notes.get("math_attention"):
        lines.append(f"  note: {notes['math_attention']} attentions with unusual shapes were captured as products")
    lines += [f"  WARNING: {sentence}" for sentence in notes.get("warnings", [])]
    lines += [f"  note: {sentence}" for sentence in notes.get("unfaithful", [])]
    return "\n".join(lines)


def run(arguments: list) -> int:
    options = parser().parse_args(arguments)
    front.check(options.precision, options.mode, options.batch, options.image_size, options.device)
    spec_words.check(options.spec)
    if options.sources:
        sources.watch()
    with reporting(options, options.spec) as (say, progress):
        doc = front.here(options.spec, None, precision=options.precision, mode=options.mode, name=options.name,
                         batch=options.batch, options=pairs(options.set, "--set"), fixed=_sizes(options.fixed),
                         image_size=options.image_size, progress=progress, say=say, device=options.device,
                         with_sources=options.sources, assume=options.assume, compile=options.compile, lora=options.lora,
                         qlora=options.qlora)
    from . import step_file

    path = options.output or f"{re.sub('[^A-Za-z0-9_.+-]+', '_', doc['name'])}.step.gz"
    step_file.write(doc, path)
    if options.json:
        print(json.dumps({"file": path, "name": doc["name"], "mode": doc["mode"], "precision": doc["precision"],
                          "events": len(doc["events"]), "dimensions": doc["dimensions"], "provenance": doc["provenance"],
                          "diagnostics": doc["diagnostics"]}, indent=2))
    elif not options.quiet:
        print(printable_lines(summary(doc, path)))
    return 0
