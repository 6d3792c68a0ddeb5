"""Joint classifiers with many rows: the limit of infinitely many trees by way of some rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier, load
from reference.arrays import Array

N = 10_200
"""With more than 10,000 rows, left-out rows choose the covariance."""


def data(n: int, seed: int) -> tuple[Array, Array]:
    """Noisy classes that follow smoothly from several features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 5))
    score = np.sin(5.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] + np.cos(4.0 * X[:, 3])
    return X, np.digitize(score + 0.5 * rng.normal(size=n), [0.3, 1.2])


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {
        "n_estimators": 4,
        "posterior": "joint",
        "feature_weights": None,
        "feature_range": (0.0, 1.0),
        "random_state": 1,
    }
    return MondrianForestClassifier(**settings | params)


@pytest.mark.slow
def test_it_is_a_function_of_the_set_of_rows() -> None:
    X, y = data(N, 0)
    at = X[:50] + 0.01
    whole = make().fit(X, y)
    expected = whole.predict_proba(at)
    order = np.random.default_rng(2).permutation(N)
    first, rest = order[:8_000], order[8_000:]
    grown = make(n_jobs=2, warm_up=0).partial_fit(X[first], y[first])
    grown.predict_proba(at)
    grown.partial_fit(X[rest], y[rest])
    grown.partial_fit(at, np.zeros(len(at), dtype=int), ids=np.arange(20_000, 20_050))
    grown.predict_proba(at)
    grown.forget(np.arange(20_000, 20_050))
    np.testing.assert_array_equal(grown.predict_proba(at), expected)
    file = io.BytesIO()
    grown.save(file)
    file.seek(0)
    np.testing.assert_array_equal(load(file).predict_proba(at), expected)
    # Of the same forest with the sum over its trees; the gap is closed.
    parts = whole.contributions(at[:3])
    total = parts.base_values + parts.values.sum(axis=1)
    np.testing.assert_allclose(total, expected[:3], rtol=0.0, atol=1e-9)


@pytest.mark.slow
def test_left_out_rows_choose_the_covariance() -> None:
    """Infinitely many trees where labels are noisy, the forest's own where details matter."""
    X, noisy = data(N + 2_000, 3)
    rng = np.random.default_rng(0)
    # Four thousand cells, more than there are landmarks.
    cells = rng.integers(2, size=(64, 64))[tuple(np.floor(64.0 * X[:, :2]).astype(int).T)]
    for y, features, least, most in [(noisy, 5, 0.9, 0.99), (cells, 2, 0.99, 1.01)]:
        x = X[:, :features]
        chosen, by_trees = (
            make(n_estimators=30, joint_kernel=kernel).fit(x[:N], y[:N]).predict_proba(x[N:])
            for kernel in ("auto", "trees")
        )
        # More rows calibrate where left-out rows choose, so that probabilities differ a little.
        assert least < log_loss(y[N:], chosen) / log_loss(y[N:], by_trees) < most
