"""stoker.capture(): specs in a process of their own, objects in this one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

from . import imports, protocol
from .errors import EXIT_BUG, CaptureError, InternalError, UserCodeError
from .objects import function_spec
from .plain import printable_lines

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "fp16")
MODES = ("train", "forward", "inference")
DEVICES = ("cuda", "cpu")


def check(precision: str, mode, batch, image_size, device: str = "cuda") -> None:
    if precision not in PRECISIONS:
        raise CaptureError(f"'{precision}' is no precision: use one of {', '.join(PRECISIONS)}")
    if mode not in (None, *MODES):
        raise CaptureError(f"'{mode}' is no mode: use train, forward (the graph is kept, no backward) or inference")
    if device not in DEVICES:
        raise CaptureError(f"'{device}' is no device that steps are captured for: use cuda (any GPU) or cpu")
    for what, value in (("batch", batch), ("image size", image_size)):
        if value is not None and value < 1:
            raise CaptureError(f"{what} {value} is not possible: use 1 or more")


def capture(what, out, *, precision, mode, batch, name, image_size, options, fixed, device="cuda", assume=(),
            compile=False, lora=None, qlora=False) -> dict:
    check(precision, mode, batch, image_size, device)
    common = {"precision": precision, "mode": mode, "name": name, "fixed": fixed, "device": device, "assume": assume,
              "compile": compile, "lora": lora, "qlora": qlora}
    if isinstance(what, (str, os.PathLike)):
        return _in_child(str(what), out, batch=batch, image_size=image_size, options=options, **common)
    spec = function_spec(what)
    if spec is not None and not options:
        return _in_child(spec, out, batch=batch, image_size=image_size, options=options, **common)
    return here(what, out, batch=batch, options=options, **common)


def _in_child(spec, out, *, precision, mode, name, batch, image_size, options, fixed, device, assume, compile, lora,
              qlora) -> dict:
    from . import step_file

    with tempfile.TemporaryDirectory() as folder:
        target = out or str(pathlib.Path(folder) / "capture.step.gz")
        command = [sys.executable, "-c", imports.starting(), "capture", spec, "-o", str(target), "--precision", precision]
        command += ["--device", device, "--quiet", *(["--compile"] if compile else [])]
        flags = (("--mode", mode), ("--batch", batch), ("--name", name), ("--image-size", image_size), ("--lora", lora))
        for flag, value in flags:
            if value is not None:
                command += [flag, str(value)]
        command += ["--qlora"] if qlora else []
        for item in assume:
            command += ["--assume", item]
        for key, value in options.items():
            command += ["--set", f"{key}={value}"]
        for key, value in fixed.items():
            command += ["--fixed", f"{key}={value}"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=imports.environment())
        if done.returncode:
            raise _error(done.stderr, done.returncode)
        return step_file.read(str(target))


def _error(stderr: str, code: int) -> CaptureError:
    lines = stderr.strip().splitlines()
    at = max((i for i, line in enumerate(lines) if line.startswith("stoker: ")), default=None)
    if at is None:
        return CaptureError("the capture process died: " + (lines[-1] if lines else "no message"))
    message = "\n".join(lines[at:]).removeprefix("stoker: ")
    before = "\n".join(lines[:at])
    if code == EXIT_BUG:
        return InternalError(message, before)
    return UserCodeError(message, before) if "Traceback" in before else CaptureError(message)


def here(what, out, *, precision, mode, name, batch, options, fixed, image_size=None, progress=None, say=None,
         device="cuda", with_sources=False, assume=(), compile=False, lora=None, qlora=False) -> dict:
    """Captures a spec, function or Capture in this process and writes it to `out` if that is given."""
    from . import device as devices
    prepared = devices.prepare(say or (lambda text: print(f"stoker: {printable_lines(text)}", file=sys.stderr)), device)
    from . import adapters, capturing, specs, standins, step_file

    standins.install()
    wish = adapters.parse(lora, qlora)
    label = what.rpartition(":")[2] if isinstance(what, str) else None
    change = None if wish is None else lambda made: adapters.applied(made, wish, precision, label)
    if isinstance(what, str):
        source = specs.resolve(what, options, batch, image_size, change)
    else:
        spec, label, function = _named(what)
        source = specs.Source(spec, label, function, options, batch, change)
    precision = "fp32" if precision == "tf32" else precision  # the same step; kernels are chosen later
    doc = capturing.capture(source, prepared, capturing.Settings(mode, precision, name, fixed, progress, with_sources, list(assume),
                                                                  compile))
    if out is not None:
        step_file.write(doc, str(out))
    return doc


def _named(what) -> tuple:
    """(spec, name, function) of an object."""
    if isinstance(what, (protocol.Capture, tuple)):
        made = protocol.from_result(what)
        label = made.name or type(made.module).__name__
        return f"object:{label}", label, lambda: made
    if callable(what) and not hasattr(what, "parameters"):
        label = getattr(what, "__name__", "function")
        return f"function:{label}", label, what
    raise CaptureError("give a spec like 'torchvision:resnet50', a capture function, or stoker.Capture(module, inputs)")
