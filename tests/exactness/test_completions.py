"""Rows that lack values are predicted by the average over completions with donors' values.

Donors are the nearest training rows, compared as if they lacked the same values. They have the
values of a feature that hardly any training row lacks, unless targets say where these lie.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from boscage import MondrianForestClassifier, MondrianForestRegressor, load
from boscage.mondrian._missing import fill
from reference.arrays import Array

N_COMPLETIONS = {MondrianForestClassifier: 16, MondrianForestRegressor: 8}
KINDS = list(N_COMPLETIONS)
NAN = np.nan
# A linear function of two others, and numbers.
SUBSTITUTES = [(0.5, [(1, 0.75, 0.25), (2, -0.5, 0.5)]), (0.5, []), (0.5, [])]


def data(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    """Complete rows, the third feature of which goes with the second."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 4))
    x[:, 2] = 0.7 * x[:, 1] + 0.3 * x[:, 2]
    y = 3.0 * x[:, 0] + np.sin(6.0 * x[:, 1]) + x[:, 2] + 0.1 * rng.normal(size=n)
    return x, y


def with_holes(x: Array, share: float = 0.3, seed: int = 1) -> Array:
    return np.where(np.random.default_rng(seed).random(x.shape) < share, NAN, x)


def fitted(kind: Any, x: Array, y: Array, **params: Any) -> Any:
    targets = y if kind is MondrianForestRegressor else np.digitize(y, [2.0, 3.5])
    params = {"n_estimators": 10, "random_state": 0} | params
    return kind(**params).fit(x, targets)


def completions(model: Any, at: Array) -> tuple[Array, list[slice]]:
    """The completed rows, and which of them belong to each row."""
    core, checked, n_threads = model._query(at)
    rows, offsets = core.completions(checked, n_threads=n_threads)
    return rows, [slice(*ends) for ends in itertools.pairwise(offsets)]


def n_completions(model: Any, at: Array) -> list[int]:
    """How many there are of each row."""
    return [part.stop - part.start for part in completions(model, at)[1]]


def predictions(model: Any, at: Array) -> Array:
    if isinstance(model, MondrianForestClassifier):
        return np.asarray(model.predict_proba(at))
    dist = model.predict_dist(at)
    parts = [*model.predict(at, return_std=True), dist.mean, dist.std, dist.cdf(2.0)]
    return np.stack([*parts, *model.predict_uncertainty(at)], axis=1)


# -- the average ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"predictive": "realised"},
        {"posterior": "exact", "noise": "global", "trend": None},
        {"joint_kernel": "trees", "trend": "linear"},
    ],
)
def test_numbers_are_the_mixture_over_completions(params: dict[str, Any]) -> None:
    x, y = data()
    at = with_holes(data(40, 2)[0])
    model = fitted(MondrianForestRegressor, x, y, **params)
    rows, own = completions(model, at)
    assert {*n_completions(model, at)} == {1, 8}
    mean, std = model.predict(rows, return_std=True)
    each, mixture, log_pdf = model.predict_dist(rows), model.predict_dist(at), []
    uncertainty = model.predict_uncertainty(rows)
    means, variances, epistemic = [], [], []
    for i, part in enumerate(own):
        n = part.stop - part.start
        means.append(mean[part].mean())
        variances.append((std[part] ** 2).mean() + mean[part].var())
        epistemic.append(uncertainty.epistemic[part].mean())
        log_pdf.append(logsumexp(each.logpdf(np.full(len(rows), y[i]))[part]) - np.log(n))
    found = model.predict(at, return_std=True)
    np.testing.assert_allclose(found[0], means, rtol=1e-10)
    np.testing.assert_allclose(found[1], np.sqrt(variances), rtol=1e-9)
    np.testing.assert_array_equal(found[0], model.predict(at))
    np.testing.assert_allclose(mixture.logpdf(y[: len(at)]), log_pdf, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mixture.mean, means, rtol=1e-9)
    np.testing.assert_allclose(mixture.var, variances, rtol=1e-9)
    # How far the completions differ is nothing that more rows would tell.
    parts = model.predict_uncertainty(at)
    np.testing.assert_allclose(parts.total, variances, rtol=1e-9)
    np.testing.assert_allclose(parts.epistemic, epistemic, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("params", [{}, {"predictive": "realised"}, {"posterior": "joint"}])
def test_probabilities_are_the_means_over_completions(params: dict[str, Any]) -> None:
    x, y = data()
    at = with_holes(data(40, 2)[0])
    model = fitted(MondrianForestClassifier, x, y, **params)
    rows, own = completions(model, at)
    proba, parts = model.predict_proba(rows), model.predict_uncertainty(rows)
    expected = np.stack([proba[part].mean(axis=0) for part in own])
    np.testing.assert_allclose(model.predict_proba(at), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(at), expected.argmax(axis=1))
    found = model.predict_uncertainty(at)
    entropy = -np.sum(expected * np.log(np.maximum(expected, 1e-300)), axis=1)
    np.testing.assert_allclose(found.total, entropy, rtol=1e-9)
    epistemic = [parts.epistemic[part].mean() for part in own]
    np.testing.assert_allclose(found.epistemic, epistemic, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["path", "shapley"])
def test_contributions_add_up_to_the_average(kind: Any, method: Any) -> None:
    x, y = data()
    at = with_holes(data(12, 2)[0])
    model = fitted(kind, x, y)
    found = model.contributions(at, method=method)
    expected = model.predict(at) if kind is MondrianForestRegressor else model.predict_proba(at)
    np.testing.assert_allclose(found.predictions(), expected, rtol=1e-9)
    np.testing.assert_array_equal(found.data, at)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_the_row_and_the_set_of_rows_matters(kind: Any, tmp_path: Any) -> None:
    x, y = data()
    at = with_holes(np.r_[x[:20], data(20, 2)[0]])
    model = fitted(kind, x, y)
    expected = predictions(model, at)
    alone = np.concatenate([predictions(model, at[i : i + 1]) for i in range(len(at))])
    np.testing.assert_array_equal(alone, expected)
    mixed = predictions(model, np.r_[x[:5], at[::-1]])
    np.testing.assert_array_equal(mixed[5:][::-1], expected)
    np.testing.assert_array_equal(mixed[:5], predictions(model, x[:5]))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(predictions(load(tmp_path / "model"), at), expected)
    np.testing.assert_array_equal(predictions(model.set_params(n_jobs=2), at), expected)
    order = np.random.default_rng(0).permutation(len(x))
    again = fitted(kind, x[order], y[order])
    np.testing.assert_array_equal(predictions(again, at), expected)
    again.partial_fit(x[:50] + 0.01, again.predict(x[:50]), ids=1000 + np.arange(50))
    predictions(again, at)  # donors are found among these rows, too
    again.forget(1000 + np.arange(50))
    np.testing.assert_array_equal(predictions(again, at), expected)


# -- donors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0]])
def test_donors_are_the_nearest_rows_and_lend_residuals(weights: Any) -> None:
    rng = np.random.default_rng(3)
    x, at = rng.uniform(size=(60, 3)), with_holes(rng.uniform(size=(30, 3)), 0.4)
    model = MondrianForestRegressor(
        5,
        feature_range=(0.0, 1.0),
        feature_weights=weights,
        substitutes=SUBSTITUTES,
        random_state=0,
    ).fit(x, x.sum(axis=1))
    rows, own = completions(model, at)
    ends = np.zeros(3), np.ones(3)
    for row, part in zip(at, own, strict=True):
        lacks = np.isnan(row)
        if not lacks.any():
            np.testing.assert_array_equal(rows[part], row[np.newaxis])
            continue
        completed = fill(row[np.newaxis], SUBSTITUTES, *ends)[0]
        others = fill(np.where(lacks, NAN, x), SUBSTITUTES, *ends)
        distances = np.abs(others - completed) @ np.asarray(weights or np.ones(3))
        found = rows[part]
        assert len(found) == 8
        np.testing.assert_array_equal(found[:, ~lacks], np.tile(row[~lacks], (len(found), 1)))
        if not lacks.all():  # all rows are equally near otherwise
            donors = np.argsort(distances)[:8]
            expected = np.clip(completed + x[donors] - others[donors], 0.0, 1.0)
            np.testing.assert_allclose(found[:, lacks], expected[:, lacks], atol=1e-6)


def test_substitutes_stay_where_the_forest_has_learned_of_them() -> None:
    """Each feature lacks more of its values than the one before, or none."""
    x, y = data(1000)
    rng = np.random.default_rng(4)
    for feature, share in enumerate([0.0, 0.05, 0.2]):
        x[rng.random(1000) < share, feature] = NAN
    at = np.diag(np.full(4, NAN)) + 0.5
    for kind, n in N_COMPLETIONS.items():
        assert n_completions(fitted(kind, x, y), at) == [n, n, 1, n]
    # Few rows lack the second feature, but its substitute is no number in the middle.
    given = [0.5, 0.9, 0.5, 0.5]
    found = n_completions(fitted(KINDS[1], x, y, substitutes=given), at)
    assert found == [8, 1, 1, 8]


def test_features_that_are_never_cut_have_no_donors() -> None:
    x, y = data()
    model = fitted(KINDS[1], x, y, feature_weights=[1.0, 1.0, 1.0, 0.0])
    at = np.array([[0.5, 0.5, 0.5, NAN], [0.5, NAN, 0.5, NAN]])
    assert n_completions(model, at) == [1, 8]
    complete = np.where(np.isnan(at), 0.1, at)[:1]
    np.testing.assert_array_equal(predictions(model, at[:1]), predictions(model, complete))


def test_forests_of_few_rows_have_few_donors() -> None:
    x, y = data(3)
    for kind in KINDS:
        model, at = fitted(kind, x, y), np.full((2, 4), NAN)
        assert n_completions(model, at) == [3, 3]
        assert np.isfinite(predictions(model, at)).all()


# -- what it is for -------------------------------------------------------------------------------


def test_intervals_of_rows_that_lack_a_value_cover() -> None:
    """A relevant value is missing, in rows to predict alone."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(1000, 5))
    y = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3]
    y += rng.normal(size=1000)
    model = MondrianForestRegressor(20, random_state=0).fit(x[:600], y[:600])
    at = x[600:].copy()
    at[:, 3] = NAN
    covers = []
    for rows in (at, model._complete(at)):
        low, high = model.predict_dist(rows).interval(0.9)
        covers.append(np.mean((low <= y[600:]) & (y[600:] <= high)))
    assert covers[0] > 0.8
    assert covers[1] < 0.6  # those with substitutes


def test_classes_of_rows_that_lack_a_value_are_less_certain() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(1200, 3))
    y = (x[:, 0] + 0.5 * x[:, 1] > 0.0).astype(np.int64)
    model = MondrianForestClassifier(20, random_state=0).fit(x[:600], y[:600])
    at = x[600:].copy()
    at[:, 0] = NAN
    losses = []
    for rows in (at, model._complete(at)):
        proba = model.predict_proba(rows)[np.arange(600), y[600:]]
        losses.append(-np.log(proba).mean())
    assert losses[0] < np.log(2.0) < losses[1]
