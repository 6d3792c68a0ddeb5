"""The reference for regression against itself: dense algebra, integration, extensions."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from reference import gaussian_bp as bp
from reference.arrays import Array, Tree, parent_time, path
from reference.mondrian_boxes import (
    Pausing,
    branch_off,
    branch_rate,
    extend_at_random,
    sample_mondrian_tree,
    to_arrays,
)

HYPER = bp.Hyperparameters(mu=0.7, gamma1=4.0, gamma2=0.8, noise=0.3)
RATES = np.array([1.0, 2.0])


def grow(seed: int, lifetime: float = inf, n: int = 14) -> tuple[Tree, Array, Array]:
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, 2))
    y = 2.0 * points[:, 0] + rng.normal(size=n)
    tree = sample_mondrian_tree(
        rng, points, y, rates=RATES, lifetime=lifetime, pausing=Pausing(min_samples_split=4)
    )
    return to_arrays(tree), points, y


def three_nodes() -> tuple[Tree, Array, Array]:
    tree: Tree = {
        "children_left": np.array([1, -1, -1]),
        "children_right": np.array([2, -1, -1]),
        "parent": np.array([-1, 0, 0]),
        "feature": np.array([0, -1, -1]),
        "threshold": np.array([0.5, np.nan, np.nan]),
        "time": np.array([0.9, inf, inf]),
        "lower": np.array([[0.1], [0.1], [0.8]]),
        "upper": np.array([[0.8], [0.3], [0.8]]),
        "n_rows": np.array([3, 2, 1]),
    }
    return tree, np.array([[0.1], [0.3], [0.8]]), np.array([1.5, 0.2, -1.1])


def test_three_nodes_against_integration_over_a_grid() -> None:
    """Posterior moments and evidence of (mu_root, mu_left, mu_right) on a grid of 91^3."""
    tree, points, y = three_nodes()
    g = np.linspace(-7.0, 8.0, 91)
    step = g[1] - g[0]
    r, a, b = np.meshgrid(g, g, g, indexing="ij")
    s = [1 / (1 + np.exp(-HYPER.gamma2 * t)) for t in (0.0, 0.9, inf)]
    root, leaf = (np.sqrt(HYPER.gamma1 * (s[i + 1] - s[i])) for i in (0, 1))
    log_density = norm.logpdf(r, HYPER.mu, root) + norm.logpdf(a, r, leaf) + norm.logpdf(b, r, leaf)
    for value, mu in zip(y, (a, a, b), strict=True):
        log_density += norm.logpdf(value, mu, np.sqrt(HYPER.noise))
    density = np.exp(log_density) * step**3
    evidence = density.sum()
    mean, covariance, log_evidence = bp.posterior(tree, points, y, HYPER)
    assert log_evidence == pytest.approx(np.log(evidence), abs=1e-6)
    for i, mu in enumerate((r, a, b)):
        assert mean[i] == pytest.approx((density * mu).sum() / evidence, abs=1e-6)
        second = (density * (mu - mean[i]) ** 2).sum() / evidence
        assert covariance[i, i] == pytest.approx(second, abs=1e-6)


@pytest.mark.parametrize("lifetime", [inf, 2.0])
def test_evidence_is_a_multivariate_normal(lifetime: float) -> None:
    for seed in range(5):
        tree, points, y = grow(seed, lifetime)
        where = bp.leaf_of_rows(tree, points)
        k = bp.prior_covariance(tree, HYPER)[np.ix_(where, where)]
        direct = multivariate_normal.logpdf(
            y, np.full(len(y), HYPER.mu), k + HYPER.noise * np.eye(len(y))
        )
        assert bp.posterior(tree, points, y, HYPER)[2] == pytest.approx(direct, abs=1e-10)


@pytest.mark.parametrize("lifetime", [inf, 2.0])
def test_the_bridge_is_the_posterior_of_the_extended_tree(lifetime: float) -> None:
    """At any branch time, conditioning in the tree with the two new nodes gives the same leaf."""
    for seed in range(5):
        tree, points, y = grow(seed, lifetime)
        where = bp.leaf_of_rows(tree, points)
        bridge = bp.Bridge(tree, points, y, HYPER, lifetime)
        for j in range(len(tree["parent"])):
            end = min(float(tree["time"][j]), parent_time(tree, j) + 3.0)
            t = parent_time(tree, j) + 0.37 * (end - parent_time(tree, j))
            extended, leaf = branch_off(tree, j, t, lifetime)
            covariance = bp.prior_covariance(extended, HYPER)
            mean, posterior, log_evidence = bp._condition(
                covariance, covariance[where], where, y, HYPER
            )
            ours = bridge.own_leaf(j, np.array([t]))
            assert ours[0][0] == pytest.approx(mean[leaf], abs=1e-10)
            assert ours[1][0] == pytest.approx(posterior[leaf, leaf], abs=1e-10)
            # a node without rows changes nothing that was there: closed under marginalisation
            old = bp.posterior(tree, points, y, HYPER)
            assert log_evidence == pytest.approx(old[2], abs=1e-10)
            np.testing.assert_allclose(mean[: len(old[0])], old[0], atol=1e-10)


@pytest.mark.parametrize("lifetime", [inf, 2.0])
def test_leaf_posterior_by_bridge_is_the_trees_own(lifetime: float) -> None:
    tree, points, y = grow(1, lifetime)
    mean, covariance, _ = bp.posterior(tree, points, y, HYPER)
    bridge = bp.Bridge(tree, points, y, HYPER, lifetime)
    for leaf in np.flatnonzero(tree["children_left"] < 0):
        assert bridge.at_leaf(int(leaf)) == pytest.approx(
            (mean[leaf], covariance[leaf, leaf]), abs=1e-10
        )


@pytest.mark.slow
@pytest.mark.parametrize("lifetime", [inf, 2.0])
def test_prediction_is_the_mean_over_sampled_extensions(lifetime: float) -> None:
    """First two moments of y and its distribution function, in standard errors."""
    rng = np.random.default_rng(5)
    z = []
    for seed in range(8):
        tree, points, y = grow(seed, lifetime, n=10)
        where = bp.leaf_of_rows(tree, points)
        x = rng.uniform(-0.4, 1.4, size=2)
        if branch_rate(tree, path(tree, x)[-1], x, RATES) == 0.0:
            continue
        draws = []
        for _ in range(400):
            extended, leaf, _ = extend_at_random(rng, tree, x, RATES, lifetime)
            covariance = bp.prior_covariance(extended, HYPER)
            mean, posterior, _ = bp._condition(covariance, covariance[where], where, y, HYPER)
            v = posterior[leaf, leaf] + HYPER.noise
            draws.append([mean[leaf], v + mean[leaf] ** 2, norm.cdf(0.5, mean[leaf], np.sqrt(v))])
        mixture = bp.predict(tree, points, y, x, HYPER, RATES, lifetime)
        m, v = mixture.moments()
        exact = np.array([m, v + m * m, mixture.cdf(np.array([0.5]))[0]])
        spread = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
        z.append((np.mean(draws, axis=0) - exact) / spread)
    assert len(z) >= 5
    assert np.abs(z).max() < 4.5
    assert np.square(z).mean() < 2.5


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 20.0, 0.05])
def test_quadrature_over_the_branch_time_has_converged(scale: float) -> None:
    """Against twice the nodes and, for the moments, against adaptive quadrature over the time."""
    tree, points, y = grow(2)
    at, rates = np.linspace(-4.0, 6.0, 21), RATES * scale
    bridge = bp.Bridge(tree, points, y, HYPER)
    queries = np.random.default_rng(1).uniform(-0.5, 1.5, size=(8, 2))
    for x in [*queries, np.array([1e6, 0.5])]:
        coarse = bp.predict(tree, points, y, x, HYPER, rates)
        fine = bp.predict(tree, points, y, x, HYPER, rates, n_nodes=401)
        assert coarse.weight.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(coarse.moments(), fine.moments(), rtol=1e-8)
        np.testing.assert_allclose(coarse.cdf(at), fine.cdf(at), rtol=0, atol=1e-8)
        first, second, stay = 0.0, 0.0, 1.0
        for j in path(tree, x):
            rate, before = branch_rate(tree, j, x, rates), parent_time(tree, j)
            width = min(float(tree["time"][j]) - before, 60.0 / max(rate, 1e-9))
            for a, b in pairwise(width * np.array([0.0, 1e-3, 1e-2, 0.05, 0.2, 0.5, 1.0])):
                t, dt = np.polynomial.legendre.leggauss(40)
                t = 0.5 * (a + b) + 0.5 * (b - a) * t
                mean, variance = bridge.own_leaf(j, before + t)
                weight = stay * rate * np.exp(-rate * t) * 0.5 * (b - a) * dt
                first += weight @ mean
                second += weight @ (mean**2 + variance + HYPER.noise)
            stay *= np.exp(-rate * (float(tree["time"][j]) - before)) if rate > 0.0 else 1.0
        mean_leaf, variance_leaf = bridge.at_leaf(path(tree, x)[-1])
        first += stay * mean_leaf
        second += stay * (mean_leaf**2 + variance_leaf + HYPER.noise)
        found = coarse.moments()
        np.testing.assert_allclose(found, (first, second - first**2), rtol=1e-6, atol=1e-8)


def test_far_away_the_prior_returns() -> None:
    tree, points, y = grow(3)
    m, v = bp.predict(tree, points, y, np.array([1e9, -1e9]), HYPER, RATES).moments()
    assert m == pytest.approx(HYPER.mu, abs=1e-6)
    assert v == pytest.approx(HYPER.gamma1 / 2 + HYPER.noise, rel=1e-6)
