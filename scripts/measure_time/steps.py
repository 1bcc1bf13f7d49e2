"""Times whole training steps: as people write the loop, by phase, what the host needs, and the kernels alone by graph replay."""

import contextlib
import statistics
import sys
import time

import torch
from torch.nn import functional

from measure_memory import models as shared_models
from stoker.calibrate.gpu import operators

from . import models

DTYPES = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
PHASES = ("forward", "backward", "optimizer")
SECONDS = 0.7  # of the timed loop
WARM_UP, FEWEST, MOST = 5, 8, 60


def spec(name):
    folder = "measure_memory" if hasattr(shared_models, name) else "measure_time"
    return f"scripts/{folder}/models.py:{name}"


def _optimizer(case, parameters):
    loop = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[case["optimizer_loop"]]
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **loop)
    return torch.optim.AdamW(parameters, lr=1e-5, **loop)


class Trainer:
    """The inputs stay on the device, so that a step is the device's and the host's alone; `mark(phase)` is told as each begins."""

    def __init__(self, case, device):
        self.device = device
        made = getattr(shared_models if hasattr(shared_models, case["model"]) else models, case["model"])
        model, inputs = made(batch=case["batch"])
        layout = torch.channels_last if case["channels_last"] else torch.preserve_format
        self.model = model.to(device, memory_format=layout).train()
        alone = not isinstance(inputs, tuple)
        self.inputs = [self._filled(t, layout) for t in ((inputs,) if alone else inputs)]
        self.targets = torch.zeros(case["batch"], dtype=torch.long, device=device) if alone else None
        self.optimizer = _optimizer(case, self.model.parameters())
        self.dtype = DTYPES.get(case["precision"])
        self.scaler = torch.amp.GradScaler(device, enabled=case["precision"] == "amp-fp16" and device == "cuda")

    def _filled(self, tensor, layout):
        values = torch.rand_like(tensor) if tensor.is_floating_point() else torch.zeros_like(tensor)
        return values.to(self.device, memory_format=layout) if tensor.dim() == 4 else values.to(self.device)

    def loss(self):
        with torch.autocast(self.device, dtype=self.dtype) if self.dtype else contextlib.nullcontext():
            output = self.model(*self.inputs)
            return output if output.dim() == 0 else functional.cross_entropy(output, self.targets)

    def step(self, mark=lambda phase: None):
        mark("forward")
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        mark("backward")
        self.scaler.scale(loss).backward()
        mark("optimizer")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        mark("end")


class CpuClock:
    """Marks are instants of this thread."""

    def mark(self):
        return time.perf_counter()

    def between(self, a, b):
        return 1e3 * (b - a)

    def synchronize(self):
        pass


class CudaClock:
    """Marks are events on the device's stream."""

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, a, b):
        return a.elapsed_time(b)

    def synchronize(self):
        torch.cuda.synchronize()


def _steps(trainer, clock, seconds):
    """How many fit; at least a few."""
    started = time.perf_counter()
    trainer.step()
    clock.synchronize()
    return max(FEWEST, min(MOST, int(seconds / max(time.perf_counter() - started, 1e-6))))


def _host_ms(trainer, clock):
    """What the host needs to issue a step to an idle device, the least of a few; with a GradScaler it waits inside."""
    readings = []
    for _ in range(4):
        clock.synchronize()
        started = time.perf_counter()
        trainer.step()
        readings.append(1e3 * (time.perf_counter() - started))
    clock.synchronize()
    return min(readings)


def _graph_ms(trainer):
    """Forward and backward without launches."""
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                trainer.optimizer.zero_grad(set_to_none=True)
                trainer.loss().backward()
        torch.cuda.current_stream().wait_stream(stream)
        trainer.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            trainer.loss().backward()
    except Exception as error:
        torch.cuda.synchronize()
        return {"note": f"no graph: {type(error).__name__}: {error}"[:200]}
    graph.replay()
    readings = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        readings.append(begin.elapsed_time(end))
    return {"graph_ms": statistics.median(readings)}


def measure(case, device, seconds=SECONDS):
    operators.set_units("tf32" if case["precision"] == "tf32" else "fp32")
    torch.backends.cudnn.allow_tf32 = True  # PyTorch's default: in "fp32" only products are real FP32
    torch.backends.cudnn.benchmark = bool(case.get("cudnn_benchmark"))
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer, clock = Trainer(case, device), CudaClock() if device == "cuda" else CpuClock()
    warm_up = WARM_UP if device == "cuda" else 1
    for _ in range(warm_up):
        trainer.step()
    clock.synchronize()
    count = _steps(trainer, clock, seconds) if device == "cuda" else 2
    row = _loop(trainer, clock, count)
    row["host_ms"] = _host_ms(trainer, clock) if device == "cuda" else None
    if device == "cuda":
        row["memory_bytes"] = torch.cuda.max_memory_reserved()
        row.update(_graph_ms(trainer))
    return row


def _loop(trainer, clock, count):
    """Steps one after another as training runs them, without a wait between."""
    marks = [clock.mark()]
    started = time.perf_counter()
    for _ in range(count):
        trainer.step()
        marks.append(clock.mark())
    clock.synchronize()
    wall = 1e3 * (time.perf_counter() - started) / count
    single = sorted(clock.between(a, b) for a, b in zip(marks, marks[1:]))
    phases = [{} for _ in range(max(2, count // 2))]
    for times in phases:
        trainer.step(lambda phase, times=times: times.update({phase: clock.mark()}))
    clock.synchronize()
    order = (*PHASES, "end")
    found = {f"{a}_ms": statistics.median(clock.between(t[a], t[b]) for t in phases) for a, b in zip(order, order[1:])}
    return {"step_ms": statistics.median(single), "step_ms_low": single[len(single) // 10],
            "step_ms_high": single[(9 * len(single)) // 10 if len(single) > 9 else -1], "wall_ms": wall, "steps": count, **found}


if __name__ == "__main__":
    sys.exit("run scripts/measure-time")
