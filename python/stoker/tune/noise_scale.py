"""The gradient noise scale of a training loop, measured as it goes: McCandlish et al. 2018, estimators of AdaptDL and KungFu."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

BLOCK = 50  # steps that one point of the trajectory averages over
WARM_UP = 5  # steps of Adam before its second moments say anything
ONE_SIDE = 1.645  # of a 90 % interval


@dataclasses.dataclass
class NoisePoint:
    """One part of the trajectory: `scale` is None where the gradient itself is lost in its noise."""

    step: int
    steps: int
    scale: float | None
    low: float
    high: float


class NoiseScale:
    """Watches an optimizer's gradients. Made by stoker.noise_scale()."""

    def __init__(self, optimizer, batch, scaler=None, precondition=None, block=BLOCK, report=True):
        if batch < 1:
            raise ValueError(f"batch must be the samples of one backward, 1 or more, not {batch}")
        self.optimizer, self.batch, self.scaler, self.block = optimizer, batch, scaler, block
        self.precondition = precondition
        self.trajectory: list = []
        self.steps = self.skipped = 0
        self.way = ""  # "accumulation", "ranks" or "consecutive"
        self._report = report
        self._local: list = []  # squared norms of the gradients of each backward since the last step
        self._spoilt = False  # a gradient since the last step was not finite
        self._open: dict = {}  # of the backward that goes on: parameter -> squared norm
        self._pairs: list = []  # of steps: (squared norm of the true gradient, trace of the covariance)
        self._before = None  # the last gradient, for pairs of steps
        self._measured = False
        self._group_of = {parameter: group for group in optimizer.param_groups for parameter in group["params"]}
        if any(hasattr(p, "device_mesh") or getattr(p, "_is_flat_param", False) for p in self._group_of):
            raise ValueError("the parameters are sharded (FSDP, tensor parallel): no rank holds a whole gradient to compare; "
                             "measure the noise scale with DDP or on one device")
        self._hooks = [parameter.register_hook(self._hook(parameter)) for parameter in self._group_of if parameter.requires_grad]
        self._hooks.append(optimizer.register_step_pre_hook(lambda *_: self._at_step()))

    def remove(self) -> None:
        """Takes its hooks away."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def scale(self):
        """The latest noise scale in samples, None before the first block is full or where it is not known."""
        return self.trajectory[-1].scale if self.trajectory else None

    def measure(self) -> None:
        """To be called behind the last backward of a step where gradients are clipped or changed before optimizer.step()."""
        import torch

        self._close()
        local, self._local = self._local, []
        spoilt, self._spoilt = self._spoilt, False
        ranks = torch.distributed.get_world_size() if _distributed(torch) else 1
        if not local and ranks == 1:
            return
        self._measured = True
        self.steps += 1
        loss_scale = float(self.scaler.get_scale()) if self.scaler is not None and self.scaler.is_enabled() else 1.0
        gradients = [(p, p.grad.detach()) for p in self._group_of if p.grad is not None]
        micro = max(len(local), 1)
        with torch.no_grad():
            mean = sum(local) / micro / loss_scale**2
            # Gradients of micro-steps add up, those of ranks are averaged.
            factor = 1 / micro / (1.0 if self._is_unscaled() else loss_scale)
            whole = float(_squared([self._prepared(p, g) for p, g in gradients])) * factor**2
            spoilt = spoilt or not local or not (math.isfinite(mean) and math.isfinite(whole))
            if ranks > 1:  # all of them, whatever happened here: the others wait
                mean, spoilt = self._over_ranks(torch, mean, whole, spoilt, next(iter(self._group_of)).device)
            if spoilt:
                self.skipped += 1
            elif micro * ranks > 1:
                self.way = "accumulation" if ranks == 1 else "ranks"
                self._add(mean, whole, micro * ranks)
            else:
                self._consecutive(gradients, factor)

    def _over_ranks(self, torch, mean: float, whole: float, spoilt: bool, device) -> tuple:
        """The mean over ranks, and whether any of them has to leave the step out."""
        here = [0.0, 0.0, 0.0, 1.0] if spoilt else [mean, whole, whole**2, 0.0]
        told = torch.tensor(here, dtype=torch.float64 if device.type != "mps" else torch.float32, device=device)
        torch.distributed.all_reduce(told)
        n = torch.distributed.get_world_size()
        mean, whole, square, left_out = (float(value) / n for value in told)
        if left_out == 0 and square - whole**2 > 1e-4 * whole**2:
            warnings.warn("stoker.noise_scale: ranks have different gradients at optimizer.step(), so they are not averaged (no DDP?) and "
                          "say nothing of the noise; nothing more is measured", stacklevel=2)
            self.remove()
            return mean, True
        return mean, left_out > 0

    def _hook(self, parameter):
        def hook(gradient):
            import torch

            if parameter in self._open:  # seen before: another backward has begun
                self._close()
            with torch.no_grad():
                if not self._open and self.scaler is not None and (self._local or self._spoilt) and self._is_fresh():
                    # Gradients were cleared and no step was taken: the scaler had left it out.
                    self._local, self._spoilt = [], False
                    self.steps += 1
                    self.skipped += 1
                self._open[parameter] = _squared([self._prepared(parameter, gradient.detach())])

        return hook

    def _is_fresh(self) -> bool:
        """Whether nothing has been added to the gradients since they were cleared."""
        return all(p.grad is None or not bool(p.grad.any()) for p in self._group_of)

    def _close(self) -> None:
        if self._open:
            norms = list(self._open.values())
            # One look at the device for a whole backward: each waits for it.
            self._local.append(float(sum(norm.to(norms[0].device) for norm in norms)))
            self._open = {}
            self._spoilt = self._spoilt or not math.isfinite(self._local[-1])

    def _at_step(self) -> None:
        if not self._measured:
            self.measure()
        self._measured = False

    def _is_unscaled(self) -> bool:
        if self.scaler is None or not self.scaler.is_enabled():
            return True
        state = self.scaler._per_optimizer_states.get(id(self.optimizer), {}).get("stage")
        return state is not None and getattr(state, "name", "") != "READY"

    def _prepared(self, parameter, gradient):
        """What the optimizer makes of a gradient: Adam and its kind divide by the root of the second moment."""
        if self.precondition is False:
            return gradient
        state = self.optimizer.state.get(parameter, {})
        moment = state.get("exp_avg_sq")
        if moment is None or moment.shape != gradient.shape or float(state.get("step", 0)) < WARM_UP:
            return gradient
        group = self._group_of[parameter]
        bias = 1 - group.get("betas", (0.9, 0.999))[1] ** float(state["step"])
        return gradient / ((moment / bias).sqrt() + group.get("eps", 1e-8))

    def _adam_is_warm(self) -> bool:
        if self.precondition is False:
            return True
        if not self.optimizer.state:  # before the first step nothing tells Adam from Lion, which has no second moment
            return not any("betas" in group for group in self.optimizer.param_groups)
        return all(float(s.get("step", 0)) >= WARM_UP for s in self.optimizer.state.values() if "exp_avg_sq" in s)

    def _consecutive(self, gradients, factor) -> None:
        """Two steps' gradients as two draws: the parameters moved in between, so that this is biased by the move."""
        self.way = "consecutive"
        now = [self._prepared(p, g) * factor for p, g in gradients]
        before, self._before = self._before, [g.clone() for g in now]
        if before is None or len(before) != len(now):
            return
        mean = float(_squared(now) + _squared(before)) / 2
        whole = float(_squared([(a + b) / 2 for a, b in zip(now, before)]))
        self._before = None  # pairs do not overlap: their errors would be the same
        self._add(mean, whole, 2)

    def _add(self, mean: float, whole: float, count: int) -> None:
        if not self._adam_is_warm():
            return
        gradient = (count * whole - mean) / (count - 1)
        covariance = (mean - whole) * self.batch * count / (count - 1)
        self._pairs.append((gradient, covariance))
        if len(self._pairs) == self.block:
            self.trajectory.append(_point(self.steps, self._pairs))
            self._pairs = []
            self._tell()

    def _tell(self) -> None:
        if self._report and self.scale is not None:
            from ..study import report

            report(step=self.steps, noise_scale=self.scale)


def _point(step: int, pairs: list) -> NoisePoint:
    """Averages first, then the ratio: the ratio of single steps is biased, and their squared gradient is often below 0."""
    n = len(pairs)
    gradient, covariance = (sum(pair[i] for pair in pairs) / n for i in (0, 1))
    spread = math.sqrt(sum((g - gradient) ** 2 for g, _ in pairs) / max(n - 1, 1) / n)
    if gradient <= 0:
        low = max(covariance, 0.0) / (gradient + 2 * ONE_SIDE * spread) if gradient + 2 * ONE_SIDE * spread > 0 else 0.0
        return NoisePoint(step, n, None, low, math.inf)
    scale = max(covariance, 0.0) / gradient
    error = math.sqrt(sum((c - scale * g) ** 2 for g, c in pairs) / max(n - 1, 1) / n) / gradient
    high = math.inf if gradient <= ONE_SIDE * spread else scale + ONE_SIDE * error
    return NoisePoint(step, n, scale, max(scale - ONE_SIDE * error, 0.0), high)


def _squared(tensors):
    """The squared norm of all of them, on the device of the first."""
    total = 0.0
    for tensor in tensors:
        values = tensor.coalesce().values() if tensor.is_sparse else tensor
        part = values.float().pow(2).sum()
        part = part if part.device.type == "mps" else part.double()  # sums of many are exact enough, and do not overflow
        total = part if isinstance(total, float) else total + part.to(total.device)
    return total


def _distributed(torch) -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def noise_scale(optimizer: Any, batch: int, *, scaler: Any = None, precondition: Any = None, block: int = BLOCK,
                report: bool = True) -> NoiseScale:
    """Measures the gradient noise scale of a loop: the batch from which on larger ones are worth less and less.

        noise = stoker.noise_scale(optimizer, batch=64)      # samples of one backward on one rank
        ...                                                  # the loop as it is
        print(noise.scale, noise.trajectory)

    optimizer     its parameters' gradients are looked at
    batch         samples of one backward on one rank, of micro-steps their own
    scaler        the GradScaler, where there is one
    precondition  False: gradients as they are, also for Adam; else as Adam divides them, from its fifth step on
    block         steps that one point of the trajectory averages over
    report        tells each point to a study (stoker.report(noise_scale=...))

    With several backwards a step (accumulation) or ranks (DDP) their gradients are compared, which is unbiased; with one,
    those of consecutive steps, which the move between them biases upwards. Where gradients are clipped, call noise.measure()
    before that. Each point has a 90 % band and is one of a trajectory: the scale grows as training goes on. `noise.scale` is
    None while a gradient is lost in its noise; `low` bounds it then. Steps whose gradients are not finite are skipped and
    counted. It costs two reads of all gradients a step and, with one backward a step, a copy of them.
    """
    return NoiseScale(optimizer, batch, scaler, precondition, block, report)
