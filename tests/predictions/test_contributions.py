"""Contributions add up to predictions, and Shapley values are those of the definition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, softmax
from sklearn.base import clone

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from boscage.bayes import MCMC

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 4))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=120)
CODES = np.digitize(Y, [0.0, 0.8])
# Some rows lie far outside of all others.
NEW = np.concatenate([RNG.uniform(size=(12, 4)), RNG.uniform(-2.0, 3.0, size=(6, 4)), X[:6]])

FORESTS = [
    {},
    {"posterior": "exact"},
    {"posterior": "fast"},
    {"trend": "linear"},
    {"lifetime": 4.0, "min_samples_split": 10},
]
CLASSIFIERS: list[dict[str, Any]] = [
    {"posterior": "joint"},
    {"posterior": "joint", "joint_kernel": "trees"},
    {"posterior": "kneser-ney"},
    {"posterior": "kneser-ney", "calibration": None},
    {"posterior": "kneser-ney", "calibration": None, "lifetime": 3.0, "min_samples_split": 8},
]


def by_subsets(tree: dict[str, Any], x: Any, cell: tuple[Any, Any] | None = None) -> Any:
    """Shapley values of one tree by their definition, and the value of knowing nothing."""
    n = len(x)

    def game(known: frozenset[int], node: int) -> Any:
        left, right = tree["children_left"][node], tree["children_right"][node]
        if left < 0:
            value = tree["value"][node]
            own = cell is not None and node == reached and cell[0] <= known
            return value + cell[1] if cell is not None and own else value
        feature = tree["feature"][node]
        if feature in known:
            return game(known, left if x[feature] <= tree["threshold"][node] else right)
        cover = tree["cover"]
        return sum(cover[side] / cover[node] * game(known, side) for side in (left, right))

    reached = 0
    while tree["children_left"][reached] >= 0:
        is_left = x[tree["feature"][reached]] <= tree["threshold"][reached]
        reached = tree["children_left" if is_left else "children_right"][reached]
    phi = []
    for feature in range(n):
        others = [other for other in range(n) if other != feature]
        total: Any = 0.0
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - 1 - size) / math.factorial(n)
            for known in map(frozenset, itertools.combinations(others, size)):
                total = total + weight * (game(known | {feature}, 0) - game(known, 0))
        phi.append(total)
    return np.array(phi), game(frozenset(), 0), tree["value"][reached]


@pytest.mark.slow
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("params", FORESTS)
def test_they_add_up_to_the_mean(params: dict[str, Any], predictive: Any) -> None:
    forest = MondrianForestRegressor(
        n_estimators=10, predictive=predictive, random_state=0, **params
    ).fit(X, Y)
    for method in ("shapley", "path"):
        found = forest.contributions(NEW, method=method)
        np.testing.assert_allclose(found.predictions(), forest.predict(NEW), rtol=0.0, atol=1e-12)
        assert found.values.shape == NEW.shape
        assert np.ptp(found.base_values) == 0.0 or method == "path"


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("params", CLASSIFIERS)
def test_they_add_up_to_probabilities(params: dict[str, Any], predictive: Any) -> None:
    forest = MondrianForestClassifier(
        n_estimators=10, predictive=predictive, random_state=0, **params
    ).fit(X, CODES)
    expected = forest.predict_proba(NEW)
    for method in ("shapley", "path"):
        found = forest.contributions(NEW, method=method)
        np.testing.assert_allclose(found.predictions(), expected, rtol=0, atol=1e-14)
        # What one class gains, others lose.
        np.testing.assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-12)
        assert found.output_names == ["0", "1", "2"]


def test_a_class_that_no_leaf_predicts_has_no_contributions() -> None:
    forest = MondrianForestClassifier(
        n_estimators=3, calibration=None, posterior="kneser-ney", lifetime=1e9, random_state=0
    ).fit(X[:20], np.arange(20) // 10)
    found = forest.contributions(X[:20])
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.predictions(), forest.predict_proba(X[:20]), atol=1e-14)


@pytest.mark.parametrize(
    "params", [{"posterior": "exact"}, {"posterior": "joint", "joint_kernel": "trees"}]
)
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_shapley_values_of_a_forest_are_those_of_the_definition(
    params: dict[str, Any], predictive: Any
) -> None:
    forest = MondrianForestRegressor(
        n_estimators=1, predictive=predictive, lifetime=1.5, trend=None, random_state=1, **params
    ).fit(X[:40], Y[:40])
    [tree] = forest._model.leaf_trees()
    [exported] = forest.trees_
    found, predicted = forest.contributions(NEW), forest.predict(NEW)
    n_cells = 0
    for x, phi, base, total in zip(NEW, found.values, found.base_values, predicted, strict=True):
        leaf = exported.apply(x[np.newaxis])[0]
        outside = np.flatnonzero((x < exported.lower[leaf]) | (x > exported.upper[leaf]))
        cell = frozenset(outside.tolist()), total - tree["value"][leaf]
        n_cells += len(outside) > 0
        expected, nothing, _ = by_subsets(tree, x, cell if len(outside) else None)
        np.testing.assert_allclose(phi, expected[:, 0], rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(base, nothing[0], rtol=0.0, atol=1e-12)
    assert n_cells > 5


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shapley", "path"])
def test_what_trees_lack_of_the_limit_is_shared_by_sizes(method: Any) -> None:
    # Rates as given: learned ones are judged by the limit in one forest and by trees in the other.
    forest = MondrianForestRegressor(n_estimators=10, feature_weights=None, random_state=0).fit(
        X, Y
    )
    by_trees = clone(forest).set_params(joint_kernel="trees").fit(X, Y)
    found, of_trees = (model.contributions(NEW, method=method) for model in (forest, by_trees))
    np.testing.assert_array_equal(found.base_values, of_trees.base_values)
    rest = forest.predict(NEW) - by_trees.predict(NEW)
    assert np.abs(rest).max() > 0.01
    sizes = np.abs(of_trees.values)
    expected = of_trees.values + rest[:, None] * sizes / sizes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.values, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["shapley", "path"])
def test_what_trees_lack_of_class_probabilities_is_shared_by_sizes(method: Any) -> None:
    # Rates as given, as above.
    forest = MondrianForestClassifier(
        n_estimators=10, posterior="joint", feature_weights=None, random_state=0
    )
    by_trees = clone(forest).set_params(joint_kernel="trees").fit(X, CODES)
    forest.fit(X, CODES)
    found, of_trees = (model.contributions(NEW, method=method) for model in (forest, by_trees))
    np.testing.assert_array_equal(found.base_values, of_trees.base_values)
    rest = forest.predict_proba(NEW) - by_trees.predict_proba(NEW)
    assert np.abs(rest).max() > 0.01
    sizes = np.abs(of_trees.values).sum(axis=2, keepdims=True)
    expected = of_trees.values + rest[:, None] * sizes / sizes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.values, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found.predictions(), forest.predict_proba(NEW), atol=1e-12)


@pytest.mark.parametrize("method", ["shapley", "path"])
@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
def test_they_add_up_where_no_split_contributes(kind: Any, method: Any) -> None:
    """Far from all rows, rows leave every tree at its root."""
    y = CODES if kind is MondrianForestClassifier else Y
    params = {
        "posterior": "joint",
        "trend": None,
        "feature_weights": [1.0, 2.0, 0.0, 1.0],
        "random_state": 0,
    }
    forest = kind(4, **params).fit(X, y)
    by_trees = kind(4, joint_kernel="trees", **params).fit(X, y)
    predict = forest.predict_proba if kind is MondrianForestClassifier else forest.predict
    far = 3000.0 * (NEW - 0.5)
    found, of_trees = (model.contributions(far, method=method) for model in (forest, by_trees))
    np.testing.assert_allclose(found.predictions(), predict(far), rtol=0.0, atol=1e-12)
    rest = predict(far) - of_trees.predictions()
    alone = ~of_trees.values.reshape(len(far), -1).any(axis=1)
    if method == "path":
        assert np.abs(rest[alone]).max() > 1e-4
    # The feature of weight 0 has no share.
    for feature, share in enumerate([1 / 3, 1 / 3, 0.0, 1 / 3]):
        values = found.values[alone, feature]
        np.testing.assert_allclose(values, share * rest[alone], rtol=0.0, atol=1e-12)


def test_missing_values_are_explained_by_their_substitutes() -> None:
    holes = X.copy()
    holes[::3, 1] = np.nan
    forest = MondrianForestRegressor(n_estimators=10, feature_weights=None, random_state=0).fit(
        holes, Y
    )
    for method in ("shapley", "path"):
        found = forest.contributions(holes[:12], method=method)
        np.testing.assert_allclose(found.predictions(), forest.predict(holes[:12]), atol=1e-12)
    np.testing.assert_array_equal(forest.contributions(holes[:12]).data, holes[:12])


def test_results_do_not_depend_on_threads() -> None:
    forest = MondrianForestRegressor(n_estimators=10, feature_weights=None, random_state=0).fit(
        X, Y
    )
    rows = np.repeat(NEW, 10, axis=0)
    one = forest.contributions(rows).values
    two = forest.set_params(n_jobs=2).contributions(rows).values
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
def test_bayesian_trees_add_up(sampler: Any) -> None:
    sampler = sampler if sampler == "smc" else MCMC(n_chains=2, n_burn=50, n_draws=20)
    number = BayesianTreeRegressor(sampler=sampler, random_state=0).fit(X, Y)
    found = number.contributions(NEW)
    np.testing.assert_allclose(found.predictions(), number.predict(NEW), atol=1e-13)
    classes = BayesianTreeClassifier(sampler=sampler, random_state=0).fit(X, CODES)
    found = classes.contributions(NEW)
    np.testing.assert_allclose(found.predictions(), classes.predict_proba(NEW), atol=1e-13)


def test_draws_of_bart_are_those_of_the_definition() -> None:
    model = BARTRegressor(n_trees=5, n_chains=1, n_burn=20, n_draws=6, random_state=0).fit(X, Y)
    found = model.contributions(NEW, X, level=0.5)
    np.testing.assert_allclose(found.predictions(), model.predict(NEW), atol=1e-13)
    draws = []
    for trees in model.trees_:
        drawn = np.zeros(NEW.shape)
        for tree in trees:
            passed = np.asarray(tree.decision_path(X).sum(axis=0)).ravel()
            arrays = {
                name: getattr(tree, name)
                for name in ("children_left", "children_right", "feature", "threshold", "value")
            }
            for i, x in enumerate(NEW):
                drawn[i] += by_subsets(arrays | {"cover": np.maximum(passed, 1e-300)}, x)[0]
        draws.append(drawn)
    np.testing.assert_allclose(found.values, np.mean(draws, axis=0), atol=1e-12)
    assert found.lower is not None
    assert found.upper is not None
    np.testing.assert_allclose(found.lower, np.quantile(draws, 0.25, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.upper, np.quantile(draws, 0.75, axis=0), atol=1e-12)


def test_contributions_of_bart_for_classes_are_those_to_the_sums_of_trees() -> None:
    params: dict[str, Any] = {"n_trees": 5, "n_chains": 1, "n_burn": 10, "n_draws": 1}
    two = BARTClassifier(**params, random_state=0).fit(X, CODES > 0)
    found = two.contributions(NEW, X)
    np.testing.assert_allclose(ndtr(found.predictions()), two.predict_proba(NEW)[:, 1], atol=1e-13)
    three = BARTClassifier(**params, random_state=0).fit(X, CODES)
    found = three.contributions(NEW, X)
    assert found.output_names == ["0", "1", "2"]
    proba = softmax(found.predictions(), axis=1)
    np.testing.assert_allclose(proba, three.predict_proba(NEW), atol=1e-13)


def test_bad_arguments_are_refused() -> None:
    forest = MondrianForestRegressor(n_estimators=2, feature_weights=None, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="method must be one of"):
        forest.contributions(X, method="tree")  # type: ignore[arg-type]
    model = BARTRegressor(n_trees=2, n_chains=1, n_burn=1, n_draws=1, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="level must be below 1"):
        model.contributions(X, X, level=1.0)
    with pytest.raises(ValueError, match="3 features"):
        model.contributions(X, X[:, :3])


def test_explain_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    forest = MondrianForestRegressor(n_estimators=2, feature_weights=None, random_state=0).fit(X, Y)
    with pytest.raises(ImportError, match=r"boscage\[shap\]"):
        forest.explain(X)


@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
def test_rows_are_shown_as_they_were_given(kind: Any) -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"x": X[:, 0], "colour": np.resize(["red", "blue"], 120)})
    forest = kind(2, random_state=0).fit(rows, CODES)
    new = pd.DataFrame({"x": [0.5, np.nan, 0.1], "colour": ["red", None, "unknown"]})
    shown = forest.contributions(new, method="path").data
    assert shown[:, 1].tolist() == ["red", None, "unknown"]
    np.testing.assert_array_equal(shown[:, 0].astype(float), new["x"])
    # Without categories rows are numbers, of which missing ones are not filled in.
    numbers = kind(2, random_state=0).fit(X[:, :2], CODES)
    holes = np.array([[np.nan, 0.5]])
    np.testing.assert_array_equal(numbers.contributions(holes).data, holes)


@pytest.mark.slow
def test_explanations_go_to_shap() -> None:
    shap = pytest.importorskip("shap")
    forest = MondrianForestClassifier(n_estimators=5, random_state=0).fit(X, CODES)
    found = forest.explain(NEW)
    assert isinstance(found, shap.Explanation)
    assert found[..., 1].values.shape == NEW.shape
    model = BARTRegressor(n_trees=2, n_chains=1, n_burn=5, n_draws=9, random_state=0).fit(X, Y)
    found = model.explain(NEW, X)
    assert (found.lower_bounds <= found.upper_bounds).all()


@pytest.mark.slow
def test_shapley_values_are_those_of_shap() -> None:
    shap = pytest.importorskip("shap")
    forest = MondrianForestRegressor(
        n_estimators=5, posterior="exact", lifetime=2.0, trend=None, random_state=0
    ).fit(X, Y)
    trees = [
        {
            "children_left": tree["children_left"],
            "children_right": tree["children_right"],
            "children_default": tree["children_right"],
            "feature": tree["feature"],
            "threshold": tree["threshold"],
            "value": tree["value"],
            "node_sample_weight": tree["cover"],
        }
        for tree in forest._model.leaf_trees()
    ]
    explainer = shap.TreeExplainer({"trees": trees}, feature_perturbation="tree_path_dependent")
    # In the boxes of their leaves, rows have no cells of their own.
    expected = explainer.shap_values(X, check_additivity=False)
    np.testing.assert_allclose(forest.contributions(X).values, expected, atol=1e-6)
