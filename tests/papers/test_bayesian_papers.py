"""Section 3.4: Bayesian trees compared with CART on the papers' data sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from boscage import SMC, BayesianTreeClassifier
from papers import DATA, load
from reference.arrays import Array

pytestmark = pytest.mark.slow

ALPHA = 5.0


def split(name: str) -> tuple[Array, Array, Array, Array]:
    """The parts that the source defines, or a quarter of the rows to test with."""
    path = DATA / f"{name}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            if "X" in arrays:
                X, y = arrays["X"].astype(np.float32), arrays["y"]
                test, train = np.split(np.random.default_rng(0).permutation(len(X)), [len(X) // 4])
                return X[train], y[train], X[test], y[test]
    return load(name)


def scores(proba: Array, y: Array) -> tuple[float, float]:
    """Accuracy and mean log probability."""
    log_p = np.log(proba[np.arange(len(y)), y])
    return float((proba.argmax(axis=1) == y).mean()), float(log_p.mean())


def cart(criterion: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[float, float]:
    """CART as in section 3.4.4: leaves of at least ten rows, smoothed by the same alpha."""
    tree = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=10, random_state=0)
    tree.fit(X, y)
    counts = np.zeros((tree.tree_.node_count, tree.n_classes_))
    np.add.at(counts, (tree.apply(X), y), 1.0)
    smooth = counts + ALPHA / tree.n_classes_
    return scores((smooth / smooth.sum(axis=1, keepdims=True))[tree.apply(X_test)], y_test)


def smc(data: tuple[Array, Array, Array, Array], **options: Any) -> tuple[float, float]:
    X, y, X_test, y_test = data
    model = BayesianTreeClassifier(SMC(**options), alpha=ALPHA, random_state=0).fit(X, y)
    return scores(model.predict_proba(X_test), y_test)


@pytest.mark.parametrize("max_features", [None, 4])
@pytest.mark.parametrize(("name", "least"), [("pendigits", -0.36), ("magic04", -0.385)])
def test_smc_predicts_as_well_as_cart(name: str, least: float, max_features: int | None) -> None:
    data = split(name)
    accuracy, log_p = smc(data, n_particles=10, max_features=max_features)
    for criterion in ("gini", "entropy"):
        theirs = cart(criterion, *data)
        assert accuracy >= theirs[0] - 0.01
        assert log_p > theirs[1]
    assert log_p > least


def test_the_optimal_proposal_beats_the_prior_on_madelon() -> None:
    """Figure 3.4: 20 of 500 features are relevant, and the prior rarely draws them."""
    data = split("madelon")
    optimal = smc(data, n_particles=1)
    prior = smc(data, n_particles=100, proposal="prior")
    assert optimal[0] > prior[0] + 0.05
    assert optimal[1] > prior[1] + 0.1
