"""Where cells are apart, missing values and categories lie where they do on one machine."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from sklearn.base import clone

from cells import (
    CLASSES,
    N_FEATURES,
    N_ROWS,
    NUMBERS,
    TEST_ROWS,
    apart,
    check_same,
    data,
    parted,
    predicted,
    with_substitutes,
)

pytestmark = pytest.mark.slow

BOTH = [
    pytest.param(CLASSES[0], id="classes"),
    pytest.param(NUMBERS[2], id="numbers"),
]


def with_holes(rng, x, first=0):
    """Rows that lack values: at random, or where they are high; from some row on."""
    x = x.copy()
    x[:, 1] += x[:, 0]  # so that one feature says where another lies
    holes = rng.random(x.shape) < 0.1
    holes[:, 2] |= x[:, 2] > 0.8
    holes[:first] = False
    return np.where(holes, x.dtype.type(np.nan), x)


@pytest.mark.parametrize("one", BOTH)
@pytest.mark.parametrize("weights", [None, "learned"], ids=["equal rates", "learned rates"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_lack_values(client, owners, one, weights, dtype):
    owners(4)
    one, rng = clone(one).set_params(feature_weights=weights), np.random.default_rng(1)
    x, y = data(one, dtype)
    x, test = with_holes(rng, x), with_holes(rng, TEST_ROWS)
    first, rest = slice(0, 250), slice(250, N_ROWS)
    one.fit(x[first], y[first])
    forest = apart(one, client).fit(*parted(rng, x[first], y[first]))
    check_same(forest, one, test)
    one.partial_fit(x[rest], y[rest])
    check_same(forest.partial_fit(*parted(rng, x[rest], y[rest])), one, test)
    gone = rng.choice(N_ROWS, 150, replace=False)
    check_same(forest.forget(gone), one.forget(gone), test)
    collected = forest.collect()
    assert collected.digest() == one.digest()
    assert collected.substitutes_ == one.substitutes_
    assert np.array_equal(collected._model.rows(), one._model.rows(), equal_nan=True)


@pytest.mark.parametrize("one", BOTH)
def test_the_first_missing_values_come_later(client, owners, one):
    """In test rows, of which nothing is kept; then in rows of which a window keeps few."""
    owners(3)
    one, rng = clone(one).set_params(window_size=300, warm_up=0), np.random.default_rng(2)
    x, y = data(one)
    x, test = with_holes(rng, x, first=200), with_holes(rng, TEST_ROWS)
    one.fit(x[:200], y[:200])
    forest = apart(one, client).fit(*parted(rng, x[:200], y[:200]))
    check_same(forest, one, test)
    assert forest.collect().substitutes_ is one.substitutes_ is None
    one.partial_fit(x[200:], y[200:])
    check_same(forest.partial_fit(*parted(rng, x[200:], y[200:])), one, test)
    assert forest.collect().substitutes_ == one.substitutes_ is not None
    # They stay when no row lacks a value any more.
    gone = one.ids_[np.isnan(one._model.rows()).any(axis=1)]
    check_same(forest.forget(gone), one.forget(gone), test)


def test_substitutes_are_learned_again_in_the_warm_up(client, owners):
    owners(2)
    one, rng = clone(CLASSES[0]).set_params(warm_up=160), np.random.default_rng(3)
    x, y = data(one)
    x, test = with_holes(rng, x, first=30), with_holes(rng, TEST_ROWS)
    forest, start = apart(one, client), 0
    for end in (40, 60, 100, 180, 260):
        one.partial_fit(x[start:end], y[start:end])
        check_same(forest.partial_fit(*parted(rng, x[start:end], y[start:end])), one, test)
        start = end


def test_substitutes_that_are_given(client):
    given = [0.25, (0.5, [(0, 1.0, 0.5)]), -3.0]
    one, rng = clone(CLASSES[1]).set_params(substitutes=given), np.random.default_rng(4)
    x, y = data(one)
    for first in (0, N_ROWS):
        x = with_holes(rng, data(one)[0], first)
        one.fit(x, y)
        forest = apart(one, client).fit(*parted(rng, x, y))
        check_same(forest, one, with_holes(rng, TEST_ROWS))
        assert forest.collect().substitutes_ == one.substitutes_


def test_a_feature_without_values(client):
    one, rng = clone(CLASSES[0]), np.random.default_rng(5)
    x, y = data(one)
    x[:, 1] = np.nan
    one.fit(x, y)
    check_same(apart(one, client).fit(*parted(rng, x, y)), one)
    X = da.from_array(np.full((4, N_FEATURES), np.nan), chunks=2)
    assert np.isfinite(apart(one, client).fit(*parted(rng, x, y)).predict_proba(X).compute()).all()


# -- categories -----------------------------------------------------------------------------------


def as_kinds(table):
    return table.assign(kind=table["kind"].astype("category"))


def table_of(rng, x, kinds):
    """Rows with two columns of categories, some of which are missing, and numbers that are, too."""
    kind = pd.Series(np.sort(rng.choice(np.array(kinds, object), len(x))), dtype=object)
    kind[rng.random(len(x)) < 0.1] = None
    text = pd.Series(np.where(x[:, 0] > 0.6, "much", np.where(x[:, 0] > 0.3, "some", "little")))
    return as_kinds(pd.DataFrame({"x": with_holes(rng, x)[:, 2], "kind": kind, "text": text}))


def frames(table, y, ends, **more):
    """The rows and targets as data frames of Dask, whose partitions know different categories."""
    ends = [0, *ends, len(table)]
    parts = [slice(*part) for part in pairwise(ends)]

    # Each knows those alone that its rows have.
    tables = [as_kinds(table[part].astype({"kind": object})) for part in parts]
    rows = dd.from_map(lambda part: part, tables, meta=table[:0])
    series = [pd.Series(a) for a in (y, *more.values())]
    targets, *others = (
        dd.from_map(lambda part: part, [own[part] for part in parts], meta=own[:0])
        for own in series
    )
    return rows, targets, dict(zip(more, others, strict=True))


def same_categories(forest, one, table):
    assert forest.digest() == one.digest()
    assert forest.categories_ == one.categories_
    rows, _, _ = frames(table, np.zeros(len(table)), [30])
    assert predicted(forest, rows).tobytes() == with_substitutes(one, table).tobytes()


@pytest.mark.parametrize("one", BOTH)
@pytest.mark.parametrize(
    "kinds",
    [["a", "b", "c", "d"], [7, 8, 2**60 + 1], [False, True], [f"n{i}" for i in range(400)]],
    ids=["text", "int", "bool", "names"],
)
def test_partitions_may_have_different_categories(client, owners, one, kinds):
    owners(3)
    one, rng = clone(one).set_params(feature_weights="learned"), np.random.default_rng(6)
    x, y = data(one)
    table, test = table_of(rng, x, kinds), table_of(rng, TEST_ROWS, [*kinds, 2 * kinds[-1]])
    weights = rng.choice([0.0, 1.0, 2.5], N_ROWS)
    one.fit(table, y, weights)
    rows, targets, more = frames(table, y, [90, 90, 200], sample_weight=weights)
    forest = apart(one, client).fit(rows, targets, **more)
    same_categories(forest, one, test)
    collected = forest.collect()
    assert collected.digest() == one.digest()
    assert collected.categories_ == one.categories_
    assert np.array_equal(collected._model.rows(), one._model.rows(), equal_nan=True)
    # What comes later keeps the places, and unknown categories lie where missing ones do.
    more = table_of(rng, x[:80], [*kinds, 2 * kinds[-1]])
    one.partial_fit(more, y[:80])
    same_categories(forest.partial_fit(*frames(more, y[:80], [35])[:2]), one, test)
    gone = rng.choice(one.ids_, 100, replace=False)
    same_categories(forest.forget(gone), one.forget(gone), test)


@pytest.mark.parametrize("one", BOTH)
def test_new_categories_get_places_in_the_warm_up(client, owners, one):
    owners(2)
    one, rng = clone(one).set_params(warm_up=200, window_size=150), np.random.default_rng(7)
    x, y = data(one)
    forest, start = apart(one, client), 0
    test = table_of(rng, TEST_ROWS, ["a", "b", "c", "d", "e"])
    for end, kinds in [(40, "ab"), (60, "bc"), (90, "cd"), (170, "ad"), (260, "abcde"), (300, "f")]:
        table, own = table_of(rng, x[start:end], [*kinds]), y[start:end]
        one.partial_fit(table, own)
        forest.partial_fit(*frames(table, own, [(end - start) // 3])[:2])
        same_categories(forest, one, test)
        start = end


def test_categories_of_arrays_and_given_places(client, owners):
    owners(3)
    rng = np.random.default_rng(8)
    one = clone(CLASSES[0]).set_params(categorical_features=[1])
    x, y = data(one)
    x[:, 1] = np.floor(7.0 * x[:, 1])
    one.fit(x, y)
    forest = apart(one, client).fit(*parted(rng, x, y))
    check_same(forest, one)
    assert forest.categories_ == one.categories_
    places = [None, one.categories_[1] | {3: 0.01}, None]
    one = clone(one).set_params(categories=places).fit(x, y)
    check_same(apart(one, client).fit(*parted(rng, x, y)), one)


def test_a_partition_whose_column_holds_no_category(client):
    one = clone(CLASSES[0])
    x, y = data(one)
    table = pd.DataFrame({"x": x[:, 0], "kind": pd.Series(np.repeat(["u", "v"], N_ROWS // 2))})
    table["kind"] = table["kind"].astype(object)
    table.loc[:149, "kind"] = None
    one.fit(table, y)
    parts = [table[:150], table[150:]]
    rows = dd.from_map(lambda part: part, parts, meta=table[:0])
    targets = dd.from_map(pd.Series, [y[:150], y[150:]], meta=pd.Series(y[:0]))
    forest = apart(one, client).fit(rows, targets)
    assert forest.digest() == one.digest()
    with dask.config.set({"dataframe.convert-string": False}):
        # Such a column looks like one of numbers that are all missing.
        rows = dd.from_map(lambda part: part, parts, meta=table[:0])
        forest = apart(one, client).fit(rows, targets)
    assert forest.digest() == one.digest()
    parts[0] = parts[0].assign(kind=pd.Series(np.arange(150.0), dtype=object))
    with dask.config.set({"dataframe.convert-string": False}):
        rows = dd.from_map(lambda part: part, parts, meta=table[:0])
        message = "partition 0: feature 1 holds numbers, and categories in other partitions"
        with pytest.raises(ValueError, match=message):
            forest.fit(rows, targets)
