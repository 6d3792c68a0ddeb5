"""``posterior="joint"`` of classifiers: what all trees explain together, and its weight.

The covariance is that of the forest's trees; `test_joint_class_limit` has infinitely many.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier
from joint_classes import averaging, fit_in_any_history, with_power_alone
from reference import class_process
from reference.arrays import Array, Tree, as_dict

RATE, NOISE = 0.05, 0.1
"""The clock's rate in units of the sum of the feature weights, and the variance of the noise."""


def data(n: int, d: int = 16, n_classes: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Return digits, each feature the mean of some pixels; all tell a little of the class."""
    pixels, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(y < n_classes))[:n]
    x = pixels[rows].reshape(n, d, -1).mean(axis=2) / 16.0
    return x, y[rows]


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {
        "n_estimators": 12,
        "feature_range": (0.0, 1.0),
        "feature_weights": None,
        "random_state": 3,
        "posterior": "joint",
        "joint_kernel": "trees",
        "trend": None,
    }
    return MondrianForestClassifier(**(settings | params))


ALONE: dict[str, Any] = {"posterior": "kneser-ney", "joint_kernel": "auto"}
KINDS: list[dict[str, Any]] = [
    {"joint_kernel": "limit"},
    {"joint_kernel": "trees"},
    {"joint_kernel": "trees", "predictive": "realised"},
]


def without_noise(model: MondrianForestClassifier, proba: Array) -> Array:
    """Return q from a mixture of q and noise; what is next to nothing is lost in rounding."""
    noise = model.calibration_noise_
    return np.maximum((proba - noise / proba.shape[1]) / (1.0 - noise), 1e-13)


def function_of(model: MondrianForestClassifier, proba: Array, average: Array) -> Array:
    """Return f from log q = a log p_average + b f + constant, whose sum over classes is 0."""
    difference = np.log(without_noise(model, proba)) - model.calibration_power_ * np.log(average)
    centred = difference - difference.mean(axis=1, keepdims=True)
    return np.asarray(centred / model.joint_weight_)


def trees_of(model: MondrianForestClassifier) -> list[Tree]:
    return [as_dict(tree) for tree in model.trees_]


def reference(model: MondrianForestClassifier, x: Array, y: Array, at: Array) -> Array:
    """The function by dense linear algebra; ranges are (0, 1), so that rates are weights."""
    rates = np.asarray(model.feature_weights_)
    return class_process.function(
        trees_of(model), x, y, at, rate=RATE * rates.sum(), rates=rates, noise=NOISE
    )


CASES: list[tuple[dict[str, Any], int]] = [
    ({}, 2),
    ({}, 4),
    ({"lifetime": 4.0, "min_samples_split": 5}, 3),
    ({"feature_weights": [1.0, 1.0, 0.5, 0.0] * 4}, 3),
]


@pytest.mark.parametrize(("settings", "n_classes"), CASES)
def test_the_function_is_that_of_the_gaussian_process(
    settings: dict[str, Any], n_classes: int
) -> None:
    rng = np.random.default_rng(21)
    x, y = data(90, n_classes=n_classes, seed=1)
    x[86:] = x[:4]  # copies, some with another label
    model = with_power_alone(make(n_estimators=8, **settings).fit(x, y))
    assert model.joint_weight_ > 0.5
    at = np.concatenate(
        [x[:10] + 0.02 * rng.normal(size=(10, 16)), rng.uniform(-0.4, 1.4, size=(25, 16))]
    )
    found = function_of(model, model.predict_proba(at), averaging(model).predict_proba(at))
    expected = reference(model, x, y, at)
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "n_classes"), CASES)
def test_a_row_of_whole_weight_is_as_many_rows_of_the_process(
    settings: dict[str, Any], n_classes: int
) -> None:
    rng = np.random.default_rng(22)
    x, y = data(60, n_classes=n_classes, seed=1)
    x[56:] = x[:4]
    weights = rng.integers(1, 5, size=60)
    model = with_power_alone(make(n_estimators=8, **settings).fit(x, y, weights))
    assert model.joint_weight_ > 0.2
    at = np.concatenate([x[:10] + 0.02 * rng.normal(size=(10, 16)), rng.uniform(size=(25, 16))])
    found = function_of(model, model.predict_proba(at), averaging(model).predict_proba(at))
    expected = reference(model, x.repeat(weights, axis=0), y.repeat(weights), at)
    np.testing.assert_allclose(found, expected, atol=5e-4)
    # And of rows that are left out, with all of their weight.
    average, left_out = model.loo_predict_proba(calibrated=False), model.loo_predict_proba()
    seen = np.minimum(average, without_noise(model, left_out)).min(axis=1) > 1e-8
    for row in np.flatnonzero(seen)[:3].tolist():
        found = function_of(model, left_out[[row]], average[[row]])
        without = averaging(model).forget(row)
        rest = np.delete(np.arange(60), row).repeat(np.delete(weights, row))
        expected = reference(without, x[rest], y[rest], x[[row]])
        np.testing.assert_allclose(found, expected, atol=2e-3)
    assert seen.sum() > 3


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "n_classes"), CASES)
def test_left_out_rows_meet_the_process_of_the_forest_that_forgot_them(
    settings: dict[str, Any], n_classes: int
) -> None:
    """By refits, whose trees differ: splits that only the row made necessary are leaves."""
    n = 80
    x, y = data(n, n_classes=n_classes, seed=1)
    y[:3] = (y[:3] + 1) % n_classes  # wrong labels, which split leaves of one class
    model = with_power_alone(make(n_estimators=5, **settings).fit(x, y))
    assert model.joint_weight_ > 0.1
    found = function_of(model, model.loo_predict_proba(), model.loo_predict_proba(calibrated=False))
    for row in [0, 1, 2, 40, 55, 70]:
        without = averaging(model).forget(row)
        rest = np.delete(np.arange(n), row)
        expected = reference(without, x[rest], y[rest], x[[row]])[0]
        np.testing.assert_allclose(found[row], expected, atol=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_left_out_predictions_are_those_of_refits(predictive: Any) -> None:
    """Also where rows follow the trees' own cuts; power and weight are those with the row."""
    x, y = data(80, seed=1)
    y[:3] = (y[:3] + 1) % 3
    model = with_power_alone(make(predictive=predictive).fit(x, y))
    assert model.joint_weight_ > 0.1
    left_out = model.loo_predict_proba(calibrated=False)
    # The function is not seen where trees are all but sure that a class is impossible.
    least = without_noise(model, model.loo_predict_proba()).min(axis=1)
    seen = (left_out.min(axis=1) > 0.0) & (least > 1e-8)
    rows = [row for row in range(80) if seen[row] and (row < 3 or row % 8 == 0)]
    assert len(rows) > 5
    found = dict(
        zip(rows, function_of(model, model.loo_predict_proba(rows), left_out[rows]), strict=True)
    )
    for row in rows:
        without = model.copy().forget(row)
        assert without.joint_weight_ > 0.1
        average = averaging(without).predict_proba(x[[row]])
        expected = function_of(without, without.predict_proba(x[[row]]), average)[0]
        np.testing.assert_allclose(found[row], expected, atol=1e-3)


@pytest.mark.slow
def test_power_noise_and_weight_are_the_best_ones_for_rows_left_out() -> None:
    """With the priors: one row's worth of a power of 1, and of a weight of 10 or less."""
    n = 240
    x, y = data(n, n_classes=8)
    y[:3] = (y[:3] + 1) % 8
    model = with_power_alone(make().fit(x, y))
    average = model.loo_predict_proba(calibrated=False)
    values = function_of(model, model.loo_predict_proba(), average)

    noise = model.calibration_noise_

    def loss(power: float, weights: Array, noise: float = noise) -> Array:
        score = power * np.log(average) + weights[:, None, None] * values
        shares = np.exp(score - score.max(axis=2, keepdims=True))
        own = shares[:, np.arange(n), y] / shares.sum(axis=2)
        own = (1.0 - noise) * own + noise / 8.0
        priors = power - 1.0 - np.log(power) + weights / 10.0 - 0.1 * np.log(noise)
        return np.asarray(priors - np.log(own).sum(axis=1))

    power, weight = model.calibration_power_, model.joint_weight_
    powers, weights = np.geomspace(0.1, 8.0, 81), np.linspace(0.0, 30.0, 121)
    losses = np.array([loss(a, weights) for a in powers])
    at_power, at_weight = np.unravel_index(losses.argmin(), losses.shape)
    assert weights[at_weight] > 1.0
    # Values that calibrate are rough.
    own = loss(power, np.array([weight]))[0]
    assert own <= losses.min() + 0.05
    for other in np.geomspace(1e-4, 0.9, 60):
        assert own <= loss(power, np.array([weight]), other)[0] + 0.05
    assert weight == pytest.approx(weights[at_weight], rel=0.1, abs=0.3)
    assert power == pytest.approx(powers[at_power], rel=0.1)


@pytest.mark.slow
def test_rows_left_out_in_groups_calibrate_as_well_as_one_by_one() -> None:
    """From a thousand rows on, power and weight are fitted to a tenth of the rows at a time."""
    n = 1000
    x, y = data(n, n_classes=6)
    y[:50] = (y[:50] + 1) % 6
    model = with_power_alone(make(n_estimators=6).fit(x, y))
    ids = np.arange(0, n, 4)
    average = model.loo_predict_proba(ids, calibrated=False)
    values = function_of(model, model.loo_predict_proba(ids), average)
    noise = model.calibration_noise_

    def loss(power: float, weight: float) -> float:
        score = power * np.log(average) + weight * values
        score -= np.logaddexp.reduce(score, axis=1, keepdims=True)
        own = (1.0 - noise) * np.exp(score[np.arange(len(ids)), y[ids]]) + noise / 6.0
        return float(-np.log(own).mean())

    grid = [loss(a, b) for a in np.geomspace(0.2, 6.0, 41) for b in np.linspace(0.0, 24.0, 49)]
    assert model.joint_weight_ > 1.0
    assert loss(model.calibration_power_, model.joint_weight_) < min(grid) + 0.01
    assert loss(model.calibration_power_, 0.0) > min(grid) + 0.03
    # The groups are a function of the set of rows.
    other = make(n_estimators=6, n_jobs=2).partial_fit(x[700:], y[700:], ids=np.arange(700, n))
    other.predict(x[:3])
    other.partial_fit(2.0 * x[:50], y[:50], ids=np.arange(5000, 5050))
    other.partial_fit(x[:700], y[:700], ids=np.arange(700)).forget(np.arange(5000, 5050))
    other = with_power_alone(other)
    assert other.joint_weight_ == model.joint_weight_
    np.testing.assert_array_equal(other.predict_proba(x[::9]), model.predict_proba(x[::9]))


@pytest.mark.slow
def test_the_prediction_depends_on_the_set_of_rows_alone() -> None:
    # More rows than are left out; some are copies.
    n = 330
    x, y = data(n, n_classes=4)
    x[290:310], x[310:] = x[:20], x[:20]
    y[290:310] = y[:20]
    names = np.array(["a", "b", "c", "d"])[y]
    fresh = partial(make, n_estimators=3)
    switched = fresh(**ALONE).fit(x[:-1], names[:-1])
    switched.set_params(posterior="joint", joint_kernel="trees").partial_fit(x[-1:], names[-1:])
    whole = fit_in_any_history(fresh, x, names, [switched])
    assert whole.posterior == "joint"
    assert whole.digest() != fresh(**ALONE).fit(x, names).digest()


@pytest.mark.parametrize("settings", KINDS)
def test_far_away_the_prior_returns(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(21)
    x, y = data(300, n_classes=4)
    y[y == 3] = 2  # classes of unequal sizes
    model = make(**settings).fit(x, y)
    assert model.joint_weight_ > 1.0
    for distance in (100.0, 1e9):
        far = x[:20] + distance * np.sign(rng.normal(size=(20, 16)))
        np.testing.assert_allclose(model.predict_proba(far), 1.0 / 3.0, atol=0.02)


@pytest.mark.parametrize("settings", KINDS)
def test_few_rows_do_no_harm(settings: dict[str, Any]) -> None:
    x, y = data(30)
    for rows, labels in (
        (x[:1], y[:1]),
        (x, np.zeros(30)),
        (x, np.arange(30)),
        (x[:2], np.array([0, 1])),
        (x[:3], np.array([0, 0, 1])),
        (np.full((30, 16), 0.5), y),
        (np.tile(x[:15], (2, 1)), np.tile(y[:15], 2)),
    ):
        model = make(**settings).fit(rows, labels)
        proba = model.predict_proba(x)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        if len(rows) > 1:
            assert np.isfinite(model.loo_predict_proba()).all()
    # Copies of all rows say nothing of new ones.
    assert model.joint_weight_ == 0.0
    model = make(**settings).partial_fit(x, y, classes=[0, 1, 2, 9])
    assert model.predict_proba(x)[:, 3].max() < 0.25
    model.forget(np.arange(30))
    model.partial_fit(x[:20], 9 - y[:20])
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("settings", KINDS)
def test_a_class_of_few_rows_is_not_overruled(settings: dict[str, Any]) -> None:
    """Where its rows are, a class of a tenth of the rows is likely, as it is there."""
    x = np.random.default_rng(0).uniform(size=(600, 8))
    y = (x[:, :4].mean(axis=1) > np.quantile(x[:, :4].mean(axis=1), 0.9)).astype(int)
    model = make(n_estimators=30, **settings).fit(x[:400], y[:400])
    average = make(n_estimators=30, **ALONE).fit(x[:400], y[:400])
    rare = y[400:] == 1
    assert rare.sum() > 10
    proba, before = (m.predict_proba(x[400:])[:, 1] for m in (model, average))
    assert (proba[rare] > 0.5).mean() > (before[rare] > 0.5).mean()
    assert proba.mean() == pytest.approx(y.mean(), rel=0.35)


def test_settings_are_refused_that_have_no_weight_to_fit() -> None:
    x, y = data(60)
    with pytest.raises(ValueError, match="calibration"):
        make(calibration=None).fit(x, y)
    with pytest.raises(ValueError, match="posterior must be one of"):
        make(posterior="exact").fit(x, y)
    with pytest.raises(ValueError, match="posteriors"):
        make().fit(x, y).merge(make(**ALONE).fit(x, y, ids=np.arange(60, 120)))
    with pytest.raises(ValueError, match="joint kernels"):
        make().fit(x, y).merge(make(joint_kernel="auto").fit(x, y, ids=np.arange(60, 120)))
    for params in (ALONE, {"predictive": "realised"}):
        with pytest.raises(ValueError, match="joint_kernel='limit' needs"):
            make(**params | {"joint_kernel": "limit"}).fit(x, y)
    model = make().fit(x, y)
    with pytest.raises(ValueError, match="calibration"):
        model.set_params(calibration=None).partial_fit(x[:1], y[:1])
    model.set_params(**ALONE).partial_fit(x[:1], y[:1], ids=[900])
    assert (model.joint_weight_, model.calibration_power_) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("joint_kernel", ["auto", "trees"])
def test_digits_are_predicted_better_together(joint_kernel: Any) -> None:
    x, y = load_digits(return_X_y=True)
    losses = []
    for params in ({"posterior": "joint", "joint_kernel": joint_kernel}, ALONE):
        settings: dict[str, Any] = {**params, "feature_weights": None, "trend": None}
        models = [MondrianForestClassifier(30, random_state=i, **settings) for i in (0, 1)]
        proba = [model.fit(x[::2], y[::2]).predict_proba(x[1::2]) for model in models]
        losses.append(np.mean([log_loss(y[1::2], p) for p in proba]))
    assert losses[0] < 0.95 * losses[1]
