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
    assert noise.skipped >= 10
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
