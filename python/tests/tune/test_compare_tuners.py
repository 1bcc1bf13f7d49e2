"""scripts/compare-tuners: what it counts, and that a search over recorded curves trains what it says."""

import collections
import math
import pathlib
import sys

import pytest

from stoker_binary import STOKER

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
from compare_tuners.table import EVALUATIONS, Table, came_to, with_interval  # noqa: E402
from compare_tuners.tuners import stoker_tuner  # noqa: E402

RATES = [10 ** (-4 + i / 6) for i in range(25)]


def planted(more=True):
    """The best configuration is batch 16 at a rate of 0.01; the curve of each rises (or falls) to its own level."""
    curves = {}
    for batch in (16, 64):
        levels = [0.9 - 0.1 * (math.log10(rate) + 2) ** 2 - batch / 1000 for rate in RATES]
        rows = [[round((level - 0.5 / step) * (1 if more else -1), 4) for step in range(1, EVALUATIONS + 1)] for level in levels]
        curves[f"planted/0/{batch}/adam"] = {"held_out": rows, "test": [[value / 2 for value in row] for row in rows]}
    about = {"metric": "accuracy" if more else "loss", "more": more, "samples": 640, "samples_per_s": {"16/adam": 320.0, "64/adam": 640.0}}
    return Table({"rates": RATES, "batches": [16, 64], "optimizers": ["adam"], "tasks": {"planted": about}, "curves": curves}, "planted", 0)


@pytest.mark.parametrize("more", [True, False])
def test_what_a_run_came_to(more):
    table, best = planted(more), 12  # RATES[12] is 0.01
    events = [(64, "adam", 0, 1), (16, "adam", best, 1), *((16, "adam", best, step) for step in range(2, EVALUATIONS + 1))]
    found = came_to(table, events, 1000)
    sign = 1 if more else -1
    assert found["held_out"] == table.value(16, "adam", best, EVALUATIONS) == pytest.approx(sign * (0.884 - 0.5 / 27), abs=1e-3)
    assert found["test"] == found["held_out"] / 2
    assert found["regret"] == 0
    assert found["spent"] == 28 and found["spent_s"] == 1 + 27 * 2
    assert found["chosen"] == {"batch": 16, "optimizer": "adam", "lr": 0.01, "evaluation": 27}
    # The target is what the best two of the 50 configurations reach: the second of them is better than it from its own end on.
    first = next(i for i, place in enumerate(events, 1) if table.score(*place) >= table.target())
    assert found["reached"] == first and found["reached_s"] == 1 + (first - 1) * 2
    short = came_to(table, events, 10)
    assert short["spent"] == 10 and short["reached"] is None and short["regret"] > 0


def test_an_interval_of_student():
    assert with_interval([1.0, 2.0, 3.0]) == "2.000 ± 2.484"  # 4.303 / root of 3


def evaluations_of(events):
    by = collections.defaultdict(list)
    for batch, optimizer, rate, evaluation in events:
        by[batch, optimizer, rate].append(evaluation)
    return by


def test_a_search_with_rungs_goes_on_where_it_paused(monkeypatch):
    monkeypatch.setenv("STOKER_BINARY", STOKER)
    run = stoker_tuner("asha", "--trials", "100", "--min-steps", "1", "--max-steps", "27")
    events = run(planted(), 3, 120)
    assert abs(len(events) - 120) <= 18  # the budget ends in a trial, which counts or not
    seen = evaluations_of(events)
    assert len(seen) > 5
    for evaluations in seen.values():
        # Two draws may share the nearest recorded rate: as many came to an evaluation as to those before it, or fewer.
        counts = collections.Counter(evaluations)
        reached = [counts[evaluation] for evaluation in range(1, EVALUATIONS + 1)]
        assert reached == sorted(reached, reverse=True)
        assert all(reached[rung - 1] >= reached[rung] == reached[min(3 * rung, EVALUATIONS) - 1] for rung in (1, 3, 9))
    assert any(max(evaluations) == EVALUATIONS for evaluations in seen.values())


def test_the_greedy_method_finds_the_planted_rate(monkeypatch):
    monkeypatch.setenv("STOKER_BINARY", STOKER)
    events = stoker_tuner("greedy", optimizer="adam")(planted(), 0, 1000)
    found = came_to(planted(), events, 1000)
    assert (64, "adam", 0, 1) in events  # the rates at the faster batch, by the recorded throughput
    assert found["chosen"]["batch"] == 16  # better by its level, and tried at the rate that was found
    assert found["chosen"]["lr"] == pytest.approx(0.01, rel=0.01)
    assert events[:2] == [(16, "adam", 12, 1), (64, "adam", 12, 1)]  # each batch measured
    assert found["spent"] < 5 * EVALUATIONS + 2 + 3 * EVALUATIONS


def test_a_network_of_the_stack_is_what_it_is_alone():
    torch = pytest.importorskip("torch")
    from compare_tuners import tasks

    class Planted(tasks.Tabular):
        def __init__(self):
            chance = torch.Generator().manual_seed(0)
            x = torch.randn(300, 10, generator=chance)
            y = x[:, 0] * x[:, 1] + 0.1 * torch.randn(300, generator=chance)
            self.train, self.held_out, self.test = ((x[part], y[part]) for part in (slice(200), slice(200, 250), slice(250, None)))

    for optimizer in tasks.OPTIMIZERS:
        stacked = tasks.train(Planted(), 1, 64, optimizer, [1e-3, 1e-2, 3e-2], evaluations=4)
        alone = tasks.train(Planted(), 1, 64, optimizer, [1e-2], evaluations=4)
        assert stacked["held_out"][1] == pytest.approx(alone["held_out"][0], abs=2e-3)
        assert stacked["held_out"][0] != pytest.approx(stacked["held_out"][1], abs=2e-3)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_optimizers_of_the_stack_are_those_of_pytorch(optimizer):
    torch = pytest.importorskip("torch")
    from compare_tuners import tasks

    rates = [0.01, 0.1]
    stacked, state = torch.ones(2, 3, 4), {}
    plain = [torch.nn.Parameter(torch.ones(3, 4)) for _ in rates]
    kinds = {"sgd": lambda p, lr: torch.optim.SGD([p], lr, momentum=0.9), "adam": lambda p, lr: torch.optim.Adam([p], lr)}
    optimizers = [kinds[optimizer](p, lr) for p, lr in zip(plain, rates)]
    for step in range(1, 6):
        stacked.grad = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(step))
        for i, p in enumerate(plain):
            p.grad = stacked.grad[i].clone()
            optimizers[i].step()
        tasks._update(optimizer, stacked, state, torch.tensor(rates).view(-1, 1, 1), step)
    assert torch.allclose(stacked, torch.stack([p.detach() for p in plain]), atol=1e-6)
