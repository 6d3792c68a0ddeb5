"""Scores of rows and parts of uncertainty against plain computations on exported trees."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor, Uncertainty
from reference import class_process, ikn
from reference.arrays import Array, Tree, as_dict, is_leaf, parent_time, path
from reference.mondrian_boxes import branch_rate
from small_forests import KINDS, make

N_CLASSES = 3
RATES = np.array([1.0, 1.0])
SCORE_RATE = 0.05 * RATES.sum()
SETTINGS: dict[str, dict[str, Any]] = {
    "papers": {"calibration": None},
    "weak discount": {"calibration": None, "discount": 0.1},
    "calibrated": {},
    "joint": {"posterior": "joint"},
    "single leaves": {"lifetime": 0.3},
    "class weights": {"class_weight": {0: 3.0, 2: 0.2}},
    "a class of weight zero": {"posterior": "joint", "class_weight": {1: 0.0}},
}


def data(seed: int = 0, n: int = 60) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 2))
    y = np.clip((3 * x[:, 0] + 0.5 * rng.normal(size=n)).astype(int), 0, N_CLASSES - 1)
    y[:N_CLASSES] = np.arange(N_CLASSES)
    return x, y


def queries(x: Array, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    outside, far = rng.uniform(-2.0, 3.0, size=(12, 2)), rng.choice([-1e5, 1e3], size=(3, 2))
    return np.concatenate([rng.uniform(size=(12, 2)), x[:5], outside, far])


def entropy(p: Array) -> Array:
    return np.asarray(-(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=-1))


def trees_of(model: Any) -> list[Any]:
    return [as_dict(tree) for tree in model.trees_]


def about_row(tree: Tree, c: Array, x: Array, gamma: float) -> Array:
    """Return a tree's prediction without the root, or without branches above a root leaf."""
    nothing = np.zeros(c.shape[1])
    above, found, stays = nothing, nothing, 1.0
    for j in path(tree, x):
        tables, width = np.minimum(c[j], 1), float(tree["time"][j]) - parent_time(tree, j)
        rate = branch_rate(tree, j, x, RATES)
        remains = np.exp(-rate * width) if rate > 0.0 else 1.0
        if tree["parent"][j] >= 0 and rate > 0.0:
            d = ikn.expected_discount(gamma, rate, width)
            found = found + stays * (1.0 - remains) * ikn.smooth(tables, tables, d, above)
        stays *= remains
        above = ikn.smooth(c[j], tables, ikn.discount(tree, j, gamma), above)
        if tree["parent"][j] < 0 and not is_leaf(tree, j):
            above = nothing
    return np.asarray(found + stays * above)


def by_tree(model: Any, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Return every tree's probabilities, and the parts of them that are about the row."""
    gamma = model.discount_ * RATES.sum()
    whole = np.empty((model.n_estimators, len(at), N_CLASSES))
    own = np.empty_like(whole)
    for m, tree in enumerate(trees_of(model)):
        counts = ikn.initialize_posterior_counts(tree, x, y, N_CLASSES)
        means = ikn.posterior_means(tree, counts, gamma)
        for i, row in enumerate(at):
            whole[m, i] = ikn.predict(tree, counts, row, gamma, RATES, means)
            own[m, i] = about_row(tree, counts, row, gamma)
    return whole, own


@pytest.mark.parametrize("name", SETTINGS)
def test_the_epistemic_part_is_a_mutual_information(name: str) -> None:
    """Of the label and the state: a tree that speaks of the row, or a label drawn from its root."""
    x, y = data()
    model = make(MondrianForestClassifier, n_estimators=6, **SETTINGS[name]).fit(x, y)
    at = queries(x)
    whole, own = by_tree(model, x, y, at)
    found, predicted = model.predict_uncertainty(at), model.predict_proba(at)
    weights = np.array([(model.class_weight or {}).get(k, 1.0) for k in range(N_CLASSES)])
    proba, noise = model.set_params(class_weight=None).predict_proba(at), model.calibration_noise_
    average = whole.mean(axis=0)
    without_noise = np.maximum((proba - noise / N_CLASSES) / (1.0 - noise), 0.0)
    ratio = without_noise / np.where(average > 0.0, average, inf)
    # Joint probabilities of state and label without noise: (tree, row, state, label).
    drawn = (whole - own)[..., None] * np.eye(N_CLASSES)
    joint = np.concatenate([own[:, :, None, :], drawn], axis=2) * ratio[:, None, :]
    assert joint.min() > -1e-9
    # A power below one enlarges the rounding of probabilities that are next to nothing.
    np.testing.assert_allclose(joint.sum(axis=(0, 2, 3)), model.n_estimators, rtol=1e-6)
    joint = (1.0 - noise) * joint + noise / N_CLASSES * joint.sum(axis=-1, keepdims=True)
    joint *= weights
    joint /= joint.sum(axis=(0, 2, 3))[:, None, None]
    states = joint.sum(axis=-1)
    given = joint / np.maximum(states, 1e-300)[..., None]
    remains = (states * entropy(given)).sum(axis=(0, 2))
    np.testing.assert_allclose(found.total, entropy(predicted), atol=1e-12)
    np.testing.assert_allclose(found.aleatoric, remains, atol=1e-6)
    np.testing.assert_allclose(found.epistemic, entropy(predicted) - remains, atol=1e-6)


@pytest.mark.parametrize("lifetime", [inf, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_clock_that_a_row_shares_with_other_rows(
    kind: Any, lifetime: float
) -> None:
    x, y = data(2)
    model = make(kind, lifetime=lifetime).fit(x, y)
    at = queries(x)[:-3]  # the reference integrates numerically, and misses the far ones
    expected = np.zeros(len(at))
    for tree in trees_of(model):
        for i, row in enumerate(at):
            expected[i] += class_process.shared(tree, row, SCORE_RATE, RATES)[1][-1]
    np.testing.assert_allclose(model.score_samples(at), expected / model.n_estimators, atol=1e-9)


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_fall_to_zero_along_a_ray(kind: Any, predictive: str) -> None:
    """Beyond the corner of the range: rows there have one path."""
    x, y = data(3)
    model = make(kind, n_estimators=50, predictive=predictive).fit(x, y)
    distance = np.r_[np.geomspace(1e-3, 1e9, 40)]
    score = model.score_samples(1.0 + distance[:, None] * np.array([1.0, 2.0]))
    assert (np.diff(score) <= 0.0).all()
    assert score[0] > 0.2
    assert score[-1] < 1e-8
    if predictive == "averaged":
        assert (np.diff(score) < 0.0).all()
        # One step away from everything, only the sum of the distances counts.
        np.testing.assert_allclose(score[-5:], SCORE_RATE / (3.0 * distance[-5:]), rtol=1e-3)


def test_the_score_of_a_single_row_is_known() -> None:
    model = make(MondrianForestRegressor).fit([[0.25, 0.5]], [1.0])
    at = np.array([[0.25, 0.5], [0.75, 0.5], [-1.0, 2.5]])
    np.testing.assert_allclose(
        model.score_samples(at),
        [1.0, SCORE_RATE / (SCORE_RATE + 0.5), SCORE_RATE / (SCORE_RATE + 3.25)],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_left_out_scores_are_those_after_forgetting(kind: Any) -> None:
    x, y = data(4, n=25)
    x[7] = x[3]
    model = make(kind).fit(x, y)
    found, digest = model.loo_score_samples(), model.digest()
    for i in range(len(x)):
        score = model.copy().forget(i).score_samples(x[[i]])
        np.testing.assert_allclose(found[i], score[0], rtol=1e-12)
    np.testing.assert_array_equal(model.loo_score_samples([3, 20]), found[[3, 20]])
    assert model.digest() == digest
    assert (found < model.score_samples(x) + 1e-12).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_far_away_all_uncertainty_about_classes_is_epistemic(name: str) -> None:
    x, y = data(5, n=200)
    model = make(MondrianForestClassifier, n_estimators=20, **SETTINGS[name]).fit(x, y)
    far = x[:10] + 1e7
    found = model.predict_uncertainty(far)
    noise = model.calibration_noise_ / N_CLASSES
    weights = np.array([(model.class_weight or {}).get(k, 1.0) for k in range(N_CLASSES)])
    # A label that is known, but for noise, and the share of it.
    known = ((1.0 - model.calibration_noise_) * np.eye(N_CLASSES) + noise) * weights
    share = known.sum(axis=1)
    of_noise = share @ entropy(known / share[:, None]) / share.sum()
    np.testing.assert_allclose(found.total, entropy(weights / weights.sum()), atol=1e-4)
    np.testing.assert_allclose(found.aleatoric, of_noise, atol=1e-4)
    # Among the rows, classes overlap.
    near = model.predict_uncertainty(x)
    assert near.epistemic.mean() < 0.5 * found.epistemic.mean()


def test_a_known_overlap_is_aleatoric() -> None:
    """Labels of a coin in copies of few places: more rows there would tell nothing."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 3, size=(900, 2)) / 2.0
    y = rng.integers(0, 2, size=900)
    model = make(MondrianForestClassifier, n_estimators=30).fit(x, y)
    found = model.predict_uncertainty(np.unique(x, axis=0))
    assert (found.aleatoric > 0.95 * np.log(2.0)).all()
    assert (found.epistemic < 0.03).all()


@pytest.mark.parametrize("posterior", ["exact", "joint", "fast"])
def test_the_variance_of_numbers_has_the_noise_and_the_rest(posterior: str) -> None:
    x, _ = data(7, n=150)
    y = np.sin(6.0 * x[:, 0]) + 0.3 * np.random.default_rng(7).normal(size=150)
    model = make(MondrianForestRegressor, n_estimators=20, posterior=posterior, noise="global")
    model.fit(x, y)
    at = np.concatenate([x[:20], x[:20] + 1e6])
    found = model.predict_uncertainty(at)
    _, std = model.predict(at, return_std=True)
    np.testing.assert_allclose(found.total, std**2, rtol=1e-12)
    np.testing.assert_allclose(found.aleatoric, model.hyperparameters_["noise_variance"])
    assert found.epistemic[:20].mean() < 0.5 * found.epistemic[20:].mean()


def test_local_noise_is_found_where_it_is() -> None:
    """Noise of a tenth, and of one, on either side: the epistemic part is not what differs."""
    rng = np.random.default_rng(8)
    x = rng.uniform(size=(800, 2))
    loud = x[:, 0] > 0.5
    y = np.where(loud, 1.0, 0.1) * rng.normal(size=800)
    model = make(MondrianForestRegressor, n_estimators=30, noise="local").fit(x, y)
    at = np.array([[0.25, 0.5], [0.75, 0.5], [1e6, 0.5]])
    quiet, noisy, far = model.predict_uncertainty(at).aleatoric
    assert 0.003 < quiet < 0.1
    assert 0.4 < noisy < 1.5
    noise = model.hyperparameters_["noise_variance"]
    # Before any split the factor of the noise is that of all rows.
    assert 0.5 * noise < far < 2.0 * noise


@pytest.mark.parametrize("params", [{}, {"posterior": "joint"}])
@pytest.mark.parametrize("kind", KINDS)
def test_no_history_and_no_number_of_threads_matters(kind: Any, params: dict[str, Any]) -> None:
    x, y = data(9, n=70)
    at = queries(x)
    whole = make(kind, **params).fit(x, y, ids=np.arange(70))
    order = np.random.default_rng(9).permutation(70)
    other = make(kind, **params, warm_up=0)
    more = np.r_[order[:30], order[:3]]
    other.partial_fit(x[more], y[more], ids=np.r_[order[:30], 90:93])
    other.forget([90, 91, 92])
    other.score_samples(at)
    other.merge(make(kind, **params).fit(x[order[30:]], y[order[30:]], ids=order[30:]))
    other.set_params(n_jobs=3)
    np.testing.assert_array_equal(other.score_samples(at), whole.score_samples(at))
    np.testing.assert_array_equal(
        other.loo_score_samples(np.arange(70)), whole.loo_score_samples(np.arange(70))
    )
    for ours, theirs in zip(
        other.predict_uncertainty(at), whole.predict_uncertainty(at), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    single = [whole.predict_uncertainty(row[None]) for row in at]
    np.testing.assert_array_equal(
        np.concatenate([one.total for one in single]), whole.predict_uncertainty(at).total
    )


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_named_and_add_up(kind: Any) -> None:
    x, y = data(10)
    found = make(kind).fit(x, y).predict_uncertainty(queries(x))
    assert isinstance(found, Uncertainty)
    total, aleatoric, epistemic = found
    np.testing.assert_array_equal(total - aleatoric, epistemic)
    assert (aleatoric >= 0.0).all()
    assert (epistemic >= 0.0).all()
    one = make(MondrianForestClassifier).fit(x, np.zeros(len(x))).predict_uncertainty(x)
    assert max(part.max() for part in one) == 0.0
