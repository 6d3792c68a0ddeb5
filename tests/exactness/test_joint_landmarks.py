"""The joint model of infinitely many trees with many rows: solved by way of some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from boscage import MondrianForestRegressor, load
from reference.arrays import Array

N = 5_200
"""With more than 5,000 rows, left-out rows choose the covariance."""
HYPER = {
    "mu": 14.0,
    "gamma1": 20.0,
    "gamma2": 2.0,
    "noise_variance": 1.0,
    "coarse_variance": 0.0,
    "joint_gamma1": 20.0,
    "joint_gamma2": 8.0,
    "joint_noise_variance": 0.8,
    "joint_share": 1.0,
    "tree_spread": 0.5,
    "joint_limit": 1.0,
}


def forest(**params: Any) -> MondrianForestRegressor:
    settings: dict[str, Any] = {
        "n_estimators": 2,
        "hyperparameters": HYPER,
        "noise": "global",
        "feature_weights": None,
        "feature_range": (0.0, 1.0),
        "trend": None,
        "random_state": 1,
    }
    return MondrianForestRegressor(**settings | params)


def data(n_places: int | None = None) -> tuple[Array, Array]:
    """Rows, or rows at so many places."""
    X, y = make_friedman1(N, noise=1.0, random_state=0)
    if n_places is not None:
        X = X[np.random.default_rng(0).integers(n_places, size=N)]
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("trend", [None, [3, 4]])
def test_with_few_places_it_is_the_model_of_all_rows(trend: list[int] | None) -> None:
    """Where every place is a landmark, they know all that the rows know."""
    X, y = data(n_places=1_400)
    weights = np.random.default_rng(1).integers(1, 5, size=N) / 2.0
    given = HYPER if trend is None else {**HYPER, "trend_variance": 30.0, "trend_scale": 1.2}
    by_landmarks, by_rows = (
        forest(joint_kernel=kernel, trend=trend, hyperparameters=given).fit(
            X, y, sample_weight=weights
        )
        for kernel in ("auto", "limit")
    )
    at = np.concatenate([X[:20], make_friedman1(30, random_state=3)[0], np.full((1, 10), 9.0)])
    found, expected = (model.predict(at, return_std=True) for model in (by_landmarks, by_rows))
    np.testing.assert_allclose(found[0], expected[0], rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    assert not np.array_equal(found[0], expected[0])


@pytest.mark.slow
@pytest.mark.parametrize("least", [2, 5])
def test_leaving_a_row_out_is_forgetting_it(least: int) -> None:
    """Also the rows that are landmarks: about three in ten."""
    X, y = data()
    given = {**HYPER, "trend_variance": 9.0}
    model = forest(trend=[3], hyperparameters=given, min_samples_split=least).fit(X, y)
    rows = np.arange(0, 60, 10)
    left_out = model.loo_predict_dist(rows)
    forgotten = [model.copy().forget([row]).predict_dist(X[[row]]) for row in rows]
    means = np.concatenate([dist.mean for dist in forgotten])
    np.testing.assert_allclose(left_out.mean, means, rtol=0.0, atol=1e-6)
    assert np.all(np.abs(left_out.mean - model.predict(X[rows])) > 1e-6)


@pytest.mark.slow
def test_it_is_a_function_of_the_set_of_rows(tmp_path: Any) -> None:
    X, y = data()
    at = X[:50] + 0.01
    expected = forest().fit(X, y).predict(at)
    order = np.random.default_rng(2).permutation(N)
    grown = forest(n_jobs=2, warm_up=0).partial_fit(X[order[:4_000]], y[order[:4_000]])
    grown.predict(at)
    grown.partial_fit(X[order[4_000:]], y[order[4_000:]])
    grown.partial_fit(at, np.zeros(len(at)), ids=np.arange(10_000, 10_050))
    grown.predict(at)
    grown.forget(np.arange(10_000, 10_050))
    np.testing.assert_array_equal(grown.predict(at), expected)
    grown.save(tmp_path / "grown.boscage")
    again = load(tmp_path / "grown.boscage")
    np.testing.assert_array_equal(again.predict(at), expected)
    assert again.hyperparameters_["joint_limit"] == 1.0


@pytest.mark.slow
def test_left_out_rows_choose_the_covariance() -> None:
    """Infinitely many trees where targets are smooth, the forest's own where details matter."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    smooth = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=N)
    # Four thousand cells, more than there are landmarks.
    cells = rng.normal(size=(64, 64))[tuple(np.floor(64.0 * X).astype(int).T)]
    chosen = [
        MondrianForestRegressor(20, feature_weights=None, trend=None, random_state=0)
        .fit(X, y)
        .hyperparameters_
        for y in (smooth, cells + 0.05 * rng.normal(size=N))
    ]
    assert [hyper.get("joint_limit") for hyper in chosen] == [1.0, None]


@pytest.mark.slow
def test_kept_hyperparameters_predict_the_same() -> None:
    X, y = data()
    model = MondrianForestRegressor(10, feature_weights=None, random_state=0).fit(X, y)
    expected = model.predict(X[:50], return_std=True)
    model.set_params(hyperparameters=model.hyperparameters_)
    np.testing.assert_array_equal(model.predict(X[:50], return_std=True), expected)
    assert model.hyperparameters_["joint_limit"] == 1.0


def test_joint_limit_is_one_or_left_out() -> None:
    X, y = data()
    with pytest.raises(ValueError, match=r"joint_limit.*1 beside"):
        forest(hyperparameters={**HYPER, "joint_limit": 0.5}).fit(X[:50], y[:50])
