"""What is on the device beside tensors: context, libraries, workspaces. And snapshots recorded from the process's start."""

import gzip
import os
import pickle

import torch
from torch.nn import functional

from .. import meter as meters
from . import training

SIDE = 1024  # the matrices': large enough for tensor cores, small enough to fit anything
BLOCK = 512  # bytes; the caching allocator's granularity


def _stages(device):
    """(name, function) in the order in which a first step meets them; each returns what has to stay alive."""
    kept = {}

    def tensor():
        kept["x"] = torch.ones(SIDE, SIDE, device=device)

    def elementwise():
        kept["x"].mul_(0.5)

    def matmul():
        kept["x"] @ kept["x"]

    def matmul_backward():
        weight = torch.ones(SIDE, SIDE, device=device, requires_grad=True)
        (kept["x"] @ weight).sum().backward()

    def matmul_with_bias():  # cuBLASLt
        functional.linear(kept["x"], kept["x"], kept["x"][0])

    def half_matmul():
        half = kept["x"].bfloat16()
        half @ half

    def convolution():
        kept["conv"] = torch.nn.Conv2d(32, 32, 3, padding=1).to(device)
        kept["out"] = kept["conv"](torch.ones(8, 32, 56, 56, device=device))

    def convolution_backward():
        kept.pop("out").sum().backward()
        del kept["conv"]

    def optimizer_step():
        parameter = torch.nn.Parameter(torch.ones(SIDE, device=device))
        parameter.grad = torch.ones(SIDE, device=device)
        torch.optim.AdamW([parameter], foreach=True).step()

    return [("tensor", tensor), ("elementwise", elementwise), ("matmul", matmul), ("matmul_backward", matmul_backward),
            ("matmul_with_bias", matmul_with_bias), ("half_matmul", half_matmul), ("convolution", convolution),
            ("convolution_backward", convolution_backward), ("optimizer_step", optimizer_step)]


def context(case, device):
    """Device bytes beside PyTorch's segments, and allocated bytes that no tensor explains, after each first use."""
    before = meters.nvml_bytes()
    if device == "cuda":
        torch.cuda.init()
    meter = meters.meter(device)
    stages = [{"stage": "context", "outside_bytes": meter.used() - meter.reserved() - case.get("others_bytes", 0),
               "allocated_bytes": meter.allocated(), "allocated_delta_bytes": 0}]
    for name, run in _stages(device):
        allocated = meter.allocated()
        run()
        meter.synchronize()
        stages.append({"stage": name, "outside_bytes": meter.used() - meter.reserved() - case.get("others_bytes", 0),
                       "allocated_bytes": meter.allocated(), "allocated_delta_bytes": meter.allocated() - allocated})
    return {"status": "ok", "stages": stages, "total_bytes": meter.total, "nvml_before": before,
            "nvml_after": meters.nvml_bytes(), "workspaces": workspaces(stages), **nameplate(device)}


def workspaces(stages):
    """cuBLAS's: what each stage keeps although all of its tensors are gone, in bytes."""
    names = ("matmul", "matmul_backward", "matmul_with_bias", "half_matmul")
    return {s["stage"]: s["allocated_delta_bytes"] for s in stages if s["stage"] in names}


def nameplate(device):
    if device != "cuda":
        return {}
    properties = torch.cuda.get_device_properties(0)
    return {"properties_total_bytes": properties.total_memory, "multiprocessors": properties.multi_processor_count,
            "capability": f"{properties.major}.{properties.minor}"}


def snapshot(case, device):
    """Trains while PyTorch records every allocation since the process began; the trace is the exact test of a simulator."""
    if device != "cuda":
        return {"status": "skipped", "note": "PyTorch records its CUDA allocator only"}
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=2_000_000)
    row = training.measure(case, device)
    found = torch.cuda.memory._snapshot()
    path = case["file"]
    with gzip.open(path, "wb", compresslevel=6) as file:
        pickle.dump(found, file)
    traced = sum(len(trace) for trace in found.get("device_traces", []))
    return {**row, "file": os.path.basename(path), "trace_entries": traced}
