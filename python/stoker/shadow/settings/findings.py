"""Settings that a run found in the script, each with the line that says so."""

from __future__ import annotations

import ast
import contextlib
import os
import pathlib
import sys
import types

import torch

from ... import standins, training, whose
from ...plain import counted
from ...sources import version_file
from ...tracing import operators
from .. import manners, sites
from ..facade import graphs, retries
from . import averages, batch_names, batches, micro_batches

LIBRARIES = ("torchvision", "timm", "transformers", "peft", "lightning", "pytorch_lightning", "accelerate", "torchtext", "torchaudio")


# Resident after a small step on a CPU: 673 MiB of 2.14.1+cu130, 318 MiB of 2.13.0+cpu, both on x86-64 with glibc.
_OF_A_GPU_BUILD = 355 << 20
# torch._dynamo has these of either, and is imported by the first optimizer of torch.optim and by torchvision: by builds for GPUs
# (2.14.1: 667 MiB with it, 520 without) and for CPUs (2.13.0: 290 and 218).
_OF_THE_COMPILER = {True: 147 << 20, False: 72 << 20}
_MODELLED = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "radam", "adafactor", "lion", "lbfgs"}
# Optimizers that are not modelled, and the modelled one that keeps as much beside each parameter.
_ALIKE = {"rprop": "adam", "sparseadam": "adam", "asgd": "adagrad", "muon": "lion"}


def collect(world, watcher, record) -> None:
    """Fills the outcome with what this step and its loop have shown."""
    outcome = world.outcome
    outcome.files = own_files(world.request.script)
    outcome.batch, outcome.sizes = record.batch, record.sizes
    for path, _, _ in outcome.files:
        if path.endswith(".py") and sites.is_users(path) and path != os.path.realpath(world.request.script):
            with contextlib.suppress(OSError, SyntaxError, ValueError):
                batches.note(world, ast.parse(pathlib.Path(path).read_bytes()))
    variables = vars(sys.modules["__main__"])
    outcome.batch_names = [(way, variables.get(way[len("variable:"):], value) if way.startswith("variable:") else value)
                           for way, value in outcome.batch_names]
    outcome.batch_names = batch_names.in_order(outcome.batch_names, world.request)
    outcome.libraries = {n: getattr(sys.modules[n], "__version__", "unknown") for n in LIBRARIES if n in sys.modules}
    if not world.on_gpu:
        outcome.build_bytes = build_bytes(bool(torch.version.cuda or torch.version.hip), bool(watcher.optimizers or outcome.libraries))
    outcome.libraries |= {name: "a stand-in" for name in standins.used}
    together = [facts for facts in watcher.loaders_of_all or [] if facts.batch]
    outcome.loader_batches = [facts.batch for facts in together]
    if record.loader is not None:
        _loader(world, min(together, key=lambda facts: facts.batch) if len(set(outcome.loader_batches)) > 1 else record.loader)
        _validation(world, record.loader, watcher.loaders_of_steps)
        if record.loader.uneven:
            outcome.uneven, outcome.batch = True, record.batch
            words = f"batches of up to {record.loader.batch} samples, {record.batch} in this step"
            world.found("batch", record.batch, words, record.loader.site)
    parts = record.backwards
    if parts > 1 and record.equal_parts():
        world.found("accumulate", parts, f"gradients of {parts} batches accumulated", watcher.backward_at)
    outcome.precision = record.precision or "fp32"
    _precision(world, outcome.precision)
    _optimizer(world, watcher, record, outcome)
    _zeroing(world, watcher)
    own_code = [path for path, _, _ in outcome.files if path.endswith(".py") and sites.is_users(path)]
    graphs.look_in(world, record, own_code)
    retries.look_in(world, own_code)
    outcome.parts = micro_batches.Parts.of(watcher, record, own_code)
    _layout(world, record)
    outcome.averages = averages.look_for(world, watcher, record)
    if watcher.batches_of_step > max(1, parts if record.equal_parts() else 1):
        world.note(f"a step of the script takes {watcher.batches_of_step} batches of its DataLoader: samples a second and an epoch's "
                   "length count one of them")
    outcome.training = {key: True for key, setting in (("clip", "clip"), ("grad_scaler", "grad-scaler"), ("ema", "ema"))
                        if setting in world.facts} or None
    if len(outcome.averages) > 1 or any(average.of for average in outcome.averages):
        outcome.training["averages"] = [average.of for average in outcome.averages]


def build_bytes(for_gpus: bool, with_compiler: bool) -> int:
    """What this PyTorch keeps on the host beyond its CPU build with an optimizer; below 0: less.

    with_compiler   whether torch._dynamo is imported, as an optimizer of torch.optim does, and torchvision and its like
    """
    return (_OF_A_GPU_BUILD if for_gpus else 0) - (0 if with_compiler else _OF_THE_COMPILER[for_gpus])


def own_files(script: str) -> list:
    """Files of the user's own that were read to run the script, and one of each library that changes with its version:
    [path, bytes, time of the last change in ns]."""
    files = {os.path.realpath(script)} | {os.path.realpath(path) for path in manners.READ if not whose.is_ours(path)}
    files |= {path for path in (version_file(name) for name in ("torch", *LIBRARIES) if name in sys.modules) if path}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and sites.is_users(os.path.abspath(file)):
            files.add(os.path.realpath(file))
    found = []
    for path in sorted(files):
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append([path, status.st_size, status.st_mtime_ns])
    return found


def _loader(world, loader) -> None:
    site = loader.site
    if loader.batch:
        world.outcome.batch = loader.batch
        world.found("batch", loader.batch, f"batch {loader.batch}", site)
    world.found("workers", loader.workers, counted(loader.workers, "worker"), site)
    if loader.prefetch:
        world.found("prefetch", loader.prefetch, f"{counted(loader.prefetch, 'batch')} ahead", site)
    if loader.workers:
        kept = "workers kept between epochs" if loader.persistent else "workers started anew in each epoch"
        world.found("persistent-workers", loader.persistent, kept, site)
        if loader.start != "fork":
            world.found("start-method", loader.start, f"workers started by {loader.start}", site)
    world.found("pin", loader.pin, "page-locked memory" if loader.pin else "no page-locked memory", site)
    if loader.samples:
        world.found("samples", loader.samples, counted(loader.samples, "sample"), site)


def _validation(world, training, used: set) -> None:
    """The last DataLoader over other data than the one that is trained with, where its batches are known."""
    others = [facts for data, facts in world.loaders.values() if facts.batch and id(facts) not in used
              and data is not training.data]
    if not others:
        return
    facts = others[-1]
    batch = min(facts.batch, facts.samples or facts.batch)
    world.found("validation", batch, f"validation of batch {batch}", facts.site)
    if facts.samples:
        world.found("validation-samples", facts.samples, f"{counted(facts.samples, 'sample')} of it", facts.site)


def _precision(world, precision: str) -> None:
    if precision != "fp32":
        world.found("precision", precision, precision, getattr(world, "autocast_site", None) or sites.Site())


def _optimizer(world, watcher, record, outcome) -> None:
    used = watcher.used_optimizers()
    here = [o for o in used if any(record.recorder._on_device(p) for g in o.param_groups for p in g["params"])]
    if here and len(here) < len(used):
        used = here
        world.note("an optimizer of the script updates parameters on the host: what the host computes with them is not counted")
    if not used:
        world.note("the script has no optimizer of torch.optim: no update and no state of one is counted")
        outcome.optimizer = {"name": "none", "groups": []}
        return
    described = []
    for optimizer in used:
        everything = types.SimpleNamespace(parameters=lambda o=optimizer: (p for g in o.param_groups for p in g["params"]))
        row, note = training.optimizer(types.SimpleNamespace(optimizer=optimizer, module=everything))
        alike = _by_state(optimizer, row) or _ALIKE.get(row["name"])
        if alike:
            world.note(f"{row['name']} is not modelled: taken for {alike}, which keeps as much for a parameter")
            row = dict(row, name=alike, **{"class": f"torch.optim.{type(optimizer).__name__}"})
            if isinstance(optimizer, torch.optim.SparseAdam):
                world.note("sparse gradients: the update is timed as one of all rows, and takes no memory for rows that no batch names")
                row["groups"] = [dict(group, fused=True) for group in row["groups"]]
        described.append(row)
        if note:
            world.note(note)
    others = [dict(group, optimizer=row["name"]) for row in described[1:] for group in row["groups"]]
    outcome.optimizer = dict(described[0], groups=[*described[0]["groups"], *others])
    name, site = watcher.made_at[id(used[0])]
    kinds = ", ".join(dict.fromkeys(watcher.made_at[id(o)][0] for o in used))
    words = name if len(used) == 1 else f"{len(used)} optimizers ({kinds})"
    world.found("optimizer", described[0]["name"], words, site)


def _by_state(optimizer, row: dict) -> str | None:
    """The modelled optimizer that keeps as many tensors beside a parameter as one of the script's own, which has run."""
    if "class" not in row or row["name"] in _MODELLED or row["name"].endswith("8bit"):
        return None
    kept = [sum(isinstance(t, torch.Tensor) and t.shape == p.shape for t in state.values()) for p, state in optimizer.state.items()
            if isinstance(p, torch.Tensor) and isinstance(state, dict)]
    most = max(kept, default=0)
    return "adam" if most > 1 else "lion" if most else "sgd"


def _zeroing(world, watcher) -> None:
    """zero_grad between the forward and the backward: of one optimizer it is a setting, of several each has its own place."""
    site = watcher.zeroed_between
    if site is None:
        return
    if len(watcher.used_optimizers()) > 1:
        world.note(f"{site}: gradients of the step before live through a forward, which is not counted with several optimizers")
        return
    world.found("zero-grad-between", True, "gradients dropped between forward and backward", site)


def _layout(world, record) -> None:
    """Channels-last, where the weights of convolutions lie so."""
    weights = [p for root in record.roots for p in root.parameters() if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] > 1]
    if weights and all(operators.memory_order(tuple(p.shape), p.stride()) == (0, 2, 3, 1) for p in weights):
        world.found("channels-last", True, "channels-last")
