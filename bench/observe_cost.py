"""What observing costs a step: blocks of steps with and without it, in turn, of the same small model on the CPU.

    python bench/observe_cost.py [--rounds 60] [--json]

Prints, for each way of observing, the median over the rounds of (mean step with - mean step without), in microseconds of CPU
time, and the middle half of them. Writing the file is part of it. Timings depend on the machine: nothing here passes or fails.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch

import stoker

STEPS = 300  # in a block: some 50 ms
PARTS = ("forward", "backward", "optimizer")


def plain(job, observer):
    for batch in job.loader:
        loss = job.model(batch).square().mean()
        loss.backward()
        job.optimizer.step()
        job.optimizer.zero_grad()


def hooked(job, observer):
    for batch in observer.batches(job.loader):
        loss = job.model(batch).square().mean()
        loss.backward()
        job.optimizer.step()
        job.optimizer.zero_grad()


def stepped(job, observer):
    for batch in job.loader:
        with observer.step():
            loss = job.model(batch).square().mean()
            loss.backward()
            job.optimizer.step()
            job.optimizer.zero_grad()


def phased(job, observer):
    for batch in observer.batches(job.loader):
        with observer.step():
            with observer.phase("forward"):
                loss = job.model(batch).square().mean()
            with observer.phase("backward"):
                loss.backward()
            with observer.phase("optimizer"):
                job.optimizer.step()
                job.optimizer.zero_grad()


def hooked_steps(job, observer):
    for batch in observer.batches(job.loader):
        with observer.step():
            loss = job.model(batch).square().mean()
            loss.backward()
            job.optimizer.step()
            job.optimizer.zero_grad()


EMPTY = "(empty hooks of PyTorch)"
WAYS = {"step() alone": (stepped, False), "step(), phases, batches()": (phased, False), EMPTY: (plain, True),
        "attach(), batches()": (hooked, True), "attach(), step(), batches()": (hooked_steps, True)}


class EmptyHooks:
    """What PyTorch itself takes for the hooks that attach() needs, with nothing in them."""

    def attach(self, model, optimizer):
        queue = torch.autograd.Variable._execution_engine.queue_callback

        def gradient(gradient):
            queue(nothing)

        def after(module, args, output):
            output.register_hook(gradient)

        self._handles = [
            model.register_forward_pre_hook(nothing, with_kwargs=True), model.register_forward_hook(after),
            optimizer.register_step_pre_hook(nothing), optimizer.register_step_post_hook(nothing)]

    def detach(self):
        for handle in self._handles:
            handle.remove()

    def close(self):
        pass


def nothing(*args) -> None:
    pass


class Job:
    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.loader = [torch.randn(8, 16) for _ in range(STEPS)]


def block(loop, job, observer) -> float:
    """Microseconds of CPU time a step: unlike wall time, free of what else runs on the machine."""
    begin = time.thread_time_ns()
    loop(job, observer)
    return (time.thread_time_ns() - begin) / STEPS / 1e3


def measure(rounds: int, folder: str) -> dict:
    job = Job()
    block(plain, job, None)
    found = {name: [] for name in WAYS}
    found["without"] = []
    for _ in range(rounds):
        before = block(plain, job, None)
        for number, (name, (loop, attach)) in enumerate(WAYS.items()):
            observer = observer_for(folder, name, number)
            if attach:
                observer.attach(job.model, job.optimizer)
            took = block(loop, job, observer)
            if attach:
                observer.detach()
            after = block(plain, job, None)
            found[name].append(took - (before + after) / 2)
            found["without"].append(after)
            before = after
    return found


_observers = {}


def observer_for(folder: str, name: str, number: int):
    if name not in _observers:
        path = f"{folder}/{number}.obs.jsonl"
        _observers[name] = EmptyHooks() if name == EMPTY else stoker.Observer(path, device="cpu")
    return _observers[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.rounds, folder)
        for observer in _observers.values():
            observer.close()
    quarters = {name: statistics.quantiles(values, n=4) for name, values in found.items()}
    if options.json:
        print(json.dumps({name: {"median_us": q[1], "from_us": q[0], "to_us": q[2]} for name, q in quarters.items()}))
        return
    print(f"a step without: {quarters.pop('without')[1]:.1f} us of CPU; with, more by:")
    for name, (low, middle, high) in quarters.items():
        print(f"  {name:30}{middle:6.1f} us  (half of the rounds within {low:.1f} .. {high:.1f})")


if __name__ == "__main__":
    main()
