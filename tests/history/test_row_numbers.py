"""Rows by their numbers: forgetting, windows and merging."""

from __future__ import annotations

import pickle
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from boscage import MondrianForestClassifier, MondrianForestRegressor, row_numbers
from small_forests import X, Y, both, make

# -- numbers of rows ------------------------------------------------------------------------------


@both
def test_rows_are_numbered_in_order_of_arrival(kind: Any) -> None:
    model = make(kind).fit(X[:40], Y[:40])
    np.testing.assert_array_equal(model.ids_, np.arange(40))
    assert model.ids_.dtype == np.uint64
    model.partial_fit(X[40:43], Y[40:43])
    np.testing.assert_array_equal(model.ids_, np.arange(43))
    model.forget([41, 0]).partial_fit(X[:1], Y[:1])
    np.testing.assert_array_equal(model.ids_, [*range(1, 41), 42, 43])
    assert model.n_rows_ == 42


@both
def test_rows_can_be_given_ids(kind: Any) -> None:
    names = np.arange(40, dtype=np.uint64)[::-1] * 1000 + 2**63
    model = make(kind).fit(X[:40], Y[:40], ids=names)
    np.testing.assert_array_equal(model.ids_, names)
    model.forget(names[3])
    model.forget([])
    assert model.n_rows_ == 39
    model.forget(names[4:6].tolist())
    reference = make(kind).fit(np.delete(X[:40], [3, 4, 5], 0), np.delete(Y[:40], [3, 4, 5]))
    assert model.digest() == reference.digest()


@both
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([1, 2], ValueError, "ids has 2 entries for 4 rows"),
        ([[1, 2, 3, 4]], ValueError, r"ids has shape \(1, 4\)"),
        ([1, -3, 2, -3], ValueError, "found -3 in rows 1 and 3"),
        (["a", "b", "c", "b"], ValueError, "found b in rows 1 and 3"),
        (["7", "b", 7, "d"], ValueError, "found 7 in rows 0 and 2"),
        ([1, 2, 1, 4], ValueError, "found 1 in rows 0 and 2"),
        (
            [1.0, 2.0, 3.0, 4.0],
            TypeError,
            "ids must be integers, text or UUIDs, found 1.0 in row 0",
        ),
        (["a", "b", None, "d"], TypeError, "text or UUIDs, found None in row 2"),
        (["a", "b", b"c", "d"], TypeError, "text or UUIDs, found b'c' in row 2"),
        (["a", "b", True, "d"], TypeError, "text or UUIDs, found True in row 2"),
        ([True, False, True, False], TypeError, "text or UUIDs, found bool"),
        ([2**64, 1, 2, 3], ValueError, "18446744073709551616 in row 0"),
        ([0, 11, 12, 13], ValueError, "0"),
    ],
)
def test_bad_ids_are_refused(kind: Any, ids: Any, error: Any, message: str) -> None:
    model = make(kind).fit(X[:10], Y[:10])
    before = model.digest()
    with pytest.raises(error, match=message):
        model.partial_fit(X[:4], Y[:4], ids=ids)
    assert model.digest() == before
    assert model.n_rows_ == 10


GOLDEN = {
    "anna": 10109037774674085072,
    "Björn": 11641398996631303820,
    "": 13020603013274838756,
    "007": 13655456112802015817,
    "-5": 14291045258837035653,
    "1.5": 13055186978277889146,
    str(2**64): 13926694738903159271,
    "a row of a long name" * 9: 13717775885121670889,
}
NAMES = list(GOLDEN)


@both
def test_rows_can_have_names(kind: Any) -> None:
    names: list[Any] = [*NAMES, -7, UUID(int=5), 3]
    n = len(names)
    model = make(kind).fit(X[:n], Y[:n], ids=names)
    np.testing.assert_array_equal(model.ids_, row_numbers(names))
    # A name is a number that no row without a name has.
    assert (model.ids_[:-1] >= 2**63).all()
    assert model.ids_[-1] == 3
    with pytest.raises(ValueError, match="id 'anna' is already in the forest"):
        model.partial_fit(X[:1], Y[:1], ids=["anna"])
    with pytest.raises(KeyError, match="'carl' is not in the forest"):
        model.forget(["anna", "carl"])
    loo = model.loo_predict_proba if hasattr(model, "predict_proba") else model.loo_predict_dist
    with pytest.raises(KeyError, match="'carl' is not in the forest"):
        loo(["anna", "carl"])
    model.forget(["anna", -7]).forget("Björn").forget(str(UUID(int=5))).forget(model.ids_[0])
    left = [3, 4, 5, 6, 7, 10]
    assert model.digest() == make(kind).fit(X[left], Y[left]).digest()


def test_names_have_the_same_numbers_for_ever() -> None:
    expected = [GOLDEN[name] for name in NAMES]
    for names in (NAMES, np.array(NAMES), np.array(NAMES, dtype=object)):
        np.testing.assert_array_equal(row_numbers(names), expected)
    # Whole numbers are numbers however they are written, and negative ones are names.
    np.testing.assert_array_equal(row_numbers(["17", "18446744073709551615"]), [17, 2**64 - 1])
    assert row_numbers([-5])[0] == row_numbers(["-5"])[0] == GOLDEN["-5"]
    assert row_numbers(np.array([-5, 4]))[0] == GOLDEN["-5"]
    assert row_numbers(["1" * 5000])[0] >= 2**63
    assert row_numbers([2**63 + 1, -5])[1] == GOLDEN["-5"]


def test_tables_columns_of_names_are_ids() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    for column in (
        pandas.Series(NAMES),
        pandas.Series(NAMES, dtype="string"),
        pandas.Series(NAMES, dtype="category"),
        polars.Series(NAMES),
        arrow.array(NAMES),
    ):
        np.testing.assert_array_equal(row_numbers(column), row_numbers(NAMES))


@both
def test_forgetting_an_unknown_row_is_a_key_error_and_forgets_nothing(kind: Any) -> None:
    model = make(kind).fit(X[:10], Y[:10])
    before = model.digest()
    with pytest.raises(KeyError, match="77"):
        model.forget([1, 77])
    assert model.digest() == before
    with pytest.raises(ValueError, match="found 1 twice"):
        model.forget([1, 1])
    with pytest.raises(TypeError, match="integers, text"):
        model.forget(1.5)
    assert model.digest() == before


@both
def test_a_forest_without_rows_says_so_and_starts_again(kind: Any) -> None:
    model = make(kind).fit(X, Y)
    model.forget(model.ids_)
    assert model.n_rows_ == 0
    with pytest.raises(NotFittedError, match="forgotten all its rows"):
        model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    assert again.n_rows_ == 0
    for forest in (model, again):
        forest.partial_fit(X, Y)
        assert forest.digest() == make(kind).fit(X, Y).digest()


# -- windows --------------------------------------------------------------------------------------


@both
def test_a_window_keeps_the_newest_rows(kind: Any) -> None:
    model = make(kind, window_size=30)
    for start in range(0, 90, 20):
        model.partial_fit(X[start : start + 20], Y[start : start + 20])
        assert model.n_rows_ == min(start + 20, 30)
    np.testing.assert_array_equal(model.ids_, np.arange(60, 90))
    newest = make(kind).fit(X[-30:], Y[-30:])
    assert model.digest() == newest.digest()
    assert make(kind, window_size=30).fit(X, Y).digest() == newest.digest()


@both
def test_rows_before_the_window_of_fit_leave_no_trace(kind: Any) -> None:
    """Including the reference ranges and learned rates."""
    params = {"feature_range": None, "feature_weights": "learned", "window_size": 30}
    far = np.vstack((X[:60] * 100.0, X[60:]))
    one, other = (make(kind, **params).fit(rows, Y) for rows in (X, far))
    assert one.digest() == other.digest()
    np.testing.assert_array_equal(one.ids_, np.arange(60, 90))
    assert one.partial_fit(X[:1], Y[:1]).ids_[-1] == 90


@both
def test_the_window_can_change_between_updates(kind: Any) -> None:
    model = make(kind, window_size=30).fit(X, Y)
    model.set_params(window_size=None).partial_fit(X[:5], Y[:5])
    assert model.n_rows_ == 35
    model.set_params(window_size=7).partial_fit(X[5:6], Y[5:6])
    assert model.n_rows_ == 7
    with pytest.raises(ValueError, match="window_size must be >= 1"):
        model.set_params(window_size=0).partial_fit(X[:1], Y[:1])
    assert model.n_rows_ == 7


# -- merging --------------------------------------------------------------------------------------


@both
def test_merged_shards_equal_one_fit(kind: Any) -> None:
    shards = [make(kind).fit(X[i::3], Y[i::3], ids=np.arange(90)[i::3]) for i in range(3)]
    whole = make(kind).fit(X, Y)
    before = [shard.digest() for shard in shards]
    assert (shards[0] + shards[1] + shards[2]).digest() == whole.digest()
    total = sum(shards)
    assert type(total) is kind
    assert total.digest() == whole.digest()
    assert sum(shards[:1]).partial_fit(X[1:2], Y[1:2], ids=[1]).n_rows_ == 31
    assert [shard.digest() for shard in shards] == before
    assert shards[0].merge(shards[1]) is shards[0]
    assert shards[0].n_rows_ == 60


@both
@pytest.mark.parametrize(
    "params",
    [
        {"random_state": 2},
        {"n_estimators": 4},
        {"lifetime": 2.0},
        {"min_samples_split": 4},
        {"feature_range": (0.0, 2.0)},
        {"feature_weights": [1.0, 2.0, 3.0]},
    ],
)
def test_unlike_forests_do_not_merge(kind: Any, params: Any) -> None:
    model = make(kind).fit(X[:40], Y[:40])
    other = make(kind, **params).fit(X[40:], Y[40:], ids=np.arange(40, 90))
    before = model.digest(), other.digest()
    with pytest.raises(ValueError, match=r"\w"):
        model.merge(other)
    with pytest.raises(ValueError, match=r"\w"):
        model + other
    assert (model.digest(), other.digest()) == before


def test_only_forests_of_one_kind_and_other_rows_merge() -> None:
    labels = make(MondrianForestClassifier).fit(X, Y)
    numbers = make(MondrianForestRegressor).fit(X, Y)
    with pytest.raises(TypeError, match="expected another MondrianForestClassifier"):
        labels.merge(numbers)
    with pytest.raises(TypeError, match="unsupported operand"):
        labels + numbers
    with pytest.raises(TypeError, match="unsupported operand"):
        numbers + 1
    for other in (1, 0.5, None, False):
        with pytest.raises(TypeError, match="unsupported operand"):
            other + numbers
    with pytest.raises(ValueError, match="with itself"):
        labels.merge(labels)
    with pytest.raises(ValueError, match=r"\w"):
        labels.merge(labels.copy())  # the same ids
    assert labels.n_rows_ == 90


@both
def test_forests_of_other_features_do_not_merge(kind: Any) -> None:
    pd = pytest.importorskip("pandas")
    one = make(kind).fit(pd.DataFrame(X, columns=list("abc")), Y)
    two = make(kind).fit(pd.DataFrame(X, columns=list("abd")), Y, ids=np.arange(90, 180))
    with pytest.raises(ValueError, match=r"different features: \['a', 'b', 'c'\]"):
        one.merge(two)
