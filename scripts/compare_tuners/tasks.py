"""Three small real tasks, each trained for all learning rates of a row at once, and recorded evaluation by evaluation.

A network's weights are stacked along a first dimension, one for each rate, and multiplied as a batch of matrices: each rate has its own
weights and its own optimizer state, all begin alike and see the same samples, so that each is what it would be if trained alone.
"""

from __future__ import annotations

import gzip
import math
import pathlib
import time

import torch

from .table import EVALUATIONS

RATES = [10 ** (-4 + i / 6) for i in range(25)]  # 1e-4 to 1
BATCHES = (16, 64, 256)
OPTIMIZERS = ("sgd", "adam")
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
LICENCES = pathlib.Path("/usr/share/common-licenses")


class Task:
    """What a task says of itself: `more` whether more of its metric is better, `samples` between evaluations."""

    name, metric, more, samples = "", "accuracy", True, 256

    def shapes(self) -> list:
        """(shape, scale of the first weights; 0: zeros) of each weight."""
        raise NotImplementedError

    def losses(self, weights: list, x, y) -> torch.Tensor:
        """The mean loss of each of the stacked networks."""
        raise NotImplementedError

    def scores(self, weights: list, x, y) -> list:
        raise NotImplementedError


def _linear(size_in, size_out):
    return [((size_in, size_out), 1 / math.sqrt(size_in)), ((1, size_out), 0)]


def _accuracy(out, y) -> list:
    return [round(float(part), 4) for part in (out.argmax(-1) == y).float().flatten(1).mean(1)]


def _cross_entropy(out, y):
    logs = out.log_softmax(-1)
    return -logs.gather(-1, y.expand(logs.shape[:-1]).unsqueeze(-1)).flatten(1).mean(1)


class Fashion(Task):
    """Fashion-MNIST (package dataset-fashion-mnist): a perceptron of 64 units from 3,000 pictures."""

    name, samples = "fashion", 512

    def __init__(self, seed: int):
        pictures, labels = self._read("train", 4000)
        order = torch.randperm(4000, generator=torch.Generator().manual_seed(seed))
        pictures, labels = pictures[order], labels[order]
        self.train, self.held_out = (pictures[:3000], labels[:3000]), (pictures[3000:], labels[3000:])
        self.test = self._read("t10k", 1000)

    @staticmethod
    def _read(part, count):
        with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
            pixels = torch.frombuffer(bytearray(file.read(16 + 784 * count)[16:]), dtype=torch.uint8).float().view(count, 784)
        with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
            labels = torch.frombuffer(bytearray(file.read(8 + count)[8:]), dtype=torch.uint8).long()
        return (pixels / 255 - 0.29) / 0.35, labels

    def shapes(self):
        return _linear(784, 64) + _linear(64, 10)

    @staticmethod
    def _out(weights, x):
        a, b, c, d = weights
        return (x @ a + b).relu() @ c + d

    def losses(self, weights, x, y):
        return _cross_entropy(self._out(weights, x), y)

    def scores(self, weights, x, y):
        return _accuracy(self._out(weights, x), y)


class Text(Task):
    """Letters of the licences that every Debian has: a GRU of 48 units that foretells the next of 24."""

    name, samples, length, units, letters = "text", 256, 24, 48, 96

    def __init__(self, seed: int):
        files = [f for f in sorted(LICENCES.iterdir()) if f.is_file() and not f.is_symlink()]
        text = torch.tensor([min(max(ord(letter) - 31, 0), 95) for f in files for letter in f.read_text(errors="ignore")])
        chance = torch.Generator().manual_seed(seed)
        parts = text[:-40_000], text[-40_000:-20_000], text[-20_000:]
        self.train, self.held_out, self.test = (self._lines(part, count, chance) for part, count in zip(parts, (4000, 200, 200)))

    def _lines(self, text, count, chance):
        starts = torch.randint(0, len(text) - self.length - 1, (count,), generator=chance)
        rows = text[starts[:, None] + torch.arange(self.length + 1)]
        return rows[:, :-1], rows[:, 1:]

    def shapes(self):
        return [((self.letters, 3 * self.units), 0.3), *_linear(self.units, 3 * self.units), *_linear(self.units, self.letters)]

    def _out(self, weights, x):
        table, inner, inner_bias, last, last_bias = weights
        state = torch.zeros(len(table), len(x), self.units)
        states = []
        for place in range(self.length):
            from_letter = table[:, x[:, place]]
            from_state = state @ inner + inner_bias
            a, b, c = from_letter.chunk(3, -1)
            d, e, f = from_state.chunk(3, -1)
            update = (b + e).sigmoid()
            state = (1 - update) * (c + (a + d).sigmoid() * f).tanh() + update * state
            states.append(state)
        return torch.stack(states, 2).flatten(1, 2) @ last + last_bias

    def losses(self, weights, x, y):
        return _cross_entropy(self._out(weights, x), y.flatten())

    def scores(self, weights, x, y):
        return _accuracy(self._out(weights, x), y.flatten())


class Tabular(Task):
    """The diabetes table that scikit-learn ships: regression from ten columns, root of the mean squared error in standard deviations."""

    name, metric, more, samples = "tabular", "rmse", False, 256

    def __init__(self, seed: int):
        from sklearn.datasets import load_diabetes

        x, y = (torch.tensor(part, dtype=torch.float32) for part in load_diabetes(return_X_y=True))
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
        x, y = x[order] / x.std(0), y[order]
        y = (y - y[:282].mean()) / y[:282].std()
        self.train, self.held_out, self.test = ((x[part], y[part]) for part in (slice(282), slice(282, 362), slice(362, None)))

    def shapes(self):
        return _linear(10, 64) + _linear(64, 64) + _linear(64, 1)

    @staticmethod
    def _out(weights, x):
        a, b, c, d, e, f = weights
        return (((x @ a + b).relu() @ c + d).relu() @ e + f).squeeze(-1)

    def losses(self, weights, x, y):
        return (self._out(weights, x) - y).pow(2).mean(1)

    def scores(self, weights, x, y):
        found = self.losses(weights, x, y).sqrt().tolist()
        return [round(value, 4) if math.isfinite(value) else None for value in found]


TASKS = {task.name: task for task in (Fashion, Text, Tabular)}


def _update(optimizer: str, weight, state: dict, rates, step: int) -> None:
    """SGD with a momentum of 0.9, or Adam, as PyTorch has them, with a rate for each of the stacked."""
    gradient = weight.grad
    if optimizer == "sgd":
        state["m"] = state["m"] * 0.9 + gradient if "m" in state else gradient.clone()
        weight -= rates * state["m"]
        return
    state["m"] = state.get("m", 0) * 0.9 + 0.1 * gradient
    state["v"] = state.get("v", 0) * 0.999 + 0.001 * gradient * gradient
    weight -= rates * (state["m"] / (1 - 0.9**step)) / ((state["v"] / (1 - 0.999**step)).sqrt() + 1e-8)


def train(task: Task, seed: int, batch: int, optimizer: str, rates: list, evaluations: int = EVALUATIONS) -> dict:
    """Curves of each rate: {"held_out": [[score, ...] of each rate], "test": ...}, and CPU seconds of the steps."""
    first = torch.Generator().manual_seed(1000 + seed)
    chance = torch.Generator().manual_seed(2000 + seed)
    scale = torch.tensor(rates).view(-1, 1, 1)
    weights = [(torch.randn(shape, generator=first) * size).expand(len(rates), *shape).clone().requires_grad_()
               for shape, size in task.shapes()]
    states: list = [{} for _ in weights]
    curves: dict = {"held_out": [[] for _ in rates], "test": [[] for _ in rates]}
    x, y = task.train
    order, step, spent = torch.empty(0, dtype=torch.long), 0, 0.0
    for _ in range(evaluations):
        began = time.process_time()
        for _ in range(task.samples // batch):
            if len(order) < batch:
                order = torch.cat([order, torch.randperm(len(y), generator=chance)])
            rows, order = order[:batch], order[batch:]
            step += 1
            task.losses(weights, x[rows], y[rows]).sum().backward()
            with torch.no_grad():
                for weight, state in zip(weights, states):
                    _update(optimizer, weight, state, scale, step)
                    weight.grad = None
        spent += time.process_time() - began
        with torch.no_grad():
            for part in curves:
                for curve, score in zip(curves[part], task.scores(weights, *getattr(task, part))):
                    curve.append(score)
    return {**curves, "cpu_s": spent}
