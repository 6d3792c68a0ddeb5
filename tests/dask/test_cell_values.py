"""Where cells are apart, missing values lie where they do on one machine."""

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
from sklearn.base import clone

from cells import CLASSES, N_FEATURES, N_ROWS, NUMBERS, TEST_ROWS, apart, check_same, data, parted

pytestmark = pytest.mark.slow

BOTH = [
    pytest.param(CLASSES[0], id="classes"),
    pytest.param(NUMBERS[0], id="numbers", marks=pytest.mark.slow),
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
