"""The gradient noise scale against gradients whose covariance is known."""

import math

import pytest

torch = pytest.importorskip("torch")

import stoker  # noqa: E402

DIMENSION, MEAN, SPREAD = 40, 0.5, 2.0
KNOWN = DIMENSION * SPREAD**2 / (DIMENSION * MEAN**2)  # trace of the covariance over the squared gradient: 16


def loop(steps, batch, accumulation=1, seed=0, lr=0.0, optimizer_of=torch.optim.SGD, **settings):
    """A loss whose gradient is the mean of a batch of draws: mean MEAN and variance SPREAD^2 in each of DIMENSION."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.nn.Parameter(torch.zeros(DIMENSION))
    optimizer = optimizer_of([weights], lr=lr)
    noise = stoker.noise_scale(optimizer, batch, report=False, **settings)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(accumulation):
            draws = MEAN + SPREAD * torch.randn(batch, DIMENSION, generator=generator)
            (draws.mean(0) @ weights / accumulation).backward()
        optimizer.step()
    return noise


def test_within_ten_percent_at_400_steps_of_accumulation():
    noise = loop(400, batch=8, accumulation=4, block=400)
    assert noise.way == "accumulation"
    point = noise.trajectory[0]
    assert point.scale == pytest.approx(KNOWN, rel=0.1)
    assert point.low < KNOWN < point.high


def test_averages_are_unbiased():
    """Means over 40 independent trainings of both parts: the ratio of single steps would be far off."""
    pairs = []
    for seed in range(40):
        noise = loop(100, batch=8, accumulation=2, seed=seed, block=10_000)
        pairs += noise._pairs
    gradient, covariance = (sum(pair[i] for pair in pairs) / len(pairs) for i in (0, 1))
    errors = [math.sqrt(sum((pair[i] - mean) ** 2 for pair in pairs)) / len(pairs) for i, mean in enumerate((gradient, covariance))]
    # The loss is divided by the two micro-steps, and both parts by their square.
    assert abs(gradient - DIMENSION * MEAN**2 / 4) < 4 * errors[0]
    assert abs(covariance - DIMENSION * SPREAD**2 / 4) < 4 * errors[1]
    assert errors[1] < 0.02 * covariance


def test_the_band_holds_the_truth_nine_times_in_ten():
    points = [loop(50, batch=8, accumulation=4, seed=seed).trajectory[0] for seed in range(100)]
    held = sum(point.low <= KNOWN <= point.high for point in points)
    assert 80 <= held <= 99


def test_pairs_of_steps_where_there_is_one_backward():
    noise = loop(800, batch=8, block=400)
    assert noise.way == "consecutive"
    assert noise.scale == pytest.approx(KNOWN, rel=0.1)


def test_a_division_of_the_loss_changes_nothing():
    plain = loop(100, batch=8, accumulation=4)
    generator = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(torch.zeros(DIMENSION))
    optimizer = torch.optim.SGD([weights], lr=0.0)
    noise = stoker.noise_scale(optimizer, 8, report=False)
    for _ in range(100):
        optimizer.zero_grad()
        for _ in range(4):
            (1000 * (MEAN + SPREAD * torch.randn(8, DIMENSION, generator=generator)).mean(0) @ weights).backward()
        optimizer.step()
    assert noise.scale == pytest.approx(plain.scale, rel=1e-4)


def test_adam_is_seen_as_it_divides():
    """With different scales of coordinates Adam's noise scale is another than that of plain gradients."""
    torch.manual_seed(0)
    scales = torch.logspace(-2, 2, DIMENSION)

    def scale_of(**settings):
        generator = torch.Generator().manual_seed(1)
        weights = torch.nn.Parameter(torch.zeros(DIMENSION))
        optimizer = torch.optim.Adam([weights], lr=0.0)
        noise = stoker.noise_scale(optimizer, 8, report=False, block=300, **settings)
        for _ in range(310):
            optimizer.zero_grad()
            for _ in range(4):
                draws = scales * (0.5 + 0.5 * (torch.arange(DIMENSION) % 2)) + scales * torch.randn(8, DIMENSION, generator=generator)
                (draws.mean(0) @ weights / 4).backward()
            optimizer.step()
        return noise.scale

    # Divided, each coordinate counts alike: 40 variances over the sum of squared means in units of their roots of second moments.
    second = (0.5 + 0.5 * (torch.arange(DIMENSION) % 2)) ** 2 + 1 / 32
    known = float((1 / second).sum() / (((0.5 + 0.5 * (torch.arange(DIMENSION) % 2)) ** 2) / second).sum())
    assert scale_of() == pytest.approx(known, rel=0.1)
    # As they are, the largest coordinates decide: their mean is their spread.
    assert scale_of(precondition=False) == pytest.approx(1.5, rel=0.6)
    assert abs(scale_of() - scale_of(precondition=False)) > 0.05


def test_steps_that_are_not_finite_are_skipped_and_counted():
    weights = torch.nn.Parameter(torch.zeros(DIMENSION))
    optimizer = torch.optim.SGD([weights], lr=0.0)
    noise = stoker.noise_scale(optimizer, 8, report=False, block=10)
    generator = torch.Generator().manual_seed(0)
    for i in range(30):
        optimizer.zero_grad()
        for _ in range(2):
            draws = MEAN + SPREAD * torch.randn(8, DIMENSION, generator=generator)
            if i % 3 == 0:
                draws = draws * float("inf")
            (draws.mean(0) @ weights / 2).backward()
        optimizer.step()
    assert noise.skipped == 10 and noise.steps == 30
    assert all(math.isfinite(point.scale) for point in noise.trajectory)


def test_a_gradient_that_is_lost_in_noise_has_no_scale_but_a_bound():
    weights = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([weights], lr=0.0)
    noise = stoker.noise_scale(optimizer, 1, report=False, block=20)
    generator = torch.Generator().manual_seed(3)
    seen = []
    for _ in range(400):
        optimizer.zero_grad()
        for _ in range(2):
            (torch.randn(4, generator=generator) @ weights / 2).backward()
        optimizer.step()
        seen = noise.trajectory
    assert all(point.high == math.inf for point in seen)
    assert any(point.scale is None for point in seen)


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ValueError, match="batch"):
        stoker.noise_scale(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1), 0)


def scaled_loop(steps, micro, bad=(), optimizer_of=torch.optim.SGD, clip=False, to_none=True, scale=2.0**10):
    """As loop(), through a GradScaler of the CPU; the gradients of the steps in `bad` overflow."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(torch.zeros(DIMENSION))
    optimizer = optimizer_of([weights], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=50)
    noise = stoker.noise_scale(optimizer, 8, scaler=scaler, report=False, block=200)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=to_none)
        for _ in range(micro):
            draws = MEAN + SPREAD * torch.randn(8, DIMENSION, generator=generator)
            factor = float("inf") if step in bad else 1.0
            scaler.scale(draws.mean(0) @ weights * factor / micro).backward()
        if clip:
            scaler.unscale_(optimizer)
            noise.measure()
            torch.nn.utils.clip_grad_norm_([weights], 0.1)
        scaler.step(optimizer)
        scaler.update()
    return noise, scaler


@pytest.mark.parametrize("micro", [1, 4])
@pytest.mark.parametrize("clip", [False, True])
def test_a_loss_scale_is_taken_out(micro, clip):
    noise, scaler = scaled_loop(400, micro, clip=clip)
    assert scaler.get_scale() > 2.0**10  # it has grown on the way
    assert noise.way == ("accumulation" if micro > 1 else "consecutive")
    assert noise.trajectory[0].scale == pytest.approx(KNOWN, rel=0.15)
    assert noise.skipped == 0


@pytest.mark.parametrize("micro", [1, 2])
@pytest.mark.parametrize("to_none", [True, False])
def test_steps_that_the_scaler_leaves_out_are_left_out(micro, to_none):
    """The scaler calls no optimizer.step() then; what it left must not be taken for micro-steps of the next."""
    bad = range(3, 450, 10)
    noise, _ = scaled_loop(450, micro, bad=bad, to_none=to_none, scale=2.0**40)
    assert noise.skipped == len(bad)
    assert noise.steps == 450
    assert noise.way == ("accumulation" if micro > 1 else "consecutive")
    assert noise.trajectory[0].scale == pytest.approx(KNOWN, rel=0.15)


def test_a_weight_without_gradient_does_not_look_like_a_step_left_out():
    """A gradient of zeros at the first weight that is seen, with a scaler and micro-steps."""
    used, unused = torch.nn.Parameter(torch.zeros(4)), torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([unused, used], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    noise = stoker.noise_scale(optimizer, 8, scaler=scaler, report=False)
    for _ in range(10):
        optimizer.zero_grad()
        for _ in range(3):
            scaler.scale(torch.randn(4) @ used + 0 * unused.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert noise.way == "accumulation" and noise.skipped == 0 and len(noise._pairs) == 10


def test_a_step_is_counted_once_however_many_of_its_parts_are_not_finite():
    weights = torch.nn.Parameter(torch.zeros(DIMENSION))
    optimizer = torch.optim.SGD([weights], lr=0.0)
    noise = stoker.noise_scale(optimizer, 8, report=False)
    for spoilt in ([0], [1], [0, 1], []):
        optimizer.zero_grad()
        for part in range(2):
            (torch.ones(DIMENSION) @ weights * (float("nan") if part in spoilt else 1.0)).backward()
        optimizer.step()
    assert (noise.steps, noise.skipped, len(noise._pairs)) == (4, 3, 1)


RANKS = """
import json, os, sys, warnings, torch
import torch.distributed as dist
import stoker

rank, folder, kinds = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + folder + "/rendezvous", rank=rank, world_size=2)
DIMENSION, MEAN, SPREAD = 40, 0.5, 2.0

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(DIMENSION))

    def forward(self, draws):
        return (draws @ self.weights).mean()

def measured(what):
    model = Model()
    if what != "no ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    kind = torch.optim.Adam if what == "adam" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.0)
    micro = 2 if what == "accumulation" else 1
    noise = stoker.noise_scale(optimizer, 8, report=False, block=400)
    generator = torch.Generator().manual_seed(rank)
    for step in range(410):
        optimizer.zero_grad()
        for part in range(micro):
            draws = MEAN + SPREAD * torch.randn(8, DIMENSION, generator=generator)
            if what == "one rank" and rank == 1 and step % 50 == 7:
                draws = draws * float("inf")
            if part + 1 < micro:
                with model.no_sync():
                    (model(draws) / micro).backward()
            else:
                (model(draws) / micro).backward()
        optimizer.step()
    return noise.way or "-", noise.skipped, noise.steps, noise.scale

for what in kinds:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        told = measured(what)
    print(json.dumps([what, *told, " ".join(str(one.message) for one in said)]), flush=True)
dist.barrier()
os._exit(0)  # threads of gloo that still run when the interpreter ends would abort it
"""


KINDS = ("plain", "accumulation", "adam", "one rank", "no ddp")


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """What two ranks told of each kind of loop, one after the other: [way, skipped, steps, scale, warnings]."""
    import json
    import os
    import pathlib
    import subprocess
    import sys

    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "ranks.py").write_text(RANKS)
    env = dict(os.environ, PYTHONPATH=str(pathlib.Path(__file__).resolve().parents[2]), OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([sys.executable, "ranks.py", str(rank), str(folder), *KINDS], cwd=folder, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        told = [rank.communicate(timeout=280) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert all(rank.returncode == 0 for rank in ranks), told
    rows = [[json.loads(line) for line in out.splitlines() if line.startswith("[")] for out, _ in told]
    assert [row[:5] for row in rows[0]] == [row[:5] for row in rows[1]]  # both ranks know the same
    return {row[0]: row[1:] for row in rows[0]}


@pytest.mark.parametrize("what", ["plain", "accumulation", "adam"])
def test_ranks_of_ddp_are_compared(what, two_ranks):
    """Adam divides each coordinate alike here, so that the scale stays what it is."""
    way, skipped, steps, scale, _ = two_ranks[what]
    assert (way, skipped, steps) == ("ranks", 0, 410)
    assert scale == pytest.approx(KNOWN, rel=0.12)


def test_a_gradient_that_is_not_finite_on_one_rank_is_left_out_on_both(two_ranks):
    """A rank that did not take part in the comparison would leave the other one waiting."""
    way, skipped, steps, scale, _ = two_ranks["one rank"]
    assert (way, skipped, steps) == ("ranks", 9, 410)
    assert scale == pytest.approx(KNOWN, rel=0.12)


def test_ranks_without_ddp_say_nothing_of_the_noise(two_ranks):
    way, _, _, scale, warned = two_ranks["no ddp"]
    assert (way, scale) == ("-", None)
    assert "not averaged" in warned


def test_sharded_parameters_are_refused():
    weights = torch.nn.Parameter(torch.zeros(4))
    weights._is_flat_param = True
    with pytest.raises(ValueError, match="sharded"):
        stoker.noise_scale(torch.optim.SGD([weights], lr=1), 8)
