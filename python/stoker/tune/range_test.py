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
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        # A group at 0 beside others stays there: it is frozen.
        self._parts = [rate / max(rates) if max(rates) > 0 else 1.0 for rate in rates]
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
                  low: float = 1e-7, high: float = 10.0, steps: int = 100, seeds: int = 3, scaler: Any = None,
                  scheduler: Any = None) -> dict:
    """Trains while the learning rate rises, some steps for each seed, puts everything back, and says which rates to use.

    loader    a DataLoader, or anything that can be gone through again from its beginning; no iterator, which would lose its place
    loss_of   loss_of(model, batch) -> loss; by default cross entropy of model(batch[0]) and batch[1]
    step      step(batch) -> loss, in place of all that this function would do in a step: forward, backward and optimizer.step()
    low, high the rates of the first and the last step, `steps` of them on a logarithmic scale
    seeds     runs, each with an order of the data and dropout of its own
    scaler    the GradScaler, where there is one
    scheduler of the learning rate, or a list of them, which `step` moves on

    Model with all its buffers, optimizer, scaler, schedulers, gradients, training mode, random states (Python, NumPy, PyTorch, each
    GPU), the loader's generator, and the place of an epoch that is under way, also with persistent workers, are afterwards as they
    were before. What a data set keeps itself, such as a generator of its own, is not. Returns what `stoker tune --lr-test --json`
    does: low and high, or None with the reason, and in "points" the runs as lists of (rate, loss).
    """
    import torch

    if hasattr(loader, "__next__"):
        raise StokerError("lr_range_test: an iterator would lose its place in the data; give the DataLoader", 2)
    one = step or _usual_step(torch, model, optimizer, loss_of or _cross_entropy, scaler)
    runs = []
    with _put_back(torch, model, optimizer, scaler, scheduler, loader) as restore:
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


def _scaler_keeper(scaler):
    """Puts a GradScaler back, also its notes on a step that broke off between unscale_() and update()."""
    if scaler is None:
        return lambda: None
    state, stages = copy.deepcopy(scaler.state_dict()), getattr(scaler, "_per_optimizer_states", None)
    noted = {key: dict(value) for key, value in stages.items()} if stages is not None else {}

    def restore():
        scaler.load_state_dict(state)
        if stages is not None:
            scaler._per_optimizer_states.clear()
            scaler._per_optimizer_states.update({key: dict(value) for key, value in noted.items()})

    return restore


def _optimizer_keeper(optimizer):
    state, empty = copy.deepcopy(optimizer.state_dict()), not optimizer.state

    def restore():
        optimizer.load_state_dict(copy.deepcopy(state))
        if empty:
            optimizer.state.clear()

    return restore


def _model_keeper(torch, model):
    """Weights, all buffers (state_dict() has no others than the persistent), and gradients."""
    weights = copy.deepcopy(model.state_dict())
    buffers = [(module, name, buffer, None if buffer is None else buffer.clone())
               for module in model.modules() for name, buffer in module._buffers.items()]
    gradients = [(p, None if p.grad is None else p.grad.clone()) for p in model.parameters()]

    def restore():
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                module._buffers[name] = buffer  # a forward may have put another tensor, or None, in its place
                if buffer is not None:
                    buffer.copy_(value)
        model.load_state_dict(weights)
        for parameter, gradient in gradients:
            parameter.grad = None if gradient is None else gradient.clone()

    return restore


def _chance_keeper(torch, loader):
    numpy = sys.modules.get("numpy")
    generators = [(g, g.get_state()) for g in _generators(loader)]
    python, of_torch, of_numpy = random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None
    of_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None

    def restore():
        for generator, state in generators:
            generator.set_state(state)
        random.setstate(python)
        torch.set_rng_state(of_torch)
        if numpy and of_numpy is not None:
            numpy.random.set_state(of_numpy)
        if of_gpus is not None:
            torch.cuda.set_rng_state_all(of_gpus)

    return restore


def _place_keeper(loader):
    """The place in an epoch: a DataLoader with persistent workers has one iterator, which another loop would begin again."""
    iterator = getattr(loader, "_iterator", None)
    state = loader.state_dict() if iterator is None and hasattr(loader, "state_dict") else None
    if iterator is not None:
        loader._iterator = None

    def restore():
        if iterator is not None:
            ours, loader._iterator = loader._iterator, iterator
            if ours is not None and hasattr(ours, "_shutdown_workers"):
                ours._shutdown_workers()
        if state is not None:
            loader.load_state_dict(state)

    return restore


@contextlib.contextmanager
def _put_back(torch, model, optimizer, scaler, scheduler, loader):
    """Keeps all that a step changes; yields what brings it back to where it was, and does so at the end, whatever happens."""
    schedulers = scheduler if isinstance(scheduler, (list, tuple)) else [] if scheduler is None else [scheduler]
    states = [(one, copy.deepcopy(one.state_dict())) for one in schedulers]
    keepers = [_model_keeper(torch, model), _optimizer_keeper(optimizer), _scaler_keeper(scaler)]
    modes = [(module, module.training) for module in model.modules()]
    at_the_end = [_chance_keeper(torch, loader), _place_keeper(loader)]

    def restore():
        for keeper in keepers:
            keeper()
        for one, state in states:
            one.load_state_dict(copy.deepcopy(state))

    try:
        yield restore
    finally:
        restore()
        for module, mode in modes:
            module.training = mode
        for keeper in reversed(at_the_end):  # a loader that is set to a place may draw
            keeper()
