"""What the tests of observing share: clocks and events that obey, small training loops, reading back."""

import json

import torch

import stoker


class Clock:
    """Nanoseconds that pass only when told to."""

    def __init__(self):
        self.now = 1_000_000_000

    def __call__(self):
        return self.now

    def ms(self, milliseconds):
        self.now += round(milliseconds * 1e6)


class Event:
    """An event of a pretended device that reaches it `lag` ns after it was recorded."""

    def __init__(self, device):
        self.device = device
        self.at = None

    def query(self):
        return self.at <= self.device.reached

    def synchronize(self):
        self.device.waited += 1
        self.device.reached = max(self.device.reached, self.at)

    def elapsed_time(self, other):
        if not (self.query() and other.query()):
            raise RuntimeError("not ready")
        return (other.at - self.at) / 1e6


class Device:
    """A queue: work given to it runs after what was given before, never before the host has given it."""

    def __init__(self, clock):
        self.clock = clock
        self.busy_until = 0  # ns: when what is queued will be over
        self.reached = 0  # ns: how far the test lets it come
        self.capture = False
        self.made = self.waited = 0

    def work(self, milliseconds):
        self.busy_until = max(self.busy_until, self.clock.now) + round(milliseconds * 1e6)

    def new(self):
        self.made += 1
        return Event(self)

    def record(self, event):
        event.at = max(self.busy_until, self.clock.now)

    def capturing(self):
        return self.capture


def observer(tmp_path, **options):
    return stoker.Observer(tmp_path / "run.obs.jsonl", device=options.pop("device", "cpu"), **options)


def read(recorder):
    recorder.close()
    return stoker.read_observation(recorder.path)


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def small_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, steps, batch=6, micro=1):
    """A loop that knows nothing of observing."""
    for _ in range(steps):
        for _ in range(micro):
            model(torch.randn(batch, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
