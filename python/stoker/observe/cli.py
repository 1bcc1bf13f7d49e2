"""python -m stoker observation FILE: prints what a recording says."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from .layout import ObservationError
from .reader import read_observation
from .summary import summarise
from .text import advice, text

EXIT_NO = 1  # the file has no step that counts
EXIT_BAD_INPUT = 3


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="stoker observation", allow_abbrev=False,
                                description="Says where the time of a recorded training loop went (stoker.Observer).")
    p.add_argument("file", metavar="FILE", help="what stoker.Observer or stoker.observe_step wrote")
    p.add_argument("--json", action="store_true", help="as JSON on standard output")
    return p


def as_json(summary, header: dict) -> dict:
    fields = dataclasses.asdict(summary)
    fields["damaged"] = [str(damage) for damage in summary.damaged]
    return {"schema_version": [1, 0], **fields, "header": header, "next": advice(summary) if summary.steps else None}


def main(arguments: list) -> int:
    options = parser().parse_args(arguments)
    try:
        found = read_observation(options.file)
    except ObservationError as error:
        sys.stderr.write(f"stoker: {error}\n")
        return EXIT_BAD_INPUT
    summary = summarise(found)
    print(json.dumps(as_json(summary, found.header), indent=2) if options.json else text(summary, found.header))
    return 0 if summary.steps else EXIT_NO
