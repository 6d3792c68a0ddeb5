"""Sparse matrices are the tables that they stand for, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    evidence,
)

RNG = np.random.default_rng(0)
X = np.where(RNG.random((50, 4)) < 0.6, 0.0, RNG.normal(size=(50, 4)))
Y = X[:, 0] + X[:, 1] * X[:, 2]
LABELS = (Y > 0.0).astype(int)
MODELS = [
    MondrianForestClassifier(3, random_state=0),
    MondrianForestRegressor(3, random_state=0),
    BayesianTreeClassifier(random_state=0),
    BayesianTreeRegressor(random_state=0),
    BARTClassifier(5, n_draws=5, n_burn=5, n_chains=1, random_state=0),
    BARTRegressor(5, n_draws=5, n_burn=5, n_chains=1, random_state=0),
]


def target_of(model: Any) -> Any:
    return LABELS if hasattr(model, "predict_proba") else Y


def predict(model: Any, rows: Any) -> Any:
    return getattr(model, "predict_proba", model.predict)(rows)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_they_give_the_bits_of_the_dense_matrix(model: Any) -> None:
    y = target_of(model)
    expected = predict(model.fit(X, y), X)
    assert model.__sklearn_tags__().input_tags.sparse
    for form in (sparse.csr_array(X), sparse.csc_matrix(X)):
        np.testing.assert_array_equal(predict(model, form), expected)
        np.testing.assert_array_equal(predict(model.fit(form, y), X), expected)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: type(model).__name__)
def test_contributions_of_a_forest_that_knows_missing_values(model: Any) -> None:
    holes = X.copy()
    holes[::7, 1] = np.nan
    model.fit(holes, target_of(model))
    found, expected = model.contributions(sparse.csr_array(X)), model.contributions(X)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.data, X)


@pytest.mark.parametrize("form", ["bsr", "coo", "dia", "dok", "lil"])
def test_any_form_and_type_will_do(form: str) -> None:
    whole = np.rint(10.0 * X)
    model = MondrianForestRegressor(3, feature_weights=None, random_state=0).fit(whole, Y)
    for dtype in (np.float32, np.int64):
        rows = sparse.coo_array(whole.astype(dtype)).asformat(form)
        np.testing.assert_array_equal(model.predict(rows), model.predict(whole))


def test_streams_and_names_of_categories() -> None:
    colours = RNG.integers(0, 3, 50)
    rows = np.column_stack([colours, X])
    given: dict[str, Any] = {"categorical_features": [0], "warm_up": 10, "random_state": 0}
    dense = MondrianForestClassifier(3, **given)
    thin = MondrianForestClassifier(3, **given)
    for part in np.split(np.arange(50), 5):
        dense.partial_fit(rows[part], LABELS[part], classes=[0, 1])
        thin.partial_fit(sparse.csr_matrix(rows[part]), LABELS[part], classes=[0, 1])
    assert thin.digest() == dense.digest()


def test_an_encoder_may_come_first() -> None:
    colours = np.array(["red", "green", "blue"])[RNG.integers(0, 3, (50, 1))]
    model = make_pipeline(OneHotEncoder(), MondrianForestClassifier(3, random_state=0))
    assert model.fit(colours, LABELS).predict(colours).shape == (50,)


def test_evidence_takes_them() -> None:
    subsets: dict[str, Any] = {"first": [0], "all": [0, 1, 2, 3]}
    model = BayesianTreeClassifier(random_state=0)
    dense = evidence.compare_features(model, X, LABELS, subsets)
    thin = evidence.compare_features(model, sparse.csr_array(X), LABELS, subsets)
    assert str(thin) == str(dense)


def test_a_table_that_does_not_fit_is_refused_with_its_size() -> None:
    huge = sparse.csr_array((2_000_000, 1_000_000_000))
    with pytest.raises(MemoryError, match=r"2000000 rows of 1000000000 columns.* 1\.49e\+07 GiB"):
        MondrianForestClassifier().fit(huge, np.zeros(2_000_000))


@pytest.mark.parametrize("kind", [MondrianForestRegressor, BayesianTreeRegressor, BARTRegressor])
def test_tables_of_sparse_columns_are_refused_with_a_cure(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    plain = pandas.DataFrame({"a": rng.integers(0, 2, 30) * 1.0, "b": rng.integers(0, 3, 30) * 1.0})
    frame = plain.astype(pandas.SparseDtype(float, 0.0))
    few = {"n_burn": 2, "n_draws": 2} if kind is BARTRegressor else {}
    model = kind(random_state=0, **few)
    message = r"^X is a table of sparse columns; give X\.sparse\.to_dense\(\), or X\.sparse\.to_coo"
    with pytest.raises(TypeError, match=message):
        model.fit(frame, plain["a"])
    expected = model.fit(frame.sparse.to_dense(), plain["a"]).predict(frame.sparse.to_dense())
    with pytest.raises(TypeError, match=message):
        model.predict(frame)
    matrix = frame.sparse.to_coo()
    np.testing.assert_array_equal(model.fit(matrix, plain["a"]).predict(matrix), expected)
