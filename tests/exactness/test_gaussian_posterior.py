"""Regression against dense Gaussian algebra and numerical integration over the branch time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise, product
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from boscage import MondrianForestRegressor, _core
from forests import rates_of, trees_of
from gaussian_forests import HYPER, N_TREES, data, fit, queries
from reference import gaussian_bp as bp
from reference.arrays import (
    Array,
    Tree,
    parent_time,
    parts_from_a_leaf,
    path,
    root,
    rows_of_nodes,
)
from reference.mondrian_boxes import branch_rate, extend_at_random

# The thesis' prior, priors with a coarse part that is slower, faster, or nearly all there is, and
# priors that come late.
PRIORS = {
    "fine": HYPER,
    "coarse": replace(HYPER, coarse_variance=1.0, coarse_rate=0.2),
    "equally fast": replace(HYPER, coarse_variance=3.0, coarse_rate=0.6),
    "fast coarse": replace(HYPER, coarse_variance=2.0, coarse_rate=15.0),
    "nearly all coarse": replace(HYPER, gamma1=0.05, coarse_variance=3.0),
    "late": replace(HYPER, delay=1.5),
    "very late": replace(HYPER, delay=3.0),
    "sudden": replace(HYPER, gamma2=4.0, delay=0.5),
}


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "single rows": {"min_samples_split": 2},
    "lifetime": {"lifetime": 2.5},
    "outside the range": {"low": 0.4, "high": 0.45},
    "large nodes": {"min_samples_split": 15},
}


def in_the_fast_loop(prior: str, d: int, name: str) -> bool:
    """Each prior with one of the settings, and each of the settings with one prior."""
    return d == 1 and (prior == "coarse" or name == "default")


BRANCHES = pytest.mark.parametrize(
    ("prior", "d", "name"),
    [
        pytest.param(*case, marks=() if in_the_fast_loop(*case) else pytest.mark.slow)
        for case in product(PRIORS, (1, 3), SETTINGS)
    ],
)


def components(model: Any, x: Array) -> list[bp.Mixture]:
    offsets, weight, mean, variance = model.predict_dist(x)
    assert offsets[0] == 0
    assert len(offsets) == len(x) + 1
    assert offsets[-1] == len(weight) == len(mean) == len(variance)
    slices = [slice(a, b) for a, b in pairwise(offsets)]
    return [bp.Mixture(weight[s], mean[s], variance[s]) for s in slices]


def integrals(
    model: Any, x: Array, y: Array, at: Array, hyper: bp.Hyperparameters, name: str
) -> list[bp.Mixture]:
    """Integrate the forest's predictive numerically at each query."""
    low, high = SETTINGS[name].get("low", 0.0), SETTINGS[name].get("high", 1.0)
    rates, lifetime = rates_of(low, high, x.shape[1]), SETTINGS[name].get("lifetime", inf)
    trees = trees_of(model)
    bridges = [bp.Bridge(tree, x, y, hyper, lifetime) for tree in trees]
    return [
        bp.equal_mixture(
            [
                bp.predict(tree, x, y, point, hyper, rates, lifetime, bridge=bridge)
                for tree, bridge in zip(trees, bridges, strict=True)
            ]
        )
        for point in at
    ]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("prior", PRIORS)
def test_node_posteriors_and_evidence_equal_those_of_dense_algebra(
    name: str, d: int, prior: str
) -> None:
    x, y = data(d, d=d)
    hyper = PRIORS[prior]
    model = fit(x, y, hyper, **SETTINGS[name])
    evidence = []
    for tree in trees_of(model):
        mean, covariance, log_evidence = bp.posterior(tree, x, y, hyper)
        np.testing.assert_allclose(tree["mean"], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tree["variance"], np.diag(covariance), rtol=1e-8, atol=1e-10)
        evidence.append(log_evidence)
    assert model.log_marginal_likelihood() == pytest.approx(np.mean(evidence), rel=1e-10)


@pytest.mark.slow
@BRANCHES
def test_mean_and_variance_are_the_integral_over_the_branch_time(
    name: str, d: int, prior: str
) -> None:
    """To 1e-5 standard deviations and 1e-5 of the variance, at each query, for several gamma_2."""
    x, y = data(10 + d, d=d)
    at = queries(d, x)
    for gamma2 in (0.05, 0.6, 20.0):
        hyper = replace(PRIORS[prior], gamma2=gamma2)
        model = fit(x, y, hyper, **SETTINGS[name])
        found_mean, found_variance = model.predict(at)
        exact = [mixture.moments() for mixture in integrals(model, x, y, at, hyper, name)]
        mean, variance = np.array(exact).T
        np.testing.assert_allclose((found_mean - mean) / np.sqrt(variance), 0.0, rtol=0, atol=1e-5)
        np.testing.assert_allclose(found_variance, variance, rtol=1e-5)
        for i, mixture in enumerate(components(model, at)):
            assert mixture.weight.sum() == pytest.approx(1.0, abs=1e-12)
            assert (mixture.weight >= 0.0).all()
            assert (mixture.variance > 0.0).all()
            own_mean, own_variance = mixture.moments()
            assert own_mean == pytest.approx(found_mean[i], abs=1e-9 * np.sqrt(variance[i]))
            assert own_variance == pytest.approx(found_variance[i], rel=1e-9)


@pytest.mark.slow
@BRANCHES
def test_the_distribution_is_the_integral_over_the_branch_time(
    name: str, d: int, prior: str
) -> None:
    """Its distribution function to 0.01 everywhere, so that no interval's coverage is 2 % off.

    A branch's contribution is no normal: its mean and variance go from the parent's to the child's
    with the branch time. The forest has three trees, so that none hides the others' error. A clock
    that moves suddenly is cut into too few pieces for that: there it is 0.015.
    """
    x, y = data(10 + d, d=d)
    at = queries(d, x)
    hyper = PRIORS[prior]
    bound = 0.015 if prior == "sudden" else 0.01
    model = fit(x, y, hyper, **SETTINGS[name])
    exact = integrals(model, x, y, at, hyper, name)
    for ours, theirs in zip(components(model, at), exact, strict=True):
        mean, variance = theirs.moments()
        z = mean + np.sqrt(variance) * np.linspace(-4.0, 4.0, 41)
        np.testing.assert_allclose(ours.cdf(z), theirs.cdf(z), rtol=0, atol=bound)


@pytest.mark.parametrize("lifetime", [pytest.param(inf, marks=pytest.mark.slow), 2.5])
@pytest.mark.parametrize("prior", [pytest.param("fine", marks=pytest.mark.slow), "coarse"])
def test_prediction_is_the_mean_over_sampled_extensions(prior: str, lifetime: float) -> None:
    """Points added at random by Algorithm 5.6: both moments and P(y < 0), in standard errors."""
    x, y = data(3, n=14)
    hyper = PRIORS[prior]
    model = fit(x, y, hyper, n_estimators=1, lifetime=lifetime)
    (tree,) = trees_of(model)
    where = bp.leaf_of_rows(tree, x)
    rng = np.random.default_rng(3)
    rates = rates_of(0.0, 1.0, 2)
    at = rng.uniform(-0.3, 1.3, size=(6, 2))
    mean, variance = model.predict(at)
    z = []
    for i, mixture in enumerate(components(model, at)):
        draws = []
        for _ in range(400):
            extended, leaf, _ = extend_at_random(rng, tree, at[i], rates, lifetime)
            covariance = bp.prior_covariance(extended, hyper)
            m, v, _ = bp._condition(covariance, covariance[where], where, y, hyper)
            noisy = v[leaf, leaf] + hyper.noise
            draws.append([m[leaf], noisy + m[leaf] ** 2, norm.cdf(0.0, m[leaf], np.sqrt(noisy))])
        exact = np.array([mean[i], variance[i] + mean[i] ** 2, mixture.cdf(np.zeros(1))[0]])
        spread = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
        if spread[0] > 1e-9:  # else the point lies in its leaf's box and never branches off
            z.append((np.mean(draws, axis=0) - exact) / spread)
    assert len(z) >= 3
    assert np.abs(z).max() < 4.5
    assert np.square(z).mean() < 2.5


def realised_reference(tree: Tree, x: Array, y: Array, point: Array) -> tuple[float, float]:
    """Condition a tree that grew with the point in it on the other rows alone."""
    covariance = bp.prior_covariance(tree, HYPER)
    where = bp.leaf_of_rows(tree, x)
    mean, posterior, _ = bp._condition(covariance, covariance[where], where, y, HYPER)
    own = path(tree, point)[-1]
    return float(mean[own]), float(posterior[own, own]) + HYPER.noise


def test_realised_prediction_is_at_the_leaf_that_the_row_would_get() -> None:
    """Where a cut of the tree parts the query: the tree of rows and query, conditioned on the rows.

    A query that reaches a paused leaf branches off at another time, which has the right law (below)
    but is not that of the cuts that the leaf has not drawn yet.
    """
    rng = np.random.default_rng(4)
    x, y = rng.uniform(size=(9, 2)), rng.normal(size=9)
    at = np.concatenate([rng.uniform(-1.0, 2.0, size=(20, 2)), x[:2]])
    compared = 0
    for seed in range(6):
        settings = {"min_samples_split": 2, "n_estimators": 1, "seed": seed}
        mean, variance = fit(x, y, predictive="realised", **settings).predict(at)
        for i, point in enumerate(at):
            with_it = fit(np.vstack([x, point]), np.append(y, 9.0), **settings)
            (tree,) = trees_of(with_it)
            if parts_from_a_leaf(tree, path(tree, point)[-1]):
                continue
            compared += 1
            m, v = realised_reference(tree, x, y, point)
            assert mean[i] == pytest.approx(m, abs=1e-9)
            assert variance[i] == pytest.approx(v, rel=1e-8)
    assert compared > 30


@pytest.mark.parametrize("min_samples_split", [2, 10])
def test_realised_and_averaged_predictions_agree_over_many_trees(min_samples_split: int) -> None:
    """Both estimate one expectation: the difference of means in standard errors over the trees.

    A tree's own mean varies by no more than the predictive's standard deviation over all trees.
    """
    x, y = data(5)
    at = queries(5, x)
    found = [
        fit(x, y, n_estimators=1500, predictive=p, min_samples_split=min_samples_split).predict(at)
        for p in ("realised", "averaged")
    ]
    error = np.sqrt(np.maximum(found[0][1], found[1][1]) / 1500)
    assert (np.abs(found[0][0] - found[1][0]) / error).max() < 4.5
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0.15)


def along_a_ray() -> Array:
    steps = np.geomspace(0.05, 1e7, 30)
    return np.array([1.0, 0.5]) + np.array([1.0, 0.3]) * steps[:, None]


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_the_mean_returns_to_the_prior_along_a_ray(predictive: str) -> None:
    """In expectation monotonically: over 1,000 trees a step back is Monte Carlo error below 1 %."""
    x, y = data(6)
    model = fit(x, y + 3.0, n_estimators=1000, predictive=predictive)
    mean, variance = model.predict(along_a_ray())
    away = np.abs(mean - HYPER.mu)
    assert away[0] > 0.5
    assert (np.diff(away) < 0.01 * away[0]).all()
    assert away[-1] < 1e-4
    assert variance[-1] == pytest.approx(HYPER.gamma1 / 2 + HYPER.noise, rel=1e-4)


def test_the_variance_grows_to_the_priors_along_a_ray() -> None:
    """In every tree: the earlier the branch, the less the point's own leaf depends on the rows.

    With all labels (nearly) at mu_H, means do not differ and so add nothing to the variance.
    """
    x, y = data(6)
    model = fit(x, HYPER.mu + 1e-7 * y, n_estimators=20)
    _, variance = model.predict(along_a_ray())
    assert variance[0] < 0.6 * variance[-1]
    assert (np.diff(variance) > -1e-5).all()
    assert variance[-1] == pytest.approx(HYPER.gamma1 / 2 + HYPER.noise, rel=1e-4)


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("n", [1, 5])
def test_the_prior_returns_for_a_tree_of_one_leaf_too(n: int, predictive: str) -> None:
    """A single paused leaf without cuts: far from the data the labels have no influence."""
    x, y = data(6)
    model = fit(x[:n], y[:n] + 3.0, min_samples_split=10, n_estimators=50, predictive=predictive)
    mean, variance = model.predict(np.array([[1e9, 0.3], [-1e7, 1e9]]))
    np.testing.assert_allclose(mean, HYPER.mu, rtol=0, atol=1e-4)
    np.testing.assert_allclose(variance, HYPER.gamma1 / 2 + HYPER.noise, rtol=1e-4)


@pytest.mark.parametrize("lifetime", [2.0])
def test_with_a_lifetime_the_prior_is_that_of_the_lifetime(lifetime: float) -> None:
    """The own leaf of a point far away lives to the lifetime, as every leaf of the tree does."""
    x, y = data(6)
    _, variance = fit(x, y, lifetime=lifetime).predict(np.full((1, 2), 1e9))
    prior = float(bp.walk(lifetime, HYPER)) + HYPER.noise
    assert variance[0] == pytest.approx(prior, rel=1e-5)


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (-0.5, 7.0), (1e4, -3e4), (1e-5, 0.0)])
@pytest.mark.parametrize(
    ("posterior", "noise", "hyperparameters"),
    [
        ("fast", "global", "loo"),
        *itertools.product(["exact"], ["global", "local"], ["ml", "heuristic"]),
    ],
)
def test_predictions_are_equivariant(
    a: float, b: float, hyperparameters: str, noise: str, posterior: str
) -> None:
    """Labels a y + b: mean a m + b, variance a^2 v, to 1e-5 standard deviations."""
    x, y = data(7)
    at = queries(7, x)
    found = []
    for labels in (y, a * y + b):
        model = MondrianForestRegressor(
            5,
            min_samples_split=5,
            posterior=posterior,
            hyperparameters=hyperparameters,
            noise=noise,
            feature_range=(0.0, 1.0),
            feature_weights=None,
            random_state=7,
        ).fit(x, labels)
        found.append(model.predict(at, return_std=True))
    (mean, std), (mean_b, std_b) = found
    np.testing.assert_allclose((mean_b - b) / a, mean, rtol=0, atol=1e-5 * y.std())
    np.testing.assert_allclose(std_b / abs(a), std, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100, 1e135])
@pytest.mark.parametrize("min_samples_split", [2, 5])
@pytest.mark.parametrize("hyperparameters", ["ml", "heuristic"])
def test_predictions_scale_with_targets_of_any_magnitude(
    scale: float, hyperparameters: str, min_samples_split: int
) -> None:
    """Equivariance far from one: no overflow, no variance that is zero, negative or not finite."""
    x, y = data(7)
    at = queries(7, x)
    settings: dict[str, Any] = {
        "min_samples_split": min_samples_split,
        "hyperparameters": hyperparameters,
        "feature_range": (0.0, 1.0),
        "random_state": 7,
    }
    mean, std = MondrianForestRegressor(5, **settings).fit(x, y).predict(at, return_std=True)
    model = MondrianForestRegressor(5, **settings).fit(x, scale * y)
    scaled_mean, scaled_std = model.predict(at, return_std=True)
    np.testing.assert_allclose(scaled_mean / scale, mean, rtol=0, atol=1e-5 * y.std())
    np.testing.assert_allclose(scaled_std / scale, std, rtol=1e-5)


@pytest.mark.parametrize(
    ("posterior", "noise", "hyperparameters"),
    [
        ("fast", "global", "loo"),
        *itertools.product(["exact"], ["global", "local"], ["ml", "heuristic"]),
    ],
)
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_variances_are_positive_where_labels_repeat(
    posterior: str, noise: str, hyperparameters: str
) -> None:
    """Equal labels on duplicates imply no noise; variances stay positive."""
    grid = np.array([[0.5, 0.0], [0.5, 0.0], [0.5, 0.25], [0.5, 0.25], [0.1, 0.9]])
    for y in ([-3.3, -3.3, 0.2, 0.2, 0.2], [1e6, 1e6, 1.0, 1.0, 2.0], [7.1] * 5, [0.0] * 5):
        for n in (1, 2, 3, 4, 5):
            model = MondrianForestRegressor(
                10,
                min_samples_split=2,
                posterior=posterior,
                noise=noise,
                hyperparameters=hyperparameters,
                feature_range=(0.0, 1.0),
                feature_weights=None,
                random_state=1,
            ).fit(grid[:n], y[:n])
            mean, std = model.predict(np.vstack([grid, [[0.7, 0.7], [9.0, -9.0]]]), return_std=True)
            assert np.isfinite(mean).all()
            assert np.isfinite(std).all()
            assert (std > 0.0).all()


def test_fast_posterior_is_the_mean_and_variance_of_the_nodes_rows() -> None:
    """Section 6.3.3: each node's Gaussian has its rows' empirical mean (and variance)."""
    x, y = data(11)
    model = fit(x, y, hyper=None, posterior="fast", noise_variance=0.2)
    for tree in trees_of(model):
        for j, rows in enumerate(rows_of_nodes(tree, x)):
            assert tree["mean"][j] == pytest.approx(y[rows].mean(), rel=1e-10, abs=1e-12)
            assert tree["variance"][j] == pytest.approx(y[rows].var(), rel=1e-10, abs=1e-12)


def test_fast_prediction_is_the_mixture_over_the_path() -> None:
    """Algorithm 6.5: a branch takes the Gaussian of the node above it, at the root the root's."""
    x, y = data(11)
    noise, rates = 0.2, rates_of(0.0, 1.0, 2)
    model = fit(x, y, hyper=None, posterior="fast", noise_variance=noise)
    at = queries(11, x)
    found = np.transpose(model.predict(at))
    for point, moments in zip(at, found, strict=True):
        weights, nodes = [], []
        for tree in trees_of(model):
            stays, above = 1.0, (tree, root(tree))
            for j in path(tree, point):
                lived = float(tree["time"][j]) - parent_time(tree, j)
                rate = branch_rate(tree, j, point, rates)
                separates = -np.expm1(-lived * rate) if rate > 0.0 else 0.0
                weights.append(stays * separates)
                nodes.append(above)
                stays, above = stays * (1.0 - separates), (tree, j)
            weights.append(stays)
            nodes.append(above)
        mean = np.array([tree["mean"][j] for tree, j in nodes])
        variance = np.array([tree["variance"][j] for tree, j in nodes]) + noise
        mixture = bp.Mixture(np.array(weights) / N_TREES, mean, variance)
        np.testing.assert_allclose(moments, mixture.moments(), rtol=1e-9)


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_leave_one_out_is_forgetting_the_row_and_predicting_it(predictive: str) -> None:
    """With hyperparameters held fixed; the model is left as it was."""
    x, y = data(12, n=30)
    model = fit(x, y, predictive=predictive)
    before = model.digest()
    offsets, weight, mean, variance = model.loo_dist(None)
    assert len(offsets) == len(x) + 1
    for i in range(len(x)):
        without = model.copy()
        without.forget(np.array([i], dtype=np.uint64))
        part = slice(offsets[i], offsets[i + 1])
        loo = bp.Mixture(weight[part], mean[part], variance[part])
        direct = components(without, x[i : i + 1])[0]
        z = np.linspace(-4.0, 4.0, 9)
        np.testing.assert_allclose(loo.moments(), direct.moments(), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(loo.cdf(z), direct.cdf(z), rtol=0, atol=1e-9)
    assert model.digest() == before


@pytest.mark.parametrize("name", SETTINGS)
def test_a_rows_weight_divides_its_noise(name: str) -> None:
    """Predictions by dense algebra; the likelihood of a target is raised to the weight."""
    x, y = data(3)
    weights = np.random.default_rng(4).gamma(0.7, size=len(x)) + 1e-3
    low, high = SETTINGS[name].get("low", 0.0), SETTINGS[name].get("high", 1.0)
    lifetime = SETTINGS[name].get("lifetime", inf)
    settings = {key: value for key, value in SETTINGS[name].items() if key not in ("low", "high")}
    model = _core.MondrianRegressor(
        n_estimators=N_TREES,
        seed=1,
        posterior="exact",
        noise="global",
        given={
            "mu": HYPER.mu,
            "gamma1": HYPER.gamma1,
            "gamma2": HYPER.gamma2,
            "noise_variance": HYPER.noise,
        },
        **({"min_samples_split": 4} | settings),
    )
    ranges = {"low": np.full(2, low), "high": np.full(2, high)}
    model.fit(x, y, sample_weight=weights, **ranges)
    of_rows = replace(HYPER, noise=HYPER.noise / weights)  # type: ignore[arg-type]
    trees, rates = trees_of(model), rates_of(low, high, 2)
    bridges = [bp.Bridge(tree, x, y, of_rows, lifetime) for tree in trees]
    at = queries(3, x)
    mean, variance = model.predict(at)
    for i, point in enumerate(at):
        mixtures = [
            bp.predict(tree, x, y, point, HYPER, rates, lifetime, bridge=bridge)
            for tree, bridge in zip(trees, bridges, strict=True)
        ]
        expected = bp.equal_mixture(mixtures).moments()
        assert mean[i] == pytest.approx(expected[0], rel=1e-5, abs=1e-6)
        assert variance[i] == pytest.approx(expected[1], rel=1e-4)
    tau = 2.0 * np.pi * HYPER.noise
    powers = 0.5 * np.log(tau / weights) - 0.5 * weights * np.log(tau)
    expected = [bp.posterior(tree, x, y, of_rows)[2] + powers.sum() for tree in trees]
    assert model.log_marginal_likelihood() == pytest.approx(np.mean(expected), rel=1e-9)
