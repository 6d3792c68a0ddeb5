"""A linear function beside the trees of a classifier: its slopes, its weight, and what stays."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import boscage
from boscage import MondrianForestClassifier
from of_all_rows import weight_of_all, weight_of_all_left_out
from reference.arrays import Array

PENALTIES = 10.0 ** np.arange(-4, 5)


def make(**params: Any) -> MondrianForestClassifier:
    settings: dict[str, Any] = {"n_estimators": 20, "feature_range": (0.0, 1.0), "random_state": 3}
    return MondrianForestClassifier(**({"feature_weights": None} | settings | params))


def along_a_line(n: int, d: int = 4, seed: int = 0, noise: float = 0.15) -> tuple[Array, Array]:
    """Return three classes that a sum of all features tells."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, d))
    score = x.mean(axis=1) + noise * rng.normal(size=n) / np.sqrt(d)
    return x, np.digitize(score, [0.45, 0.55])


def ridge(z: Array, weights: Array, y: Array, penalty: float) -> tuple[Array, Array]:
    """Return intercepts and slopes; intercepts are not penalised."""
    design = np.column_stack([np.ones(len(z)), z])
    penalties = np.diag([0.0] + [penalty] * z.shape[1])
    weighted = design.T * weights
    found = np.linalg.solve(weighted @ design + penalties, weighted @ y)
    return found[0], found[1:]


def variance_at(places: Array, z: Array, weights: Array, penalty: float) -> Array:
    """Return the variance of the regression at some places."""
    design, at = (np.column_stack([np.ones(len(part)), part]) for part in (z, places))
    penalties = np.diag([0.0] + [penalty] * z.shape[1])
    inverse = np.linalg.inv((design.T * weights) @ design + penalties)
    return np.asarray(np.einsum("ni,ij,nj->n", at, inverse, at))


def best_penalty(z: Array, weights: Array, y: Array) -> float:
    """Return the penalty that generalised cross-validation chooses."""

    def score(penalty: float) -> float:
        intercept, slopes = ridge(z, weights, y, penalty)
        design = np.column_stack([np.ones(len(z)), z])
        penalties = np.diag([0.0] + [penalty] * z.shape[1])
        weighted = design.T * weights
        trace = np.trace(np.linalg.solve(weighted @ design + penalties, weighted @ design))
        left = ((y - intercept - z @ slopes) ** 2).sum(axis=1) @ weights
        return float(left / (weights.sum() ** 2 / (weights @ weights) - trace) ** 2)

    return float(min(PENALTIES, key=score))


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_slopes_and_numbers_are_those_that_predict_left_out_rows_best(
    predictive: Any, weighted: bool, noise: float
) -> None:
    """The last class has no rows.

    With much noise the power is below 1, and probabilities are drawn to the shares, too; with
    little it is above.
    """
    n, n_classes = 250, 4
    x, y = along_a_line(n, noise=noise)
    rng = np.random.default_rng(1)
    weights = rng.gamma(2.0, size=n) + 0.01 if weighted else np.ones(n)
    options: Any = {"classes": [0, 1, 2, 3], "sample_weight": weights if weighted else None}
    model = make(predictive=predictive).partial_fit(x, y, **options)
    plain = make(predictive=predictive, calibration=None).partial_fit(x, y, **options)
    relative = weights / weights.mean()
    codes = np.eye(n_classes)[y]
    penalty = best_penalty(x, relative, codes)
    _, slopes = ridge(x, relative, codes, penalty)
    slopes_found = model.trend_slopes_
    assert slopes_found is not None
    weight = float((slopes_found * slopes).sum() / (slopes**2).sum())
    assert weight > 0.5
    np.testing.assert_allclose(slopes_found, weight * slopes, rtol=1e-9, atol=1e-12)

    without, variances = np.empty((n, n_classes)), np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        own = relative[others]
        intercept, b = ridge(x[others], own, codes[others], penalty)
        without[i] = intercept + x[i] @ b - own @ codes[others] / own.sum()
        variances[i] = variance_at(x[i : i + 1], x[others], own, penalty)[0]
    known = np.sort(variances)[int(0.95 * (n - 1))]
    without *= np.minimum(known / variances, 1.0)[:, None] ** 2
    left_out, of_all = plain.loo_predict_proba(), weight_of_all_left_out(plain, plain.ids_)
    sizes = np.bincount(y, weights=relative, minlength=n_classes) + 0.5
    shares_without = np.tile(sizes, (n, 1))
    shares_without[np.arange(n), y] = np.maximum(shares_without[np.arange(n), y] - relative, 0.5)

    def calibrated(raw: Array, of_all: Array, g: Array, shares: Array, numbers: Array) -> Array:
        power, noise, weight = numbers
        with np.errstate(divide="ignore"):
            logs = power * np.log(raw)
        logs += (1.0 - of_all) ** 4 * (max(1.0 - power, 0.0) * np.log(shares) + weight * g)
        raised = np.exp(logs - logs.max(axis=1, keepdims=True))
        raised /= raised.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - noise) * raised + noise / n_classes)

    def loss(numbers: Array) -> float:
        own = calibrated(left_out, of_all, without, shares_without, numbers)[np.arange(n), y]
        prior = numbers[0] - 1.0 - np.log(numbers[0]) - 0.1 * np.log(numbers[1]) + numbers[2] / 10.0
        return float(prior - relative @ np.log(own))

    found = np.array([model.calibration_power_, model.calibration_noise_, weight])
    assert (found[0] < 1.0) == (noise == 0.5)
    least = loss(found)
    for i in range(3):
        for factor in (0.3, 0.9, 0.999, 1.001, 1.1, 2.0):
            numbers = found.copy()
            numbers[i] = np.clip(numbers[i] * factor, [1 / 16, 0.0, 0.0][i], [16.0, 0.99, 64.0][i])
            assert loss(numbers) > least or (numbers == found).all()
    # There is none better elsewhere either.
    for power in (0.1, 0.3, 0.7, 1.0, 1.5, 3.0, 8.0):
        for mixed in (1e-3, 0.02, 0.1, 0.3):
            for other in (0.0, 1.0, 3.0, 8.0, 20.0):
                assert loss(np.array([power, mixed, other])) > least

    at = np.concatenate([x[:20], rng.uniform(size=(20, 4)), 3.0 * x[:20] - 1.0])
    left = np.minimum(known / variance_at(at, x, relative, penalty), 1.0)[:, None] ** 2
    assert 0.2 < (left < 0.9).mean() < 0.8
    centred = left * (at - relative @ x / n)
    for probabilities, raw, of_all_rows, g in (
        (
            model.predict_proba(at),
            plain.predict_proba(at),
            weight_of_all(plain, at),
            centred @ slopes,
        ),
        (model.loo_predict_proba(), left_out, of_all, without),
    ):
        expected = calibrated(raw, of_all_rows, g, sizes / sizes.sum(), found)
        np.testing.assert_allclose(probabilities, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
def test_where_classes_change_along_a_line_it_helps(posterior: Any) -> None:
    x, y = along_a_line(1200, d=8, noise=0.05)
    y = (y + 1) // 2
    half = len(x) // 2
    losses = {
        trend: log_loss(
            y[half:],
            MondrianForestClassifier(50, posterior=posterior, trend=trend, random_state=0)
            .fit(x[:half], y[:half])
            .predict_proba(x[half:]),
        )
        for trend in ("auto", None)
    }
    line = LogisticRegression(C=100.0).fit(x[:half], y[:half]).predict_proba(x[half:])
    assert losses["auto"] < {"kneser-ney": 0.7, "joint": 0.95}[posterior] * losses[None]
    assert losses["auto"] < 1.3 * log_loss(y[half:], line)


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
def test_where_no_line_tells_classes_apart_it_does_no_harm(posterior: Any) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(1000, 3))
    checkers = (np.floor(2.0 * x[:, 0]) + np.floor(2.0 * x[:, 1])).astype(int) % 2
    for y in (checkers, rng.integers(2, size=1000)):
        losses = [
            log_loss(
                y[500:],
                MondrianForestClassifier(50, posterior=posterior, trend=trend, random_state=0)
                .fit(x[:500], y[:500])
                .predict_proba(x[500:]),
            )
            for trend in ("auto", None)
        ]
        assert losses[0] < losses[1] + 0.005


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_far_from_all_rows_the_prior_stays(posterior: Any, predictive: Any) -> None:
    x, y = along_a_line(400)
    model = MondrianForestClassifier(50, posterior=posterior, predictive=predictive, random_state=0)
    model.fit(x, y)
    assert model.trend_slopes_ is not None
    rng = np.random.default_rng(2)
    direction = rng.normal(size=(20, 4))
    direction /= np.abs(direction).max(axis=1, keepdims=True)
    for away, most in ((3.0, 0.2), (30.0, 0.05), (100.0, 0.02), (1e6, 1e-3)):
        proba = model.predict_proba(0.5 + away * direction)
        assert np.abs(proba - 1.0 / 3.0).max() < most


def test_the_trend_is_a_function_of_the_set_of_rows() -> None:
    x, y = along_a_line(900)
    rng = np.random.default_rng(3)
    weights = rng.gamma(2.0, size=900) + 0.1
    whole = make().fit(x, y, weights)
    order = rng.permutation(900)
    other = make(n_jobs=2).partial_fit(x[order[:300]], y[order[:300]], None, weights[order[:300]])
    other.partial_fit(2.0 * x, y, ids=np.arange(5000, 5900))
    other.predict(x[:3])
    other.partial_fit(x[order[300:]], y[order[300:]], None, weights[order[300:]])
    other.forget(np.arange(5000, 5900))
    shards = [
        make().partial_fit(x[part], y[part], None, weights[part], ids=part)
        for part in (order[:400], order[400:])
    ]
    merged = shards[0].merge(shards[1])
    file = io.BytesIO()
    merged.save(file)
    file.seek(0)
    switched = make(trend=None).partial_fit(x[:800], y[:800], None, weights[:800])
    switched.set_params(trend="auto").partial_fit(x[800:], y[800:], None, weights[800:])
    for model in (other, merged, merged.copy(), boscage.load(file), switched):
        np.testing.assert_array_equal(model.predict_proba(x[::9]), whole.predict_proba(x[::9]))
        np.testing.assert_array_equal(model.trend_slopes_, whole.trend_slopes_)
        assert model.digest() == whole.digest()
        assert model.trend == "auto"
    loo = whole.loo_predict_proba(np.arange(40))
    numbers = np.argsort(merged.ids_)[:40]
    np.testing.assert_array_equal(merged.loo_predict_proba(merged.ids_[numbers]), loo)


def test_none_has_no_trend_and_another_digest() -> None:
    x, y = along_a_line(300)
    model = make().fit(x, y)
    without = make(trend=None).fit(x, y)
    assert without.trend_slopes_ is None
    assert without.digest() != model.digest()
    assert np.abs(without.predict_proba(x) - model.predict_proba(x)).max() > 0.01
    proba = without.predict_proba(x)
    model.forget(0).set_params(trend=None).partial_fit(x[:1], y[:1], ids=[0])
    np.testing.assert_array_equal(model.predict_proba(x), proba)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = boscage.load(file)
    assert loaded.trend is None
    np.testing.assert_array_equal(loaded.predict_proba(x), proba)
    # Without a calibration there is nothing to which it could be added.
    plain = [make(calibration=None, trend=trend).fit(x, y) for trend in ("auto", None)]
    assert plain[0].trend_slopes_ is None
    assert plain[0].digest() == plain[1].digest()
    shards = [
        make(trend=trend).partial_fit(x[part], y[part], ids=part)
        for trend, part in (("auto", np.arange(150)), (None, np.arange(150, 300)))
    ]
    with pytest.raises(ValueError, match="only if their trends are equal"):
        shards[0].merge(shards[1])


@pytest.mark.parametrize("value", ["linear", 3, [0, 1]])
def test_other_values_are_refused(value: Any) -> None:
    x, y = along_a_line(30)
    with pytest.raises(ValueError, match="trend must be 'auto' or None for classes, found"):
        make(trend=value).fit(x, y)


def test_few_rows_many_classes_and_features_without_a_range_have_no_slopes() -> None:
    x, y = along_a_line(300)
    assert make().fit(x[:19], y[:19]).trend_slopes_ is None
    assert make().fit(x[:50], np.zeros(50)).trend_slopes_ is None
    assert make().fit(x, np.arange(300) // 2).trend_slopes_ is None
    slopes = make(feature_weights=[1.0, 0.0, 2.0, 1.0]).fit(x, y).trend_slopes_
    assert slopes is not None
    assert (slopes[1] == 0.0).all()
    assert (slopes[[0, 2, 3]] != 0.0).any(axis=1).all()
    ranges = (np.zeros(4), [1.0, 1.0, 0.0, 1.0])
    slopes = make(feature_range=ranges).fit(x, y).trend_slopes_
    assert slopes is not None
    assert (slopes[2] == 0.0).all()
    # Of many features with the same rate, the first.
    wide = np.column_stack([x, np.random.default_rng(0).uniform(size=(300, 150))])
    slopes = make().fit(wide, y).trend_slopes_
    assert slopes is not None
    assert (np.flatnonzero((slopes != 0.0).any(axis=1)) == np.arange(128)).all()


def test_categories_have_no_slopes_and_missing_values_the_places_of_their_substitutes() -> None:
    x, y = along_a_line(600)
    rng = np.random.default_rng(4)
    table = pd.DataFrame(x, columns=list("abcd"))
    table["kind"] = np.where(rng.uniform(size=600) < 0.5, np.array(["low", "mid", "high"])[y], "x")
    table.loc[rng.uniform(size=600) < 0.2, "b"] = np.nan
    model = MondrianForestClassifier(20, feature_weights=None, random_state=0).fit(table, y)
    slopes = model.trend_slopes_
    assert slopes is not None
    assert (slopes[4] == 0.0).all()
    assert (slopes[:4] != 0.0).any(axis=1).all()
    found = model.contributions(table[:20])
    proba = model.predict_proba(table[:20])
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(np.broadcast_to(total, proba.shape), proba, atol=1e-12)


def test_contributions_are_those_of_a_linear_function_where_trees_say_nothing() -> None:
    """Of one tree without a split, where the trend is all that there is."""
    x, y = along_a_line(300)
    model = make(n_estimators=1, lifetime=1e-9).fit(x, y)
    assert model.trend_slopes_ is not None
    found = model.contributions(x[:30])
    centred = x[:30] - x.mean(axis=0)
    assert found.values.shape == (30, 4, 3)
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(x[:30]), atol=1e-12)
    gains = np.diff(centred[:, :, None] * model.trend_slopes_[:, [0, 2]], axis=2)[:, :, 0]
    contributed = found.values[:, :, 2] - found.values[:, :, 0]
    assert np.corrcoef(gains.ravel(), contributed.ravel())[0, 1] > 0.9
    average = np.tile(x.mean(axis=0), (2, 1))
    average[1, 0] = 1.0
    nothing = np.abs(model.contributions(average).values)
    assert nothing[0].max() < 1e-9
    assert nothing[1, 0].max() > 0.1
    assert nothing[1, 1:].max() < 1e-9


def correlated(n: int) -> tuple[Array, Array]:
    """Return rows near a diagonal, and classes that change along it."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=n)
    x = np.column_stack([z, z + 0.1 * rng.normal(size=n)])
    return x, (z + 0.5 * rng.normal(size=n) > 0.0).astype(int)


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
def test_where_there_are_no_rows_a_line_says_nothing(posterior: Any) -> None:
    """In a corner of the box, in a range that is wider than the rows, along a constant feature."""
    rng = np.random.default_rng(8)
    x, y = correlated(800)
    model = MondrianForestClassifier(50, posterior=posterior, random_state=0).fit(x, y)
    assert model.trend_slopes_ is not None
    without = MondrianForestClassifier(
        50,
        posterior=posterior,
        trend=None,
        min_samples_split=model.min_samples_split_,
        random_state=0,
    )
    corners = np.array([[2.0, -2.0], [-2.0, 2.0]])
    found, expected = (m.predict_proba(corners) for m in (model, without.fit(x, y)))
    assert np.abs(found - expected).max() < 0.1
    x = rng.uniform(size=(600, 2))
    y = (x.mean(axis=1) + 0.05 * rng.normal(size=600) > 0.5).astype(int)
    for range_, at, most in ((3.0, 2.0, 0.3), (10.0, 5.0, 0.1), (100.0, 50.0, 0.01)):
        model = MondrianForestClassifier(
            50, posterior=posterior, feature_range=(0.0, range_), random_state=0
        ).fit(x, y)
        assert model.trend_slopes_ is not None
        assert np.abs(model.predict_proba(np.full((1, 2), at)) - 0.5).max() < most
    constant = np.column_stack([x, np.full(600, 0.1)])
    model = MondrianForestClassifier(50, posterior=posterior, random_state=0).fit(constant, y)
    assert model.trend_slopes_ is not None
    far = np.array([[0.9, 0.9, 1e6]])
    assert np.abs(model.predict_proba(far) - 0.5).max() < 0.01


def test_with_few_rows_it_does_no_harm() -> None:
    """Of labels that features tell nothing of, also with as many features as rows."""
    rng = np.random.default_rng(9)
    for n, d in ((20, 10), (30, 29), (40, 60)):
        changes = []
        for _ in range(30):
            x, y = rng.uniform(size=(n + 200, d)), rng.integers(2, size=n + 200)
            losses = [
                log_loss(
                    y[n:],
                    MondrianForestClassifier(5, trend=trend, feature_weights=None, random_state=0)
                    .fit(x[:n], y[:n])
                    .predict_proba(x[n:]),
                )
                for trend in ("auto", None)
            ]
            changes.append(losses[0] - losses[1])
        assert np.mean(changes) < 0.04
        assert np.median(changes) == 0.0


def test_left_out_copies_of_a_row_are_predicted_alike() -> None:
    """Also where there are more rows than a trend is fitted to, whatever came first."""
    rng = np.random.default_rng(10)
    x = rng.integers(6, size=(3600, 2)) / 5.0
    y = (x.sum(axis=1) + 0.4 * rng.normal(size=3600) > 1.0).astype(int)
    order = rng.permutation(3600)
    model = make(n_estimators=2).fit(x, y)
    other = make(n_estimators=2).partial_fit(x[order], y[order], ids=order)
    assert model.trend_slopes_ is not None
    np.testing.assert_array_equal(model.trend_slopes_, other.trend_slopes_)
    assert model.digest() == other.digest()
    ids = np.arange(300)
    found = model.loo_predict_proba(ids)
    np.testing.assert_array_equal(found, other.loo_predict_proba(ids))
    kinds = np.column_stack([x[:300], y[:300]])
    for kind in np.unique(kinds, axis=0):
        assert len(np.unique(found[(kinds == kind).all(axis=1)], axis=0)) == 1


@pytest.mark.slow
def test_it_helps_or_does_not_matter_on_data_that_it_was_not_made_for() -> None:
    """Under default settings."""
    rng = np.random.default_rng(6)
    sets = [load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)]
    sets += [
        make_classification(800, 12, n_informative=6, n_classes=3, class_sep=sep, random_state=seed)
        for seed, sep in enumerate((0.5, 2.0))
    ]
    heavy = rng.standard_cauchy(size=(800, 4))
    sets.append((heavy, (heavy[:, 0] + heavy[:, 1] > 0).astype(int)))
    changes = []
    for x, y in sets:
        train_x, test_x, train_y, test_y = train_test_split(x, y, random_state=0, stratify=y)
        model = MondrianForestClassifier(random_state=0).fit(train_x, train_y)
        leaves = model.min_samples_split_
        without = MondrianForestClassifier(trend=None, min_samples_split=leaves, random_state=0)
        without.fit(train_x, train_y)
        losses = [log_loss(test_y, each.predict_proba(test_x)) for each in (model, without)]
        changes.append(np.log(losses[0] / losses[1]))
    assert max(changes) < 0.05
    assert min(changes) < -0.1
