"""The learning-rate range test of a PyTorch loop: nothing of the training is changed by it."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from ..binary import StokerError, find_binary

RAMP = "STOKER_LR_TEST"  # set by `stoker tune --lr-test`: lowest:highest:steps


def ramp_rate(low: float, high: float, step: int, steps: int) -> float:
    """The rate of a step, from `low` at 0 to `high` at the last, evenly on a logarithmic scale."""
    return low * (high / low) ** (step / max(steps - 1, 1))


class LrRamp:
    """Raises the rates of an optimizer, each group's in proportion, and reports each with its loss."""

    def __init__(self, optimizer, low: float, high: float, steps: int):
        self.optimizer, self.low, self.high, self.steps, self.at = optimizer, low, high, steps, 0
        first = max(group["lr"] for group in optimizer.param_groups) or 1.0
        self._parts = [group["lr"] / first or 1.0 for group in optimizer.param_groups]
        self._set()

    @property
    def rate(self) -> float:
        return ramp_rate(self.low, self.high, self.at, self.steps)

    def step(self, loss) -> bool:
        """To be called behind each step; True: the test is over."""
        from ..study import report

        value = float(loss)
        enough = report(step=self.at, lr=self.rate, loss=value)
        self.at += 1
        if self.at >= self.steps or not math.isfinite(value):
            return True
        self._set()
        return enough

    def _set(self) -> None:
        for group, part in zip(self.optimizer.param_groups, self._parts):
            group["lr"] = self.rate * part


def lr_ramp(optimizer: Any) -> LrRamp | None:
    """In a trial of `stoker tune --lr-test` what raises the optimizer's rate; None else.

        ramp = stoker.lr_ramp(optimizer)
        for x, y in loader:
            ...
            if ramp and ramp.step(loss):
                break
    """
    words = os.environ.get(RAMP, "").split(":")
    if len(words) != 3:
        return None
    return LrRamp(optimizer, float(words[0]), float(words[1]), int(words[2]))


def lr_range_test(model: Any, optimizer: Any, loader: Any, loss_of: Callable | None = None, *, step: Callable | None = None,
                  low: float = 1e-7, high: float = 10.0, steps: int = 100, seeds: int = 3, scaler: Any = None) -> dict:
    """Trains while the learning rate rises, some steps for each seed, puts everything back, and says which rates to use.

    loader    a DataLoader, or anything that can be gone through again from its beginning; no iterator, which would lose its place
    loss_of   loss_of(model, batch) -> loss; by default cross entropy of model(batch[0]) and batch[1]
    step      step(batch) -> loss, in place of all that this function would do in a step: forward, backward and optimizer.step()
    low, high the rates of the first and the last step, `steps` of them on a logarithmic scale
    seeds     runs, each with an order of the data and dropout of its own
    scaler    the GradScaler, where there is one

    Model, optimizer, scaler, gradients, training mode, random states (Python, NumPy, PyTorch, each GPU) and the loader's
    generator are afterwards as they were before. Returns what `stoker tune --lr-test --json` does: low and high, or None
    with the reason, and in "points" the runs as lists of (rate, loss).
    """
    import torch

    if hasattr(loader, "__next__"):
        raise StokerError("lr_range_test: an iterator would lose its place in the data; give the DataLoader", 2)
    one = step or _usual_step(torch, model, optimizer, loss_of or _cross_entropy, scaler)
    runs = []
    with _put_back(torch, model, optimizer, scaler, loader) as restore:
        for seed in range(seeds):
            restore()
            _seed(torch, seed)
            runs.append(_one_run(one, LrRamp(optimizer, low, high, steps), loader, model))
    return {**analysed(runs), "points": runs}


def analysed(runs: list) -> dict:
    """What the binary says of runs, lists of (rate, loss)."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "points.csv"
        file.write_text("run,rate,loss\n" + "".join(f"{i},{rate!r},{loss!r}\n" for i, run in enumerate(runs) for rate, loss in run))
        done = subprocess.run([find_binary(), "tune", "--lr-test", "--points", str(file), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise StokerError(done.stderr.strip().removeprefix("stoker: "), done.returncode)
    return json.loads(done.stdout)


def _one_run(step, ramp, loader, model) -> list:
    points: list = []
    model.train()
    best = math.inf
    while True:
        any_batch = False
        for batch in loader:
            any_batch = True
            rate = ramp.rate
            loss = float(step(batch))
            points.append((rate, loss))
            best = min(best, loss)
            far_gone = len(points) > 20 and loss > best + 10 * max(abs(best), 1.0)
            if ramp.step(loss) or far_gone:
                return points
        if not any_batch:
            raise StokerError("lr_range_test: the loader has no batch", 2)


def _usual_step(torch, model, optimizer, loss_of, scaler):
    def step(batch):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss.detach()

    return step


def _cross_entropy(model, batch):
    import torch

    device = next(model.parameters()).device
    return torch.nn.functional.cross_entropy(model(batch[0].to(device)), batch[1].to(device))


def _seed(torch, seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _generators(loader) -> list:
    owners = [loader, getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None)]
    found = [getattr(owner, "generator", None) for owner in owners]
    return list({id(g): g for g in found if g is not None}.values())


@contextlib.contextmanager
def _put_back(torch, model, optimizer, scaler, loader):
    """Keeps all that a step changes; yields what brings it back to where it was, and does so at the end, whatever happens."""
    weights = copy.deepcopy(model.state_dict())
    optimizer_state = copy.deepcopy(optimizer.state_dict())
    empty = not optimizer.state
    scaler_state = copy.deepcopy(scaler.state_dict()) if scaler is not None else None
    gradients = [(p, None if p.grad is None else p.grad.clone()) for p in model.parameters()]
    modes = [(module, module.training) for module in model.modules()]
    generators = [(g, g.get_state()) for g in _generators(loader)]
    numpy = sys.modules.get("numpy")
    chance = (random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None,
              torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None)
    data_state = loader.state_dict() if hasattr(loader, "state_dict") else None

    def restore():
        model.load_state_dict(weights)
        optimizer.load_state_dict(copy.deepcopy(optimizer_state))
        if empty:
            optimizer.state.clear()
        if scaler_state is not None:
            scaler.load_state_dict(scaler_state)
        for parameter, gradient in gradients:
            parameter.grad = None if gradient is None else gradient.clone()

    try:
        yield restore
    finally:
        restore()
        for module, mode in modes:
            module.training = mode
        for generator, state in generators:
            generator.set_state(state)
        random.setstate(chance[0])
        torch.set_rng_state(chance[1])
        if numpy and chance[2] is not None:
            numpy.random.set_state(chance[2])
        if chance[3] is not None:
            torch.cuda.set_rng_state_all(chance[3])
        if data_state is not None:
            loader.load_state_dict(data_state)
