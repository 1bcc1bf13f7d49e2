"""The learning-rate range test of a PyTorch loop."""

import copy
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import stoker  # noqa: E402
from stoker.tune.range_test import LrRamp, analysed  # noqa: E402
from stoker_binary import STOKER  # noqa: E402

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2])


def task(seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(512, 10, generator=generator)
    y = (x @ torch.randn(10, 3, generator=generator)).argmax(1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True,
                                         generator=torch.Generator().manual_seed(5))
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), loader


def test_finds_rates_that_learn_and_puts_everything_back():
    model, optimizer, loader = task()
    model.eval()
    before = copy.deepcopy(model.state_dict())
    chance, python, order = torch.get_rng_state(), random.getstate(), loader.generator.get_state()
    found = stoker.lr_range_test(model, optimizer, loader, low=1e-5, high=100, steps=80, seeds=2)
    assert 1e-3 < found["low"] <= found["high"] < 10
    assert found["runs"] == 2 and len(found["points"]) == 2
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert optimizer.param_groups[0]["lr"] == 0.01 and not optimizer.state
    assert not model.training and all(p.grad is None for p in model.parameters())
    assert torch.equal(chance, torch.get_rng_state()) and python == random.getstate()
    assert torch.equal(order, loader.generator.get_state())


def test_training_goes_on_as_if_there_had_been_no_test():
    def train(with_test):
        model, optimizer, loader = task()
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            if with_test:
                stoker.lr_range_test(model, optimizer, loader, steps=20, seeds=1)
        return model.state_dict()

    with_test, without = train(True), train(False)
    assert all(torch.equal(with_test[name], without[name]) for name in without)


def test_a_step_of_ones_own_that_fails_leaves_everything_as_it_was():
    model, optimizer, loader = task()
    before = copy.deepcopy(model.state_dict())

    def step(batch):
        with torch.no_grad():
            model[0].weight += 1
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        stoker.lr_range_test(model, optimizer, loader, step=step)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_no_suggestion_where_nothing_is_learnt():
    model, optimizer, loader = task()
    found = stoker.lr_range_test(model, optimizer, loader, step=lambda batch: torch.tensor(2.0), steps=40, seeds=1)
    assert found["low"] is None and "never falls" in found["reason"]


def test_an_iterator_is_refused():
    model, optimizer, loader = task()
    with pytest.raises(stoker.StokerError, match="would lose its place"):
        stoker.lr_range_test(model, optimizer, iter(loader))


class Noisy(torch.nn.Module):
    """With batch norm, dropout, and buffers that state_dict() does not have: one is written, one is replaced."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                          torch.nn.Linear(32, 3))
        self.register_buffer("calls", torch.zeros(1), persistent=False)
        self.register_buffer("again", torch.zeros(1), persistent=False)

    def forward(self, x):
        self.calls += 1
        self.again = self.again + 1
        return self.layers(x) + 0.01 * self.calls.remainder(7)


class Training:
    """A loop with everything that a test could disturb; advance() says where it stands."""

    def __init__(self, workers=0):
        _, _, loader = task()
        torch.manual_seed(1)
        self.model = Noisy()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
        self.loader = torch.utils.data.DataLoader(loader.dataset, 32, shuffle=True, generator=torch.Generator().manual_seed(5),
                                                  num_workers=workers, persistent_workers=workers > 0)
        self.batches = iter(self.loader)

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]) + random.gauss(0, 0.001), batch[1])
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return loss.detach()

    def advance(self, steps):
        losses = [float(self.step(next(self.batches))) for _ in range(steps)]
        calls = float(self.model.calls), float(self.model.again)
        return losses, self.optimizer.param_groups[0]["lr"], self.scaler.get_scale(), calls, self.scheduler.last_epoch

    def range_test(self, step=None):
        return stoker.lr_range_test(self.model, self.optimizer, self.loader, step=step or self.step, scaler=self.scaler,
                                    scheduler=self.scheduler, steps=25, seeds=2)


@pytest.mark.parametrize("workers", [0, 1])
def test_in_the_middle_of_an_epoch_everything_goes_on(workers):
    """Adam's moments, batch norm, a schedule, a loss scale, dropout, and the rest of the epoch in its order."""
    random.seed(3)
    untouched = Training(workers)
    expected = [untouched.advance(5), untouched.advance(6)]
    random.seed(3)
    tested = Training(workers)
    first = tested.advance(5)
    tested.range_test()
    assert [first, tested.advance(6)] == expected


def test_a_test_that_breaks_off_inside_a_step_leaves_the_scaler_ready():
    random.seed(3)
    untouched = Training()
    expected = [untouched.advance(5), untouched.advance(6)]
    random.seed(3)
    tested = Training()
    first, steps = tested.advance(5), []

    def step(batch):
        if len(steps) == 3:
            tested.scaler.scale(torch.nn.functional.cross_entropy(tested.model(batch[0]), batch[1])).backward()
            tested.scaler.unscale_(tested.optimizer)
            raise KeyboardInterrupt
        steps.append(batch)
        return tested.step(batch)

    with pytest.raises(KeyboardInterrupt):
        tested.range_test(step)
    assert [first, tested.advance(6)] == expected


def test_a_loader_that_knows_its_place_is_set_back_to_it():
    class Loader:
        def __init__(self):
            self.place, self.rows = 3, task()[2].dataset

        def __iter__(self):
            while self.place < 16:
                self.place += 1
                yield self.rows[self.place * 32 - 32:self.place * 32]
            self.place = 0

        def state_dict(self):
            return {"place": self.place}

        def load_state_dict(self, state):
            self.place = state["place"]

    model, optimizer, _ = task()
    loader = Loader()
    stoker.lr_range_test(model, optimizer, loader, steps=20, seeds=2)
    assert loader.place == 3


def test_gradients_that_were_being_accumulated_are_put_back():
    model, optimizer, loader = task()
    x, y = next(iter(loader))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    before = [p.grad.clone() for p in model.parameters()]
    stoker.lr_range_test(model, optimizer, loader, steps=15, seeds=1)
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), before))


def test_groups_keep_their_proportions_and_frozen_ones_stay_frozen():
    weights = [torch.nn.Parameter(torch.ones(1)) for _ in range(3)]
    optimizer = torch.optim.SGD([{"params": [weights[0]], "lr": 0.1}, {"params": [weights[1]], "lr": 0.01},
                                 {"params": [weights[2]], "lr": 0.0}], lr=1.0)
    ramp = LrRamp(optimizer, 1e-3, 1.0, 4)
    for _ in range(2):
        ramp.step(1.0)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.1, 0.01, 0.0])


def curve(losses, low=1e-5):
    return [(low * 1.25**i, loss) for i, loss in enumerate(losses)]


def noisy(count, level=2.0, size=0.1, seed=1):
    chance = random.Random(seed)
    return [level + chance.gauss(0, size) for _ in range(count)]


FALLS = [2 - 1.5 / (1 + 2.7 ** (8 - i / 4)) for i in range(60)]


@pytest.mark.parametrize(("runs", "reason"), [
    ([curve(FALLS[:9])], "9 finite points came, and 10 are needed"),
    ([curve([2.0] * 4 + [float("nan")] * 50)], "4 finite points came"),
    ([curve([float("nan")] * 60)], "0 finite points came"),
    ([curve([float("inf")] * 60)], "0 finite points came"),
    ([curve([2.0] * 60)], "never falls"),
    ([curve([2 + 0.01 * i for i in range(60)])], "never falls"),
    ([curve(noisy(60))], "never falls"),
    ([curve([*noisy(30), 0.5, *noisy(29, seed=2)])], "never falls"),  # one lucky batch
    ([curve(FALLS), curve([2.0] * 60)], "1 of 2 runs say nothing"),
])
def test_where_nothing_can_be_suggested_the_reason_is_told(runs, reason):
    found = analysed(runs)
    assert found["low"] is None and found["high"] is None
    assert reason in found["reason"]


def test_what_follows_a_loss_that_is_no_number_does_not_count():
    found = analysed([curve([*FALLS, float("nan"), *[0.0] * 10])])
    alone = analysed([curve(FALLS)])
    assert found["low"] is not None
    assert (found["low"], found["high"]) == (alone["low"], alone["high"])


SCRIPT = """
import torch, sys, stoker
torch.manual_seed(int(sys.argv[1]))
x = torch.randn(512, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
ramp = stoker.lr_ramp(optimizer)
while True:
    rows = torch.randint(0, 512, (32,))
    loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if ramp is None or ramp.step(loss):
        break
"""


def test_the_verb_runs_a_script_for_each_seed(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    env = dict(os.environ, PYTHONPATH=PACKAGE, OMP_NUM_THREADS="1")
    done = subprocess.run([STOKER, "tune", "--lr-test", "--lr", "1e-5..100", "--repeat", "2", "--json", "--", sys.executable, "train.py",
                           "{seed}"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["runs"] == 2
    assert 1e-3 < found["low"] <= found["high"] < 10


def test_the_verb_says_what_a_script_lacks(tmp_path):
    env = dict(os.environ, PYTHONPATH=PACKAGE)
    done = subprocess.run([STOKER, "tune", "--lr-test", "--", sys.executable, "-c", "pass"], cwd=tmp_path, env=env, capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert "stoker.lr_ramp" in done.stderr


def test_in_no_test_there_is_no_ramp(monkeypatch):
    monkeypatch.delenv("STOKER_LR_TEST", raising=False)
    assert stoker.lr_ramp(task()[1]) is None
