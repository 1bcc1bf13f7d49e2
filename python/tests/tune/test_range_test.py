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
