"""Both samplers, through the public API, compared with the exact posterior of dozens of rows."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np
import pytest

from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor
from reference.bayes_recursion import Posterior, dirichlet, normal, trees

slow = pytest.mark.slow
PRIOR = {"alpha_s": 0.7, "beta_s": 1.0}


def classes(n: int, d: int) -> tuple[Any, Any]:
    """Rows with ties, two of them equal but for their class, and one constant column.

    They do not depend on which tests have run before.
    """
    rng = np.random.default_rng([3, n, d])
    X = np.round(rng.normal(size=(n, d)), 1)
    X[:, -1] = rng.integers(0, 3, n) if d > 1 else X[:, -1]
    X[1] = X[0]
    X = np.hstack([X, np.ones((n, 1))])
    # Noisy, since otherwise all depends on a cut in one narrow gap, which is rarely drawn.
    y = (X[:, 0] + rng.normal(size=n) > 0.0).astype(int)
    y[0], y[1] = 0, 1
    return X, y


def test_recursion_agrees_with_all_trees_one_by_one() -> None:
    for n in (2, 4, 5):
        X, y = classes(n, 2)
        posterior = Posterior(X, dirichlet(y, 2, 1.0))
        summed = sum(trees(posterior, posterior.all_rows))
        assert np.log(summed) == pytest.approx(posterior.log_evidence(), abs=1e-10)
        assert sum(posterior.root().values()) == pytest.approx(1.0, abs=1e-10)


def holes(n: int, d: int) -> tuple[Any, Any]:
    """The same rows, with missing values that tell something of the class."""
    X, y = classes(n, d)
    rng = np.random.default_rng([5, n, d])
    X[rng.random(X.shape) < np.where(y == 1, 0.4, 0.1)[:, np.newaxis]] = np.nan
    X[:, -1] = 1.0
    X[0, -1] = np.nan
    return X, y


def check_trees(model: Any, posterior: Posterior) -> None:
    """Number of leaves and the root's decision, in the trees of the model and by enumeration."""
    shares: dict[tuple[int, float, bool | None] | None, float] = dict.fromkeys(
        posterior.root(), 0.0
    )
    n_leaves = 0.0
    some_missing = np.isnan(posterior.X).any(axis=0)
    values = [np.unique(column[np.isfinite(column)]).tolist() for column in posterior.X.T]
    for tree, weight in zip(model.trees_, model.weights_, strict=True):
        n_leaves += weight * tree.n_leaves
        key = None
        if tree.feature[0] >= 0:
            feature, end = int(tree.feature[0]), float(tree.threshold[0])
            if math.isfinite(end):
                end = values[feature][bisect_right(values[feature], end) - 1]
            side = bool(tree.missing_go_to_left[0]) if some_missing[feature] else None
            key = (feature, end, side)
        shares[key] += weight
    assert n_leaves == pytest.approx(posterior.n_leaves(), rel=0.03)
    for key, p in posterior.root().items():
        assert shares[key] == pytest.approx(p, abs=0.03)


OPTIONS: list[dict[str, Any]] = [
    {"proposal": "optimal"},
    {"proposal": "optimal", "max_features": 1, "resampling": "multinomial"},
    {"proposal": "optimal", "expansion": "layer", "resampling": "residual"},
    {"proposal": "exploring", "ess_threshold": 0.5},
    {"proposal": "exploring", "max_features": 1, "expansion": "layer"},
    {"proposal": "prior", "resampling": "stratified", "ess_threshold": 0.5},
    {"proposal": "empirical", "candidate_order": "marginal_likelihood"},
    {"proposal": "optimal", "resampling": "multinomial", "ess_threshold": 1.0},
]


@slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("n", "d"), [(24, 1), (14, 2), (12, 3)])
def test_smc_finds_the_exact_posterior(options: dict[str, Any], n: int, d: int) -> None:
    X, y = classes(n, d)
    posterior = Posterior(X, dirichlet(y, 2, 2.0), **PRIOR)
    # Islands weighted by their evidence are one large population, which is consistent.
    sampler = SMC(n_particles=2000, n_islands=20, island_weights="evidence", **options)
    model = BayesianTreeClassifier(sampler, alpha=2.0, random_state=1, **PRIOR)
    model.fit(X, y)
    error = model.log_marginal_likelihood_error_
    assert error < 0.05
    assert abs(model.log_marginal_likelihood_ - posterior.log_evidence()) < 5.0 * error
    check_trees(model, posterior)


@slow
@pytest.mark.parametrize(
    "options",
    OPTIONS,
    ids=str,
)
def test_smc_finds_the_exact_posterior_with_missing_values(options: dict[str, Any]) -> None:
    X, y = holes(10, 2)
    posterior = Posterior(X, dirichlet(y, 2, 2.0), **PRIOR)
    sampler = SMC(n_particles=2000, n_islands=20, island_weights="evidence", **options)
    model = BayesianTreeClassifier(sampler, alpha=2.0, random_state=1, **PRIOR)
    model.fit(X, y)
    error = model.log_marginal_likelihood_error_
    assert error < 0.05
    assert abs(model.log_marginal_likelihood_ - posterior.log_evidence()) < 5.0 * error
    check_trees(model, posterior)


@slow
def test_mcmc_finds_the_exact_posterior_with_missing_values() -> None:
    X, y = holes(10, 2)
    posterior = Posterior(X, dirichlet(y, 2, 2.0), **PRIOR)
    sampler = MCMC(n_draws=10_000, thin=20)
    model = BayesianTreeClassifier(sampler, alpha=2.0, random_state=0, **PRIOR).fit(X, y)
    check_trees(model, posterior)


@slow
def test_mcmc_finds_the_exact_posterior() -> None:
    X, y = classes(14, 2)
    posterior = Posterior(X, dirichlet(y, 2, 2.0), **PRIOR)
    model = BayesianTreeClassifier(
        MCMC(n_draws=5000, thin=20), alpha=2.0, random_state=0, **PRIOR
    ).fit(X, y)
    check_trees(model, posterior)


@slow
@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
def test_regression_finds_the_exact_posterior(sampler: Any) -> None:
    X, _ = classes(14, 2)
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0) + 0.4 * np.random.default_rng(4).normal(size=len(X))
    samplers = {
        "smc": SMC(n_particles=1000, n_islands=20, island_weights="evidence"),
        "mcmc": MCMC(n_draws=5000),
    }
    model = BayesianTreeRegressor(samplers[sampler], noise_share=0.5, random_state=0, **PRIOR).fit(
        X, y
    )
    posterior = Posterior(X, normal(y, **model.leaf_prior_), **PRIOR)
    if sampler == "smc":
        error = model.log_marginal_likelihood_error_
        assert abs(model.log_marginal_likelihood_ - posterior.log_evidence()) < 5.0 * error < 0.2
    check_trees(model, posterior)


WEIGHTED = {
    "smc": SMC(n_particles=2000, n_islands=20, island_weights="evidence"),
    "mcmc": MCMC(n_draws=10_000, thin=100),
}


@slow
@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
@pytest.mark.parametrize("kind", [BayesianTreeClassifier, BayesianTreeRegressor])
def test_samplers_find_the_posterior_of_weighted_rows(kind: Any, sampler: str) -> None:
    """The likelihood of a row of weight w is raised to the power w."""
    X, y = classes(10, 2)
    weights = np.random.default_rng(6).choice([0.2, 0.7, 1.0, 2.5], len(X))
    if kind is BayesianTreeClassifier:
        own = {"alpha": 2.0}
        posterior = Posterior(X, dirichlet(y, 2, 2.0, weights), **PRIOR)
    else:
        y = np.where(X[:, 0] > 0.2, 1.0, -1.0) + 0.4 * np.random.default_rng(4).normal(size=len(X))
        own = {"prior_mean": 0.5, "kappa": 0.4, "shape": 1.5, "scale": 0.3}
        posterior = Posterior(X, normal(y, 0.5, 0.4, 1.5, 0.3, weights), **PRIOR)
    model = kind(WEIGHTED[sampler], random_state=0, **own, **PRIOR).fit(X, y, weights)
    if sampler == "smc":
        error = model.log_marginal_likelihood_error_
        assert error < 0.05
        assert abs(model.log_marginal_likelihood_ - posterior.log_evidence()) < 5.0 * error
    check_trees(model, posterior)


def test_predictions_are_the_mixture_of_leaves() -> None:
    X, y = classes(40, 2)
    model = BayesianTreeClassifier(alpha=3.0, random_state=0).fit(X, y)
    expected = np.zeros((len(X), 2))
    for tree, weight, own in zip(model.trees_, model.weights_, model.apply(X).T, strict=True):
        np.testing.assert_array_equal(tree.apply(X), own)
        counts = tree.counts[own] + 1.5
        expected += weight * counts / counts.sum(axis=1, keepdims=True)
        reached = np.stack([np.bincount(own[y == k], minlength=tree.n_nodes) for k in (0, 1)], 1)
        np.testing.assert_array_equal(reached[tree.is_leaf], tree.counts[tree.is_leaf])
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)


def test_student_predictives() -> None:
    from scipy import stats

    X, _ = classes(40, 2)
    y = X[:, 0] ** 2
    model = BayesianTreeRegressor(random_state=0).fit(X, y)
    dist = model.predict_dist(X[:5])
    at = y[:5] + 0.1
    parts = stats.t(dist.df, dist.location, dist.scale)
    np.testing.assert_allclose(dist.pdf(at), parts.pdf(at[:, None]) @ dist.weights, rtol=1e-9)
    np.testing.assert_allclose(dist.cdf(at), parts.cdf(at[:, None]) @ dist.weights, rtol=1e-9)
    np.testing.assert_allclose(dist.cdf(dist.quantile(0.3)), 0.3, atol=1e-9)
    np.testing.assert_allclose(dist.mean, model.predict(X[:5]), rtol=1e-9)
    draws = dist.sample(200_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), dist.mean, atol=0.02 * dist.std.max())
    low, high = dist.interval(0.9)
    inside = ((draws > low) & (draws < high)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.005)


@slow
@pytest.mark.parametrize(
    "sampler",
    [
        MCMC(n_draws=20_000, thin=5),
        SMC(n_particles=3000, n_islands=20, island_weights="evidence"),
    ],
    ids=["mcmc", "smc"],
)
@pytest.mark.parametrize("last", [2.5, np.nan], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", [BayesianTreeClassifier, BayesianTreeRegressor])
def test_weights_of_trees_are_their_posterior_probabilities(
    kind: Any, last: float, sampler: Any
) -> None:
    """With the exact evidence, the probabilities of all trees sum to one."""
    X = np.array([[0.0, 1e9], [1.0, 1e9], [1.0, 3e9], [last, 1e9]])
    if kind is BayesianTreeClassifier:
        y, own = np.array([0, 1, 1, 0]), {"alpha": 0.8}
        posterior = Posterior(X, dirichlet(y, 2, 0.8), **PRIOR)
    else:
        y = np.array([0.2, 1.1, 1.3, 0.1])
        own = {"prior_mean": 0.5, "kappa": 0.4, "shape": 1.5, "scale": 0.3}
        posterior = Posterior(X, normal(y, 0.5, 0.4, 1.5, 0.3), **PRIOR)
    model = kind(sampler, random_state=0, **own, **PRIOR).fit(X, y)
    found: dict[str, tuple[float, float]] = {}
    for tree, weight, log in zip(model.trees_, model.weights_, model.log_posterior_, strict=True):
        name = name_of(tree, X)
        p = float(np.exp(log - posterior.log_evidence()))
        before, same = found.get(name, (0.0, p))
        assert same == pytest.approx(p, rel=1e-9)
        found[name] = (before + weight, p)
    weights, p = np.array(list(found.values())).T
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(weights, p, atol=0.012)
    best = model.best_tree_
    assert found[name_of(best, X)][1] == p.max()


def name_of(tree: Any, X: Any) -> str:
    sides = tree.missing_go_to_left
    # Only the first feature may have missing values.
    own = [] if sides is None else sides[tree.feature == 0].tolist()
    return f"{tree.feature.tolist()} {own} {tree.apply(X).tolist()}"
