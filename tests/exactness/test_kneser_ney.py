"""Classification against the literal transcription of Algorithms 5.3, 5.4 and 5.8."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, _core
from forests import rates_of, trees_of
from reference import ikn
from reference.arrays import Array, parts_from_a_leaf, path

N_CLASSES = 3
DISCOUNT = 1.5


def data(seed: int, n: int = 40, d: int = 2) -> tuple[Array, Array]:
    """Rows with duplicates and ties, three classes that depend on the first feature."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(size=(n, d)), 2)
    x[: n // 8] = x[n // 8 : 2 * (n // 8)]
    y = np.clip((3 * x[:, 0] + 0.5 * rng.normal(size=n)).astype(int), 0, N_CLASSES - 1)
    y[:N_CLASSES] = np.arange(N_CLASSES)
    return x, y


def queries(seed: int, x: Array, n: int = 25) -> Array:
    """Inside, at rows, between rows, outside, and far outside the data."""
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    return np.concatenate(
        [
            rng.uniform(size=(n, d)),
            x[:5],
            0.5 * (x[:5] + x[5:10]),
            rng.uniform(-2.0, 3.0, size=(n, d)),
            rng.choice([-1e6, 1e3, 0.5], size=(5, d)),
        ]
    )


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "lifetime": {"lifetime": 3.0},
    "size": {"min_samples_split": 6},
    "discount": {"discount": 30.0},
    "weak discount": {"discount": 1e-3},
}


def weights_of(kind: str, n: int) -> Array | None:
    """Weights of rows: none, fractions and more, or all of them tiny."""
    rng = np.random.default_rng(6)
    shapes = {"fractions": rng.gamma(0.7, size=n) + 1e-3, "tiny": rng.uniform(0.5, 1.0, n) / n**2}
    return shapes.get(kind)


@pytest.mark.parametrize("kind", ["unweighted", "fractions", "tiny"])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.filterwarnings("ignore:sample_weight sums to:UserWarning")
def test_averaged_prediction_is_algorithm_5_8(name: str, d: int, kind: str) -> None:
    """Counts are those of Algorithm 5.3, predict_proba the mean over trees of Algorithm 5.8."""
    settings = {"discount": DISCOUNT, "calibration": None} | SETTINGS[name]
    x, y = data(d, d=d)
    model = MondrianForestClassifier(
        4, feature_range=(0.0, 1.0), feature_weights=None, random_state=1, **settings
    )
    weights = weights_of(kind, len(x))
    model.fit(x, y, weights)
    at = queries(d, x)
    gamma, rates = settings["discount"] * d, rates_of(0.0, 1.0, d)
    expected = np.zeros((len(at), N_CLASSES))
    for tree in trees_of(model):
        counts = ikn.initialize_posterior_counts(tree, x, y, N_CLASSES, weights)
        np.testing.assert_allclose(tree["counts"], counts, rtol=1e-9)
        means = ikn.posterior_means(tree, counts, gamma)
        for i, point in enumerate(at):
            expected[i] += ikn.predict(tree, counts, point, gamma, rates, means) / 4
    found = model.predict_proba(at)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_rows_outside_the_reference_range_predict_by_the_same_algorithm() -> None:
    x, y = data(7)
    model = MondrianForestClassifier(
        4,
        feature_range=(0.4, 0.5),
        feature_weights=None,
        discount=DISCOUNT,
        calibration=None,
        random_state=2,
    ).fit(x, y)
    at, rates = queries(7, x), rates_of(0.4, 0.5, 2)
    expected = np.zeros((len(at), N_CLASSES))
    for tree in trees_of(model):
        counts = ikn.initialize_posterior_counts(tree, x, y, N_CLASSES)
        for i, point in enumerate(at):
            expected[i] += ikn.predict(tree, counts, point, 2 * DISCOUNT, rates) / 4
    np.testing.assert_allclose(model.predict_proba(at), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("lifetime", [inf, 3.0])
def test_averaged_prediction_is_the_mean_over_sampled_extensions(lifetime: float) -> None:
    """Test points added at random to our trees by Algorithm 5.6; differences in standard errors."""
    x, y = data(3, n=20)
    model = MondrianForestClassifier(
        1,
        feature_range=(0.0, 1.0),
        feature_weights=None,
        discount=DISCOUNT,
        calibration=None,
        lifetime=lifetime,
        random_state=3,
    ).fit(x, y)
    (tree,) = trees_of(model)
    where = np.array([path(tree, row)[-1] for row in x])
    rng = np.random.default_rng(3)
    rates = rates_of(0.0, 1.0, 2)
    at = rng.uniform(-0.3, 1.3, size=(8, 2))
    z = []
    for point, exact in zip(at, model.predict_proba(at), strict=True):
        draws = np.array(
            [
                ikn.predict_by_extension(
                    rng, tree, where, y, N_CLASSES, point, 2 * DISCOUNT, rates, lifetime
                )
                for _ in range(400)
            ]
        )
        error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        same = error < 1e-12
        np.testing.assert_allclose(draws.mean(axis=0)[same], exact[same], atol=1e-9)
        z += ((draws.mean(axis=0) - exact)[~same] / error[~same]).tolist()
    assert len(z) > 10
    assert np.abs(z).max() < 4.5
    assert np.square(z).mean() < 2.5


@pytest.mark.slow
@pytest.mark.parametrize("feature_range", [(0.0, 1.0), (0.3, 0.6)])
def test_realised_prediction_is_at_the_leaf_that_the_row_would_get(
    feature_range: tuple[float, float],
) -> None:
    """Where a cut of the tree parts the query, the extension is the same process': fit with it.

    All labels differ, so that only single rows are paused. The tree of the rows and the query shows
    where the query branches off; counts without it, and Algorithm 5.4, give its own leaf's
    prediction. A query that reaches a paused leaf branches off at another time, which
    has the right law (below) but is not that of the cuts that the leaf has not drawn yet.
    """
    rng = np.random.default_rng(4)
    x, n = rng.uniform(size=(9, 2)), 9
    y = np.arange(n)
    at = np.concatenate([rng.uniform(-1.0, 2.0, size=(25, 2)), x[:2]])
    compared = 0
    for seed in range(6):
        settings = {
            "feature_range": feature_range,
            "discount": DISCOUNT,
            "calibration": None,
            "random_state": seed,
        }
        model = MondrianForestClassifier(
            1, feature_weights=None, predictive="realised", **settings
        ).fit(x, y)
        for point, found in zip(at, model.predict_proba(at), strict=True):
            with_it = MondrianForestClassifier(1, feature_weights=None, **settings).fit(
                [*x, point], [*y, n]
            )
            (tree,) = trees_of(with_it)
            own = path(tree, point)[-1]
            if parts_from_a_leaf(tree, own):
                continue
            compared += 1
            where = np.array([path(tree, row)[-1] for row in x])
            expected = ikn.predict_realised_leaf(tree, where, y, n, own, 2 * DISCOUNT)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    assert compared > 40


@pytest.mark.slow
@pytest.mark.parametrize("min_samples_split", [2, 8])
def test_realised_and_averaged_predictions_agree_over_many_trees(min_samples_split: int) -> None:
    """Both estimate one expectation, also where leaves are paused.

    One tree's realised probability differs from its averaged one by less than 1, so the mean of
    2,000 trees has a standard error below 1/sqrt(8000) = 0.011; allow 4.5 of them.
    """
    x, y = data(5)
    at = queries(5, x)
    proba = [
        MondrianForestClassifier(
            2000,
            predictive=predictive,
            min_samples_split=min_samples_split,
            feature_range=(0.0, 1.0),
            feature_weights=None,
            discount=DISCOUNT,
            calibration=None,
            random_state=5,
        )
        .fit(x, y)
        .predict_proba(at)
        for predictive in ("realised", "averaged")
    ]
    assert np.abs(proba[0] - proba[1]).max() < 4.5 / np.sqrt(8000)


def test_a_class_without_rows_counts_in_the_uniform_base() -> None:
    """`partial_fit(classes=)` declares classes; H is uniform over all of them."""
    x, y = data(6)
    y = np.where(y == 1, 0, y)
    model = MondrianForestClassifier(
        3,
        feature_range=(0.0, 1.0),
        feature_weights=None,
        discount=DISCOUNT,
        calibration=None,
        random_state=6,
    ).partial_fit(x, y, classes=[0, 1, 2])
    at, rates = queries(6, x), rates_of(0.0, 1.0, 2)
    expected = np.zeros((len(at), 3))
    for tree in trees_of(model):
        counts = ikn.initialize_posterior_counts(tree, x, y, 3)
        np.testing.assert_array_equal(tree["counts"], counts)
        for i, point in enumerate(at):
            expected[i] += ikn.predict(tree, counts, point, 2 * DISCOUNT, rates) / 3
    np.testing.assert_allclose(model.predict_proba(at), expected, rtol=1e-11, atol=1e-14)


def test_a_class_that_appears_later_predicts_as_if_it_had_been_there() -> None:
    x, y = data(8)
    order = np.argsort(y, kind="stable")  # class 2 comes last
    settings = {
        "feature_range": (0.0, 1.0),
        "discount": DISCOUNT,
        "calibration": None,
        "random_state": 8,
    }
    online = MondrianForestClassifier(3, feature_weights=None, **settings)
    for rows in np.array_split(order, 8):
        online.partial_fit(x[rows], y[rows])
    batch = MondrianForestClassifier(3, feature_weights=None, **settings).fit(x, y)
    np.testing.assert_array_equal(online.classes_, batch.classes_)
    at = queries(8, x)
    np.testing.assert_array_equal(online.predict_proba(at), batch.predict_proba(at))


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_leave_one_out_is_forgetting_the_row_and_predicting_it(predictive: str) -> None:
    """Bit for bit, for each discount, and the model is left as it was."""
    x, y = data(9, n=30)
    model = _core.MondrianClassifier(
        n_estimators=5, discount=DISCOUNT, calibration=None, predictive=predictive, seed=9
    )
    labels = [0, 1, 2]
    model.fit(x, y.astype(np.uint32), labels, declared=labels, low=np.zeros(2), high=np.ones(2))
    before = model.digest()
    discounts = [0.5, DISCOUNT, 20.0]
    found = model.loo_proba(None, discounts)
    assert found.shape == (3, len(x), N_CLASSES)
    for i in range(len(x)):
        without = model.copy()
        without.forget(np.array([i], dtype=np.uint64))
        for k, discount in enumerate(discounts):
            without.set_discount(discount)
            np.testing.assert_allclose(
                found[k, i], without.predict_proba(x[i : i + 1])[0], rtol=1e-12, atol=1e-15
            )
    assert model.digest() == before


def test_the_prior_returns_along_a_ray() -> None:
    """Going away from the data, probabilities move towards uniform, in expectation monotonically.

    2,000 trees; a step back of less than 0.002 is Monte Carlo error.
    """
    x, y = data(10)
    model = MondrianForestClassifier(
        2000,
        feature_range=(0.0, 1.0),
        feature_weights=None,
        discount=DISCOUNT,
        calibration=None,
        random_state=10,
    ).fit(x, y)
    start, direction = np.array([0.9, 0.9]), np.array([1.0, 0.3])
    ray = start + direction * np.concatenate([[0.0], np.geomspace(0.05, 1e7, 30)])[:, None]
    proba = model.predict_proba(ray)
    distance = np.abs(proba - 1.0 / N_CLASSES).sum(axis=1)
    outside = ray[:, 0] > 1.0
    assert distance[outside][0] > 0.3
    assert (np.diff(distance[outside]) < 2e-3).all()
    assert distance[-1] < 1e-5
