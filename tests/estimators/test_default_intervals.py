"""How sure the default regressor is where there is hardly any noise, or nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from boscage import MondrianForestRegressor, _core
from boscage.metrics import interval_coverage

Data = tuple[Any, Any]


def linear(seed: int) -> Data:
    """A linear function of eight features, and noise a tenth as large."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(900, 8))
    signal = x @ rng.normal(size=8)
    return x, signal + 0.1 * signal.std() * rng.normal(size=900)


def friedman(seed: int) -> Data:
    """A smooth function of five features of ten, and hardly any noise."""
    return make_friedman1(900, noise=0.05, random_state=seed)


def noise(seed: int) -> Data:
    """Nothing but noise."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(900, 2)), rng.normal(size=900)


@pytest.mark.parametrize("make", [linear, friedman, noise])
def test_intervals_hold_what_they_say(make: Any) -> None:
    covered, ratios = [], []
    for seed in (0, 1, 2):
        x, y = make(seed)
        dist = (
            MondrianForestRegressor(50, random_state=seed)
            .fit(x[:500], y[:500])
            .predict_dist(x[500:])
        )
        covered.append(interval_coverage(y[500:], *dist.interval(0.9)))
        ratios.append(np.sqrt(dist.var.mean() / np.mean((y[500:] - dist.mean) ** 2)))
    # Before, all rows of the first two were covered, and .85 of the last.
    assert 0.86 < np.mean(covered) < 0.95
    assert 0.92 < np.mean(ratios) < 1.35


@pytest.mark.parametrize("far", [10.0, 30.0])
def test_a_target_far_off_does_not_make_intervals_narrow(far: float) -> None:
    """What exceeds the bound on the prior's variance is taken from the tail, not from the core."""
    covered = []
    for seed in (0, 1):
        x, y = make_friedman1(2_500, noise=1.0, random_state=seed)
        y[7] += far * y.std()
        dist = (
            MondrianForestRegressor(50, random_state=seed)
            .fit(x[:500], y[:500])
            .predict_dist(x[500:])
        )
        covered.append(interval_coverage(y[500:], *dist.interval(0.9)))
    # Before, .80 of them with a target thirty standard deviations off.
    assert 0.87 < np.mean(covered) < 0.95


@pytest.mark.parametrize("signal", [0.0, 3.0])
@pytest.mark.parametrize(("n", "least"), [(5, 0.83), (12, 0.85), (20, 0.85)])
def test_few_rows_do_not_make_intervals_narrow(n: int, least: float, signal: float) -> None:
    covered = []
    for seed in range(40):
        rng = np.random.default_rng((seed, n))
        x = rng.uniform(size=(n + 200, 2))
        y = np.sin(signal * x[:, 0]) + 0.3 * rng.normal(size=n + 200)
        model = MondrianForestRegressor(20, random_state=seed).fit(x[:n], y[:n])
        dist = model.predict_dist(x[n:])
        covered.append(interval_coverage(y[n:], *dist.interval(0.9)))
    # Before, .70 to .82 of them.
    assert least < np.mean(covered) < 0.95


def test_alternating_targets_do_not_look_constant() -> None:
    """Of every second row, which once were those that are left out, all targets are the same."""
    x = np.arange(2000.0)[:, np.newaxis]
    y = x[:, 0] % 2
    dist = MondrianForestRegressor(20, random_state=0).fit(x, y).predict_dist(x[::7])
    low, high = dist.interval(0.9)
    assert np.all(dist.std < 0.6)  # once 6.8
    assert np.all((low < 0.1) & (high > 0.9))


@pytest.mark.parametrize("make", [linear, friedman])
def test_the_prior_is_wide_beside_the_rows_and_far_away(make: Any) -> None:
    x, y = make(0)
    model = MondrianForestRegressor(50, trend=None, random_state=0).fit(x, y)
    lowest = 0.25 * model.feature_weights_.sum()
    assert model.hyperparameters_["coarse_rate"] > lowest
    away = np.concatenate(([0.0], np.geomspace(0.03, 1e6, 40)))
    feature = int(np.argmax(model.feature_weights_))
    rows = np.full((len(away), x.shape[1]), 0.5)
    rows[:, feature] = 1.0 + away
    std = model.predict(rows, return_std=True)[1] / y.std()
    assert std[-1] == pytest.approx(1.0, abs=0.02)
    assert (np.diff(std) > -0.03).all()
    # As at the lowest rate: a third of a range away, much of the prior is back.
    assert std[0] < 0.2
    assert std[away > 0.3][0] > 0.3


def test_the_coarse_part_is_spent_as_late_as_left_out_rows_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = linear(3)
    x, y = x[:300], y[:300]
    settings: dict[str, Any] = {
        "noise": "global",
        "trend": "linear",
        "feature_weights": None,
        "feature_range": (0.0, 1.0),
        "random_state": 0,
    }
    without = MondrianForestRegressor(30, prior_scale=None, **settings).fit(x, y)

    def loss(rate: float | None) -> tuple[float, float]:
        with monkeypatch.context() as patch:
            made = partial(_core.MondrianRegressor, prior_rate=rate)
            patch.setattr(_core, "MondrianRegressor", made)
            model = MondrianForestRegressor(30, **settings).fit(x, y)
        ratio = model.loo_predict_dist().var / without.loo_predict_dist().var
        loss = 0.5 * np.mean(np.log(ratio) + 1.0 / ratio - 1.0)
        return loss, model.hyperparameters_["coarse_rate"] / model.feature_weights_.sum()

    chosen_loss, rate = loss(None)
    assert np.log2(rate / 0.25) == pytest.approx(np.rint(np.log2(rate / 0.25)))
    # The rule looks at the branches that the trees have, and not at all that a row might take.
    assert chosen_loss < 0.014
    half_loss, half = loss(rate / 2.0)
    assert half == pytest.approx(rate / 2.0)
    assert half_loss > 0.006
    assert loss(0.25)[0] > 10.0 * chosen_loss


def test_a_noise_that_is_known_is_honoured_everywhere() -> None:
    x, y = linear(0)
    given = (3.0 * y.std()) ** 2
    models = [
        MondrianForestRegressor(20, noise=name, noise_variance=given, random_state=0).fit(x, y)
        for name in ("local", "global")
    ]
    std = [model.predict(x, return_std=True)[1] for model in models]
    np.testing.assert_array_equal(std[0], std[1])
    assert std[0].min() > 0.99 * np.sqrt(given)


def test_a_great_offset_of_the_targets_changes_nothing() -> None:
    x, y = linear(0)
    # Whole numbers, which are exact beside the offset.
    y = np.rint(1e5 * y)

    def rmse(offset: float) -> float:
        model = MondrianForestRegressor(20, feature_weights=None, random_state=0)
        predictions = model.fit(x[:300], y[:300] + offset).predict(x[300:]) - offset
        return float(np.sqrt(np.mean((predictions - y[300:]) ** 2)) / y.std())

    # The standard deviation is 3e-9 of the mean.
    assert rmse(1e13) == pytest.approx(rmse(0.0), rel=0.02)
