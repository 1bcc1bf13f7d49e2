"""The whole capture: sizes, runs, polynomials, document."""

from __future__ import annotations

import contextlib
import math
import platform
from dataclasses import dataclass, field

import torch

from . import places, protocol, sources, standins, step_file, training
from .device import Device
from .errors import CaptureError, UserCodeError
from .polynomial import Fitter
from .tracing import compiled, one_step
from .user_code import user_code
from .version import VERSION


@dataclass
class Settings:
    """How to capture.

    fixed         dimensions at one size
    progress      called before each run as progress(done, of, what)
    assume        FILE:LINE=VALUE, for what the model reads
    compile       the model runs under torch.compile
    with_sources  the file says which files it depends on, by their paths on this computer
    """

    mode: str | None = None
    precision: str = "fp32"
    name: str | None = None
    fixed: dict = field(default_factory=dict)
    progress: object = None
    with_sources: bool = False
    assume: list = field(default_factory=list)
    compile: bool = False


def capture(source, device: Device, settings: Settings) -> dict:
    """The step file's document of `source` (a specs.Source)."""
    mode = settings.mode or source.first.mode or "train"
    declared = training.training(source.first)
    optimizer, note = training.optimizer(source.first)
    dimensions = _dimensions(source, settings.fixed)
    fitter = Fitter(dimensions)
    grid = fitter.grid()
    points = [p for i, p in enumerate(grid) if p not in grid[:i]]
    saved = None
    parts = [""] if settings.compile else compiled.parts(source.first.module)
    if parts:
        compiled.check_version()
        saved = compiled.SavedTensors(parts)
        points.sort(key=lambda point: -math.prod(point.values()))  # the largest decides what is kept
    assumptions = places.Assumptions(settings.assume)
    steps = {}
    for done, point in enumerate(points):
        sizes = ", ".join(f"{k} {v}" for k, v in point.items())
        if settings.progress:
            settings.progress(done, len(points), sizes)
        built = source.build(point)
        with _assumed_values_named(assumptions, points), user_code(f"{source.spec} raised in its step at {sizes}"):
            steps[tuple(point.values())] = one_step.run(built, mode, settings.precision, device, assumptions, saved)
        del built
    if settings.progress:
        settings.progress(len(points), len(points), "done")
    assumptions.check_used()
    raws = [steps[tuple(point.values())] for point in grid]
    if device.note:
        raws[0].notes.setdefault("unfaithful", []).append(f"captured on fake CPU tensors: {device.note}")
    for sentence in filter(None, (note, source.note)):
        raws[0].notes.setdefault("unfaithful", []).append(sentence)
    head = {"name": settings.name or source.first.name or source.name, "mode": mode, "precision": settings.precision}
    if raws[0].in_backward:
        optimizer = {"name": "none", "in_backward": raws[0].in_backward, "groups": []}
    about = {"sample": _sample(source, dimensions), "optimizer": optimizer, "training": declared,
             "compiled": compiled.about(raws[0]) if parts else None}
    return step_file.document(fitter, raws, head, _provenance(source, device, settings.with_sources), about)


@contextlib.contextmanager
def _assumed_values_named(assumptions, points: list):
    """An error of the model's code may be one of the values that it was told: what they add up to is another at each size."""
    try:
        yield
    except UserCodeError as error:
        if not assumptions.used:
            raise
        varied = [name for name in points[0] if len({point[name] for point in points}) > 1]
        cure = f", and hold the size that they are of (--fixed {varied[0]}=N)" if varied else ""
        message = f"{error}; what was assumed may not suit: give other values with --assume{cure}"
        raise UserCodeError(message, error.traceback_text) from error.__cause__


def _dimensions(source, fixed: dict) -> list:
    names = [d.name for d in source.dimensions]
    for name in fixed:
        if name not in names:
            raise CaptureError(f"{source.spec} has no dimension '{name}' to hold fixed (it has: {', '.join(names)})")
    return [protocol.fixed(d, fixed[d.name]) if d.name in fixed else protocol.with_points(d)
            for d in source.dimensions]


def _provenance(source, device: Device, with_sources: bool) -> dict:
    model = source.first.module
    found = {"spec": source.spec, "capture": device.capture, "torch": str(torch.__version__), "python": platform.python_version(),
             "stoker": VERSION, "libraries": {n: sources.version_of(n) for n in sources.libraries_of(model)[1:]}}
    found["libraries"] |= {name: "a stand-in" for name in standins.used}
    if with_sources:
        found["sources"] = sources.rows(model)
        found["environment"] = sources.environment()
    return found


def _sample(source, dimensions) -> dict | None:
    if source.first.sample:
        return dict(source.first.sample)
    if any(d.name == "seq_len" for d in dimensions):
        return {"what": "sequence", "tokens": {"seq_len": 1}}
    return None
