"""The joint model of infinitely many trees, against a dense Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.base import clone

from boscage import MondrianForestRegressor
from reference.arrays import Array

HYPER = {"mu": 0.3, "gamma1": 2.0, "gamma2": 0.8, "noise_variance": 0.05}
RATES = np.array([1.0, 0.0, 2.5])
N = 40


def data() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, size=(N, 3))
    x[5], x[6, 2] = x[4], 1e3  # a copy, and a row far outside
    y = np.sin(3.0 * x[:, 0]) + 0.2 * rng.normal(size=N)
    return x, y, rng.integers(1, 9, size=N) / 4.0


def forest(**params: Any) -> MondrianForestRegressor:
    settings: dict[str, Any] = {
        "n_estimators": 3,
        "hyperparameters": HYPER,
        "noise": "global",
        "feature_range": (-1.0, 1.0),
        "feature_weights": RATES,
        "joint_kernel": "limit",
        "trend": None,
        "random_state": 1,
    }
    return MondrianForestRegressor(**settings | params)


def covariance(x: Array, other: Array, lifetime: float = np.inf) -> Array:
    """The mean of the clock at the time when a cut parts two points, by quadrature.

    They are still together at time t with probability exp(-t d), and the clock is
    gamma1 (s(gamma2 t) - 1/2), s being the logistic function.
    """
    distances = np.abs(x[:, None] - other) @ (RATES / 2.0)  # ranges are 2 wide

    def integral(d: float) -> float:
        def spent(u: float) -> float:
            return float(np.exp(-u * d / HYPER["gamma2"] - u) / (1.0 + np.exp(-u)) ** 2)

        end = min(HYPER["gamma2"] * lifetime, 60.0 / (1.0 + d))
        return HYPER["gamma1"] * float(quad(spent, 0.0, end, epsabs=1e-13, epsrel=1e-12)[0])

    return np.vectorize(integral)(distances)


def mean_of(x: Array, y: Array, weights: Array, at: Array, lifetime: float = np.inf) -> Array:
    noisy = covariance(x, x, lifetime) + np.diag(HYPER["noise_variance"] / weights)
    solved = np.linalg.solve(noisy, y - HYPER["mu"])
    return np.asarray(HYPER["mu"] + covariance(at, x, lifetime) @ solved)


def places(x: Array) -> Array:
    rng = np.random.default_rng(0)
    return np.concatenate([x[:8], rng.uniform(-1.5, 1.5, size=(8, 3)), np.full((1, 3), -1e6)])


@pytest.mark.parametrize("lifetime", [np.inf, 1.7])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_mean_is_that_of_the_gaussian_process(is_weighted: bool, lifetime: float) -> None:
    x, y, weights = data()
    weights = weights if is_weighted else np.ones(N)
    model = forest(lifetime=lifetime).fit(x, y, sample_weight=weights)
    expected = mean_of(x, y, weights, places(x), lifetime)
    np.testing.assert_allclose(model.predict(places(x)), expected, rtol=0.0, atol=2e-9)
    found = model.predict_dist(places(x))
    np.testing.assert_allclose(found.mean, expected, rtol=0.0, atol=2e-9)


@pytest.mark.slow
@pytest.mark.parametrize("least", [2, 5])
def test_leaving_a_row_out_is_forgetting_it(least: int) -> None:
    x, y, weights = data()
    model = forest(min_samples_split=least).fit(x, y, sample_weight=weights)
    for row in range(0, N, 7):
        rest = np.arange(N) != row
        expected = mean_of(x[rest], y[rest], weights[rest], x[[row]])
        left_out = model.loo_predict_dist([row])
        forgotten = model.copy().forget([row]).predict_dist(x[[row]])
        for found in (left_out, forgotten):
            np.testing.assert_allclose(found.mean, expected, rtol=0.0, atol=2e-9)
        np.testing.assert_allclose(left_out.variances, forgotten.variances, rtol=1e-8)


def test_a_trend_is_universal_kriging() -> None:
    """Its coefficients have the dense posterior, and its uncertainty adds to the variance."""
    x, y, weights = data()
    x[6, 2] = 0.5
    variance = 0.7
    given = {**HYPER, "trend_variance": variance}
    model = forest(hyperparameters=given, trend=[0]).fit(x, y, sample_weight=weights)
    at = np.random.default_rng(0).uniform(-1.0, 1.0, size=(9, 3))  # beyond, slopes may change

    def columns(rows: Array) -> Array:
        return np.column_stack([np.ones(len(rows)), rows[:, 0] / 2.0])

    noisy = covariance(x, x) + np.diag(HYPER["noise_variance"] / weights)
    solved = np.linalg.solve(noisy, columns(x))
    inverse = np.eye(2) / variance + columns(x).T @ solved
    coefficients = np.linalg.solve(inverse, solved.T @ (y - HYPER["mu"]))
    assert model.trend_slopes_ is not None
    np.testing.assert_allclose(2.0 * model.trend_slopes_[0], coefficients[1], rtol=1e-7)
    rest = mean_of(x, y - columns(x) @ coefficients, weights, at)
    found = model.predict_dist(at)
    np.testing.assert_allclose(found.mean, rest + columns(at) @ coefficients, rtol=0.0, atol=2e-8)
    apart = columns(at) - covariance(at, x) @ solved
    added = np.einsum("ij,ji->i", apart, np.linalg.solve(inverse, apart.T))
    targets = y - columns(x) @ coefficients
    without = forest().fit(x, targets, sample_weight=weights).predict_dist(at)
    each = np.repeat(np.arange(len(at)), np.diff(found.offsets))
    np.testing.assert_allclose(found.variances, without.variances + added[each], rtol=1e-6)


@pytest.mark.slow
def test_trees_go_to_the_limit() -> None:
    """With ever more trees, their own joint mean comes nearer to that of the limit."""
    x, y, _ = data()
    at = places(x)
    expected = forest().fit(x, y).predict(at)

    def error(n_trees: int) -> float:
        model = forest(joint_kernel="trees", n_estimators=n_trees)
        means = [clone(model).set_params(random_state=i).fit(x, y).predict(at) for i in range(8)]
        return float(np.sqrt(np.mean((np.array(means) - expected) ** 2)))

    few, many = error(40), error(640)
    # Sixteen times as many trees have a fourth of the error.
    assert many == pytest.approx(few / 4.0, rel=0.25)


def test_auto_takes_the_limit_where_it_says() -> None:
    x, y, _ = data()
    limit, trees = (forest(joint_kernel=kind).fit(x, y) for kind in ("limit", "trees"))
    auto = forest(joint_kernel="auto").fit(x, y)
    at = places(x)
    assert np.array_equal(auto.predict(at), limit.predict(at))
    assert not np.array_equal(auto.predict(at), trees.predict(at))
    for params, kernel in (
        ({"min_samples_split": 3}, "limit"),
        ({"predictive": "realised"}, "trees"),
    ):
        one, other = (forest(joint_kernel=kind, **params).fit(x, y) for kind in ("auto", kernel))
        assert np.array_equal(one.predict(at), other.predict(at))
    # Each setting has digests of its own.
    assert len({model.digest() for model in (limit, trees, auto)}) == 3


def test_the_way_to_predict_may_be_changed() -> None:
    x, y, _ = data()
    at, more = places(x), (np.full((1, 3), 0.1), [0.2])
    for before, after in (("averaged", "realised"), ("realised", "averaged")):
        auto = forest(joint_kernel="auto", predictive=before).fit(x, y)
        auto.predict(at)
        auto.set_params(predictive=after).partial_fit(*more)
        kind = "limit" if after == "averaged" else "trees"
        same = forest(joint_kernel=kind, predictive=after).fit(x, y).partial_fit(*more)
        assert np.array_equal(auto.predict(at), same.predict(at))
    limit = forest().fit(x, y).set_params(predictive="realised")
    with pytest.raises(ValueError, match=r"joint_kernel.*predictive"):
        limit.partial_fit(*more)


@pytest.mark.slow
def test_auto_takes_the_trees_of_more_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(5001, 3))
    y = x[:, 0] + rng.normal(size=5001)
    all_rows, one_less = (
        {kind: forest(joint_kernel=kind).fit(x[:n], y[:n]) for kind in ("auto", "trees", "limit")}
        for n in (5001, 5000)
    )
    at = x[:5]
    for models, same in ((all_rows, "trees"), (one_less, "limit")):
        assert np.array_equal(models["auto"].predict(at), models[same].predict(at))
    # Forgetting a row leads from one to the other.
    assert np.array_equal(
        all_rows["auto"].copy().forget([5000]).predict(at), one_less["auto"].predict(at)
    )


def test_what_cannot_be_is_refused() -> None:
    x, y, _ = data()
    with pytest.raises(ValueError, match="joint_kernel"):
        forest(joint_kernel="limits").fit(x, y)
    for name, value in (("posterior", "exact"), ("predictive", "realised")):
        with pytest.raises(ValueError, match=f"joint_kernel.*{name}"):
            forest(**{name: value}).fit(x, y)
