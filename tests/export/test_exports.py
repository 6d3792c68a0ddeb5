"""Exported models predict what the models predict, for rows on every side of every threshold."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from boscage.export import to_onnx, to_treelite

onnxruntime = pytest.importorskip("onnxruntime")
treelite = pytest.importorskip("treelite")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)).astype(np.float32)
Y = 100.0 + X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=60)
TWO = np.where(X[:, 0] > 0.0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5]) + 5
BART: dict[str, Any] = {"n_trees": 5, "n_burn": 10, "n_draws": 20, "n_chains": 1}
FOREST: dict[str, Any] = {"n_estimators": 10, "feature_weights": None, "random_state": 0}

EXACT = {
    "bayes-numbers": (BayesianTreeRegressor(random_state=0), Y),
    "bayes-two": (BayesianTreeClassifier(random_state=0), TWO),
    "bayes-three": (BayesianTreeClassifier(random_state=0), THREE),
    "bart-numbers": (BARTRegressor(**BART, random_state=0), Y),
    "bart-two": (BARTClassifier(**BART, random_state=0), TWO),
    "bart-three": (BARTClassifier(**BART, random_state=0), THREE),
}
SUMS = ("bayes-numbers", "bayes-two", "bayes-three", "bart-numbers")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def exact() -> dict[str, Any]:
    with pytest.MonkeyPatch.context():
        return {name: model.fit(X, y) for name, (model, y) in EXACT.items()}


def thresholds_of(model: Any) -> list[tuple[int, float]]:
    """All features and thresholds of a model's trees."""
    if isinstance(model, (BARTRegressor, BARTClassifier)):
        trees = model._model.shared_trees()
    else:
        trees = model._model.leaf_trees()
    return [
        (feature, threshold)
        for tree in trees
        for feature, threshold in zip(tree["feature"], tree["threshold"], strict=True)
        if feature >= 0
    ]


def rows_for(model: Any, dtype: str) -> Any:
    """Training rows, rows far out, and rows with values right below, on and above thresholds."""
    near = np.repeat(X[:30], 10, axis=0).astype(dtype)
    cuts = thresholds_of(model)
    for row in near:
        for place in rng.integers(len(cuts), size=5):
            feature, threshold = cuts[place]
            value = np.array(threshold).astype(dtype)
            side = rng.integers(-1, 2)
            row[feature] = value if side == 0 else np.nextafter(value, side * np.inf, dtype=dtype)
    return np.concatenate([X, rng.uniform(-9.0, 9.0, size=(50, 3)), near]).astype(dtype)


def by_onnx(model: Any, rows: Any, **options: Any) -> dict[str, Any]:
    graph = to_onnx(model, dtype=rows.dtype.name, **options)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows}), strict=True))


def by_treelite(model: Any, rows: Any, **options: Any) -> Any:
    return treelite.gtil.predict(to_treelite(model, **options), rows)[:, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_graphs_predict_what_models_do(exact: dict[str, Any], name: str, dtype: str) -> None:
    model = exact[name]
    rows = rows_for(model, dtype)
    found = by_onnx(model, rows)
    assert all(array.dtype == dtype for key, array in found.items() if key != "label")
    if name.endswith("numbers"):
        assert np.allclose(found["prediction"], model.predict(rows), rtol=0.0, atol=3e-6 * 100.0)
    else:
        assert np.allclose(found["probabilities"], model.predict_proba(rows), rtol=0.0, atol=1e-6)
        assert np.array_equal(found["label"], model.classes_[found["probabilities"].argmax(axis=1)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SUMS)
def test_treelite_predicts_what_models_do(exact: dict[str, Any], name: str, dtype: str) -> None:
    model = exact[name]
    rows = rows_for(model, dtype)
    found = by_treelite(model, rows)
    if name.endswith("numbers"):
        assert np.allclose(
            found[:, 0], model.predict(rows), rtol=1e-6 if dtype == "float32" else 1e-12
        )
    else:
        assert np.allclose(found, model.predict_proba(rows), rtol=0.0, atol=1e-6)


def test_draws_share_trees(exact: dict[str, Any]) -> None:
    model = exact["bart-three"]._model
    shared = model.shared_trees()
    sums = np.concatenate([tree["sums"] for tree in shared])
    assert set(sums) == set(range(20 * 3))
    splits = {(*tree["feature"], *np.nan_to_num(tree["threshold"])) for tree in shared}
    assert len(splits) == len(shared) < 20 * 3 * 5
    drawn = sum(np.nansum(tree["value"]) for draw in range(20) for tree in model.trees(draw))
    assert sum(tree["value"].sum() for tree in shared) == pytest.approx(drawn)


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_missing_values_go_where_trees_send_them(name: str, is_complete: bool) -> None:
    """Whether values are missing in training or only later."""
    model, y = EXACT[name]
    holes = X.copy()
    holes[rng.uniform(size=X.shape) < 0.2] = np.nan
    fitted = clone(model).fit(X if is_complete else holes, y)
    found = by_onnx(fitted, holes)
    if name.endswith("numbers"):
        assert np.allclose(found["prediction"], fitted.predict(holes), rtol=1e-6)
    else:
        expected = fitted.predict_proba(holes)
        assert np.allclose(found["probabilities"], expected, rtol=0.0, atol=1e-6)
    if name in SUMS:
        expected = fitted.predict(holes)[:, None] if "numbers" in name else expected
        assert np.allclose(by_treelite(fitted, holes), expected, rtol=1e-5)


# -- Mondrian forests ------------------------------------------------------------------------------


def summed_by_trees(forest: MondrianForestRegressor, x: Any = X) -> Any:
    """Predictions for training rows by the forest that is exported: each is a sum over trees."""
    return clone(forest).set_params(joint_kernel="trees").fit(x, Y).predict(x)


def of_leaves(forest: Any, rows: Any) -> Any:
    """What trees add up to where each row has the prediction of its leaf."""
    leaves = forest.apply(rows)
    trees = forest._model.leaf_trees()
    return sum(tree["value"][at] for tree, at in zip(trees, leaves.T, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_leaves_of_regression_forests(predictive: str, dtype: str) -> None:
    forest = MondrianForestRegressor(**FOREST, predictive=predictive, trend=None).fit(X, Y)
    rows = rows_for(forest, dtype)
    expected = of_leaves(forest, rows)[:, 0]
    assert np.allclose(summed_by_trees(forest), of_leaves(forest, X)[:, 0], rtol=1e-12)
    graph = by_onnx(forest, rows, approximate=True)["prediction"]
    assert np.allclose(graph, expected, rtol=1e-6)
    assert np.allclose(by_treelite(forest, rows, approximate=True)[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
@pytest.mark.parametrize("labels", ["told", "rare"])
def test_leaves_of_calibrated_forests(posterior: str, labels: str, dtype: str) -> None:
    """Also where features tell nothing, and the shares of the classes count."""
    kernel = "trees" if posterior == "joint" else "auto"
    forest = MondrianForestClassifier(**FOREST, posterior=posterior, joint_kernel=kernel)
    rng = np.random.default_rng(3)
    forest.fit(X, THREE if labels == "told" else rng.choice(3, size=len(X), p=[0.7, 0.2, 0.1]))
    rows = rows_for(forest, dtype)
    sums = of_leaves(forest, rows)
    power, noise, weight, shares, trend = forest._model.calibration_link()
    with np.errstate(divide="ignore"):
        logs = power * np.log(sums[:, :3])
    assert (posterior == "joint") == (weight > 0.0)
    if weight > 0.0:
        logs += weight * sums[:, 3:6]
    assert (power < 1.0) == (len(shares) > 0)
    if labels == "rare":
        assert power < 1.0
    if shares:
        logs += (1.0 - power) * (1.0 - sums[:, -1:]) ** 4 * np.log(shares)
    assert (labels == "told") == (trend is not None)
    if trend is not None:
        of_trend, features, (low, width, means), slopes, factor, (least, known) = trend
        z = (rows[:, features] - low) / np.array(width) - means
        half = np.linalg.solve(np.reshape(factor, (len(features), -1)), z.T)
        left = np.minimum(known / (least + (half**2).sum(axis=0)), 1.0)[:, None] ** 2
        near = left * (1.0 - sums[:, -1:]) ** 4
        logs += near * of_trend * (z @ np.reshape(slopes, (len(features), 3)))
    expected = (1.0 - noise) * softmax(logs, axis=1) + noise / 3.0
    found = by_onnx(forest, rows, approximate=True)
    assert np.allclose(found["probabilities"], expected, rtol=0.0, atol=1e-6)
    assert np.allclose(found["probabilities"][:60], forest.predict_proba(X), rtol=0.0, atol=1e-6)
    assert np.array_equal(found["label"][:60], forest.predict(X))


def test_the_limit_of_trees_is_exported_as_the_trees() -> None:
    """They are what adds up."""
    limit, trees = (
        MondrianForestClassifier(**FOREST, posterior="joint", joint_kernel=kernel).fit(X, THREE)
        for kernel in ("limit", "trees")
    )
    rows = rows_for(trees, "float64")
    found, expected = (
        by_onnx(forest, rows, approximate=True)["probabilities"] for forest in (limit, trees)
    )
    assert np.array_equal(found, expected)
    assert not np.allclose(found[:60], limit.predict_proba(X), rtol=0.0, atol=1e-5)


def test_leaves_without_calibration() -> None:
    forest = MondrianForestClassifier(**FOREST, calibration=None).fit(X, TWO)
    rows = rows_for(forest, "float64")
    expected = of_leaves(forest, rows)
    found = by_onnx(forest, rows, approximate=True)["probabilities"]
    assert np.allclose(found, expected, rtol=0.0, atol=1e-6)
    assert np.allclose(by_treelite(forest, rows, approximate=True), expected, rtol=1e-12)
    assert np.allclose(forest.predict_proba(X), expected[:60], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_trend_changes_its_slopes_at_the_ends_of_ranges(dtype: str) -> None:
    """Training rows, of which many lie beyond the ranges, have the leaves' predictions."""
    ranges = ([-0.5] * 3, [0.5] * 3)
    forest = MondrianForestRegressor(**FOREST, trend="linear", feature_range=ranges).fit(X, Y)
    found = by_onnx(forest, X.astype(dtype), approximate=True)["prediction"]
    assert np.allclose(found, summed_by_trees(forest), rtol=1e-6)
    _, parts = forest._model.trend_parts()
    assert all(below and above for *_, below, above in parts)
    with pytest.raises(ValueError, match="trend=None"):
        to_treelite(forest, approximate=True)


@pytest.mark.parametrize("trend", [None, "linear"])
def test_missing_values_go_where_their_numbers_do(trend: str | None) -> None:
    holes = X.copy()
    holes[rng.uniform(size=X.shape) < 0.2] = np.nan
    numbers = [0.3, -0.2, 5.0]
    forest = MondrianForestRegressor(**FOREST, trend=trend, substitutes=numbers).fit(holes, Y)
    expected = summed_by_trees(forest, x=holes)
    for dtype in ("float32", "float64"):
        found = by_onnx(forest, holes.astype(dtype), approximate=True)["prediction"]
        assert np.allclose(found, expected, rtol=1e-6)
    if trend is None:
        found = by_treelite(forest, holes.astype(float), approximate=True)
        assert np.allclose(found[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("labels", [[True, False], [1.0, 2.0], [3, -4], ["no", "yes"]])
def test_labels_of_every_type(labels: list[Any]) -> None:
    y = np.asarray(labels)[(X[:, 0] > 0.0).astype(int)]
    model = BayesianTreeClassifier(random_state=0).fit(X, y)
    found = by_onnx(model, X)["label"]
    assert np.array_equal(found, model.predict(X))


def test_a_model_without_splits() -> None:
    model = BayesianTreeRegressor(random_state=0).fit(np.zeros((4, 2)), [1.0, 2.0, 3.0, 6.0])
    found = by_onnx(model, X[:5, :2])["prediction"]
    assert np.allclose(found, model.predict(X[:5, :2]))
    with pytest.raises(ValueError, match="the same for all rows"):
        to_treelite(model)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [to_onnx, to_treelite])
def test_what_cannot_be_exported_is_refused(convert: Any) -> None:
    forest = MondrianForestRegressor(**FOREST, trend=None)
    with pytest.raises(NotFittedError):
        convert(forest)
    with pytest.raises(TypeError, match="found str"):
        convert("forest")
    with pytest.raises(ValueError, match="approximate=True"):
        convert(forest.fit(X, Y))
    terms = [(0.0, [(1, 0.5, 0.0)]), (0.0, []), (0.0, [])]
    forest.set_params(substitutes=terms).fit(X, Y)
    with pytest.raises(ValueError, match="feature 0 with a linear function"):
        convert(forest, approximate=True)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": pandas.Categorical(TWO), "b": X[:, 1]})
    forest = MondrianForestRegressor(**FOREST).fit(table, Y)
    with pytest.raises(ValueError, match="categories cannot be exported"):
        convert(forest, approximate=True)
    weighted = BayesianTreeClassifier(random_state=0, class_weight="balanced").fit(X, TWO)
    with pytest.raises(ValueError, match="class_weight is no part of an export"):
        convert(weighted)


def test_a_forest_without_rows_is_refused() -> None:
    forest = MondrianForestRegressor(**FOREST).fit(X, Y)
    forest.forget(np.arange(60))
    with pytest.raises(ValueError, match="no rows"):
        to_onnx(forest, approximate=True)


def test_what_is_no_sum_is_refused_by_treelite(exact: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="means of a function"):
        to_treelite(exact["bart-two"])
    forest = MondrianForestClassifier(**FOREST).fit(X, TWO)
    with pytest.raises(ValueError, match="calibration=None"):
        to_treelite(forest, approximate=True)


@pytest.mark.parametrize(("convert", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite")])
def test_missing_packages_are_named(
    exact: dict[str, Any], convert: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"boscage.export._{package}", raising=False)
    with pytest.raises(ImportError, match=rf"boscage\[{package}\]"):
        convert(exact["bayes-numbers"])


def test_other_types_of_rows_are_refused(exact: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="dtype"):
        to_onnx(exact["bayes-numbers"], dtype="float16")  # type: ignore[arg-type]
