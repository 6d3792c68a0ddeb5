"""A feature of weight 0 is as if it were not in the table.

The Mondrian process has no coordinate for it. So a forest with such features is, bit for bit, the
forest of the table without them, whatever their values are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor
from forests import assert_same_trees, through_file, trees_of
from reference.arrays import Array

WEIGHTS = np.array([0.0, 1.0, 0.0, 2.0, 0.5])
KEPT = np.flatnonzero(WEIGHTS)
OTHERS = np.flatnonzero(WEIGHTS == 0.0)
RANGE = np.array([[-2e3, -2.0, -2.0, -2.0, -3.0], [2e3, 2.0, 1.0, 2.5, 3.0]])
MAPS = [
    (np.array([low, 0.25 * low + 0.75 * high, high]), np.array([0.0, share, 1.0]))
    for low, high, share in zip(*RANGE, [0.9, 0.5, 0.25, 0.8, 0.75], strict=True)
]
SUBSTITUTES = [0.5, 0.25, -1.0, 0.0, 1.0]
BY_FEATURE = ("feature_weights", "feature_maps", "feature_range", "substitutes")

CALIBRATED: dict[str, tuple[Any, dict[str, Any]]] = {
    "calibrated classes": (MondrianForestClassifier, {"posterior": "kneser-ney"}),
    "joint classes": (MondrianForestClassifier, {"posterior": "joint"}),
    "joint classes of trees": (
        MondrianForestClassifier,
        {"posterior": "joint", "joint_kernel": "trees"},
    ),
}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = CALIBRATED | {
    "classes": (MondrianForestClassifier, {"posterior": "kneser-ney", "calibration": None}),
    "exact": (MondrianForestRegressor, {"posterior": "exact"}),
    "fast": (MondrianForestRegressor, {"posterior": "fast"}),
    "joint": (MondrianForestRegressor, {"posterior": "joint"}),
    "joint of trees": (MondrianForestRegressor, {"posterior": "joint", "joint_kernel": "trees"}),
}
SOME = ["classes", "calibrated classes", "exact", "joint"]
models = pytest.mark.parametrize("name", MODELS)
some_models = pytest.mark.parametrize("name", SOME)

# A new forest, without rows.
Make = Callable[[], Any]
History = Callable[[Make, Array, Array], Any]


def rows(name: str, n: int, seed: int) -> tuple[Array, Array]:
    """Return rows, of which some differ from others only in features of weight 0, and targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    x[:, 0] *= 1e3
    x[:, 4] = np.round(x[:, 4])
    some = n // 10
    x[:some, KEPT] = x[some : 2 * some, KEPT]
    y = np.sin(2.0 * x[:, 1]) + x[:, 3] + 0.2 * rng.normal(size=n)
    if MODELS[name][0] is MondrianForestClassifier:
        return x, (y > 0.0).astype(np.int64) + (y > 1.0)
    return x, y


def queries() -> Array:
    """Return rows near the others, some ranges away, and far away in features of weight 0."""
    rng = np.random.default_rng(1)
    near, away = rng.normal(size=(12, 5)), 30.0 * rng.normal(size=(6, 5))
    far = rng.normal(size=(12, 5))
    far[:, OTHERS] *= 1e6 * (RANGE[1] - RANGE[0])[OTHERS]
    return np.concatenate([near, away, far])


def makers(name: str, **params: Any) -> tuple[Make, Make]:
    """Return what makes a forest of all features, and one of those of positive weight."""
    kind, own = MODELS[name]
    whole = {"feature_weights": WEIGHTS, "random_state": 3} | own | params
    reduced = {key: of_kept(key, value) for key, value in whole.items()}
    return (lambda: kind(4, **whole)), (lambda: kind(4, **reduced))


def of_kept(key: str, value: Any) -> Any:
    """Return a parameter for the table of features of positive weight."""
    if key not in BY_FEATURE:
        return None if key == "categorical_features" else value
    if key == "feature_range":
        return value[:, KEPT]
    return [value[feature] for feature in KEPT]


def grown(
    name: str, x: Array, y: Array, *, history: History | None = None, **params: Any
) -> tuple[Any, Any]:
    """Return both forests after a history; None is a fit."""
    make, make_reduced = makers(name, **params)
    if history is None:
        return make().fit(x, y), make_reduced().fit(x[:, KEPT], y)
    return history(make, x, y), history(make_reduced, np.ascontiguousarray(x[:, KEPT]), y)


def distribution(dist: Any) -> list[Array]:
    return [getattr(dist, part) for part in ("offsets", "weights", "means", "variances")]


def results(model: Any, at: Array) -> dict[str, list[Array]]:
    """Return all that a forest says of rows, and of its own rows left out."""
    found = {"scores": [model.score_samples(at), model.loo_score_samples()]}
    if isinstance(model, MondrianForestClassifier):
        found["proba"] = [model.predict_proba(at)]
        found["left out"] = [model.loo_predict_proba(calibrated=False), model.loo_predict_proba()]
        found["calibration"] = [
            np.array([model.calibration_power_, model.calibration_noise_, model.joint_weight_])
        ]
    else:
        found["mean and deviation"] = [*model.predict(at, return_std=True), model.predict(at)]
        found["distribution"] = distribution(model.predict_dist(at))
        found["left out"] = distribution(model.loo_predict_dist())
        found["hyperparameters"] = [np.array([*model.hyperparameters_.values()])]
    uncertainty = model.predict_uncertainty(at)
    found["uncertainty"] = [uncertainty.aleatoric, uncertainty.epistemic]
    return found


def assert_same(whole: Any, reduced: Any, at: Array | None = None) -> None:
    """Equal bit for bit, but for the numbers of features."""
    at = queries() if at is None else at
    trees, expected_trees = trees_of(whole), trees_of(reduced)
    for tree, expected_tree in zip(trees, expected_trees, strict=True):
        tree["lower"], tree["upper"] = tree["lower"][:, KEPT], tree["upper"][:, KEPT]
        features = expected_tree["feature"]
        expected_tree["feature"] = np.where(features < 0, -1, KEPT[features])
    assert sum(len(tree["feature"]) for tree in trees) > 3 * len(trees)
    assert_same_trees(trees, expected_trees)
    importances = np.zeros(5)
    importances[KEPT] = reduced.feature_importances_
    np.testing.assert_array_equal(whole.feature_importances_, importances)
    found, expected = results(whole, at), results(reduced, np.ascontiguousarray(at[:, KEPT]))
    assert found.keys() == expected.keys()
    for key, parts in found.items():
        for part, other in zip(parts, expected[key], strict=True):
            np.testing.assert_array_equal(part, other, key)


@models
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("maps", [None, MAPS], ids=["plain", "maps"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_forest_is_that_of_the_other_features(
    name: str, predictive: str, maps: Any, dtype: str
) -> None:
    x, y = rows(name, 60, 0)
    given = {} if maps is None else {"feature_maps": maps, "feature_range": RANGE}
    assert_same(*grown(name, x.astype(dtype), y, predictive=predictive, **given))


@pytest.mark.parametrize("name", ["calibrated classes", "joint classes of trees"])
def test_more_rows_than_calibrate(name: str) -> None:
    x, y = rows(name, 400, 2)
    assert_same(*grown(name, x, y))


@some_models
@pytest.mark.parametrize("settings", [{"min_samples_split": 5}, {"lifetime": 1.5}])
def test_smaller_trees(name: str, settings: dict[str, Any]) -> None:
    x, y = rows(name, 80, 3)
    assert_same(*grown(name, x, y, **settings))


@some_models
def test_their_values_may_need_more_digits_or_be_of_any_size(name: str) -> None:
    x, y = rows(name, 80, 4)
    x[:, KEPT] = x[:, KEPT].astype(np.float32)
    x[:, 0] *= 1e290
    x[:, 2] = 1e-320
    at = queries()
    at[::2, 0] = -1e308
    at[::3, 2] = 1e308
    assert_same(*grown(name, x, y, feature_range=RANGE), at)


@some_models
def test_a_range_of_one_value_and_a_single_feature_that_counts(name: str) -> None:
    x, y = rows(name, 60, 5)
    x[:, [0, 2]] = 7.0
    whole, reduced = grown(name, x, y)
    assert_same(whole, reduced)
    one = makers(name, feature_weights=[0.0, 0.0, 0.0, 3.0, 0.0])[0]().fit(x, y)
    kind, own = MODELS[name]
    alone = kind(4, feature_weights=[3.0], random_state=3, **own).fit(x[:, [3]], y)
    for tree, other in zip(one.trees_, alone.trees_, strict=True):
        np.testing.assert_array_equal(tree.threshold, other.threshold)
    np.testing.assert_array_equal(one.predict(queries()), alone.predict(queries()[:, [3]]))


# -- histories ------------------------------------------------------------------------------------


def streamed(make: Make, x: Array, y: Array) -> Any:
    model = make()
    for part in np.array_split(np.arange(len(x)), 4):
        model.partial_fit(x[part], y[part])
        model.predict(x[:1])  # trees grow in between
    return model


def forgetful(make: Make, x: Array, y: Array) -> Any:
    model = make().fit(x, y)
    model.predict(x[:1])
    return model.forget(np.arange(3, 20)).partial_fit(x[5:9], y[5:9])


def in_a_window(make: Make, x: Array, y: Array) -> Any:
    model = make().set_params(window_size=40)
    return model.fit(x[:60], y[:60]).partial_fit(x[60:], y[60:])


def merged(make: Make, x: Array, y: Array) -> Any:
    parts = np.arange(30), np.arange(30, len(x))
    first, second = (make().fit(x[part], y[part], ids=part) for part in parts)
    return first.merge(second)


def loaded(make: Make, x: Array, y: Array) -> Any:
    model = through_file(make().fit(x[:50], y[:50]))
    return through_file(model.partial_fit(x[50:], y[50:]))


def pickled(make: Make, x: Array, y: Array) -> Any:
    model = pickle.loads(pickle.dumps(make().fit(x[:50], y[:50])))
    return model.copy().partial_fit(x[50:], y[50:])


def weighted(make: Make, x: Array, y: Array) -> Any:
    weights = np.resize([0.25, 1.0, 0.0, 3.5, 2.0], len(x))
    return make().fit(x, y, weights).forget(np.arange(4))


HISTORIES = [streamed, forgetful, in_a_window, merged, loaded, pickled, weighted]


@some_models
@pytest.mark.parametrize("history", HISTORIES)
def test_histories(name: str, history: History) -> None:
    x, y = rows(name, 80, 6)
    assert_same(*grown(name, x, y, history=history, feature_range=RANGE))


@pytest.mark.parametrize("history", HISTORIES)
def test_histories_with_maps(history: History) -> None:
    x, y = rows("exact", 80, 6)
    assert_same(*grown("exact", x, y, history=history, feature_range=RANGE, feature_maps=MAPS))


@pytest.mark.parametrize("history", [streamed, loaded])
@pytest.mark.parametrize("warm_up", [0, 60])
def test_ranges_that_are_learned_in_a_warm_up(history: History, warm_up: int) -> None:
    for name in ("classes", "exact"):
        x, y = rows(name, 80, 7)
        assert_same(*grown(name, x, y, history=history, warm_up=warm_up))


@some_models
@pytest.mark.parametrize("maps", [None, MAPS], ids=["plain", "maps"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_come_back_with_all_their_features(name: str, maps: Any, dtype: str) -> None:
    x, y = rows(name, 60, 8)
    x = x.astype(dtype)
    x[7, OTHERS] = np.nan
    settings = {"feature_range": RANGE, "substitutes": SUBSTITUTES}
    settings |= {} if maps is None else {"feature_maps": maps}
    model = makers(name, **settings)[0]().fit(x, y)
    np.testing.assert_array_equal(model._model.rows(), x)
    digest = model.digest()
    for row in (7, 30):
        model.forget([row])
        assert model.digest() != digest
        model.partial_fit(x[[row]], y[[row]])
        assert model.digest() == digest
    np.testing.assert_array_equal(through_file(model)._model.rows(), model._model.rows())
    assert through_file(model).digest() == digest


@some_models
def test_digests_know_the_values(name: str) -> None:
    """They tell rows apart, which trees do not."""
    x, y = rows(name, 60, 9)
    make = makers(name, feature_range=RANGE)[0]
    other = x.copy()
    other[11, 2] += 1.0
    model, changed = make().fit(x, y), make().fit(other, y)
    for tree, same in zip(model.trees_, changed.trees_, strict=True):
        np.testing.assert_array_equal(tree.threshold, same.threshold)
    assert model.digest() != changed.digest()


# -- what features add to predictions -------------------------------------------------------------


@models
@pytest.mark.parametrize("maps", [None, MAPS], ids=["plain", "maps"])
def test_they_add_nothing_to_predictions(name: str, maps: Any) -> None:
    x, y = rows(name, 60, 10)
    given = {} if maps is None else {"feature_maps": maps, "feature_range": RANGE}
    whole, reduced = grown(name, x, y, **given)
    at = queries()[::3]
    for method in ("path", "shapley"):
        found = whole.contributions(at, method=method)
        expected = reduced.contributions(at[:, KEPT], method=method)
        assert not found.values[:, OTHERS].any()
        # Shapley values are sums over features, in another order.
        tolerance = 0.0 if method == "path" else 1e-9
        for part, other in (
            (found.values[:, KEPT], expected.values),
            (found.base_values, expected.base_values),
        ):
            np.testing.assert_allclose(part, other, rtol=tolerance, atol=tolerance)


# -- missing values and categories ----------------------------------------------------------------


@some_models
@pytest.mark.parametrize("maps", [None, MAPS], ids=["plain", "maps"])
def test_their_values_may_be_missing(name: str, maps: Any) -> None:
    """What stands for them is learned, and does not matter."""
    x, y = rows(name, 80, 11)
    holes = np.zeros(x.shape, dtype=bool)
    holes[:, OTHERS] = np.random.default_rng(0).random((80, len(OTHERS))) < 0.3
    x[holes] = np.nan
    given = {} if maps is None else {"feature_maps": maps, "feature_range": RANGE}
    whole, reduced = grown(name, x, y, **given)
    assert whole.substitutes_ is not None
    assert reduced.substitutes_ is None
    at = queries()
    at[::3, 2] = np.nan
    assert_same(whole, reduced, at)


@some_models
def test_their_first_missing_values_may_come_late(name: str) -> None:
    def history(make: Make, x: Array, y: Array) -> Any:
        model = make().fit(x[:40], y[:40])
        model.predict(x[:1])
        return model.partial_fit(x[40:], y[40:]).forget([3, 50])

    x, y = rows(name, 80, 12)
    x[45:60, 0] = np.nan
    whole, reduced = grown(name, x, y, history=history, feature_range=RANGE)
    assert whole.substitutes_ is not None
    assert_same(whole, reduced)
    np.testing.assert_array_equal(whole._model.rows(), np.delete(x, [3, 50], axis=0))


@pytest.mark.parametrize("name", [name for name in SOME if name not in CALIBRATED])
def test_values_of_all_features_may_be_missing(name: str) -> None:
    """Rows that lack a value that counts are told apart by all others; so they calibrate in another
    order.
    """
    x, y = rows(name, 80, 13)
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    at = queries()
    at[np.random.default_rng(2).random(at.shape) < 0.2] = np.nan
    assert_same(*grown(name, x, y, substitutes=SUBSTITUTES), at)


@some_models
def test_they_may_be_categories(name: str) -> None:
    x, y = rows(name, 80, 14)
    at = queries()
    x[:, 2], at[:, 2] = np.arange(80) % 3, np.arange(len(at)) % 4  # one of them unknown
    assert_same(*grown(name, x, y, categorical_features=[2]), at)


# -- memory ---------------------------------------------------------------------------------------


def test_trees_have_no_place_for_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 200))
    y = (x[:, 0] > 0.0).astype(np.int64)
    few = np.where(np.arange(200) < 5, 1.0, 0.0)
    size, size_of_all = (
        MondrianForestClassifier(20, feature_weights=weights, random_state=0)
        .fit(x, y)
        ._model.nbytes
        for weights in (few, np.ones(200))
    )
    assert size < 0.5 * size_of_all


def test_rows_that_differ_where_a_substitute_looks_are_no_copies() -> None:
    """A history does not matter where the place of a missing value depends on a weight of 0."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.full(500, np.nan), rng.normal(size=500)])
    x[::5, 0] = 2.0 * x[::5, 1]
    y = np.resize([0, 0, 1], 500)
    settings: dict[str, Any] = {
        "feature_weights": [1.0, 0.0],
        "substitutes": [(0.0, [(1, 2.0, 0.0)]), 0.0],
        "feature_range": (-5.0, 5.0),
        "random_state": 0,
    }
    once = MondrianForestClassifier(3, **settings).fit(x, y)
    other = MondrianForestClassifier(3, **settings).fit(x[:450], y[:450])
    other.predict_proba(x[:3])
    other.forget(np.arange(100, 200)).predict_proba(x[:3])
    other.partial_fit(x[450:], y[450:]).partial_fit(x[100:200], y[100:200])
    np.testing.assert_array_equal(once.predict_proba(x), other.predict_proba(x))
