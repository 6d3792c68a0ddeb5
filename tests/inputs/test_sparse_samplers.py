"""Bayesian trees and BART hold sparse rows as they are, and draw what they draw of dense ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from boscage import (
    MCMC,
    SMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    Kernels,
    evidence,
)
from forests import through_file
from reference.arrays import Array
from words import words_of_rows

N, D = 160, 1500
SHORT: dict[str, Any] = {"n_trees": 6, "n_burn": 15, "n_draws": 10, "n_chains": 1}


def table(n: int = N, d: int = D, seed: int = 0, *, missing: bool = False) -> Any:
    """Return rows of twelve words each, of which the first ones are frequent, and counts."""
    rng = np.random.default_rng(seed)
    words = words_of_rows(n, d, 12, rng)
    counts = rng.choice([-1.0, 1.0, 2.0, 3.0], 12 * n, p=[0.1, 0.5, 0.3, 0.1])
    if missing:
        counts[rng.random(counts.size) < 0.1] = np.nan
    words.data = counts
    return words


X = table()
FULL = X.toarray()
NUMBERS = FULL[:, 1] - 2.0 * FULL[:, 3] + FULL[:, 40] + 0.1 * np.sin(np.arange(N))
CLASSES = np.digitize(NUMBERS, [-0.5, 0.5])
WEIGHTS = np.resize([1.0, 0.5, 2.0, 0.0, 3.0], N)

MODELS: dict[str, Any] = {
    "SMC, classes": BayesianTreeClassifier(SMC(n_particles=60), random_state=0),
    "SMC, numbers": BayesianTreeRegressor(SMC(n_particles=60), random_state=0),
    "SMC, prior": BayesianTreeClassifier(SMC(n_particles=200, proposal="prior"), random_state=0),
    "SMC, empirical": BayesianTreeRegressor(
        SMC(n_particles=200, proposal="empirical"), random_state=0
    ),
    "SMC, some features": BayesianTreeClassifier(
        SMC(n_particles=60, max_features=30), random_state=0
    ),
    "MCMC, classes": BayesianTreeClassifier(MCMC(n_draws=60, n_burn=60), random_state=0),
    "MCMC, numbers": BayesianTreeRegressor(MCMC(n_draws=60, n_burn=60), random_state=0),
    "BART, numbers": BARTRegressor(**SHORT, random_state=0),
    "BART, two classes": BARTClassifier(**SHORT, random_state=0),
    "BART, few features": BARTRegressor(**SHORT, sparse=True, random_state=0),
    **{
        f"BART, {kernels}": BARTRegressor(**SHORT, kernels=kernels, random_state=0)
        for kernels in ("cgm", "growprune", "pg")
    },
    "BART, optimal": BARTRegressor(
        **SHORT, kernels=Kernels("pg", proposal="optimal"), random_state=0
    ),
}
each_model = pytest.mark.parametrize("name", MODELS)


def target_of(model: Any) -> Array:
    if isinstance(model, BARTClassifier):
        return (NUMBERS > 0.0).astype(int)
    return CLASSES if hasattr(model, "predict_proba") else NUMBERS


def predict(model: Any, rows: Any) -> Array:
    return np.asarray(getattr(model, "predict_proba", model.predict)(rows))


def assert_equal(a: Any, b: Any) -> None:
    """The files hold all trees and, of BART, a hash of the rows."""
    assert a._model.to_bytes() == b._model.to_bytes()


@each_model
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_fits_are_those_of_the_dense_table(name: str, missing: bool, weights: Any) -> None:
    model = MODELS[name]
    rows, y = table(missing=missing), target_of(model)
    if weights is not None and isinstance(model, BARTClassifier):
        weights = 2.0 * WEIGHTS  # whole
    thin, full = (clone(model).fit(of, y, sample_weight=weights) for of in (rows, rows.toarray()))
    assert_equal(thin, full)
    queries = table(40, seed=1, missing=missing)
    for form in (queries, queries.tocsc(), queries.astype(np.float32)):
        np.testing.assert_array_equal(predict(thin, form), predict(full, queries.toarray()))


@pytest.mark.parametrize("name", ["SMC, classes", "MCMC, numbers", "BART, numbers"])
def test_all_that_reads_rows_takes_them(name: str) -> None:
    model = clone(MODELS[name])
    y = target_of(model)
    model.fit(X, y)
    queries, known = table(12, seed=1), {"background": X[:50]} if "BART" in name else {}
    wide = {key: rows.toarray() for key, rows in known.items()}
    found, expected = (
        model.contributions(queries, **known),
        model.contributions(queries.toarray(), **wide),
    )
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.data, expected.data)
    if "BART" in name:
        np.testing.assert_array_equal(
            model.predict_draws(queries), model.predict_draws(queries.toarray())
        )
        for of in (X[:9], FULL[:9]):
            grid, draws = model.effect(of, 3, grid=[0.0, 2.0])
            assert list(grid) == [0.0, 2.0]
            for value, found_draws in zip(grid, np.moveaxis(draws, 1, 0), strict=True):
                rows = FULL[:9].copy()
                rows[:, 3] = value
                np.testing.assert_array_equal(found_draws, model.predict_draws(rows))
        return
    np.testing.assert_array_equal(model.apply(queries), model.apply(queries.toarray()))
    np.testing.assert_array_equal(model.kernel(queries), model.kernel(queries.toarray()))
    paths, nodes = model.decision_path(queries)
    dense_paths, dense_nodes = model.decision_path(queries.toarray())
    np.testing.assert_array_equal(nodes, dense_nodes)
    assert (paths != dense_paths).nnz == 0
    for tree, leaves in zip(model.trees_, model.apply(queries).T, strict=True):
        np.testing.assert_array_equal(tree.apply(queries), leaves)


def test_chains_go_on_with_sparse_and_dense_rows() -> None:
    models = []
    for first, then in ((X, FULL), (FULL, X), (FULL, FULL)):
        model = BARTRegressor(**SHORT, random_state=0, warm_start=True).fit(first, NUMBERS)
        models.append(through_file(model).set_params(warm_start=True).fit(then, NUMBERS))
    assert_equal(models[0], models[2])
    assert_equal(models[1], models[2])
    other = table(seed=3)
    with pytest.raises(ValueError, match="continued fit"):
        models[0].fit(other, NUMBERS)


def test_evidence_takes_them() -> None:
    sets = {"first": range(10), "all": range(D)}
    thin, full = (
        evidence.compare_features(MODELS["SMC, classes"], rows, CLASSES, sets) for rows in (X, FULL)
    )
    np.testing.assert_array_equal(thin.log_evidence, full.log_evidence)


def test_features_of_categories_make_them_dense() -> None:
    rows = X[:, :8].copy()
    rows.data = np.abs(np.nan_to_num(rows.data))
    model = BayesianTreeClassifier(SMC(n_particles=20), categorical_features=[6], random_state=0)
    sets = {"first": [0, 6], "all": range(8)}
    thin, full = (
        evidence.compare_features(model, form, CLASSES, sets) for form in (rows, rows.toarray())
    )
    np.testing.assert_array_equal(thin.log_evidence, full.log_evidence)


def test_buffers_may_lie_anywhere() -> None:
    """As those of a matrix that came from another process."""
    rows = X.copy()
    for name in ("data", "indices", "indptr"):
        part = getattr(rows, name)
        buffer = np.empty(part.nbytes + 1, np.uint8)[1:]
        buffer[:] = part.view(np.uint8)
        setattr(rows, name, buffer.view(part.dtype))
        assert not getattr(rows, name).flags.aligned
    for name in ("SMC, classes", "BART, numbers"):
        model = clone(MODELS[name])
        y = target_of(model)
        assert_equal(clone(model).fit(rows, y), model.fit(X, y))


@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray], ids=["sparse", "dense"])
def test_features_may_all_be_constant(form: Any) -> None:
    """Of more rows than a thread takes at once."""
    rows, y = form(np.full((20_000, 3), 0.0)), np.arange(20_000) % 3
    tree = BayesianTreeClassifier(SMC(n_particles=5), random_state=0).fit(rows, y)
    np.testing.assert_allclose(tree.predict_proba(rows[:2]), 1.0 / 3.0, atol=1e-3)
    bart = BARTRegressor(3, n_burn=2, n_draws=2, n_chains=1, sigma=1.0, random_state=0)
    assert np.isfinite(bart.fit(rows, 1.0 * y).predict(rows[:2])).all()


def test_trees_without_sides_refuse_missing_values_of_any_feature() -> None:
    tree = clone(MODELS["SMC, classes"]).fit(X, CLASSES).trees_[0]
    rows = X[:3].copy()
    rows.data[0] = np.nan
    np.testing.assert_array_equal(tree.apply(rows), tree.apply(rows.toarray()))
    without = replace(tree, missing_go_to_left=None)
    for form in (rows, rows.toarray()):
        with pytest.raises(ValueError, match="NaN"):
            without.apply(form)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@each_model
def test_infinity_is_refused_by_place(name: str, value: float) -> None:
    rows = X.copy()
    at = rows.indptr[7] + 3
    rows.data[at] = value
    model = clone(MODELS[name])
    sign = "-" if value < 0.0 else ""
    with pytest.raises(
        ValueError, match=f"contains {sign}infinity in row 7, column {rows.indices[at]};"
    ):
        model.fit(rows, target_of(model))


def test_tables_wider_than_memory() -> None:
    """A dense table of these rows would take 17 GB."""
    wide = table(2000, 10**4).astype(np.float32)
    wide.resize((2000, 2**20))
    y = np.asarray(wide[:, [1]].toarray()).ravel()
    for model in (
        BARTRegressor(10, n_burn=20, n_draws=20, n_chains=1, random_state=0),
        BayesianTreeRegressor(MCMC(n_draws=20, n_burn=20), random_state=0),
        BayesianTreeRegressor(SMC(n_particles=10, n_islands=1), random_state=0),
    ):
        assert np.isfinite(model.fit(wide, y).predict(wide[:100])).all()
