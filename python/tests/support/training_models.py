"""Models and loaders for the tests of training-runs: small ones that train, and one for each way to fail."""

import os
import signal
import time

import torch
from torch import nn
from torch.nn import functional

import stoker

WORDS = 50


def tiny(batch=4):
    print("models may print what they like")
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5)), torch.empty(batch, 16)


def without_batch():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 3))
    return stoker.Capture(model, torch.empty(6, 8), optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), clip=True)


def by_closure():
    model = nn.Linear(16, 5)
    return stoker.Capture(model, torch.empty(4, 16), optimizer=torch.optim.LBFGS(model.parameters()))


class Words(nn.Module):
    """Two tables of unlike size, labels shifted as in language models; remembers the numbers that it was given."""

    def __init__(self):
        super().__init__()
        self.words, self.kinds, self.head = nn.Embedding(WORDS, 8), nn.Embedding(3, 8), nn.Linear(8, WORDS)
        self.seen = []

    def forward(self, ids, kinds, labels):
        self.seen.append((ids.clone(), kinds.clone(), labels.clone()))
        scores = self.head(self.words(ids) + self.kinds(kinds))
        shifted = functional.pad(labels, (0, 1), value=-100)[:, 1:].contiguous()
        return functional.cross_entropy(scores.flatten(0, 1), shifted.flatten())


def words(batch=4, seq_len=32):
    def zeros():
        return torch.zeros(batch, seq_len, dtype=torch.long)

    return Words(), {"ids": zeros(), "kinds": zeros(), "labels": zeros()}


def raises(batch=4):
    class Fails(nn.Linear):
        def forward(self, x):
            raise ValueError("my own mistake")

    return Fails(4, 4), torch.empty(batch, 4)


def vector_loss(batch=4):
    return nn.Linear(4, 4), torch.empty(batch, 4), lambda out: out.sum(1)


def frozen(batch=4):
    return nn.Linear(4, 4).requires_grad_(False), torch.empty(batch, 4)


class Large(nn.Module):
    """Wants 64 TiB from a batch of 8 on."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        if len(x) >= 8:
            torch.empty(1 << 44)
        return self.layer(x)


def large(batch=4):
    return Large(), torch.empty(batch, 4)


def killed(batch=4):
    os.kill(os.getpid(), signal.SIGKILL)


def slow(batch=4):
    class Sleeps(nn.Linear):
        def forward(self, x):
            time.sleep(0.2)
            return super().forward(x)

    return Sleeps(4, 4), torch.empty(batch, 4)


def loader(batch=4):
    data = torch.utils.data.TensorDataset(torch.rand(20, 16), torch.arange(20) % 5)
    return torch.utils.data.DataLoader(data, batch_size=batch, drop_last=True)


def of_three():
    return torch.utils.data.DataLoader(torch.rand(9, 16), batch_size=3)
