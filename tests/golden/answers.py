"""Keeps what `stoker ... --json` answers in golden cases and checks it against docs/schema."""

from __future__ import annotations

import json
import os
import pathlib
import shlex

try:
    import jsonschema
except ImportError:  # the cases run without; run.py says so
    jsonschema = None

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema"

# Answers go through pipes in most cases, so a copy is taken where they are made; whole, whatever reads on.
WRAPPER = """#!/bin/bash
case " $* " in *" --json "*) ;; *) exec {binary} "$@" ;; esac
copy=$(mktemp {folder}/answer.XXXXXX)
{binary} "$@" > "$copy"
code=$?
cat "$copy"
exit "$code"
"""


def available() -> bool:
    return jsonschema is not None


class Answers:
    """A folder to put first on the path: its `stoker` is the binary, and keeps the answers."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path):
        self.path = folder / "bin"
        self.kept = folder / "answers"
        self.path.mkdir(parents=True)
        self.kept.mkdir()
        wrapper = self.path / binary.name
        wrapper.write_text(WRAPPER.format(binary=shlex.quote(str(binary)), folder=shlex.quote(str(self.kept))))
        wrapper.chmod(0o755)

    def take(self) -> list:
        """What was answered since the last call, as text; a refusal answers nothing."""
        files = sorted(self.kept.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        texts = [file.read_text(encoding="utf-8") for file in files]
        for file in files:
            os.unlink(file)
        return [text for text in texts if text.strip()]


def schema_named(name: str) -> dict:
    """The schema with what it takes from the envelope put in, so that no reference leaves it."""
    envelope = json.loads((SCHEMAS / "envelope.json").read_text(encoding="utf-8"))
    text = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    text = text.replace('"envelope.json#/', '"#/').replace('"envelope.json"', '"#/$defs/envelope"')
    schema = json.loads(text)
    shared = {key: value for key, value in envelope.items() if key not in ("$id", "$schema", "$defs")}
    schema["$defs"] = {**envelope["$defs"], **schema.get("$defs", {}), "envelope": shared}
    return schema


def faults(text: str) -> list:
    """What of an answer does not keep to its schema, a line each; none: it keeps to it."""
    try:
        answer = json.loads(text)
    except ValueError as error:
        return [f"no JSON: {error}"]
    if not isinstance(answer, dict):
        return ["no object"]
    if "format" in answer and "schema" not in answer:
        return []  # a file of ours, which its own page describes
    name = answer.get("schema")
    if not isinstance(name, str) or not (SCHEMAS / f"{name}.json").is_file():
        return [f"schema {name!r} is no file of docs/schema"]
    errors = jsonschema.Draft202012Validator(schema_named(name)).iter_errors(answer)
    return list(dict.fromkeys(line for error in errors for line in lines_of(error)))


def lines_of(error) -> list:
    """Where and what; of alternatives that all fail, the faults of the one that fits best."""
    if error.context:
        best = min({e.schema_path[0] for e in error.context},
                   key=lambda branch: sum(e.schema_path[0] == branch for e in error.context))
        return [line for e in error.context if e.schema_path[0] == best for line in lines_of(e)]
    where = "/".join(str(step) for step in error.absolute_path)
    return [f"{where or 'the answer'}: {error.message[:200]}"]
