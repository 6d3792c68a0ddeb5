"""Acquisition functions against numerical integration and their definitions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from boscage import GaussianMixture, MondrianForestRegressor
from boscage.optimize._acquisition import (
    confidence_bound,
    log_expected_improvement,
    log_probability_below,
    mixture_log_expected_improvement,
    tree_draw,
)


def _mixture():
    rng = np.random.default_rng(0)
    counts = np.array([1, 3, 7, 2])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    weights = rng.random(counts.sum())
    weights /= np.repeat(np.add.reduceat(weights, offsets[:-1]), counts)
    return GaussianMixture(
        offsets, weights, rng.normal(size=counts.sum()), rng.uniform(0.1, 2.0, counts.sum())
    )


@pytest.mark.parametrize("best", [-1.5, 0.0, 2.0])
def test_expected_improvement_is_its_integral(best):
    dist = _mixture()
    found = np.exp(mixture_log_expected_improvement(dist, best))
    for row in range(len(dist)):
        weights, means, variances = dist.components(row)

        def integrand(y, weights=weights, means=means, variances=variances):
            return (best - y) * (weights * norm.pdf(y, means, np.sqrt(variances))).sum()

        expected, _ = quad(integrand, best - 20, best, limit=200, points=[best - 3])
        assert found[row] == pytest.approx(expected, rel=1e-7)


def test_one_component_is_a_gaussian():
    mean, std = np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.5, 0.1])
    mixture = GaussianMixture.from_normal(mean, std)
    np.testing.assert_allclose(
        mixture_log_expected_improvement(mixture, 0.5), log_expected_improvement(mean, std, 0.5)
    )


def test_the_logarithm_of_a_small_improvement():
    # Both branches of the formula, at the place where they meet and far beyond.
    std = np.ones(2)
    for at in (1.0, 12.0, 35.0, 50.0):
        low, high = log_expected_improvement(np.array([at - 1e-9, at + 1e-9]), std, 0.0)
        assert low > high
        # The density is taken out of the integral, which would underflow.
        exact, _ = quad(lambda y, at=at: -y * np.exp(at * y - y * y / 2), -40.0, 0.0, points=[-1])
        assert high == pytest.approx(np.log(exact) + norm.logpdf(at), abs=1e-7)
    far = log_expected_improvement(np.array([1e3, 2e3]), std, 0.0)
    assert np.isfinite(far).all()
    assert far[0] > far[1]


def test_probability_below():
    dist = _mixture()
    np.testing.assert_allclose(np.exp(log_probability_below(dist, 0.3)), dist.cdf(0.3))
    far = log_probability_below(GaussianMixture.from_normal([0.0], [1.0]), -60.0)
    assert -1900 < far[0] < -1700


def test_confidence_bound_is_the_papers_for_minimisation():
    mean, std = np.array([1.0, 2.0]), np.array([0.5, 2.0])
    assert confidence_bound(mean, std, 1.0).tolist() == [0.5, 0.0]
    assert confidence_bound(mean, std, 2.0).tolist() == [0.0, -2.0]


@pytest.mark.parametrize("posterior", ["exact", "fast", "joint"])
def test_draws_of_trees_have_the_moments_of_the_forest(posterior):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    rule = "loo" if posterior == "fast" else "ml"
    forest = MondrianForestRegressor(
        10,
        posterior=posterior,
        hyperparameters=rule,
        noise="local" if posterior == "fast" else "global",
        predictive="realised",
        feature_weights=None,
        random_state=0,
    ).fit(X, X.sum(axis=1))
    dist = forest.predict_dist(rng.random((20, 2)))
    draws = np.array([tree_draw(dist, 10, seed) for seed in range(1500)])
    error = np.sqrt(dist.var / 1500)
    assert (np.abs(draws.mean(axis=0) - dist.mean) < 4 * error).all()
    np.testing.assert_allclose(draws.var(axis=0), dist.var, rtol=0.25)


def test_a_draw_is_one_function():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    forest = MondrianForestRegressor(
        10, predictive="realised", feature_weights=None, random_state=0
    ).fit(X, X[:, 0])
    rows = rng.random((30, 2))
    both = tree_draw(forest.predict_dist(rows), 10, 3)
    parts = [tree_draw(forest.predict_dist(part), 10, 3) for part in (rows[:7], rows[7:])]
    np.testing.assert_array_equal(both, np.concatenate(parts))
    assert not np.array_equal(both, tree_draw(forest.predict_dist(rows), 10, 4))
