"""Runs the stoker binary and hands back its JSON."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

EXIT_USAGE = 2
EXIT_NO = 1  # the answer is no: does not fit, nothing satisfies the limits
REPEATED = ("dim", "reading")  # flags that are given once for each value
NEGATED = ("pin", "grad_scaler", "clip", "ema")  # on by default, or by the capture: False becomes --no-...
# PyTorch's, Lightning's and Transformers' names of settings, accepted beside ours.
ALIASES = {"num_workers": "workers", "batch_size": "batch", "pin_memory": "pin", "prefetch_factor": "prefetch",
           "gradient_accumulation_steps": "accumulate"}


class StokerError(Exception):
    """What the binary reported on stderr, or that there is none."""

    def __init__(self, message: str, exit_code: int = 3):
        super().__init__(message)
        self.exit_code = exit_code


def find_binary() -> str:
    """$STOKER_BINARY, the one in this package, or the one on PATH."""
    named = os.environ.get("STOKER_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise StokerError(f"STOKER_BINARY is {named}, which cannot be run: correct or unset it")
        return named
    packaged = pathlib.Path(__file__).with_name("bin") / ("stoker.exe" if sys.platform == "win32" else "stoker")
    if packaged.exists():
        return str(packaged)
    found = shutil.which("stoker")
    if found and not _is_script(found):
        return found
    raise StokerError("the stoker binary is not here: install the wheel, or build it and set STOKER_BINARY to its path")


def _is_script(path: str) -> bool:
    """The command that this package installs is a script around the binary: running it here would run for ever."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def arguments(settings: dict) -> list:
    """Flags from keyword arguments, by the same names: max_global_batch=32 -> --max-global-batch 32.

    True is a bare flag, None and False leave it out (pin=False is --no-pin, clip=False --no-clip); lists and dicts
    become one flag with commas, or one flag each for `dim` and `reading`: dim={"vocab": 8000},
    reading=["10:3.1GB", "50:9.8GB"]. Names of PyTorch's ecosystem are taken too: num_workers=4 -> --workers 4.
    """
    result = []
    for name, value in _in_our_names(settings).items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, dict):
            value = [f"{k}={v}" for k, v in value.items()]
        if value is False and name in NEGATED:
            result.append("--no-" + flag[2:])
        elif value is None or value is False or (value is True and name == "pin"):
            continue
        elif value is True:
            result.append(flag)
        elif isinstance(value, (list, tuple)) and name in REPEATED:
            result += [word for item in value for word in (flag, str(item))]
        elif isinstance(value, (list, tuple)):
            result += [flag, ",".join(map(str, value))]
        else:
            result += [flag, str(value)]
    return result


def _in_our_names(settings: dict) -> dict:
    found: dict = {}
    for name, value in settings.items():
        ours = ALIASES.get(name, name)
        if ours in found:
            raise StokerError(f"{ours} and {name} name one setting: give one of them", EXIT_USAGE)
        found[ours] = value
    return found


def _run(verb: str, model, settings: dict) -> tuple:
    command = [find_binary(), verb, str(model), *arguments(settings), "--json"]
    environment = dict(os.environ, STOKER_PYTHON=os.environ.get("STOKER_PYTHON", sys.executable))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode not in (0, EXIT_NO):
        lines = done.stderr.strip().splitlines()
        raise StokerError(lines[-1].removeprefix("stoker: ") if lines else
                          f"stoker {verb} ended with code {done.returncode}", done.returncode)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        raise StokerError(done.stderr.strip() or f"stoker {verb} printed no JSON", done.returncode) from None


def predict(model, gpu, **settings) -> dict:
    """The forecast for exactly these settings, as `stoker predict MODEL --gpu G ... --json` gives it (docs/reference/json.md)."""
    return _run("predict", model, {"gpu": gpu, **settings})[1]


def plan(model, gpu, **settings) -> dict:
    """The best settings, what limits them and what comes next: `stoker plan MODEL --gpu G ... --json`."""
    return _run("plan", model, {"gpu": gpu, **settings})[1]


def fits(model, batch, gpu, **settings) -> bool:
    """Whether a job fits the GPU's memory: a gate for scripts, as `stoker predict MODEL --batch N --gpu G` with exit code 1 is.

    `settings` are the flags of `stoker predict`: precision="amp-fp16", optimizer="adamw", checkpoint="blocks", gpus=4,
    parallel="fsdp", clip=True, alloc_conf="expandable_segments:True" ... Raises StokerError when there is no answer.
    """
    return bool(_run("predict", model, {"gpu": gpu, "batch": batch, **settings})[1]["memory"]["fits"])
