"""Joint classifiers of infinitely many trees, against a dense Gaussian process."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier
from joint_classes import averaging, fit_in_any_history, with_power_alone
from reference.arrays import Array
from reference.class_process import LimitProcess

RATES = np.array([1.0, 0.0, 0.5, 2.0])
N = 70


def data(wrong: float = 0.0, n: int = N, seed: int = 3) -> tuple[Array, Array]:
    """Three classes; labels are drawn anew for some share of the rows."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 4))
    y = np.digitize(x[:, 0] + x[:, 3] ** 2, [0.5, 1.0])
    is_wrong = rng.random(n) < wrong
    return x, np.where(is_wrong, rng.integers(0, 3, size=n), y)


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {
        "n_estimators": 5,
        "posterior": "joint",
        "joint_kernel": "limit",
        "feature_range": (0.0, 1.0),
        "feature_weights": RATES,
        "random_state": 3,
    }
    return MondrianForestClassifier(**settings | params)


def scaled_function(model: MondrianForestClassifier, proba: Array, average: Array) -> Array:
    """Return b f from log q = a log p_average + b f + constant, whose sum over classes is 0."""
    noise = model.calibration_noise_
    proba = np.maximum((proba - noise / proba.shape[1]) / (1.0 - noise), 1e-300)
    difference = np.log(proba) - model.calibration_power_ * np.log(average)
    return np.asarray(difference - difference.mean(axis=1, keepdims=True))


def places(x: Array) -> Array:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(-0.4, 1.4, size=(25, 4)), x[:10] + 0.01])


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("lifetime", [np.inf, 1.7])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_function_is_that_of_the_process_of_the_best_noise(
    is_weighted: bool, lifetime: float, wrong: float
) -> None:
    x, y = data(wrong)
    weights = np.random.default_rng(1).integers(1, 9, size=N) / 4.0 if is_weighted else np.ones(N)
    model = with_power_alone(make(lifetime=lifetime).fit(x, y, weights))
    process = LimitProcess(x, y, RATES, weights=weights, end=lifetime)
    noise = process.best_noise()
    at = places(x)
    average = averaging(model).predict_proba(at)
    seen = average.min(axis=1) > 1e-12
    assert seen.sum() > 20
    found = scaled_function(model, model.predict_proba(at)[seen], average[seen])
    expected = model.joint_weight_ * process.function(at, noise)[seen]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-8)
    assert wrong > 0.5 or np.abs(expected).max() > 0.3


def test_the_noise_follows_the_labels() -> None:
    noises = [LimitProcess(*data(wrong), RATES).best_noise() for wrong in (0.0, 0.3, 0.8)]
    assert noises[0] < noises[1] < noises[2]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_left_out_rows_meet_the_process_of_the_others(is_weighted: bool) -> None:
    x, y = data(0.3)
    y[0] = 7  # the only row of its class
    weights = np.random.default_rng(1).integers(1, 9, size=N) / 4.0 if is_weighted else np.ones(N)
    model = with_power_alone(make().partial_fit(x, y, classes=[0, 1, 2, 7], sample_weight=weights))
    process = LimitProcess(x, y, RATES, weights=weights)
    noise = process.best_noise()
    average = model.loo_predict_proba(calibrated=False)
    seen = np.flatnonzero(average.min(axis=1) > 1e-12).tolist()
    assert len(seen) > 40
    found = scaled_function(model, model.loo_predict_proba(seen), average[seen])
    for row, own in zip(seen, found, strict=True):
        expected = model.joint_weight_ * process.left_out(row, noise)
        np.testing.assert_allclose(own, expected, rtol=0.0, atol=2e-8)


def test_copies_do_not_choose_the_noise_unless_they_disagree() -> None:
    """Else rows would be predicted by their copies, and the least noise were best."""
    x, y = data(0.3)
    once = with_power_alone(make().fit(x, y))
    twice = with_power_alone(make().fit(np.concatenate([x, x[:30]]), np.concatenate([y, y[:30]])))
    at = places(x)
    average = averaging(twice).predict_proba(at)
    seen = average.min(axis=1) > 1e-12
    found = scaled_function(twice, twice.predict_proba(at)[seen], average[seen])
    repeated = LimitProcess(np.concatenate([x, x[:30]]), np.concatenate([y, y[:30]]), RATES)
    noise = LimitProcess(x[30:], y[30:], RATES).best_noise()
    expected = twice.joint_weight_ * repeated.function(at, noise)[seen]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-8)
    assert noise > min(LimitProcess.noises)
    assert once.joint_weight_ > 0.0


@pytest.mark.slow
def test_the_prediction_depends_on_the_set_of_rows_alone() -> None:
    """Also where only some rows choose the noise, and some are left out."""
    n = 1100
    x, y = data(0.2, n)
    x[1000:1050], x[1050:] = x[:50], x[:50]
    y[1000:1050] = y[:50]
    names = np.array(["a", "b", "c"])[y]
    fresh = partial(make, n_estimators=3, joint_kernel="auto")
    switched = fresh(joint_kernel="trees").fit(x[:-1], names[:-1])
    switched.set_params(joint_kernel="auto").partial_fit(x[-1:], names[-1:])
    realised = fresh(predictive="realised").fit(x, names)
    realised.predict(x[:2])
    realised.set_params(predictive="averaged").partial_fit(x[:1], names[:1], ids=[9000])
    realised.forget([9000])
    whole = fit_in_any_history(fresh, x, names, [switched, realised])
    assert whole.posterior == "joint"
    assert whole.digest() != fresh(joint_kernel="trees").fit(x, names).digest()


def test_auto_takes_the_limit_where_it_says() -> None:
    x, y = data(0.1)
    limit, trees, auto = (make(joint_kernel=kind).fit(x, y) for kind in ("limit", "trees", "auto"))
    at = places(x)
    assert np.array_equal(auto.predict_proba(at), limit.predict_proba(at))
    assert not np.array_equal(auto.predict_proba(at), trees.predict_proba(at))
    for params, kernel in (
        ({"min_samples_split": 3}, "limit"),
        ({"predictive": "realised"}, "trees"),
    ):
        one, other = (make(joint_kernel=kind, **params).fit(x, y) for kind in ("auto", kernel))
        assert np.array_equal(one.predict_proba(at), other.predict_proba(at))


@pytest.mark.slow
def test_auto_takes_the_limit_of_all_of_10_000_rows() -> None:
    """With more it may be that of some of them (test_joint_class_landmarks)."""
    x, y = data(0.1, 10_001)
    at = places(x)
    auto = make(n_estimators=3, joint_kernel="auto").fit(x, y)
    of_some = auto.predict_proba(at)
    proba = auto.forget([10_000]).predict_proba(at)
    limit = make(n_estimators=3).fit(x[:-1], y[:-1])
    np.testing.assert_array_equal(proba, limit.predict_proba(at))
    assert np.abs(of_some - proba).max() > 1e-3


@pytest.mark.slow
def test_wrong_labels_cost_less_than_with_the_noise_of_trees() -> None:
    x, wrong = data(0.5, 600)
    at, truth = data(0.0, 2000, seed=4)
    errors = {
        kind: float((make(joint_kernel=kind).fit(x, wrong).predict(at) != truth).mean())
        for kind in ("limit", "trees")
    }
    assert errors["limit"] < 0.9 * errors["trees"]
