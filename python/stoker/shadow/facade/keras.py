"""Keras 3 on PyTorch: its optimizers are no torch.optim's, and are followed as the ones of PyTorch that do the same."""

from __future__ import annotations

import sys

import torch

_done = False
_LIKE = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "RMSprop": torch.optim.RMSprop,
         "Adagrad": torch.optim.Adagrad, "Adadelta": torch.optim.Adadelta, "Adamax": torch.optim.Adamax, "Nadam": torch.optim.NAdam}


def install(world) -> None:
    """Called when a backward begins: Keras is imported by then, where the script uses it."""
    global _done
    base = sys.modules.get("keras.src.optimizers.base_optimizer")
    if _done or base is None:
        return
    _done = True
    stands_for: dict = {}  # id of Keras's optimizer -> PyTorch's

    def apply(self, grads, trainable_variables=None):
        variables = trainable_variables if trainable_variables is not None else self._trainable_variables
        if id(self) not in stands_for:
            stands_for[id(self)] = _like(world, self, [v.value for v in variables])
        stands_for[id(self)].step()
        return self.iterations

    base.BaseOptimizer.apply = apply


def _like(world, optimizer, parameters):
    kind = type(optimizer).__name__
    if kind not in _LIKE:
        world.note(f"Keras's {kind} is not modelled: taken for Adam")
    cls = _LIKE.get(kind, torch.optim.Adam)
    options = {"momentum": float(optimizer.momentum or 0)} if kind == "SGD" else {}
    return cls([p for p in parameters if p.requires_grad], **options)
