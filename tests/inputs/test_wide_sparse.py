"""Wide sparse matrices stay sparse in Mondrian forests, and give the bits of the dense tables."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage.mondrian.feature_rates._shared import MOST_FEATURES
from forests import assert_equal_models, through_file
from reference.arrays import Array
from words import words_of_rows

N, D = 240, MOST_FEATURES + 200
CLASSES = (MondrianForestClassifier, MondrianForestRegressor)
each_class = pytest.mark.parametrize("kind", CLASSES)


def table(n: int = N, d: int = D, seed: int = 0) -> Any:
    """Return rows of ten words each, of which the first ones are frequent, and counts."""
    rng = np.random.default_rng(seed)
    words = words_of_rows(n, d, 10, rng)
    words.data = 1.0 + rng.integers(0, 3, 10 * n)
    return words


X = table()
DENSE = X.toarray()
NUMBERS = DENSE[:, 1] - 2.0 * DENSE[:, 3] + DENSE[:, 4] * DENSE[:, 0]
QUERIES = np.concatenate([table(30, seed=1).toarray(), 50.0 * table(10, seed=2).toarray()])


def targets(kind: Any) -> Array:
    return NUMBERS if kind is MondrianForestRegressor else (NUMBERS > 1.0).astype(np.int64)


def assert_sparse(model: Any) -> None:
    """The model holds no dense table."""
    assert model._model.sparse_rows() is not None
    assert model._model.nbytes < 0.5 * (8 * len(model.ids_) * D * len(model.trees_))


def fitted(kind: Any, rows: Any, y: Array) -> Any:
    return kind(3, random_state=0).fit(rows, y)


def streamed(kind: Any, rows: Any, y: Array) -> Any:
    model = kind(3, random_state=0, warm_up=150)
    for part in np.array_split(np.arange(len(y)), 6):
        model.partial_fit(rows[part], y[part])
        model.predict(rows[:2])
    return model


def forgetful(kind: Any, rows: Any, y: Array) -> Any:
    model = fitted(kind, rows, y)
    model.predict(rows[:2])
    return model.forget(np.arange(50, 90)).partial_fit(rows[60:70], y[60:70])


def merged(kind: Any, rows: Any, y: Array) -> Any:
    first = fitted(kind, rows[:150], y[:150])
    return first.merge(first.copy().forget(first.ids_).partial_fit(rows[150:], y[150:]))


def stored(kind: Any, rows: Any, y: Array) -> Any:
    model = through_file(fitted(kind, rows[:200], y[:200]))
    return pickle.loads(pickle.dumps(model.partial_fit(rows[200:], y[200:])))


def in_a_window(kind: Any, rows: Any, y: Array) -> Any:
    model = kind(3, random_state=0, window_size=120)
    return model.fit(rows[:200], y[:200]).partial_fit(rows[200:], y[200:])


def weighted(kind: Any, rows: Any, y: Array) -> Any:
    weights = np.resize([0.5, 1.0, 0.0, 2.0], len(y))
    return kind(3, random_state=0).fit(rows, y, weights)


@each_class
@pytest.mark.parametrize(
    "history", [fitted, streamed, forgetful, merged, stored, in_a_window, weighted]
)
def test_any_history_is_that_of_the_dense_table(
    kind: Any, history: Callable[[Any, Any, Array], Any]
) -> None:
    y = targets(kind)
    thin, dense = history(kind, X, y), history(kind, DENSE, y)
    assert_sparse(thin)
    assert_equal_models(thin, dense, QUERIES)
    np.testing.assert_array_equal(thin._model.rows(), dense._model.rows())


@each_class
def test_all_that_reads_rows_takes_them(kind: Any) -> None:
    model = fitted(kind, X, targets(kind))
    thin = sparse.csr_array(QUERIES)
    for name in ("predict", "score_samples", "apply", "kernel"):
        call = getattr(model, name)
        np.testing.assert_array_equal(call(thin), call(QUERIES))
    for a, b in zip(
        model.predict_uncertainty(thin), model.predict_uncertainty(QUERIES), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    found, expected = (model.contributions(rows[:3], method="path") for rows in (thin, QUERIES))
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.data, expected.data)


def test_dense_rows_may_follow() -> None:
    y = targets(MondrianForestRegressor)
    model = fitted(MondrianForestRegressor, X[:200], y[:200]).partial_fit(DENSE[200:], y[200:])
    other = fitted(MondrianForestRegressor, DENSE[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert_sparse(model)
    assert_equal_models(model, other, QUERIES)


def test_indices_need_no_order_and_the_matrix_stays_as_it_is() -> None:
    y = targets(MondrianForestClassifier)
    shuffled = sparse.csr_matrix(X)
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = np.random.default_rng(start).permutation(end - start) + start
        shuffled.indices[start:end] = X.indices[order]
        shuffled.data[start:end] = X.data[order]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    long = sparse.csr_array(
        (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape
    )
    once = fitted(MondrianForestClassifier, X, y)
    twice = sparse.coo_array(
        (np.tile(0.5 * X.data, 2), np.tile(X.tocoo().coords, 2)), shape=X.shape
    )
    before = shuffled.indices.copy()
    for form in (shuffled, long, twice, X.tocsc(), X.astype(np.float32), X.astype(np.int16)):
        assert fitted(MondrianForestClassifier, form, y).digest() == once.digest()
    np.testing.assert_array_equal(shuffled.indices, before)


@each_class
def test_features_that_matter_have_weights(kind: Any) -> None:
    model = fitted(kind, X, targets(kind))
    weights = model.feature_weights_
    assert np.count_nonzero(weights) <= MOST_FEATURES < D
    assert weights.sum() == pytest.approx(MOST_FEATURES)
    assert (weights[[1, 3]] > 1.0).all()
    assert not model.feature_importances_[weights == 0.0].any()
    for tree in model.trees_:
        assert (weights[tree.feature[tree.feature >= 0]] > 0.0).all()


def test_weights_may_be_given() -> None:
    weights = np.zeros(D)
    weights[[1, 3, 700]] = 1.0, 2.0, 0.5
    y = targets(MondrianForestRegressor)
    model = MondrianForestRegressor(3, feature_weights=weights, random_state=0)
    thin = model.fit(X, y).copy()
    assert_sparse(thin)
    assert_equal_models(thin, model.fit(DENSE, y), QUERIES)


def test_tables_wider_than_memory() -> None:
    """A dense table of these rows would take 17 GB."""
    wide = table(2000, 10**4).astype(np.float32)
    wide.resize((2000, 2**20))
    y = np.asarray(wide[:, [1]].toarray()).ravel()
    model = MondrianForestRegressor(2, random_state=0).fit(wide, y)
    assert np.corrcoef(model.predict(wide), y)[0, 1] > 0.9


def test_missing_values_make_them_dense() -> None:
    thin = X.copy()
    thin.data[5] = np.nan
    y = targets(MondrianForestClassifier)
    model = fitted(MondrianForestClassifier, thin, y)
    assert model.digest() == fitted(MondrianForestClassifier, thin.toarray(), y).digest()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_by_place(value: float) -> None:
    thin = X.copy()
    thin.data[0] = value
    row, column = 0, thin.indices[0]
    with pytest.raises(ValueError, match=f"row {row}.*{column}"):
        fitted(MondrianForestClassifier, thin, targets(MondrianForestClassifier))


def test_a_missing_value_may_come_while_a_sparse_stream_warms_up() -> None:
    y = targets(MondrianForestRegressor)
    late = X[150:].copy()
    late.data[0] = np.nan
    thin, dense = (
        MondrianForestRegressor(3, random_state=0)
        .partial_fit(form(X[:150]), y[:150])
        .partial_fit(form(late), y[150:])
        for form in (sparse.csr_array, lambda rows: rows.toarray())
    )
    assert thin.substitutes_ is not None
    assert_equal_models(thin, dense, QUERIES)


def test_missing_values_may_come_late() -> None:
    y = targets(MondrianForestClassifier)
    thin, dense = (fitted(MondrianForestClassifier, rows, y) for rows in (X, DENSE))
    queries = QUERIES.copy()
    queries[::3, 1] = np.nan
    np.testing.assert_array_equal(thin.predict_proba(queries), dense.predict_proba(queries))
    thin.partial_fit(queries, np.zeros(len(queries), np.int64))
    dense.partial_fit(queries, np.zeros(len(queries), np.int64))
    assert_equal_models(thin, dense, QUERIES)


def test_slopes_may_be_chosen() -> None:
    y = targets(MondrianForestRegressor)
    model = MondrianForestRegressor(3, trend=[1, D - 1], random_state=0).fit(X, y)
    slopes = model.trend_slopes_
    assert slopes is not None
    assert np.flatnonzero(slopes).tolist() in ([1], [1, D - 1])
    with pytest.raises(ValueError, match=f"feature {D}"):
        MondrianForestRegressor(3, trend=[D]).fit(X, y)
    with pytest.raises(ValueError, match="7"):
        MondrianForestRegressor(3, trend=[7]).fit(DENSE[:, :5], y)


def test_matrices_of_strided_arrays() -> None:
    strided = sparse.csr_array(
        (np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2], X.indptr), X.shape
    )
    y = targets(MondrianForestClassifier)
    once = fitted(MondrianForestClassifier, X, y)
    assert fitted(MondrianForestClassifier, strided, y).digest() == once.digest()
