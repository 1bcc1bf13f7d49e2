"""Optimizers that scripts use: each of PyTorch's is one that the binary knows, or is taken for one of these."""

import subprocess

import torch

from stoker.shadow.settings import findings


def test_every_optimizer_of_pytorch_is_modelled_or_taken_for_one():
    known = {kind.__name__.lower() for kind in vars(torch.optim).values()
             if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer}
    assert {"sgd", "adamw", "adadelta", "radam"} <= known
    assert known <= findings._MODELLED | set(findings._ALIKE)
    assert set(findings._ALIKE.values()) <= findings._MODELLED


def test_the_binary_knows_what_is_modelled(with_binary):
    said = subprocess.run([with_binary, "predict", "gpt2", "--gpu", "t4", "--optimizer", "nonsuch"], capture_output=True, text=True).stderr
    assert findings._MODELLED <= set(said.partition("known: ")[2].rstrip(")\n").split(", "))
