"""Measures what this machine's CPU or GPU takes for the operators of training, and what lies around them (docs/guide/calibrating.md)."""

from __future__ import annotations


def run(arguments: list) -> int:
    """python -m stoker calibrate-runs ARGUMENTS."""
    from . import command

    return command.main(arguments)
