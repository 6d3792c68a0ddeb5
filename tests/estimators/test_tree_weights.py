"""Rows with weights in Bayesian trees: a row of weight w counts as w rows."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import boscage
from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor
from boscage.bayes.evidence import compare_features, compare_parameters
from weights import impossible

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
N = X[:, 0] + 0.3 * RNG.normal(size=80)
Y = np.array(["low", "middle", "high"])[np.digitize(N + 0.5 * RNG.normal(size=80), [-0.5, 0.5])]
WHOLE = RNG.integers(1, 5, 80)
WEIGHTS = RNG.uniform(0.2, 2.0, size=80)
KINDS = [(BayesianTreeClassifier, Y), (BayesianTreeRegressor, N)]
SAMPLERS = [
    SMC(n_particles=20, n_islands=2),
    SMC(n_particles=20, n_islands=2, proposal="exploring", expansion="layer"),
    SMC(n_particles=20, n_islands=2, proposal="prior"),
    MCMC(n_chains=2, n_draws=20, n_burn=200),
]
each_kind = pytest.mark.parametrize(("kind", "y"), KINDS)


def fit(kind: Any, y: Any, weights: Any, sampler: Any = SAMPLERS[0], rows: Any = X) -> Any:
    return kind(sampler, random_state=0).fit(rows, y, weights)


def predicted(model: Any, rows: Any = X) -> Any:
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    return np.column_stack(model.predict(rows, return_std=True))


@each_kind
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_whole_weights_are_repeated_rows(kind: Any, y: Any, sampler: Any) -> None:
    once = fit(kind, y, WHOLE, sampler)
    rows, targets = (np.repeat(part, WHOLE, axis=0) for part in (X, y))
    often = fit(kind, targets, None, sampler, rows)
    np.testing.assert_allclose(predicted(once), predicted(often), rtol=1e-9)
    np.testing.assert_allclose(once.log_posterior_, often.log_posterior_, rtol=1e-9)
    np.testing.assert_allclose(once.weights_, often.weights_, rtol=1e-9)
    one, other = once.contributions(X[:5]), often.contributions(X[:5])
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)
    np.testing.assert_allclose(one.base_values, other.base_values, atol=1e-12)


@each_kind
def test_rows_of_weight_zero_are_left_out(kind: Any, y: Any) -> None:
    kept = np.arange(80) % 3 > 0
    found = predicted(fit(kind, y, np.where(kept, WEIGHTS, 0.0)))
    np.testing.assert_array_equal(found, predicted(fit(kind, y[kept], WEIGHTS[kept], rows=X[kept])))
    ones = fit(kind, y, kept.astype(int))
    np.testing.assert_array_equal(
        predicted(ones), predicted(fit(kind, y[kept], None, rows=X[kept]))
    )


def test_what_only_rows_of_weight_zero_have_is_unknown() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": pandas.Categorical([*"xyz"] * 20), "b": np.arange(60.0)})
    y = np.array(["one", "two", "three"] * 20)
    weights = np.where(np.arange(60) % 3 == 2, 0.0, 1.5)
    model = fit(BayesianTreeClassifier, y, weights, rows=table)
    assert model.categories_ == [["x", "y"], None]
    assert model.classes_.tolist() == ["one", "two"]
    kept = weights > 0.0
    alone = fit(BayesianTreeClassifier, y[kept], weights[kept], rows=table[kept])
    np.testing.assert_array_equal(predicted(model, table), predicted(alone, table))


@each_kind
def test_weights_of_one_are_none_and_others_are_not(kind: Any, y: Any) -> None:
    plain = predicted(fit(kind, y, None))
    np.testing.assert_array_equal(predicted(fit(kind, y, np.ones(80))), plain)
    # Twice the rows know more.
    assert not np.allclose(predicted(fit(kind, y, np.full(80, 2.0))), plain)


@each_kind
def test_the_order_of_rows_does_not_matter_to_sums(kind: Any, y: Any) -> None:
    """Weights of very different size are added exactly."""
    weights = 10.0 ** RNG.integers(-9, 10, 80)
    order = RNG.permutation(80)
    first, second = fit(kind, y, weights), fit(kind, y[order], weights[order], rows=X[order])
    np.testing.assert_allclose(predicted(first), predicted(second), rtol=1e-6)


@each_kind
def test_files_keep_weights(kind: Any, y: Any) -> None:
    rows = X.copy()
    rows[3, 1] = np.nan
    for weights, version in ((None, 9), (WEIGHTS, 11)):
        model = fit(kind, y, weights, rows=rows)
        file = BytesIO()
        model.save(file)
        assert int.from_bytes(file.getvalue()[8:12], "little") == version
        file.seek(0)
        loaded = boscage.load(file)
        np.testing.assert_array_equal(predicted(loaded, rows), predicted(model, rows))
        assert loaded.best_tree_.rules() == model.best_tree_.rules()


def test_trees_show_weights() -> None:
    model = fit(BayesianTreeClassifier, Y, WEIGHTS)
    tree = model.best_tree_
    in_root = [WEIGHTS[label == Y].sum() for label in model.classes_]
    np.testing.assert_allclose(tree.counts[0], in_root, rtol=1e-12)
    assert tree.n_rows[0] == 80
    assert "of the weight of" in tree.describe(0)
    one = fit(BayesianTreeClassifier, Y, WEIGHTS, MCMC(n_chains=1, n_draws=1, n_burn=50))
    tree = one.best_tree_
    leaf = tree.apply(X)
    proba = (tree.counts + one.alpha / 3) / (tree.counts.sum(axis=1, keepdims=True) + one.alpha)
    np.testing.assert_allclose(one.predict_proba(X), proba[leaf], rtol=1e-12)


def test_draws_of_leaves_have_the_weighted_posterior() -> None:
    """Mean and noise of a single leaf, against the distribution that it predicts."""
    weights = 5.0 * WEIGHTS
    sampler = MCMC(n_chains=1, n_draws=4000, n_burn=1)
    model = BayesianTreeRegressor(sampler, alpha_s=1e-300, random_state=0).fit(X, N, weights)
    tree = model.best_tree_
    assert tree.n_nodes == 1
    drawn = model._draw_rows(X[:1], np.random.default_rng(1))
    kappa = model.kappa + weights.sum()
    scale = tree.scale[0] / np.sqrt(1.0 + kappa)  # of the mean instead of a new target
    law = student(tree.df[0], tree.location[0], scale)
    f = drawn["f"][:, 0]
    for p in (0.1, 0.5, 0.9):
        assert np.mean(f < law.ppf(p)) == pytest.approx(p, abs=0.03)
    assert tree.target_mean[0] == pytest.approx(np.average(N, weights=weights))


def test_evidence_takes_weights() -> None:
    model = BayesianTreeClassifier(SAMPLERS[0], random_state=0)
    rows, targets = (np.repeat(part, WHOLE, axis=0) for part in (X, Y))
    grid, subsets = {"alpha_s": [0.5, 0.95]}, {"first": [0], "others": [1, 2]}
    once = compare_parameters(model, X, Y, grid, sample_weight=WHOLE)
    often = compare_parameters(model, rows, targets, grid)
    np.testing.assert_allclose(once.log_evidence, often.log_evidence, rtol=1e-9)
    once = compare_features(model, X, Y, subsets, sample_weight=WHOLE)
    often = compare_features(model, rows, targets, subsets)
    np.testing.assert_allclose(once.log_evidence, often.log_evidence, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:sample_weight sums to:UserWarning")
def test_balanced_class_weights_count_weights() -> None:
    model = fit(BayesianTreeClassifier, Y, 0.01 * WEIGHTS)
    plain = model.predict_proba(X) / [WEIGHTS[label == Y].sum() for label in model.classes_]
    balanced = model.set_params(class_weight="balanced").predict_proba(X)
    np.testing.assert_allclose(balanced, plain / plain.sum(axis=1, keepdims=True), rtol=1e-12)


@each_kind
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        *impossible(80),
        # The row's own number, though rows of weight 0 are left out.
        (np.arange(80) * 1e15, "holds 2000000000000000.0 for row 2; expected 0, or from 1e-100"),
    ],
)
def test_impossible_weights_are_refused(kind: Any, y: Any, weights: Any, message: str) -> None:
    model = kind(random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, weights)
    assert not hasattr(model, "_model")
