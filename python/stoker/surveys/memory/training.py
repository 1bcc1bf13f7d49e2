"""Trains one model for a few iterations in this process and reads what it took. One case is one fresh process."""

import time

import torch

from .. import meter as meters
from ..trainer import Trainer

ITERATIONS = 4  # the first makes gradients and optimizer state, the second reaches the steady peak; two more confirm it
OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)  # the older name before PyTorch 2.5


def measure(case, device):
    """The row of one case. Out of memory is a result; anything else that is raised is not."""
    torch.backends.cudnn.benchmark = bool(case.get("cudnn_benchmark"))
    if case.get("limit_bytes"):
        torch.cuda.set_per_process_memory_fraction(case["limit_bytes"] / torch.cuda.mem_get_info()[1])
    others = case.get("others_bytes", 0)
    meter = meters.meter(device)
    row = {"status": "ok", "iterations": []}
    try:
        trainer = Trainer(case, device, copied=True)
        meter.synchronize()
        for _ in range(case.get("iterations", ITERATIONS)):
            started = time.perf_counter()
            trainer.step()
            meter.synchronize()
            row["iterations"].append({"ms": round(1e3 * (time.perf_counter() - started), 3), **meter.peaks(),
                                      "reserved_bytes": meter.reserved(), "used_bytes": meter.used()})
    except OUT_OF_MEMORY as error:
        row.update(status="oom", message=str(error)[:600])
        row["iterations"].append({**meter.peaks(), "reserved_bytes": meter.reserved(), "used_bytes": meter.used()})
    row.update(summary(row["iterations"], others, device), **meter.extras())
    if device == "cuda":
        row.update(meters.nvml_bytes(), total_bytes=meter.total)
    return row


def summary(iterations, others, device):
    """Peaks over all iterations. What is on the device beside PyTorch's segments only grows, so the last reading is its peak."""
    if device != "cuda":
        return {"allocated_peak_bytes": None, "reserved_peak_bytes": None, "context_bytes": None,
                "device_peak_bytes": max(i["used_bytes"] for i in iterations)}
    reserved = max(i["reserved_peak_bytes"] for i in iterations)
    context = iterations[-1]["used_bytes"] - iterations[-1]["reserved_bytes"] - others
    return {"allocated_peak_bytes": max(i["allocated_peak_bytes"] for i in iterations), "reserved_peak_bytes": reserved,
            "context_bytes": context, "device_peak_bytes": reserved + context}
