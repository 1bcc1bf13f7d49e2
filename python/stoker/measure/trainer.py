"""The loop of training as most people write it, its optimizers and when it scales its loss: one for all that is measured."""

from __future__ import annotations

import contextlib

import torch

LEARNING_RATE = 1e-6  # so that one batch is not learnt by heart: gradients would become denormal, which take a CPU longer
CLIP_NORM = 1.0
MOMENTUM = 0.9        # SGD's
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop,
              "adagrad": torch.optim.Adagrad, "adadelta": torch.optim.Adadelta, "adamax": torch.optim.Adamax,
              "nadam": torch.optim.NAdam, "radam": torch.optim.RAdam}
_LOOPS = {None: {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "for-loop": {"foreach": False}}


def optimizer(name: str, parameters, loop: str | None = None) -> torch.optim.Optimizer:
    """One of PyTorch's by name, at its defaults; `loop`: how it goes over the parameters, None as it does by itself."""
    momentum = {"momentum": MOMENTUM} if name == "sgd" else {}
    return OPTIMIZERS[name](list(parameters), lr=LEARNING_RATE, **momentum, **_LOOPS[loop])


def scaler(precision: str, device_type: str, wanted: bool = True) -> torch.amp.GradScaler:
    """A GradScaler that works where FP16 gradients on a GPU need one, and else hands everything through."""
    return torch.amp.GradScaler(device_type, enabled=wanted and precision == "amp-fp16" and device_type == "cuda")


def _nothing(phase: str) -> None:
    pass


class Loop:
    """What one step does with a module's gradients. The caller's `loss()` gets a batch and runs the forward."""

    def __init__(self, module, optimizer, scaler, *, accumulate: int = 1, clip: bool = False):
        self.module, self.optimizer, self.scaler = module, optimizer, scaler
        self.accumulate, self.clip = accumulate, clip

    def step(self, loss, mark=_nothing, clipping=contextlib.nullcontext) -> None:
        """zero_grad, then `accumulate` times forward and backward, then the optimizer.

        mark      told "forward", "backward" and "optimizer" as each begins, and "end"
        clipping  a context around the clipping of gradients
        """
        mark("forward")
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(self.accumulate):
            value = loss()
            mark("backward")
            scaled = self.scaler.scale(value)
            del value  # what is not held by the caller is free before the backward, as in scale(loss).backward()
            scaled.backward()
            del scaled
        mark("optimizer")
        if self.clip:
            with clipping():
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.module.parameters(), CLIP_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        mark("end")
