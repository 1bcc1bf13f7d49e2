"""stoker.scale_batch against the formulas of the papers, worked out by hand."""

import math

import pytest

from stoker.tune.batch_rules import scale_batch


def test_the_root_rule_keeps_the_variance_of_an_update():
    # Krizhevsky 2014: lr^2 / batch stays.
    scaled = scale_batch(0.1, 128, 2048, rule="sqrt")
    assert scaled.lr == pytest.approx(0.4)
    assert scaled.lr**2 / 2048 == pytest.approx(0.1**2 / 128)
    assert scaled.betas is None and scaled.eps is None


def test_adams_time_scales_stay_in_samples():
    # Malladi et al. 2022: an average over 1 / (1 - beta) steps spans as many samples before as after.
    scaled = scale_batch(3e-4, 256, 512, optimizer="AdamW", betas=(0.9, 0.98), eps=1e-8)
    assert scaled.rule == "adam"
    assert scaled.lr == pytest.approx(3e-4 * math.sqrt(2))
    assert scaled.betas == pytest.approx((0.8, 0.96))
    assert 512 / (1 - scaled.betas[1]) == pytest.approx(256 / (1 - 0.98))
    assert scaled.eps == pytest.approx(1e-8 / math.sqrt(2))


def test_adams_rule_ends_where_an_average_has_no_steps_left():
    # k (1 - 0.9) = 1 at ten times the batch.
    assert scale_batch(1e-3, 64, 639, optimizer="adam").betas[0] == pytest.approx(1 - 0.1 * 639 / 64)
    broken = scale_batch(1e-3, 64, 640, optimizer="adam")
    assert broken.betas == (0.9, 0.999)
    assert any("known to break" in note for note in broken.notes)


def test_a_smaller_batch_goes_the_other_way():
    down = scale_batch(0.4, 1024, 256)
    assert down.lr == pytest.approx(0.1)
    assert down.warmup_steps == 0
    up = scale_batch(down.lr, 256, 1024)
    assert up.lr == pytest.approx(0.4)


def test_the_global_batch_is_of_all_devices_and_micro_steps():
    scaled = scale_batch(0.1, 32, 64, devices=8, accumulation=4, samples=1_281_167)
    assert scaled.global_batch == 64 * 8 * 4
    assert scaled.per_device_batch == 64
    # Goyal et al.: five epochs of 1,281,167 samples in steps of 2,048.
    assert scaled.warmup_steps == math.ceil(5 * 1_281_167 / 2048)
    assert "64 samples a device x 8 devices x 4 micro-steps = 2048" in scaled.notes[0]


def test_worth_by_the_noise_scale_is_the_ratio_of_the_steps_that_are_left():
    # McCandlish et al. 2018: steps are proportional to 1 + noise / batch.
    for noise in (100.0, 5000.0):
        scaled = scale_batch(0.1, 100, 1000, noise_scale=noise)
        worth = (1 + noise / 100) / (1 + noise / 1000)
        assert any(f"worth {worth:.3g} steps of 100" in note for note in scaled.notes)
        assert any("above the noise scale" in note for note in scaled.notes) is (noise < 1000)


@pytest.mark.parametrize("settings", [{"lr": 0}, {"old": 0}, {"new": -1}, {"devices": 0}, {"accumulation": 0}, {"rule": "cubic"}])
def test_what_makes_no_sense_is_refused(settings):
    with pytest.raises(ValueError):
        scale_batch(**{"lr": 0.1, "old": 32, "new": 64, **settings})
