"""The process of one repetition: reads its case from standard input, trains, and answers with one line of JSON.

Imports PyTorch late: what is resident before the model is the interpreter, PyTorch and what the user's file imports.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import resource
import time

from ..errors import CaptureError, UserCodeError
from ..measure import contention, processes
from ..measure.answering import Answering

WARM_UP = 3  # steps: the first fills the gradients, the second meets the optimizer's state; the third is as all others
FEWEST, MOST = 5, 300  # steps timed
CUDA_WARM_UP = 5  # libraries choose and load kernels in the first ones
NO_TIME = "no time"  # the status of a repetition that its budget would have cut off
_ALLOCATOR = ("DefaultCPUAllocator", "can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED",
              "Cannot allocate memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether this, or what it was raised from, says that memory ran out."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if isinstance(error, (RuntimeError, OSError)) and any(text in str(error) for text in _ALLOCATOR):
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage() -> dict:
    """contention.usage() with the CPU time of a loader's workers, which are ours."""
    workers = multiprocessing.active_children()
    found = contention.usage()
    found["own"] += sum(processes.thread_seconds(worker.pid) for worker in workers)
    return found


class _Meter:
    """What is read around the timed steps."""

    def __init__(self, device, others_bytes: int):
        self.device, self.others = device, others_bytes

    def cuda(self) -> dict:
        """The allocator's peaks; on the device also the context and the libraries, which only grow."""
        import torch

        if self.device.type != "cuda":
            return {"allocated_peak_bytes": None, "reserved_peak_bytes": None, "device_peak_bytes": None}
        free, total = torch.cuda.mem_get_info(self.device)
        reserved = torch.cuda.max_memory_reserved(self.device)
        context = max(0, total - free - torch.cuda.memory_reserved(self.device) - self.others)
        return {"allocated_peak_bytes": torch.cuda.max_memory_allocated(self.device), "reserved_peak_bytes": reserved,
                "device_peak_bytes": reserved + context, "context_bytes": context}

    def synchronize(self) -> None:
        import torch

        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _prepare(case: dict):
    """PyTorch as the case wants it."""
    if case.get("limit_bytes"):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (case["limit_bytes"], case["limit_bytes"]))
    import torch

    if case["device"] != "cpu":
        torch.cuda.set_device(case["device"])  # for code that says .cuda()
    if case.get("threads"):
        torch.set_num_threads(case["threads"])
    if case["precision"] == "tf32":
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    return torch


def _function(case: dict):
    from .. import specs

    name, function = specs.find(case["spec"], case.get("image_size"))
    return name, function


def _loader(case: dict):
    """The user's loader, told the batch where its function takes one."""
    import inspect

    from .. import specs
    from ..user_code import user_code

    path, _, name = case["data"].rpartition(":")
    if not path.endswith(".py"):
        raise CaptureError(f"--data {case['data']}: write FILE.py:FUNCTION, a function that returns a DataLoader")
    function = specs.function_of(case["data"], path, name)
    arguments = {"batch": case["batch"]} if "batch" in inspect.signature(function).parameters else {}
    with user_code(f"{case['data']} could not be built"):
        loader = function(**arguments)
    if not hasattr(loader, "__iter__"):
        raise CaptureError(f"{case['data']} returned a {type(loader).__name__}, which cannot be iterated over")
    size = getattr(loader, "batch_size", None)
    if size is not None and size != case["batch"]:
        raise CaptureError(f"{case['data']} makes batches of {size} and {case['batch']} were asked for: give its function a "
                           f"parameter `batch`, or measure with --batches {size}")
    return loader


def describe(case: dict) -> dict:
    """What the device is, and the batch that each model has by itself."""
    _prepare(case)
    from . import facts, job

    found = {"device": facts.device(case["device"]), "versions": facts.versions(case["device"]), "batches": {}}
    for spec in case["specs"]:
        _, function = _function({**case, "spec": spec})
        found["batches"][spec] = job.default_batch(function, case.get("options") or {})
    return found


class Repetition:
    """One repetition, and what is known of it at any moment, also if it fails."""

    def __init__(self, case: dict, answering):
        self.case, self.answering, self.row = case, answering, {}

    def run(self) -> dict:
        case = self.case
        torch = _prepare(case)
        from ..observe import Observer
        from ..user_code import user_code
        from . import job as jobs

        name, function = _function(case)
        data = _loader(case) if case.get("data") else None
        self.row.update(name=name, resident_before_bytes=processes.resident_bytes()["now"], threads=torch.get_num_threads())
        job = jobs.Job(case, function, data)
        self.row.update(name=job.capture.name or name, optimizer=job.optimizer_told(), grad_scaler=job.scaler.is_enabled())
        meter = _Meter(job.device, case.get("others_bytes", 0))
        observer = Observer(case["observation"], batch=case["batch"], device=case["device"], precision=case["precision"])
        observer.attach(job.called, job.optimizer, job.scaler)
        with user_code(f"{case['spec']} raised in its step"):
            warm_up, each_s = self._warm_up(job, observer, meter)
            count = self._count(each_s)
            self.row.update(warm_up=warm_up, steps=count, note="; ".join(job.notes()))
            if count:
                self._timed(job, observer, meter, count)
        observer.close()
        if not count:
            return {"status": NO_TIME, **self.row}
        return {"status": "ok", **self.row}

    def _warm_up(self, job, observer, meter) -> tuple:
        """(steps, seconds that one takes now)."""
        count = CUDA_WARM_UP if job.cuda else WARM_UP
        for number in range(count):
            if number == count - 1:
                meter.synchronize()
                begin = time.perf_counter()
            with observer.step():
                job.step(observer)
        meter.synchronize()
        return count, time.perf_counter() - begin

    def _count(self, each_s: float) -> int:
        """How many steps are timed; 0: the time that is left does not do for any number that would say something."""
        wanted = self.case.get("steps") or max(FEWEST, min(MOST, math.ceil(self.case["seconds"] / max(each_s, 1e-6))))
        fitting = int((self.case["end"] - time.monotonic()) / max(each_s, 1e-6))
        return wanted if fitting >= wanted else fitting if fitting >= FEWEST else 0

    def _timed(self, job, observer, meter, count: int) -> None:
        self.answering.tell({"say": "begin"})
        if self.answering.hear() is None:
            raise SystemExit(1)  # who asked is gone
        with observer.step():  # its gap holds the wait
            job.step(observer)
        meter.synchronize()
        self.row["warm_up"] += 1
        before, faults = _usage(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(count):
            with observer.step():
                job.step(observer)
        meter.synchronize()
        after, memory = _usage(), processes.resident_bytes()
        others, steal = contention.between(before, after)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        self.row.update(resident_peak_bytes=memory["peak"], resident_after_bytes=memory["now"],
                        faults_per_step=round(grown / count, 1), foreign_share=round(others, 4),
                        steal_share=round(steal, 4), timed_s=round(after["wall"] - before["wall"], 3), **meter.cuda())


def _answer(case: dict, answering) -> dict:
    if case.get("specs") is not None:
        return {"status": "ok", **describe(case)}
    repetition = Repetition(case, answering)
    try:
        return repetition.run()
    except Exception as error:
        if out_of_memory(error):
            cause = error if not isinstance(error, CaptureError) else (error.__context__ or error)
            first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
            return {**repetition.row, "status": "oom", "note": f"out of memory: {first[:300]}"}
        raise


def main() -> None:
    answering = Answering()  # whatever models and libraries print goes to standard error
    case = answering.hear()
    if case is None:
        return
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, this process is the one to go
    try:
        answer = _answer(case, answering)
    except UserCodeError as error:
        answer = {"status": "failed", "note": str(error), "trace": error.traceback_text}
    except CaptureError as error:
        answer = {"status": "failed", "note": str(error)}
    except Exception as error:
        import traceback

        answer = {"status": "failed", "note": f"{type(error).__name__}: {error}".splitlines()[0][:300],
                  "trace": traceback.format_exc()}
    answering.tell({"say": "end", **answer})
    answering.leave()


if __name__ == "__main__":
    main()
