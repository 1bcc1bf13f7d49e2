"""A surveyed model ready to train, by the words of a case."""

from __future__ import annotations

import torch
from torch.nn import functional

from .. import precision as precisions
from ..measure import trainer
from . import models


class Trainer:
    """A model on its device, with its optimizer and one batch.

    copied   the batch lies in the host's pinned memory and is copied in each step, as a loader's is; else it lies on the
             device, so that a step is the device's and the host's alone
    """

    def __init__(self, case: dict, device: str, *, copied: bool):
        self.device, self.precision, self._copied = device, case["precision"], copied
        model, inputs = models.function_of(case["model"])(batch=case["batch"])
        self._layout = torch.channels_last if case.get("channels_last") else torch.preserve_format
        self.model = model.to(device, memory_format=self._layout).train()
        alone = not isinstance(inputs, tuple)  # a tuple holds the labels, and the model computes its own loss
        self.batch = tuple(self._placed(self._values(t)) for t in ((inputs,) if alone else inputs))
        self.targets = self._placed(torch.zeros(case["batch"], dtype=torch.long)) if alone else None
        self.optimizer = trainer.optimizer(case["optimizer"], self.model.parameters(), case["optimizer_loop"])
        self.scaler = trainer.scaler(self.precision, device)
        self._loop = trainer.Loop(self.model, self.optimizer, self.scaler, accumulate=case.get("accumulate", 1),
                                  clip=case.get("clip", False))

    def _values(self, tensor):
        filled = torch.rand_like(tensor) if tensor.is_floating_point() else torch.zeros_like(tensor)
        return filled.to(memory_format=self._layout) if filled.dim() == 4 else filled

    def _placed(self, tensor):
        if not self._copied:
            return tensor.to(self.device)
        return tensor.pin_memory() if self.device == "cuda" else tensor

    def loss(self):
        """The forward of one batch."""
        if not self._copied:
            self._inputs, self._classes = self.batch, self.targets
        else:
            self._inputs = tuple(t.to(self.device, non_blocking=True) for t in self.batch)  # frees the last batch afterwards
            if self.targets is not None:
                self._classes = self.targets.to(self.device, non_blocking=True)
        with precisions.autocast(self.precision, self.device):
            output = self.model(*self._inputs)
            return output if output.dim() == 0 else functional.cross_entropy(output, self._classes)

    def step(self, mark=lambda phase: None) -> None:
        """One step; `mark(phase)` is told as each phase begins."""
        self._loop.step(self.loss, mark)
