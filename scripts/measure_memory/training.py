"""Trains one model for a few iterations in this process and reads what it took. One case is one fresh process."""

import contextlib
import time

import torch
from torch.nn import functional

from . import meter as meters
from . import models

ITERATIONS = 4  # the first makes gradients and optimizer state, the second reaches the steady peak; two more confirm it
OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)  # the older name before PyTorch 2.5
DTYPES = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


def _optimizer(case, parameters):
    loop = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[case["optimizer_loop"]]
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **loop)
    made = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop,
            "adagrad": torch.optim.Adagrad}[case["optimizer"]]
    return made(parameters, lr=1e-5, **loop)


class Trainer:
    """The loop as most people write it: copy a batch, zero_grad, forward under autocast, backward, step."""

    def __init__(self, case, device):
        self.case, self.device = case, device
        self.accumulate, self.clip = case.get("accumulate", 1), case.get("clip", False)
        model, inputs = getattr(models, case["model"])(batch=case["batch"])
        self.layout = torch.channels_last if case.get("channels_last") else torch.preserve_format
        self.model = model.to(device, memory_format=self.layout).train()
        self.host = tuple(self._values(t) for t in (inputs if isinstance(inputs, tuple) else (inputs,)))
        alone = not isinstance(inputs, tuple)  # a tuple holds the labels, and the model computes its own loss
        self.targets = self._pinned(torch.zeros(case["batch"], dtype=torch.long)) if alone else None
        self.optimizer = _optimizer(case, self.model.parameters())
        self.dtype = DTYPES.get(case["precision"])
        scaled = case["precision"] == "amp-fp16" and device == "cuda"
        self.scaler = torch.amp.GradScaler(device, enabled=scaled)

    def _pinned(self, tensor):
        return tensor.pin_memory() if self.device == "cuda" else tensor

    def _values(self, tensor):
        filled = torch.rand_like(tensor) if tensor.is_floating_point() else torch.zeros_like(tensor)
        if filled.dim() == 4:
            filled = filled.to(memory_format=self.layout)
        return self._pinned(filled)

    def _loss(self, inputs):
        amp = torch.autocast(self.device, dtype=self.dtype) if self.dtype else contextlib.nullcontext()
        with amp:
            output = self.model(*inputs)
            return output if output.dim() == 0 else functional.cross_entropy(output, self.classes)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(self.accumulate):
            self.inputs = tuple(t.to(self.device, non_blocking=True) for t in self.host)  # frees the last batch afterwards
            if self.targets is not None:
                self.classes = self.targets.to(self.device, non_blocking=True)
            self.scaler.scale(self._loss(self.inputs)).backward()
        if self.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()


def measure(case, device):
    """The row of one case. Out of memory is a result; anything else that is raised is not."""
    torch.backends.cudnn.benchmark = bool(case.get("cudnn_benchmark"))
    if case.get("limit_bytes"):
        torch.cuda.set_per_process_memory_fraction(case["limit_bytes"] / torch.cuda.mem_get_info()[1])
    others = case.get("others_bytes", 0)
    meter = meters.meter(device)
    row = {"status": "ok", "iterations": []}
    try:
        trainer = Trainer(case, device)
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
