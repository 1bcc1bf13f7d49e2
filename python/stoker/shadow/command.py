"""stoker capture train.py -o FILE -- ARGUMENTS: captures the step of a script as it is."""

from __future__ import annotations

import json
from argparse import BooleanOptionalAction
from dataclasses import replace

from .. import binary, capture_command, front
from ..arguments import Parser
from ..errors import CaptureError
from ..plain import counted, printable_lines
from . import gpu_names, shell_script
from .world import Gpu

_NEWEST_CAPABILITY = 90  # for a GPU that has none of NVIDIA's: what a script asks for by its capability is there then


def is_script(arguments: list) -> bool:
    """Whether what is to be captured is a script: a .py file without a function's name."""
    words = arguments[:arguments.index("--")] if "--" in arguments else arguments
    return "--" in arguments or any(w.endswith((".py", *shell_script.SUFFIXES)) and not w.startswith("-") for w in words[:1])


def parser() -> Parser:
    p = Parser(prog="stoker capture", description="Captures the training step of a script as it is, without a GPU, into a step file.",
               epilog="What follows -- are the script's own arguments.")
    p.add_argument("spec", metavar="SCRIPT.py")
    p.add_argument("-o", "--output", metavar="FILE", help="default: NAME.step.gz")
    p.add_argument("--precision", metavar="P", help="in place of the script's own: fp32, amp-fp16, amp-bf16")
    p.add_argument("--device", default="cuda", metavar="D", help="what the step is for: cuda (default) or cpu")
    p.add_argument("--batch-arg", metavar="NAME", help="the script's argument or variable that carries the batch, where no DataLoader does")
    p.add_argument("--name", help="what the model is called in reports")
    p.add_argument("--time-limit", type=float, metavar="S", help="seconds that one run of the script may take (default 600)")
    p.add_argument("--max-host-memory", metavar="SIZE", help="memory that the script may allocate on the host: 8G")
    p.add_argument("--fake-data", metavar="SHAPE", help="in place of torchvision's data sets: 3x224x224, 3x224x224:1000:1281167 with "
                   "classes and samples")
    p.add_argument("--allow-network", action="store_true", help="let the script reach the network (kept from it otherwise)")
    p.add_argument("--compile", "--torch-compile", action=BooleanOptionalAction, help="the step as torch.compile runs it, or without "
                   "(default: as the script has it)")
    p.add_argument("--gpu", metavar="NAME", help="the GPU that the script sees, as stoker gpus lists it (default a100-40gb), or its facts: "
                   "NAME;BYTES;8.0;COUNT")
    p.add_argument("--gpus", type=int, metavar="N", help="how many of it (default 1)")
    p.add_argument("--json-progress", rare=True, action="store_true", help="progress as JSON lines on stderr")
    p.add_argument("--quiet", action="store_true", help="say nothing but errors")
    p.add_argument("--json", action="store_true", help="what was written, as JSON on standard output")
    return p


def gpu_of(text: str | None, count: int | None = None) -> Gpu:
    """The GPU of a name that the catalogue knows, or of facts (NAME;BYTES;8.0;COUNT), with a count of its own where one is given."""
    if count is not None and count < 1:
        raise CaptureError(f"--gpus {count}: give how many GPUs the script sees, 1 or more")
    if not text:
        gpu = Gpu()
    elif ";" in text:
        try:
            name, memory, capability, facts_count, *processors = text.split(";")
            major, minor = capability.split(".")
            vendor, _, called = name.partition(" ")
            gpu = Gpu(name=gpu_names.of(vendor, called) if vendor in gpu_names.VENDORS else name, memory=int(memory),
                      capability=(int(major), int(minor)), count=int(facts_count))
            gpu = replace(gpu, processors=int(*processors)) if processors else gpu
        except ValueError:
            raise CaptureError(f"--gpu {text}: write a name that stoker gpus lists, or NAME;BYTES;8.0;COUNT") from None
    else:
        gpu = _listed(text)
    return gpu if count is None else replace(gpu, count=count)


def _listed(name: str) -> Gpu:
    """The catalogue's GPU of this name."""
    try:
        rows = binary.gpus(name)
    except binary.StokerError as error:
        raise CaptureError(f"--gpu {name}: {error}") from None
    exact = [row for row in rows if _simple(name) in map(_simple, (row["name"], *row["aliases"]))] or rows
    if len(exact) > 1:
        raise CaptureError(f"--gpu {name} may be any of {', '.join(row['name'] for row in exact)}: give one of these")
    row = exact[0]
    major, minor = divmod(row["compute_capability"] or _NEWEST_CAPABILITY, 10)
    return Gpu(name=gpu_names.of(row["vendor"], row["name"]), memory=row["memory_bytes"], capability=(major, minor),
               processors=row["sm_count"])


def _simple(name: str) -> str:
    """Letters and digits alone: names differ by blanks, dashes and case from one seller to the next."""
    return "".join(c for c in name.lower() if c.isalnum())


def bytes_of(text: str | None) -> int | None:
    if text is None:
        return None
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    number, unit = text.rstrip("iIbB"), 0
    if number and number[-1].lower() in units:
        number, unit = number[:-1], units[number[-1].lower()]
    try:
        value = float(number)
    except ValueError:
        value = 0
    if not value > 0:
        raise CaptureError(f"--max-host-memory {text}: write a size such as 8G")
    return int(value * 2**unit)


def run(arguments: list) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:at])
    if not options.spec.endswith(".py"):
        raise CaptureError(shell_script.refusal(options.spec))
    front.check(options.precision or "fp32", None, None, None, options.device)
    with capture_command.reporting(options, options.spec) as (say, progress):
        doc = here(options.spec, arguments[at + 1:], options, say, getattr(progress, "line", None))
    from .. import step_file

    path = options.output or f"{doc['name']}.step.gz"
    step_file.write(doc, path)
    if options.json:
        print(json.dumps({"file": path, "name": doc["name"], "mode": doc["mode"], "precision": doc["precision"],
                          "events": len(doc["events"]), "dimensions": doc["dimensions"], "provenance": doc["provenance"],
                          "diagnostics": doc["diagnostics"], "script": doc["script"]}, indent=2))
    elif not options.quiet:
        print(printable_lines(capture_command.summary(doc, path)))
        print(printable_lines("\n".join(found_lines(doc["script"]))))
    return 0


def here(script: str, words: list, options, say, line=None) -> dict:
    """Captures a script in children of this process; `line` is the ProgressLine that tells of them."""
    from . import runs

    runs.warm_up(say)
    from . import capture
    from .facade import fake_data

    asked = capture.Asked(script=script, arguments=words, gpu=gpu_of(options.gpu, options.gpus) if options.device == "cuda" else None,
                          precision="fp32" if options.precision == "tf32" else options.precision, batch_argument=options.batch_arg,
                          name=options.name, time_limit_s=options.time_limit, host_memory=bytes_of(options.max_host_memory),
                          fake_data=fake_data.FakeData.of(options.fake_data), network=options.allow_network,
                          compile=options.compile)
    return capture.capture(asked, say, line)


def found_lines(script: dict) -> list:
    """What people read of the findings."""
    lines = ["  found in the script:"]
    for row in script["found"]:
        where = f" (line {row['line']})" if row["line"] else ""
        lines.append(f"    {row['words']}{where}")
    if script["reads"]:
        lines.append("  values that it read, and what it got:")
    for row in script["reads"]:
        lines.append(f"    {row['operator']} of {row['dtype']}: {row['answer']}, {counted(row['count'], 'time')} (line {row['line']})")
    return lines
