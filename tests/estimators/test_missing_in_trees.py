"""Missing values in Bayesian trees and BART: predictions, exported trees, rules, files."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_matrix
from sklearn.model_selection import cross_val_score

import boscage
from boscage import (
    MCMC,
    SMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
)
from reference.arrays import Array
from stored import Data

STORED = Path(__file__).parents[1] / "persistence" / "files"
FEW: dict[str, Any] = {"n_trees": 5, "n_chains": 2, "n_burn": 20, "n_draws": 5}
MODELS = {
    "smc": lambda: BayesianTreeClassifier(SMC(n_particles=5, n_islands=2), random_state=0),
    "mcmc": lambda: BayesianTreeRegressor(MCMC(n_chains=2, n_draws=10, n_burn=200), random_state=0),
    "regressor": lambda: BARTRegressor(**FEW, random_state=0),
    "probit": lambda: BARTClassifier(**FEW, random_state=0),
    "sparse": lambda: BARTRegressor(**FEW, kernels="auto", sparse=True, random_state=0),
}


def table(n: int = 80, seed: int = 0) -> tuple[Array, Array]:
    """Rows whose first feature is missing where the target is high; the last one is complete."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.3).astype(int)
    X[(y == 1) & (rng.random(n) < 0.5), 0] = np.nan
    X[rng.random(n) < 0.2, 1] = np.nan
    return X, y


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]().fit(*table())


def predictions(model: Any, X: Array) -> Array:
    found: Array = (model.predict_proba if hasattr(model, "classes_") else model.predict)(X)
    return found


def trees_of(model: Any) -> list[Any]:
    found = model.trees_
    return [tree for draw in found for tree in draw] if isinstance(found[0], list) else found


def elsewhere() -> Array:
    """Rows of which values are missing in all features."""
    X = np.random.default_rng(1).normal(size=(60, 3))
    X[np.random.default_rng(2).random(X.shape) < 0.4] = np.nan
    return X


def follow(tree: Any, row: Array) -> int:
    at = 0
    while tree.children_left[at] >= 0:
        value = row[tree.feature[at]]
        left = tree.missing_go_to_left[at] if np.isnan(value) else value <= tree.threshold[at]
        at = tree.children_left[at] if left else tree.children_right[at]
    return int(at)


def test_exported_trees_send_rows_where_the_model_does(model: Any) -> None:
    X = elsewhere()
    trees = trees_of(model)
    for tree in trees:
        np.testing.assert_array_equal(tree.apply(X), [follow(tree, row) for row in X])
        passed = tree.decision_path(X)
        np.testing.assert_array_equal(passed[np.arange(len(X)), tree.apply(X)], 1)
    if hasattr(model, "apply"):
        leaves = np.stack([tree.apply(X) for tree in trees], axis=1)
        np.testing.assert_array_equal(model.apply(X), leaves)
    elif isinstance(model, BARTRegressor):
        draws = [sum(tree.predict(X) for tree in draw) for draw in model.trees_]
        np.testing.assert_allclose(model.predict_draws(X), np.array(draws) + model.centre_)


def test_splits_may_part_missing_from_present_values() -> None:
    X, y = table(400)
    model = BayesianTreeClassifier(random_state=0).fit(X[:, :1], y)
    apart = np.concatenate([tree.threshold[np.isinf(tree.threshold)] for tree in model.trees_])
    assert apart.size
    only_missing = BayesianTreeClassifier(random_state=0).fit(
        np.where(np.isnan(X[:, :1]), np.nan, 1.0), y
    )
    tree = only_missing.best_tree_
    assert tree.n_leaves == 2
    assert np.isinf(tree.threshold[0])
    assert sorted(tree.rules().splitlines()[::2]) == ["x0 is missing", "x0 is present"]
    proba = only_missing.predict_proba([[np.nan], [1.0], [7.0]])[:, 1]
    assert proba[0] > 0.8 > 0.5 > proba[1] == proba[2]


def test_rules_lead_to_the_leaves_of_the_tree() -> None:
    X, y = table()
    model = BayesianTreeClassifier(random_state=0).fit(X, y)
    for tree in model.trees_[:20]:
        lines = tree.rules().splitlines()
        for row in elsewhere():
            depth, at = 0, 0
            while True:
                line = lines[at]
                text = line[4 * depth :]
                if not line.startswith("|   " * depth) or text.startswith("|   "):
                    at += 1
                elif text.startswith("x"):
                    depth += 1 if holds(text, row) else 0
                    at += 1
                else:
                    break
            assert text == tree.describe(follow(tree, row))


def holds(text: str, row: Array) -> bool:
    name, *words = text.split()
    value = row[int(name[1:])]
    if words[0] == "is":
        return bool(np.isnan(value)) == (words[1] == "missing")
    if np.isnan(value):
        return words[2:] == ["or", "missing"]
    return bool(value <= float(words[1]) if words[0] == "<=" else value > float(words[1]))


def sides_checked(trees: list[Any], X: Array, features: tuple[int, ...]) -> int:
    """Count training rows on both sides of splits on some features; return how many there are."""
    n_checked = 0
    for tree in trees:
        reached = np.zeros(tree.n_nodes, dtype=int)
        for leaf in tree.apply(X):
            while leaf >= 0:
                reached[leaf] += 1
                leaf = tree.parent[leaf]
        for node in np.flatnonzero(np.isin(tree.feature, features)):
            left, right = tree.children_left[node], tree.children_right[node]
            assert tree.missing_go_to_left[node] == (reached[left] >= reached[right])
            n_checked += 1
    return n_checked


def test_a_feature_that_was_complete_sends_missing_values_with_most_rows(model: Any) -> None:
    assert sides_checked(trees_of(model), table()[0], (2,))


@pytest.fixture(params=MODELS)
def complete(request: pytest.FixtureRequest) -> Any:
    """A model whose training rows lack nothing, some of which are twice as heavy as others."""
    X, y = table()
    weights = np.resize([1.0, 2.0], len(y)) if request.param in ("smc", "regressor") else None
    return MODELS[request.param]().fit(np.nan_to_num(X), y, sample_weight=weights)


def test_models_of_complete_rows_send_missing_values_with_most_rows(complete: Any) -> None:
    X = np.nan_to_num(table()[0])
    trees = trees_of(complete)
    assert sides_checked(trees, X, (0, 1, 2))
    # The weights of rows do not count, and some splits have more rows on the right.
    sides = [tree.missing_go_to_left[tree.feature >= 0] for tree in trees]
    assert {True, False} == set(np.concatenate(sides).tolist())


def test_models_of_complete_rows_predict_rows_that_lack_values(complete: Any) -> None:
    X = elsewhere()
    found = predictions(complete, X)
    assert np.isfinite(found).all()
    trees = trees_of(complete)
    if hasattr(complete, "apply"):
        leaves = [[follow(tree, row) for tree in trees] for row in X]
        np.testing.assert_array_equal(complete.apply(X), leaves)
    else:
        sums = np.array([[tree.value[follow(tree, row)] for tree in trees] for row in X])
        of_draws = sums.reshape(len(X), len(complete.trees_), -1).sum(axis=2).T + complete.centre_
        drawn = complete.predict_draws(X)
        if isinstance(complete, BARTClassifier):
            of_draws = stats.norm.cdf(of_draws)
        np.testing.assert_allclose(drawn, of_draws, rtol=1e-12, atol=1e-14)
    # Rows without missing values are predicted as before, whatever rows are beside them.
    whole = np.nan_to_num(X)
    mixed = predictions(complete, np.vstack([X, whole]))
    np.testing.assert_array_equal(mixed[len(X) :], predictions(complete, whole))
    np.testing.assert_array_equal(mixed[: len(X)], found)
    np.testing.assert_array_equal(predictions(complete, csr_matrix(X)), found)


def test_contributions_of_models_of_complete_rows_add_up(complete: Any) -> None:
    X = elsewhere()[:10]
    background = () if hasattr(complete, "apply") else (np.nan_to_num(table()[0][:20]),)
    found = complete.contributions(X, *background)
    total = found.values.sum(axis=1) + found.base_values
    assert np.isfinite(total).all()
    if not isinstance(complete, BARTClassifier):
        np.testing.assert_allclose(total, predictions(complete, X), rtol=1e-9, atol=1e-12)


def loaded_again(model: Any, *, version: int) -> Any:
    """Return what the model's file, which must be of this version, holds."""
    file = io.BytesIO()
    model.save(file)
    assert int.from_bytes(file.getvalue()[8:12], "little") == version
    file.seek(0)
    return boscage.load(file)


def test_files_of_models_of_complete_rows_hold_the_sides(complete: Any) -> None:
    again = loaded_again(complete, version=21)
    for same in (again, pickle.loads(pickle.dumps(complete))):
        np.testing.assert_array_equal(
            predictions(same, elsewhere()), predictions(complete, elsewhere())
        )
    for tree, same in zip(trees_of(complete), trees_of(again), strict=True):
        np.testing.assert_array_equal(tree.missing_go_to_left, same.missing_go_to_left)
        assert tree.has_missing is same.has_missing is False


@pytest.mark.parametrize(
    "name",
    ["bayesian-classifier-smc-weights", "bayesian-regressor-mcmc", "bart-multinomial-auto"],
)
def test_stored_models_of_complete_rows_have_the_sides(name: str) -> None:
    model = boscage.load(STORED / f"{name}-v21.boscage")
    X = Data().x
    if "weights" in name:  # rows of weight 0 do not count
        X = X[np.arange(len(X)) % 5 != 2]
    trees = trees_of(model)
    assert sides_checked(trees, X, (0, 1, 2))
    assert np.isfinite(predictions(model, np.full((1, 3), np.nan))).all()


def test_rules_of_complete_rows_do_not_speak_of_missing_values() -> None:
    X, y = table()
    rules = BayesianTreeClassifier(random_state=0).fit(np.nan_to_num(X), y).best_tree_.rules()
    assert "x0 <=" in rules
    assert "missing" not in rules


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_one_missing_value_does_not_spoil_cross_validation(make: Callable[[], Any]) -> None:
    """The training rows of one fold are complete, and the rows that it predicts are not."""
    X, y = table()
    X = np.nan_to_num(X)
    X[11, 1] = np.nan
    assert np.isfinite(cross_val_score(make(), X, y, cv=3, error_score="raise")).all()


def test_infinite_values_are_refused(complete: Any) -> None:
    X, y = table()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="contains infinity in row 3, column 1; expected finite"):
        complete.fit(X, y)
    with pytest.raises(ValueError, match="contains infinity in row 3, column 1; expected finite"):
        predictions(complete, X)


@pytest.mark.parametrize(
    "name",
    [
        "bayesian-classifier-smc-v1",
        "bayesian-regressor-mcmc-v1",
        "bayesian-regressor-smc-weights-v11",
        "bart-regressor-one-chain-v1",
        "bart-regressor-auto-v3",
        "bart-probit-auto-v3",
        "bart-multinomial-auto-v3",
    ],
)
def test_models_from_files_without_sides_refuse_missing_values(name: str) -> None:
    old = boscage.load(STORED / f"{name}.boscage")
    bad = np.full((10, old.n_features_in_), 0.5)
    assert np.isfinite(predictions(old, bad)).all()
    bad[7, 2] = np.nan
    expected = "NaN in row 7, column 2; expected finite numbers, since the file of the model"
    for rows in (bad, csr_matrix(bad)):
        with pytest.raises(ValueError, match=expected):
            predictions(old, rows)
    tree = trees_of(old)[0]
    assert tree.missing_go_to_left is None
    with pytest.raises(ValueError, match=r"missing|NaN"):
        tree.apply(bad)
    if hasattr(old, "apply"):
        with pytest.raises(ValueError, match=expected):
            old.apply(bad)
    else:
        with pytest.raises(ValueError, match=expected):
            old.effect(bad, 1)
        # A feature that is set to other values may lack its own.
        assert np.isfinite(old.effect(bad, 2, grid=[0.0])[1]).all()


def test_a_refused_missing_value_has_the_name_of_its_column() -> None:
    pd = pytest.importorskip("pandas")
    for name in ("bayesian-classifier-smc-named-v1", "bart-regressor-named-v3"):
        old = boscage.load(STORED / f"{name}.boscage")
        rows = pd.DataFrame(np.zeros((9, 3)), columns=old.feature_names_in_)
        rows.iloc[7, 1] = np.nan
        expected = f"NaN in row 7, column {old.feature_names_in_[1]!r}; expected finite numbers"
        with pytest.raises(ValueError, match=re.escape(expected)):
            predictions(old, rows)


def test_missing_values_are_learned_from(model: Any) -> None:
    """Half of the rows with high targets miss the first value, and no others."""
    X = np.array([[np.nan, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    found = predictions(model, X)
    found = found[:, 1] if found.ndim == 2 else found
    assert found[0] > 0.6
    assert found[1] < 0.4


def test_files_hold_the_sides(model: Any) -> None:
    again = loaded_again(model, version=9)
    np.testing.assert_array_equal(predictions(again, elsewhere()), predictions(model, elsewhere()))
    for tree, same in zip(trees_of(model), trees_of(again), strict=True):
        np.testing.assert_array_equal(tree.missing_go_to_left, same.missing_go_to_left)


def test_continued_chains_equal_longer_ones() -> None:
    X, y = table()
    for sparse in (False, True):
        short = BARTRegressor(**FEW, sparse=sparse, random_state=0, warm_start=True).fit(X, y)
        file = io.BytesIO()
        short.save(file)
        file.seek(0)
        longer = boscage.load(file).set_params(warm_start=True, n_draws=9).fit(X, y)
        once = BARTRegressor(**FEW | {"n_draws": 9}, sparse=sparse, random_state=0).fit(X, y)
        np.testing.assert_array_equal(longer.predict_draws(X), once.predict_draws(X))


def test_contributions_add_up_to_the_prediction(model: Any) -> None:
    X = elsewhere()[:10]
    background = () if hasattr(model, "apply") else (table()[0][:20],)
    found = model.contributions(X, *background)
    total = found.values.sum(axis=1) + found.base_values
    if isinstance(model, BARTClassifier):
        assert np.isfinite(total).all()
    else:
        np.testing.assert_allclose(total, predictions(model, X), rtol=1e-9, atol=1e-12)


def test_effects_vary_a_feature_with_missing_values() -> None:
    X, y = table()
    model = BARTRegressor(**FEW, random_state=0).fit(X, y)
    grid, draws = model.effect(X[:7], 0, n_points=4)
    assert np.isfinite(grid).all()
    assert draws.shape == (10, 4, 7)
    X[:, 0] = np.nan
    with pytest.raises(ValueError, match="has no value of feature 0; give a grid"):
        model.effect(X[:7], 0)
    np.testing.assert_array_equal(model.effect(X[:7], 0, grid=[0.0])[1].shape, (10, 1, 7))


def test_tags_say_that_values_may_be_missing() -> None:
    for make in MODELS.values():
        assert make().__sklearn_tags__().input_tags.allow_nan


def test_plots_show_where_missing_values_go() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from boscage.plots import plot_disagreement

    X, y = table()
    model = BayesianTreeClassifier(random_state=0).fit(X, y)
    tree = max(
        model.trees_, key=lambda tree: (1 < tree.n_leaves < 16, np.isinf(tree.threshold).any())
    )
    texts = [text.get_text() for text in tree.plot().texts]
    assert any(text.endswith(("or missing", "is missing", "is present")) for text in texts)
    plot_disagreement(model, X, resolution=5)
