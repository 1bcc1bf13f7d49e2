"""The surveyed models: functions of files that a capture takes as well, found by name."""

from __future__ import annotations

import pathlib
import re

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"
FILES = ("measure_memory/models.py", "measure_time/models.py")  # the first counts where both have a function of one name


def spec_of(model: str) -> str:
    """What `stoker capture` is given for it at the root of the repository; told without importing PyTorch."""
    for file in FILES:
        if re.search(rf"^def {re.escape(model)}\(", (SCRIPTS / file).read_text(), re.MULTILINE):
            return f"scripts/{file}:{model}"
    raise KeyError(model)


def function_of(model: str):
    """The function itself, which takes a batch and returns a module and example inputs."""
    from .. import specs

    spec = spec_of(model)
    path, _, name = spec.partition(":")
    return specs.function_of(spec, SCRIPTS.parent / path, name)
