"""python -m stoker observation FILE...: prints what a recording says."""

from __future__ import annotations

import dataclasses
import json
import sys

from ..arguments import Parser
from .layout import ObservationError
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
    p.add_argument("--json", action="store_true", help="as JSON on standard output")
    return p


def as_json(summary, header: dict) -> dict:
    fields = dataclasses.asdict(summary)
    fields["damaged"] = [str(damage) for damage in summary.damaged]
    return {"schema_version": [1, 0], **fields, "header": header, "next": advice(summary) if summary.steps else None}


def main(arguments: list) -> int:
    options = parser().parse_args(arguments)
    try:
        found = [read_observation(file) for file in options.files]
    except ObservationError as error:
        sys.stderr.write(f"stoker: {error}\n")
        return EXIT_BAD_INPUT
    headers = [one.header for one in found]
    summaries = [summarise(one) for one in found]
    if options.json:
        documents = [as_json(summary, header) for summary, header in zip(summaries, headers)]
        print(json.dumps(documents if len(documents) > 1 else documents[0], indent=2))
    else:
        parts = [text(summary, header) for summary, header in zip(summaries, headers)]
        if len(parts) > 1:
            parts.insert(0, ranks(summaries, headers))
        print("\n\n".join(parts))
    return 0 if all(summary.steps for summary in summaries) else EXIT_NO
