"""Capture functions that can be captured."""

import torch
from torch import nn


def tiny(batch=16, width=8):
    return nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 2)), torch.empty(batch, width)


def named_gpu():
    """Code that asks for the GPU by name, as on the machine that it was written for."""
    device = torch.device("cuda")
    return nn.Linear(4, 2).cuda(), torch.zeros(8, 4, device=device).to("cuda", torch.float32)


def computes_in_its_constructor():
    """Cannot be built on the meta device: it reads values while it is made."""
    rates = [float(r) for r in torch.linspace(0, 0.5, 3)]
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(rates[-1]), nn.Linear(4, 2)), torch.empty(8, 4)


class Reader(nn.Module):
    """A GRU, attention over its states, and a loss of its own."""

    def __init__(self):
        super().__init__()
        self.reads, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        states, _ = self.reads(x)
        states = states.unsqueeze(1)
        return self.head(nn.functional.scaled_dot_product_attention(states, states, states).squeeze(1)[:, -1])


def words(batch=16):
    return Reader(), torch.empty(batch, 5, 8)
