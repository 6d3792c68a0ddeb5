"""The linear part of the mean, against other forests that together make the same equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestRegressor
from reference.arrays import Array

VARIANCE = 0.7
CHANGE = 0.5
NOISE = 0.05
HYPER = {"mu": 0.3, "gamma1": 2.0, "gamma2": 0.8, "noise_variance": NOISE}
PRIORS = {
    "thesis": {},
    "coarse": {"coarse_variance": 0.6, "coarse_rate": 3.0},
    "late": {"delay": 0.9},
}


def data(d: int, n: int = 60) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 3.0, size=(n, d))
    return x, np.sin(2.0 * x[:, 0]) + x[:, -1] + 0.2 * rng.normal(size=n)


def forest(hyper: dict[str, float], trend: Any = None, **params: Any) -> MondrianForestRegressor:
    return MondrianForestRegressor(
        5,
        hyperparameters=hyper,
        noise="global",
        feature_range=(-1.0, 3.0),
        feature_weights=None,
        trend=trend,
        random_state=2,
        **params,
    )


def test_slopes_that_change_beyond_the_range_are_learned() -> None:
    """A forest with wider ranges has the same columns, but for linear combinations and priors."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 7.0, size=(300, 1))
    y = np.where(x[:, 0] < 3.0, x[:, 0], 9.0 - 2.0 * x[:, 0]) + 0.05 * rng.normal(size=300)
    model = MondrianForestRegressor(
        5, feature_range=(-1.0, 3.0), feature_weights=None, trend="linear", random_state=2
    ).fit(x, y)
    slopes = model.trend_slopes_
    assert slopes is not None
    assert slopes[0] == pytest.approx(1.0, abs=0.1)
    mean, std = model.predict([[8.0], [9.0], [-3.0]], return_std=True)
    np.testing.assert_allclose(mean, [-7.0, -9.0, -3.0], atol=0.5)
    assert std[1] < 0.5 * std[2]


def columns(x: Array) -> Array:
    return np.column_stack([np.ones(len(x)), (x - 1.0) / 4.0])


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("d", [1, 3, 9])
def test_trend_is_universal_kriging(d: int, prior: str, predictive: Any) -> None:
    """What trees make of `z` is the joint mean of forests whose targets are the columns of `z`."""
    hyper = {**HYPER, **PRIORS[prior]}
    x, y = data(d)
    at = np.concatenate([x[:9], np.random.default_rng(0).uniform(-3.0, 5.0, size=(9, d))])
    at = np.concatenate([at, np.full((1, d), 1e5)])
    z, z_at = columns(x), columns(at)

    def smooth(column: Array, rows: Array) -> Array:
        # Targets that are all the same, as a column of ones, would make trees of one node.
        both, other = (
            forest({**hyper, "mu": 0.0}, predictive=predictive).fit(x, targets).predict(rows)
            for targets in (column + y, y)
        )
        return np.asarray(both - other)

    # At the rows themselves K A^-1 z is z - s^2 A^-1 z.
    solved = np.stack([(column - smooth(column, x)) / NOISE for column in z.T], axis=1)
    smoothed = np.stack([smooth(column, at) for column in z.T], axis=1)
    inverse = np.eye(d + 1) / VARIANCE + z.T @ solved
    coefficients = np.linalg.solve(inverse, solved.T @ (y - hyper["mu"]))
    model = forest({**hyper, "trend_variance": VARIANCE}, "linear", predictive=predictive).fit(x, y)
    slopes = model.trend_slopes_
    assert slopes is not None
    np.testing.assert_allclose(4.0 * slopes, coefficients[1:], rtol=1e-4, atol=1e-6)
    rest = forest(hyper, predictive=predictive).fit(x, y - z @ coefficients).predict_dist(at)
    found = model.predict_dist(at)
    apart = z_at - smoothed
    added = np.einsum("ij,ji->i", apart, np.linalg.solve(inverse, apart.T))
    # Beyond the ranges, where there are no rows, slopes may be others.
    added += CHANGE * VARIANCE * (np.maximum(np.abs(z_at[:, 1:]) - 0.5, 0.0) ** 2).sum(axis=1)
    each = np.repeat(np.arange(len(at)), np.diff(found.offsets))
    np.testing.assert_array_equal(found.weights, rest.weights)
    np.testing.assert_allclose(
        found.means, rest.means + (z_at @ coefficients)[each], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(found.variances, rest.variances + added[each], rtol=1e-4)
    mean, std = model.predict(at, return_std=True)
    np.testing.assert_allclose(mean, found.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std, found.std, rtol=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
def test_leaving_out_is_forgetting(prior: str) -> None:
    x, y = data(2)
    given = {**HYPER, **PRIORS[prior], "trend_variance": VARIANCE}
    model = forest(given, "linear").fit(x, y)
    for i in range(0, 60, 7):
        left_out = model.loo_predict_dist([i])
        rest = model.copy().forget([i]).predict_dist(x[[i]])
        np.testing.assert_allclose(left_out.means, rest.means, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(left_out.variances, rest.variances, rtol=1e-5)


@pytest.mark.parametrize("rule", ["loo", "ml", "heuristic"])
def test_shift_and_scale_of_targets(rule: Any) -> None:
    """A linear part changes with the units of targets, and with nothing else."""
    x, y = data(2)

    def fitted(targets: Array) -> MondrianForestRegressor:
        return MondrianForestRegressor(
            5, hyperparameters=rule, feature_weights=None, trend="linear", random_state=2
        ).fit(x, targets)

    one, other = fitted(y), fitted(8.0 * y)
    at = 3.0 * x
    for a, b in zip(
        one.predict(at, return_std=True), other.predict(at, return_std=True), strict=True
    ):
        np.testing.assert_allclose(8.0 * a, b, rtol=1e-6)
    assert other.hyperparameters_["trend_variance"] == pytest.approx(
        64.0 * one.hyperparameters_["trend_variance"]
    )
