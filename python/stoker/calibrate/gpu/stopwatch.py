"""Times a function on a CUDA GPU (kernels alone by graph replay, calls one after another, one call on an idle device) or a CPU."""

import statistics
import time

import torch

SECONDS = 0.06  # one reading: long against a launch, short enough for hundreds of cases
WARM_UP = 3
MOST_CALLS = 200
READINGS = 5  # the median is told, and half the range between the quartiles as its spread
FOOTPRINT = 2.0  # operands are rotated until they are this many times the L2 cache, as in a step they come from memory
MOST_COPIES = 8


def device_l2(device):
    return getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 0) if device == "cuda" else 0


def copies_for(device, footprint):
    """How many sets of operands it takes so that none is still in the L2 cache when its turn comes again."""
    if device != "cuda" or not footprint:
        return 1
    return max(1, min(MOST_COPIES, int(FOOTPRINT * device_l2(device) / footprint) + 1))


def _quartiles(values):
    ordered = sorted(values)
    middle = statistics.median(ordered)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return middle, (high - low) / (2 * middle) if middle > 0 else 0.0


def _wall(run, calls, synchronize):
    synchronize()
    started = time.perf_counter()
    for i in range(calls):
        run(i)
    issued = time.perf_counter()
    synchronize()
    return (time.perf_counter() - started) / calls, (issued - started) / calls


def _nothing():
    pass


class Stopwatch:
    """`run(i)` executes the case on its i-th set of operands."""

    def __init__(self, device, seconds=SECONDS):
        self.device, self.seconds = device, seconds
        self.synchronize = torch.cuda.synchronize if device == "cuda" else _nothing

    def _calls(self, run):
        for i in range(WARM_UP if self.device == "cuda" else 1):
            run(i)
        once, _ = _wall(run, 1, self.synchronize)
        return max(2 if self.device == "cuda" else 1, min(MOST_CALLS, int(self.seconds / READINGS / max(once, 1e-7))))

    def read(self, run, graph=True):
        """Microseconds: call (one after another), host (to issue one), idle (one on an idle device), kernel (graph replay)."""
        calls = self._calls(run)
        walls = [_wall(run, calls, self.synchronize) for _ in range(READINGS)]
        call, spread = _quartiles([1e6 * w for w, _ in walls])
        row = {"call_us": call, "spread": spread, "calls": calls * READINGS}
        if self.device == "cuda":
            row["host_us"] = 1e6 * min(issued for _, issued in walls)
            row["idle_us"] = _quartiles([1e6 * _wall(run, 1, self.synchronize)[0] for _ in range(9)])[0]
            if graph:
                row.update(self._replay(run, calls))
        return row

    def _replay(self, run, calls):
        """The kernels without their launches: a CUDA graph of many calls, replayed."""
        calls = min(calls, 50)
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for i in range(WARM_UP):
                    run(i)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for i in range(calls):
                    run(i)
        except Exception as error:  # what cannot be captured (it synchronises, say) has no such figure
            torch.cuda.synchronize()
            return {"note": f"no graph: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]}
        graph.replay()
        readings = []
        for _ in range(READINGS):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            readings.append(1e3 * begin.elapsed_time(end) / calls)
        kernel, spread = _quartiles(readings)
        return {"kernel_us": kernel, "spread": spread}
