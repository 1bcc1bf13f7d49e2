"""Multilayer perceptrons from a list of layers: what a measured table states."""

import torch
from torch import nn

from stoker import Capture

# How the tables spell what torch.nn calls otherwise; all else are names of torch.nn.
MAKERS = {
    "batch_normalization": nn.BatchNorm1d,
    "dropout": lambda width: nn.Dropout(),
    "Softmax": lambda width: nn.Softmax(dim=1),
}


def _modules(features, layers):
    width = features
    for name, out in layers:
        if name == "linear":
            yield nn.Linear(width, out)
        elif name in MAKERS:
            yield MAKERS[name](out)
        else:
            yield getattr(nn, name)()
        width = out


def mlp(batch=8, features=1, layers=()):
    """Training on random rows: class numbers for targets, or one number where the output is one."""
    model = nn.Sequential(*_modules(features, layers))
    rows = torch.empty(batch, features)
    if layers[-1][1] > 1:
        return Capture(model, (rows,), nn.CrossEntropyLoss(), (torch.zeros(batch, dtype=torch.long),))
    loss = nn.BCELoss() if layers[-1][0] == "Sigmoid" else nn.MSELoss()
    return Capture(model, (rows,), loss, (torch.empty(batch, layers[-1][1]),))
