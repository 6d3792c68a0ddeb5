"""Rows with weights in BART."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import BARTClassifier, BARTRegressor
from forests import through_file
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


def classes(weights: Any, rows: Any = slice(None), *, n: int = 2, **params: Any) -> BARTClassifier:
    return BARTClassifier(10, **(SHORT | params)).fit(X[rows], LABELS[n][rows], weights)


LABELS = {2: Y > 0.0, 3: np.digitize(Y, [-0.3, 0.5])}
# With two classes weights are whole.
OF_CLASSES = {2: np.ceil(2.0 * WEIGHTS), 3: WEIGHTS}
each_number = pytest.mark.parametrize("n", [2, 3])


@each_number
def test_rows_of_weight_zero_have_no_class(n: int) -> None:
    kept = np.arange(80) % 3 > 0
    weights = OF_CLASSES[n]
    some, others = classes(np.where(kept, weights, 0.0), n=n), classes(weights[kept], kept, n=n)
    np.testing.assert_array_equal(some.predict_draws(X), others.predict_draws(X))
    ones, none = classes(kept.astype(float), n=n), classes(None, kept, n=n)
    np.testing.assert_array_equal(ones.predict_draws(X), none.predict_draws(X))


@each_number
def test_weights_move_shares(n: int) -> None:
    """Where features say nothing, probabilities are the classes' shares of all weight."""
    x = np.zeros((600, 1))
    labels = np.resize(np.arange(n), 600)
    heavy, light = (3.0, 1.0) if n == 2 else (2.6, 0.7)
    weights = np.where(labels == 0, heavy, light)
    model = BARTClassifier(5, n_chains=1, n_burn=50, n_draws=300, random_state=0)
    found = model.fit(x, labels, weights).predict_proba(x[:1])[0]
    share = heavy / (heavy + light * (n - 1))
    assert found[0] == pytest.approx(share, abs=0.02)
    np.testing.assert_allclose(found[1:], (1.0 - share) / (n - 1), atol=0.02)
    # Those of a balanced population, for which weights of training do not matter.
    balanced = model.set_params(class_weight="balanced").predict_proba(x[:1])[0]
    np.testing.assert_allclose(balanced, 1.0 / n, atol=0.03)


@each_number
@pytest.mark.parametrize("k", [2.0, "learned"])
def test_chains_of_classes_go_on_with_the_same_weights(n: int, k: Any) -> None:
    if n > 2 and k == "learned":
        pytest.skip("k is learned for two classes alone")
    weights = OF_CLASSES[n]
    model = classes(weights, n=n, k=k, warm_start=True, n_draws=5)
    model.set_params(n_draws=12).fit(X, LABELS[n], weights)
    whole = classes(weights, n=n, k=k, n_draws=12)
    np.testing.assert_array_equal(model.predict_draws(X), whole.predict_draws(X))
    with pytest.raises(ValueError, match="a continued fit"):
        model.set_params(n_draws=20).fit(X, LABELS[n])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        *(case for case in impossible(80) if "at least" not in case[1]),
        (np.r_[0.0, 1e-13, np.ones(78)], "holds 1e-13 for row 1; expected 0, or from 1e-12 to 1e9"),
        (np.r_[np.ones(79), -1.0], "holds -1.0 for row 79; expected 0, or from 1e-12 to 1e9"),
        (np.r_[0.0, 1.5, np.ones(78)], "a whole number from 1 to 65536 if there are two classes"),
        (
            np.where(LABELS[2], 1.0, 0.0),
            "two classes in rows whose weight is not 0, found one class",
        ),
    ],
)
def test_impossible_weights_of_classes_are_refused(weights: Any, message: str) -> None:
    model = classes(None)
    before = model.predict_draws(X)
    with pytest.raises(ValueError, match=message):
        model.fit(X, LABELS[2], weights)
    np.testing.assert_array_equal(model.predict_draws(X), before)


@each_number
def test_weights_may_be_very_unequal(n: int) -> None:
    weights = np.geomspace(1.0, 65536.0, 80).round() if n == 2 else np.geomspace(1e-9, 1e9, 80)
    assert np.isfinite(classes(weights, n=n).predict_draws(X)).all()


@each_number
@pytest.mark.filterwarnings("ignore:the chains disagree")  # short chains of latent numbers do
def test_chains_from_anywhere_agree(n: int) -> None:
    """Chains start from draws of the prior, under which many rows are unlikely."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(500, 3))
    f = 3.0 * np.sin(6.0 * x[:, 0])
    labels = f + rng.normal(size=500) > 0.0 if n == 2 else np.digitize(f, [-1.0, 1.0])
    weights = rng.integers(1, 6, 500) if n == 2 else rng.gamma(1.0, size=500)
    model = BARTClassifier(50, n_chains=4, n_burn=200, n_draws=200, random_state=0)
    found = model.fit(x, labels, weights).trace_["log_likelihood"].mean(axis=1)
    assert np.ptp(found) < 0.2 * abs(found.mean())


def test_classes_of_a_weighted_model_are_balanced_after_a_load() -> None:
    for n in (2, 3):
        model = classes(OF_CLASSES[n], n=n, class_weight="balanced")
        loaded = through_file(model).set_params(class_weight="balanced")
        np.testing.assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))
