"""python -m stoker observation FILE...: prints what a recording says."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
import textwrap

from ..arguments import Parser
from ..binary import StokerError, find_binary
from ..plain import printable_lines
from ..version import VERSION
from .layout import ObservationError
from .page import write_page
from .reader import read_observation
from .summary import summarise
from .text import advice, ranks, text

EXIT_NO = 1  # the file has no step that counts
EXIT_BAD_INPUT = 3


def parser():
    p = Parser(prog="stoker observation",
                description="Says where the time of a recorded training loop went (stoker.Observer).")
    p.add_argument("files", metavar="FILE", nargs="+",
                   help="what stoker.Observer or stoker.observe_step wrote; several: those of the ranks of one run")
    p.add_argument("--html", metavar="FILE", help="also write a page with charts: one file, no network")
    p.add_argument("--json", action="store_true", help="as JSON on standard output")
    return p


def as_json(summary, header: dict) -> dict:
    fields = dataclasses.asdict(summary)
    fields["damaged"] = [str(damage) for damage in summary.damaged]
    head = {"schema": "stoker-observation-1", "stoker": VERSION, "schema_version": [1, 0]}
    return {**head, **fields, "header": header, "next": advice(summary) if summary.steps else None}


def _fitted(text: str) -> str:
    """Lines of no more columns than a terminal has, those behind the first indented; elsewhere as they are."""
    if not sys.stdout.isatty():
        return text
    columns = max(40, shutil.get_terminal_size().columns)
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, columns, initial_indent="", subsequent_indent=indent + "  ", break_long_words=False,
                               break_on_hyphens=False) if len(line) > columns else [line]
    return "\n".join(lines)


def _write_page(file: str, found: list, summaries: list) -> str:
    """Why it could not be written; empty: it was."""
    try:
        write_page(file, found, summaries, find_binary())
    except subprocess.CalledProcessError as error:
        return error.stderr.strip().removeprefix("stoker: ")
    except (OSError, StokerError) as error:
        return str(error)
    sys.stderr.write(f"stoker: the page is in {file}\n")
    return ""


def main(arguments: list) -> int:
    options = parser().parse_args(arguments)
    try:
        found = [read_observation(file) for file in options.files]
    except ObservationError as error:
        sys.stderr.write(f"stoker: {printable_lines(error)}\n")
        return EXIT_BAD_INPUT
    headers = [one.header for one in found]
    summaries = [summarise(one) for one in found]
    if options.html and (why := _write_page(options.html, found, summaries)):
        sys.stderr.write(f"stoker: {why}\n")
        return EXIT_BAD_INPUT
    if options.json:
        documents = [as_json(summary, header) for summary, header in zip(summaries, headers)]
        print(json.dumps(documents if len(documents) > 1 else documents[0], indent=2))
    else:
        parts = [text(summary, header) for summary, header in zip(summaries, headers)]
        if len(parts) > 1:
            parts.insert(0, ranks(summaries, headers))
        print(_fitted(printable_lines("\n\n".join(parts))))
    return 0 if all(summary.steps for summary in summaries) else EXIT_NO
