"""Categories in Bayesian trees and BART: the law of their rules, and what users see of them."""

from __future__ import annotations

import io
from functools import cache
from itertools import combinations, pairwise
from math import lgamma, log
from typing import Any

import numpy as np
import pandas as pd
import pytest

from boscage import (
    MCMC,
    SMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    load,
)
from boscage.bayes.evidence import compare_features, compare_parameters
from boscage.export import to_onnx
from boscage.plots import plot_effect

PRIOR = {"alpha_s": 0.8, "beta_s": 0.7}
FEW: dict[str, Any] = {"n_trees": 5, "n_burn": 20, "n_draws": 20, "n_chains": 2, "random_state": 0}


def rules(n: int) -> list[frozenset[int]]:
    """The sets of categories that rules send to one side."""
    if n > 6:
        return [frozenset([code]) for code in range(n)]
    sides = (frozenset(side) for size in range(n) for side in combinations(range(n), size))
    return [side for side in sides if side and n - 1 not in side]


class Exact:
    """The evidence of trees over one feature of categories and one of numbers, by recursion."""

    def __init__(self, codes: list[int], numbers: list[float], y: list[int], alpha: float) -> None:
        self.codes, self.numbers, self.y, self.alpha = codes, numbers, y, alpha
        self.rules = rules(max(codes) + 1)
        self.evidence = cache(self._evidence)

    def likelihood(self, rows: frozenset[int]) -> float:
        """Of classes with a symmetric Dirichlet prior, whose parameters add up to `alpha`."""
        ones, share = sum(self.y[row] for row in rows), self.alpha / 2.0
        counts = (len(rows) - ones, ones)
        found = lgamma(self.alpha) - lgamma(self.alpha + len(rows))
        return float(np.exp(found + sum(lgamma(share + n) - lgamma(share) for n in counts)))

    def cuts(self, rows: frozenset[int]) -> list[tuple[float, frozenset[int], bool]]:
        """The prior of each cut, the rows on one side, and whether it is one of categories."""
        found = []
        values = sorted({self.numbers[row] for row in rows})
        for low, high in pairwise(values):
            left = frozenset(row for row in rows if self.numbers[row] <= low)
            found.append(((high - low) / (values[-1] - values[0]), left, False))
        for rule in self.rules:
            side = frozenset(row for row in rows if self.codes[row] in rule)
            if 0 < len(side) < len(rows):
                found.append((1.0 / len(self.rules), side, True))
        total = sum(weight for weight, _, _ in found)
        return [(weight / total, side, is_category) for weight, side, is_category in found]

    def split(self, rows: frozenset[int], depth: int) -> list[tuple[float, bool]]:
        """Each cut's part of the evidence."""
        p = PRIOR["alpha_s"] * (1.0 + depth) ** -PRIOR["beta_s"]
        return [
            (p * prior * self.evidence(side, depth + 1) * self.evidence(rows - side, depth + 1), of)
            for prior, side, of in self.cuts(rows)
        ]

    def _evidence(self, rows: frozenset[int], depth: int) -> float:
        parts = self.split(rows, depth)
        p = PRIOR["alpha_s"] * (1.0 + depth) ** -PRIOR["beta_s"] if parts else 0.0
        return (1.0 - p) * self.likelihood(rows) + sum(part for part, _ in parts)


def table(n_categories: int, missing: bool) -> tuple[pd.DataFrame, list[int], Exact]:
    rng = np.random.default_rng([n_categories, missing])
    n = 10
    codes = [*range(n_categories), *rng.integers(0, n_categories, n - n_categories).tolist()]
    numbers = rng.normal(size=n).round(1).tolist()
    y = [int(code % 2 == 0) if rng.random() < 0.8 else int(code % 2) for code in codes]
    # The last category is that of missing values.
    names: list[str | None] = [chr(ord("a") + code) for code in range(n_categories)]
    if missing:
        names[-1] = None
    X = pd.DataFrame({"kind": [names[code] for code in codes], "size": numbers})
    return X, y, Exact(codes, numbers, y, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
# From seven categories on, splits part one of them from the others.
@pytest.mark.parametrize("n_categories", [2, 4, 7])
@pytest.mark.parametrize("how", ["optimal", "prior", "mcmc"])
@pytest.mark.filterwarnings("ignore:column .* is taken for categories:UserWarning")
def test_samplers_find_the_exact_posterior(how: str, n_categories: int, missing: bool) -> None:
    X, y, exact = table(n_categories, missing)
    every = frozenset(range(len(y)))
    sampler: Any = MCMC(n_draws=3000, thin=20)
    if how != "mcmc":
        sampler = SMC(n_particles=1000, n_islands=20, island_weights="evidence", proposal=how)
    model = BayesianTreeClassifier(sampler, alpha=2.0, random_state=1, **PRIOR).fit(X, y)
    z = exact.evidence(every, 0)
    if how != "mcmc":
        error = model.log_marginal_likelihood_error_
        assert error < 0.05
        assert abs(model.log_marginal_likelihood_ - log(z)) < 5.0 * error
    of_root = [int(tree.feature[0]) for tree in model.trees_]
    for feature, is_category in ((0, True), (1, False)):
        found = model.weights_ @ np.equal(of_root, feature)
        parts = exact.split(every, 0)
        expected = sum(part for part, of in parts if of == is_category) / z
        assert found == pytest.approx(expected, abs=0.03)


def mixed(n: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(2)
    names = ["red", "green", "blue", "black"]
    codes = rng.integers(0, 4, n)
    X = pd.DataFrame({"colour": [names[code] for code in codes], "size": rng.normal(size=n)})
    X.loc[::17, "colour"] = None
    return X, (codes % 2) * 2.0 + 0.1 * rng.normal(size=n)


def models() -> list[Any]:
    smc = SMC(n_particles=50, n_islands=2)
    return [
        BayesianTreeRegressor(smc, random_state=0),
        BayesianTreeClassifier(MCMC(n_draws=50, n_burn=500), random_state=0),
        BARTRegressor(**FEW),
        BARTClassifier(**FEW),
    ]


def target(model: Any, y: Any) -> Any:
    return y > 1.0 if hasattr(model, "predict_proba") else y


def predicted(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_models_learn_categories_keep_them_and_name_them(model: Any) -> None:
    X, y = mixed(200)
    model.fit(X, target(model, y))
    assert model.categories_ == [["black", "blue", "green", "red"], None]
    assert not hasattr(model, "score") or model.score(X, target(model, y)) > 0.8
    # Unknown categories are missing ones.
    odd, none = X.head(3).copy(), X.head(3).copy()
    odd["colour"], none["colour"] = "mauve", None
    assert np.array_equal(predicted(model, odd), predicted(model, none))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = load(file)
    assert loaded.categories_ == model.categories_
    assert loaded.categorical_features == "from_dtype"
    assert np.array_equal(predicted(loaded, X), predicted(model, X))
    with pytest.raises(ValueError, match="with categories cannot be exported"):
        to_onnx(model)


def test_exported_trees_send_rows_where_the_model_does() -> None:
    X, y = mixed(100)
    model = BARTRegressor(**FEW).fit(X, y)
    codes = X["colour"].map({name: i for i, name in enumerate(["black", "blue", "green", "red"])})
    rows = np.column_stack([codes.to_numpy(dtype=float), X["size"]])
    draws = model.predict_draws(X)
    for draw in (0, 25):
        total = sum(tree.predict(rows) for tree in model.trees_[draw])
        assert np.ptp(draws[draw] - total) < 1e-12
    single = BayesianTreeRegressor(SMC(n_particles=50, n_islands=2), random_state=0).fit(X, y)
    for tree, leaves in zip(single.trees_, single.apply(X).T, strict=True):
        assert np.array_equal(tree.apply(rows), leaves)
    assert single.best_tree_.rules().splitlines()[0].startswith("colour in {")


def test_contributions_add_up_and_show_categories_by_name() -> None:
    X, y = mixed(100)
    model = BayesianTreeRegressor(SMC(n_particles=50, n_islands=2), random_state=0).fit(X, y)
    found = model.contributions(X.head(20))
    total = found.values.sum(axis=1) + found.base_values
    assert total == pytest.approx(model.predict(X.head(20)))
    assert set(found.data[:, 0]) <= {"black", "blue", "green", "red", None}


def test_the_order_of_names_means_nothing() -> None:
    """Other names in the same order, of any type, give the same model."""
    X, y = mixed(100)
    codes = X["colour"].map({"black": 2, "blue": 3, "green": 10, "red": 11})
    numbers = X.assign(colour=codes).to_numpy(dtype=float)
    smc = SMC(n_particles=50, n_islands=2)
    named = BayesianTreeRegressor(smc, random_state=0).fit(X, y)
    coded = BayesianTreeRegressor(smc, random_state=0, categorical_features=[0]).fit(numbers, y)
    assert np.array_equal(named.predict(X), coded.predict(numbers))


def test_a_continued_chain_is_one_chain() -> None:
    X, y = mixed(100)
    whole = BARTRegressor(**FEW).fit(X, y)
    parts = BARTRegressor(**(FEW | {"n_draws": 5}), warm_start=True).fit(X, y)
    parts.set_params(n_draws=20).fit(X, y)
    assert np.array_equal(parts.predict_draws(X), whole.predict_draws(X))


@pytest.mark.filterwarnings("ignore:column .* is taken for categories:UserWarning")
def test_too_many_categories_are_refused() -> None:
    X = pd.DataFrame({"name": [str(i) for i in range(1100)]})
    with pytest.raises(ValueError, match=r"at most 1024 \(group rare categories\)"):
        BARTRegressor(**FEW).fit(X, np.arange(1100.0))


def test_rules_name_the_one_category_that_is_parted_from_many() -> None:
    town = pd.Categorical(np.resize([f"town {i}" for i in range(8)], 160))
    y = np.where(town == "town 5", 5.0, 0.0) + 0.01 * np.arange(160)
    tree = BayesianTreeRegressor(random_state=0).fit(pd.DataFrame({"town": town}), y).best_tree_
    sides = [line for line in tree.rules().splitlines() if line.startswith("town")]
    assert sides == ["town not in {town 5} or missing", "town is town 5"]


def test_disagreement_is_drawn_over_numbers_for_the_most_frequent_category() -> None:
    plots = pytest.importorskip("boscage.plots")
    pytest.importorskip("matplotlib").use("Agg")
    X, y = mixed(100)
    X["weight"] = np.arange(100.0)
    tree = BayesianTreeRegressor(SMC(n_particles=50, n_islands=2), random_state=0).fit(X, y)
    shown = plots.plot_disagreement(tree, X, features=(1, 2), resolution=5)
    assert (shown.get_xlabel(), shown.get_ylabel()) == ("size", "weight")
    with pytest.raises(ValueError, match="feature colour is categorical"):
        plots.plot_disagreement(tree, X, features=(0, 1))


def _table(n: int = 60) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(2)
    kind = rng.choice(["oak", "elm", "ash"], n)
    size = rng.uniform(size=n)
    y = 2.0 * (kind == "elm") + size + 0.1 * rng.normal(size=n)
    return pd.DataFrame(
        {"kind": pd.Categorical(kind), "size": size, "noise": rng.normal(size=n)}
    ), y


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_effects_of_categories_are_predictions_of_changed_rows(task: str) -> None:
    table, y = _table()
    model: Any = BARTRegressor(**FEW).fit(table, y)
    if task == "classes":
        model = BARTClassifier(**FEW).fit(table, np.digitize(y, [0.7, 2.0]))
    grid, draws = model.effect(table[:10], "kind")
    assert grid.tolist() == ["ash", "elm", "oak"]
    for point, category in enumerate(grid):
        changed = table[:10].assign(kind=category)
        np.testing.assert_array_equal(draws[:, point], model.predict_draws(changed))
    some, of_some = model.effect(table[:10], 0, grid=["oak"])
    assert some.tolist() == ["oak"]
    np.testing.assert_array_equal(of_some[:, 0], draws[:, 2])
    for grid, found in ((["oak", "fir"], "'fir'"), ([], "none")):
        with pytest.raises(ValueError, match=f"must hold categories of feature 'kind'.*{found}"):
            model.effect(table, "kind", grid=grid)


def test_effects_of_categories_are_drawn_as_points() -> None:
    table, y = _table()
    model = BARTRegressor(**FEW).fit(table, y)
    ax = plot_effect(model, table[:10], "kind", n_curves=2)
    _, draws = model.effect(table[:10], "kind")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["ash", "elm", "oak"]
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), draws.mean(axis=(0, 2)))
    assert len(ax.lines) == 3
    assert ax.get_xlabel() == "kind"


def test_evidence_compares_features_with_categories() -> None:
    table, y = _table()
    model = BayesianTreeRegressor(SMC(n_particles=20), random_state=0)
    subsets: dict[str, Any] = {"kind": ["kind"], "numbers": ["size", "noise"], "both": [0, "size"]}
    found = compare_features(model, table, y, subsets)
    assert found.models == ["both", "kind", "numbers"]
    # The same in other tables; a list of categorical features is one of all columns.
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    as_objects = table.astype(object).to_numpy()
    named = BayesianTreeRegressor(model.sampler, categorical_features=[0], random_state=0)
    for other, kind in (
        (polars.from_pandas(table), model),
        (pyarrow.Table.from_pandas(table), model),
        (as_objects, named),
    ):
        again = compare_features(kind, other, y, {"kind": [0], "numbers": [1, 2], "both": [0, 1]})
        assert again.models == found.models
        np.testing.assert_array_equal(again.log_evidence, found.log_evidence)


def test_evidence_compares_parameters_with_categories() -> None:
    table, y = _table()
    model = BayesianTreeRegressor(SMC(n_particles=20), random_state=0)
    found = compare_parameters(model, table, y, {"alpha_s": [0.01, 0.95]})
    assert found.models[0] == {"alpha_s": 0.95}
