"""Rows with weights in BART for regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import BARTClassifier, BARTRegressor
from weights import impossible

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(80, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=80)
WEIGHTS = RNG.uniform(0.2, 2.0, size=80)
SHORT: dict[str, Any] = {"n_chains": 1, "n_burn": 20, "n_draws": 20, "random_state": 0}


def fit(weights: Any, rows: Any = slice(None), **params: Any) -> BARTRegressor:
    return BARTRegressor(10, **(SHORT | params)).fit(X[rows], Y[rows], weights)


def draws(model: BARTRegressor) -> Any:
    return np.concatenate([model.predict_draws(X).ravel(), model.sigma_.ravel()])


def test_rows_of_weight_zero_are_left_out() -> None:
    kept = np.arange(80) % 3 > 0
    with_zeros = fit(np.where(kept, WEIGHTS, 0.0))
    np.testing.assert_array_equal(draws(with_zeros), draws(fit(WEIGHTS[kept], kept)))
    ones = fit(kept.astype(float))
    np.testing.assert_array_equal(draws(ones), draws(fit(None, kept)))


def test_equal_weights_are_none() -> None:
    np.testing.assert_array_equal(draws(fit(np.full(80, 7.0))), draws(fit(None)))


def test_only_ratios_matter() -> None:
    np.testing.assert_array_equal(draws(fit(WEIGHTS)), draws(fit((4.0 * WEIGHTS).tolist())))


@pytest.mark.parametrize("k", [2.0, "learned"])
def test_chains_go_on_with_the_same_weights(k: Any) -> None:
    model = fit(WEIGHTS, k=k, warm_start=True, n_draws=5)
    model.set_params(n_draws=12).fit(X, Y, WEIGHTS)
    np.testing.assert_array_equal(draws(model), draws(fit(WEIGHTS, k=k, n_draws=12)))
    with pytest.raises(ValueError, match="a continued fit"):
        model.set_params(n_draws=20).fit(X, Y)


def test_precise_rows_count_more() -> None:
    """Half of the rows have ten times the noise; the posterior knows which."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(300, 1))
    f = np.sin(6.0 * x[:, 0])
    scale = np.where(rng.random(300) < 0.5, 0.1, 1.0)
    y = f + scale * rng.normal(size=300)
    given = {"n_chains": 2, "n_burn": 100, "n_draws": 99, "random_state": 0}
    weighted = BARTRegressor(20, **given).fit(x, y, 1.0 / scale**2)
    plain = BARTRegressor(20, **given).fit(x, y)
    errors = [np.sqrt(np.mean((model.predict(x) - f) ** 2)) for model in (weighted, plain)]
    assert errors[0] < 0.6 * errors[1]
    # The noise of a row of mean weight: sigma^2 = sigma_n^2 w_n / mean(w).
    expected = 1.0 / np.sqrt(np.mean(1.0 / scale**2))
    assert weighted.sigma_.mean() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        *impossible(80),
        (np.r_[0.0, 1e-200, np.ones(78)], "holds 1e-200 for row 1; expected 0, or at least"),
    ],
)
def test_impossible_weights_are_refused(weights: Any, message: str) -> None:
    model = fit(None)
    before = draws(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, weights)
    np.testing.assert_array_equal(draws(model), before)


def test_a_probit_has_no_weights() -> None:
    with pytest.raises(TypeError):
        BARTClassifier(10, **SHORT).fit(X, Y > 0.0, sample_weight=WEIGHTS)
