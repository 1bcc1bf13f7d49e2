"""A process that measures the cases it is told on standard input, one a line, and answers each with its rows as JSON. One that dies
costs its case alone."""

import traceback

from ...measure.answering import Answering


def measure_operator(case, device):
    """A row of the forward, and one of each backward: forward and backward together less the forward."""
    from . import operators, stopwatch

    built = operators.build(case, device)
    copies = 1 if case.get("warm") else stopwatch.copies_for(device, built.footprint())
    forward, backwards = built.runs(copies)
    watch = stopwatch.Stopwatch(device)
    l2 = stopwatch.device_l2(device)
    warm = copies * built.footprint() < stopwatch.FOOTPRINT * l2
    common = {"operand_bytes": built.footprint(), "copies": copies, "warm": int(warm)}
    rows = [{"pass": "forward", "flops": built.flops, **common, **watch.read(forward)}]
    for name, both in backwards.items():
        flops = built.flops * (1 if len(backwards) > 1 else 2)
        rows.append({"pass": name, "flops": flops, **common, **less(watch.read(both), rows[0])})
    return [{"time_us": row.get("kernel_us", row["call_us"]), **row} for row in rows]


def less(together, forward):
    """What the backward adds. The time on an idle device is of both: there is one launch and one wait."""
    row = dict(together)
    for key in ("call_us", "kernel_us", "host_us"):
        if key in together and key in forward:
            row[key] = together[key] - forward[key]
    row["idle_us"] = None
    decisive = "kernel_us" if "kernel_us" in together and "kernel_us" in forward else "call_us"
    if row[decisive] <= 0:
        row.update(status="noisy", note="forward and backward together took no longer than the forward")
    return row


def measure(case):
    from . import host

    return measure_operator(case, case["device"]) if case["kind"] == "operator" else [host.measure(case, case["device"])]


def index_of(case):
    """Which GPU; the first where the case does not say."""
    return case.get("index", 0)


def serve(measure_case=measure):
    """Answers until standard input ends."""
    answering = Answering()
    import torch

    answering.tell("ready")
    while (case := answering.hear()) is not None:
        if case["device"] == "cpu":
            torch.set_num_threads(1)  # small cases only: more threads would wait for each other
        else:
            torch.cuda.set_device(index_of(case))
        out_of_memory = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
        try:
            rows = [{"status": "ok", **row} for row in measure_case(case)]
        except out_of_memory as error:
            rows = [{"status": "oom", "note": str(error).splitlines()[0][:200]}]
        except Exception as error:
            traceback.print_exc()
            rows = [{"status": "failed", "note": f"{type(error).__name__}: {error}".splitlines()[0][:200]}]
        if case["device"] == "cuda":
            torch.cuda.empty_cache()
        answering.tell(rows)


if __name__ == "__main__":
    serve()
