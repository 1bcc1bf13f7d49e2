"""Runs the stoker binary and hands back its JSON."""

from __future__ import annotations

import contextlib
import json
import numbers
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, cast

from .objects import ObjectError, spec_of
from .results import Explanation, Part, Plan, Prediction, Study, Table, answer, parts

EXIT_NO = 1  # the answer is no: does not fit, nothing satisfies the limits


class StokerError(Exception):
    """What the binary reported on stderr, or that there is none."""

    def __init__(self, message: str, exit_code: int = 3, as_command: str | None = None):
        super().__init__(message)
        self.exit_code = exit_code
        self.as_command = as_command or message  # the same in the command's names: "--batch" for "batch"


def find_binary() -> str:
    """$STOKER_BINARY, the one of the environment that this package was installed into, or the one on PATH."""
    named = os.environ.get("STOKER_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise StokerError(f"STOKER_BINARY is {named}, which cannot be run: correct or unset it")
        return named
    folders = list(pathlib.Path(__file__).resolve().parents)  # PREFIX/lib/python3.11/site-packages/stoker, or TARGET/stoker
    for prefix in (folders[1], *folders[4:5]):
        if os.access(prefix / "bin" / "stoker", os.X_OK):
            return str(prefix / "bin" / "stoker")
    found = shutil.which("stoker")
    if found:
        return found
    raise StokerError("the stoker binary is not here: install the wheel, or build it and set STOKER_BINARY to its path")


def arguments(settings: dict) -> list:
    """Flags from keyword arguments, by the same names: max_global_batch=32 -> --max-global-batch 32.

    True is a bare flag, False the flag that says no (pin=False is --no-pin), None leaves it out; lists and dicts become one
    flag with commas: dim={"vocab": 8000}, reading=["10:3.1GB", "50:9.8GB"]. The binary knows the names, ours and those of
    PyTorch's ecosystem: num_workers=4.
    """
    result = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, dict):
            value = [f"{k}={v}" for k, v in value.items()]
        if value is None:
            continue
        if value is True:
            result.append(flag)
        elif value is False:
            result.append("--no-" + flag[2:])
        elif isinstance(value, (list, tuple)):
            result += [flag, ",".join(map(_word, value))]
        else:
            result += [flag, _word(value)]
    return result


def _word(value: Any) -> str:
    """A value as the command reads it: NumPy's numbers and 64.0 are 64."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return str(int(value)) if number and float(value).is_integer() else str(value)


def keywords(sentence: str) -> str:
    """The command's sentence in the names that Python has: "unknown flag --batchsize" is "unknown setting batchsize".

    Sentences of a training script speak of the script's own flags and stay as they are."""
    sentence = re.sub(r" \(stoker \S+ --help(-all lists all)?\)$", "", sentence)  # where the command lists its flags
    if not sentence.startswith(("--", "unknown flag ")):
        return sentence
    with contextlib.suppress(ValueError):  # words with a quote of their own
        sentence = re.sub(r"goes behind --: -- (.*)", lambda found: f"is script_arguments={shlex.split(found[1])}", sentence)
    pieces = re.split(r"(`[^`]*`|script_arguments=.*)", sentence)  # what is quoted as a command stays one
    for at in range(0, len(pieces), 2):
        pieces[at] = pieces[at].replace("unknown flag ", "unknown setting ")
        pieces[at] = re.sub(r"(?<![\w-])--no-([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_") + "=False", pieces[at])
        pieces[at] = re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_"), pieces[at])
    return "".join(pieces)


def _run(verb: str, model, settings: dict) -> tuple:
    own = settings.pop("script_arguments", None)  # of a training script
    return _answer([find_binary(), verb, str(model), *arguments(settings), "--json", *(["--", *map(str, own)] if own else [])], verb)


def _answer(command: list, verb: str) -> tuple:
    environment = dict(os.environ, STOKER_PYTHON=os.environ.get("STOKER_PYTHON", sys.executable))
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode not in (0, EXIT_NO):
        lines = done.stderr.strip().splitlines()
        said = lines[-1].removeprefix("stoker: ") if lines else f"stoker {verb} ended with code {done.returncode}"
        raise StokerError(keywords(said), done.returncode, said)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        raise StokerError(done.stderr.strip() or f"stoker {verb} printed no JSON", done.returncode) from None


def _asked(verb: str, model: Any, settings: dict) -> tuple:
    """The answer to a job whose model is a name, a file, or an object of Python's."""
    try:
        spec = spec_of(model, settings)
    except ObjectError as error:
        raise StokerError(str(error)) from None
    code, document = _run(verb, spec, settings)
    if spec is not model and "model" in document:
        document["model"] = spec.rpartition(":")[2]  # an object is known by its class or function, not by our file
    return code, document


def predict(model: Any, gpu: str | Sequence[str], *, gpus: int | str | None = None,
            batch: int | str | Sequence[int | str] | None = None, precision: str | Sequence[str] | None = None,
            optimizer: str | None = None, data: str | os.PathLike | None = None, workers: int | None = None,
            host: str | None = None, image_size: int | None = None, seq_len: int | Sequence[int] | None = None,
            price: float | Sequence[float] | None = None, samples: int | str | None = None,
            html: str | os.PathLike | None = None, script_arguments: Sequence | None = None, inputs: Any = None,
            **settings: Any) -> Prediction:
    """The forecast for exactly these settings, as `stoker predict MODEL --gpu G ...` gives it.

    model       a name or file as the command takes it; a capture function or a stoker.Capture; or a torch.nn.Module with
    inputs      a tensor, a tuple (positional) or a dict (by keyword): only shapes count. With them loss=, a function, and an
                optimizer= that is an object may be given. Neither the module nor its weights are changed or run here
    gpu         "t4", "a100-40gb" (`stoker gpus`), a machine file or "cpu"; several as a list
    batch       per GPU, or "max"; of batch, seq_len and precision several as a list: a row for each combination under "table"
    precision   fp32, tf32, amp-fp16, amp-bf16, bf16, fp16
    data        a folder, or a file of `stoker probe`
    html        a file to write the page to that shows it

    `settings` are the other flags of the command by their names: checkpoint="blocks", clip=True, parallel="fsdp". The
    answer is a dict (docs/reference/json.md) whose names are attributes, too: answer.throughput, answer.memory.fits,
    answer.time.step_ms.low. Of a list of GPUs it is what the command's --json has.
    """
    given = {"gpu": gpu, "gpus": gpus, "batch": batch, "precision": precision, "optimizer": optimizer, "data": data,
             "workers": workers, "host": host, "image_size": image_size, "seq_len": seq_len, "price": price, "samples": samples,
             "html": html, "script_arguments": script_arguments, "inputs": inputs, **settings}
    return cast(Prediction, answer(Prediction, _asked("predict", model, given)[1]))


def plan(model: Any, gpu: str | Sequence[str], *, gpus: int | str | None = None, batch: int | None = None,
         precision: str | Sequence[str] | None = None, objective: str | None = None, data: str | os.PathLike | None = None,
         workers: int | None = None, host: str | None = None, max_global_batch: int | None = None,
         price: float | Sequence[float] | None = None, samples: int | None = None, epochs: int | None = None,
         html: str | os.PathLike | None = None, script_arguments: Sequence | None = None, inputs: Any = None,
         **settings: Any) -> Plan:
    """The best settings, what limits them and what comes next, as `stoker plan MODEL --gpu G ...` gives it.

    objective   throughput, cost, epoch or energy
    gpus        4, or "1..8" to choose among
    price       of one GPU and hour; of several kinds a list
    Others as for predict; what is left out is searched. Of a training script (`model="train.py"`) its own arguments are
    script_arguments=["--epochs", "90"]; predict and fits take them, too.
    """
    given = {"gpu": gpu, "gpus": gpus, "batch": batch, "precision": precision, "objective": objective, "data": data,
             "workers": workers, "host": host, "max_global_batch": max_global_batch, "price": price, "samples": samples,
             "epochs": epochs, "html": html, "script_arguments": script_arguments, "inputs": inputs, **settings}
    return cast(Plan, answer(Plan, _asked("plan", model, given)[1]))


def fits(model: Any, batch: int | str, gpu: str, **settings: Any) -> bool:
    """Whether a job fits the GPU's memory: a gate for scripts, as `stoker predict MODEL --batch N --gpu G` with exit code 1 is.

    `settings` are the flags of `stoker predict`: precision="amp-fp16", optimizer="adamw", checkpoint="blocks", gpus=4,
    parallel="fsdp", clip=True, alloc_conf="expandable_segments:True" ... Raises StokerError when there is no answer.
    """
    if isinstance(gpu, int) and isinstance(batch, str):
        raise StokerError(f"fits(model, batch, gpu): the batch stands before the GPU: fits(..., {gpu}, {batch!r})")
    return bool(_asked("predict", model, {"gpu": gpu, "batch": batch, **settings})[1]["memory"]["fits"])


def gpus(name: str | None = None, *, memory: str | float | None = None, instances: bool = False) -> Table:
    """The GPUs that are known, or with instances=True the machines that clouds rent out: `stoker gpus`.

    name        "a100", "rtx 40", "ampere"; of instances "aws"
    memory      that they have at least: 24 (GiB) or "24G"
    """
    words = [name] if name else []
    found = _answer([find_binary(), "gpus", *words, *arguments({"memory": memory, "instances": instances or None}), "--json"],
                    "gpus")[1]
    if instances:
        return Table(parts(found["instances"]), {"name": "machine", "gpus": "GPUs", "gpu": "GPU", "vcpus": "vCPUs",
                                                 "memory_bytes": "memory", "as_of": "as of"})
    return Table(parts(found["gpus"]), {"name": "GPU", "architecture": "architecture", "memory_bytes": "memory"})


def models() -> Table:
    """The models that ship captured: `stoker models`."""
    return Table(parts(_answer([find_binary(), "models", "--json"], "models")[1]["models"]),
                 {"name": "model", "input": "input", "parameters": "parameters"})


def goodput(model: str | os.PathLike, gpu: str, noise_scale: float, batch: int | Sequence[int], *, gpus: int | Sequence[int] = (1,),
            price: float | None = None, forecast: dict[str, Any] | None = None) -> Part:
    """Which batches (of each GPU) and numbers of GPUs reach a loss soonest and cheapest: `stoker tune --noise-scale N ... --json`.

    noise_scale  of gradients, as stoker.noise_scale measures it; price: of a GPU and hour; forecast: settings of `stoker predict`
    """
    settings = {"noise_scale": noise_scale, "model": model, "gpu": gpu, "batch": batch, "gpus": gpus, "price": price}
    words = [word for name, value in (forecast or {}).items() for word in ("--forecast", f"{name}={value}")]
    return cast(Part, parts(_answer([find_binary(), "tune", *arguments(settings), *words, "--json"], "tune")[1]))


def explain(file: str | os.PathLike, *, at: str | None = None, device: int | None = None, gpu: str | None = None,
            html: str | os.PathLike | None = None) -> Explanation:
    """What a recording holds, as `stoker explain FILE` says it: a memory snapshot, a profile, or what `stoker watch -o` wrote.

    at          peak, oom or end, of a snapshot
    device      the GPU's number, where the file has several
    gpu         "a100-40gb": its memory, for the replay of expandable segments
    html        a file to write the page to that shows it
    """
    given = {"at": at, "device": device, "gpu": gpu, "html": html}
    return cast(Explanation, Explanation(parts(_run("explain", file, given)[1])))


def read_study(store: str | os.PathLike, *, where: str | None = None, metric: Sequence[str] | None = None, findings: bool = True,
               html: str | os.PathLike | None = None) -> Study:
    """What the trials of `stoker sweep` or `stoker tune` measured, as `stoker study STORE` says it, also while they run.

    where       an expression over axes, metrics and state: "batch > 32 and state == 'done'"
    metric      the metrics to show; all of them otherwise
    findings    also what they teach, under `findings`
    html        a file to write the page to that shows it
    """
    given = {"where": where, "metric": metric, "findings": findings or None, "html": html}
    return cast(Study, Study(parts(_run("study", store, given)[1])))
