"""Times whole training steps: as people write the loop, by phase, what the host needs, and the kernels alone by graph replay."""

import statistics
import time

import torch

from ...calibrate.gpu import operators
from ..trainer import Trainer

PHASES = ("forward", "backward", "optimizer")
SECONDS = 0.7  # the timed loop
WARM_UP, FEWEST, MOST = 5, 8, 60


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
    trainer, clock = Trainer(case, device, copied=False), CudaClock() if device == "cuda" else CpuClock()
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
