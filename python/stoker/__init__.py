"""Stoker: what a deep-learning training job will need and how fast it will run, before it runs.

    stoker.capture("torchvision:resnet50", "resnet50.step.gz")   # needs PyTorch, no GPU
    stoker.plan("resnet50.step.gz", gpu="v100-16gb", data="images/")
    stoker.predict("resnet50", gpu="a100-40gb", batch=256, precision="amp-fp16")
    stoker.predict(net, "t4", inputs=torch.empty(32, 3, 224, 224)) # a torch.nn.Module, whose weights nobody reads
    stoker.fits("resnet50", 192, "v100-16gb")                    # True or False
    stoker.gpus("a100"), stoker.gpus(memory=24), stoker.models() # what is known
    stoker.explain("snapshot.pickle")                            # what held the GPU's memory, or who waited in a watched run
    stoker.read_study("study.db")                                # what the trials of a sweep measured, and what it teaches
    stoker.probe(loader)                                         # what your Dataset or DataLoader costs
    stoker.report(step=step, loss=loss)                          # in a trial of `stoker sweep`: what it has reached
    stoker.lr_range_test(model, optimizer, loader)               # which learning rates; everything is put back
    stoker.noise_scale(optimizer, batch=64)                      # from which batch on larger ones are worth less
    stoker.goodput("resnet50", "a100-40gb", 800, [64, 128])      # which batch reaches a loss soonest, at that noise scale
    stoker.scale_batch(0.1, old=256, new=1024)                   # what changes with the batch, and where the rule breaks
    stoker.checkpoint_dir(), stoker.share()                      # in a trial: what to go on from; of `stoker tune`: on how much data
    @stoker.kernel(writes=["out_ptr"])                           # what a Triton kernel of your own does, for a capture
    with stoker.observe_step():                                  # around a real step: records where its time goes

plan, predict and fits take the flags of the command as keywords: max_global_batch=512, checkpoint="blocks", clip=True.
Answers are dicts whose names are attributes: answer.throughput, answer.memory.fits, answer.to_dict().
Importing this imports no PyTorch. Functions raise StokerError with one sentence and its cure.

For those who change this package: its modules belong to rooms, which import from left to right in this order (held by
python/tests/test_imports.py), and no module imports itself by way of others.

    base           errors, times, the command line's common parts, what a capture function returns, the binary
    capture        the modules of this folder: from a PyTorch model to a step file
    measure        how anything is measured: machine, contention, children, the reference kernel
    shadow         from a training script as it is to a step file
    study          stoker.report: what a trial tells the study that runs it
    observe        stoker.Observer: what a real loop's steps spend their time on
    tune           what touches PyTorch and text in choosing settings: range test, gradient noise, vocabularies
    pipeline       the probe of a Dataset or DataLoader
    calibrate      what operators take on this CPU or GPU
    loader_runs    epochs of real DataLoaders, for comparison with forecasts
    training_runs  steps of real training, for the same
    surveys        a GPU's memory and time in the project's own tables
    cli            the verbs
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from .binary import StokerError, explain, fits, goodput, gpus, models, plan, predict, read_study
from .errors import CaptureError, ProbeError
from .observe import Observation, ObservationError, Observer, observe_step, read_observation
from .polynomial import Dimension
from .protocol import Capture
from .results import Comparison, Explanation, Figure, Plan, Prediction, Study
from .standins.custom_kernels import kernel
from .study import checkpoint_dir, report, share
from .tune import (
    Gate,
    hf_search_space,
    lightning_batch,
    lr_ramp,
    lr_range_test,
    noise_scale,
    optuna_gate,
    optuna_pruner,
    ray_stopper,
    scale_batch,
)
from .version import VERSION as __version__

__all__ = ["Capture", "CaptureError", "Comparison", "Dimension", "Explanation", "Figure", "Gate", "Observation",
           "ObservationError", "Observer", "Plan", "Prediction", "ProbeError", "StokerError", "Study", "capture",
           "checkpoint_dir", "explain", "fits", "goodput", "gpus", "hf_search_space", "kernel", "lightning_batch", "lr_ramp",
           "lr_range_test", "models", "noise_scale", "observe_step", "optuna_gate", "optuna_pruner", "plan", "predict", "probe",
           "ray_stopper", "read_observation", "read_study", "report", "scale_batch", "share", "__version__"]


def capture(what: str | Callable | Capture, out: str | os.PathLike | None = None, *, precision: str = "fp32", mode: str | None = None,
            batch: int | None = None, name: str | None = None, image_size: int | None = None, options: dict | None = None,
            fixed: dict[str, int] | None = None, device: str = "cuda", assume: Sequence[str] = (), lora: str | None = None,
            qlora: bool = False) -> dict:
    """Captures one training (or inference) step and returns the step file's content as a dict.

    what        "torchvision:NAME", "timm:NAME", "hf:ORG/NAME", "FILE.py:FUNCTION", a capture function, or a stoker.Capture
    out         also write it there (NAME.step.gz)
    precision   fp32, tf32, amp-fp16, amp-bf16, bf16, fp16
    mode        train or inference
    batch       the default batch that the file records (any other can be asked for later)
    options     arguments for the capture function or the model's constructor
    fixed       dimensions to hold at one size, {"seq_len": 128}
    device      what the step is for: "cuda" (any GPU) or "cpu"
    assume      what the model reads where that depends on data: ["net.py:12=false", "net.py:30=all"]
    lora        "r=16" or "r=16,targets=q_proj,v_proj": the model is frozen and adapters beside linear layers are trained
    qlora       the same with the frozen linear layers in four bits (NF4)

    A spec (a string) is captured in a process of its own. An object is captured in this one, with CUDA's dispatch if
    stoker.device.prepare() ran before torch was imported, else on fake CPU tensors (reported, and marked in the result).
    Raises CaptureError.
    """
    from . import front

    return front.capture(what, out, precision=precision, mode=mode, batch=batch, name=name, image_size=image_size,
                         options=options or {}, fixed=fixed or {}, device=device, assume=list(assume), lora=lora,
                         qlora=qlora)


def probe(dataset_or_loader: Any, out: str | os.PathLike | None = None, *, name: str | None = None, budget_s: float = 20.0,
          progress: Callable[[str, float], Any] | None = None) -> dict:
    """Measures a Dataset, an IterableDataset or a DataLoader, and returns the object of docs/reference/pipeline-probe-file.md.

    dataset_or_loader  the object itself; a DataLoader's batch size, collate_fn, samplers and worker_init_fn are used
    out         also write it there, for `stoker plan MODEL --gpu G --data OUT`
    name        what it is called in reports; its class otherwise
    budget_s    seconds to spend at most, 1 or more
    progress    called as progress(what, share_of_the_budget_used) about ten times a second

    Times in the result are milliseconds, sizes bytes. CPU time of samples and of collating is measured in forked
    children that work as a DataLoader's workers do; this process and the data set stay as they are, and nothing is left
    running. Needs PyTorch and Linux. Raises ProbeError (UserCodeError where your own code fails).
    """
    from .pipeline import probe_file, probe_pipeline

    doc = probe_pipeline(dataset_or_loader, name=name or type(getattr(dataset_or_loader, "dataset", dataset_or_loader))
                         .__name__, budget_s=budget_s, progress=progress)
    if out is not None:
        probe_file.write(doc, str(out))
    return doc
