"""Where cells are apart, rows come and leave as on one machine, to the same bits."""

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
from sklearn.base import clone

from boscage.dask._cells.changes import _oldest
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
)
from clusters import kill_worker

pytestmark = pytest.mark.slow

N_FIRST = 250


def whole(*arrays):
    """Rows as Dask arrays of one partition."""
    return [da.from_array(a, chunks=-1) for a in arrays]


@pytest.mark.parametrize(
    ("number", "seed"),
    [
        pytest.param(number, seed, marks=[pytest.mark.slow] * (seed != number % 2))
        for number in range(len(CLASSES + NUMBERS))
        for seed in range(2)
    ],
)
def test_any_updates_give_the_forest_of_one_machine(client, owners, number, seed):
    """Rows come in any partitions, more come later, far outside too, and some leave."""
    one = clone([*CLASSES, *NUMBERS][number])
    rng = np.random.default_rng([seed, one.random_state, 1])
    owners(int(rng.integers(1, 6)))
    x, y = data(one, [np.float32, np.float64][seed])
    x[N_FIRST::20] *= 30.0
    ids = rng.permutation(1000)[:N_ROWS].astype(np.uint64)
    first, rest = slice(0, N_FIRST), slice(N_FIRST, N_ROWS)
    one.fit(x[first], y[first], ids=ids[first])
    if getattr(one, "calibration", None) is not None:
        assert one.trend_slopes_ is not None
    X, Y, I = parted(rng, x[first], y[first], ids[first])  # noqa: E741
    forest = apart(one, client).fit(X, Y, ids=I)
    check_same(forest, one)
    rows = da.from_array(TEST_ROWS, chunks=(25, N_FEATURES))
    old, expected = forest.predict(rows), one.predict(TEST_ROWS)

    one.partial_fit(x[rest], y[rest], ids=ids[rest])
    X, Y, I = parted(rng, x[rest], y[rest], ids[rest])  # noqa: E741
    check_same(forest.partial_fit(X, Y, ids=I), one)

    # Those that lie far outside leave again.
    gone = np.union1d(ids[N_FIRST::20], rng.choice(ids, 60, replace=False))
    check_same(forest.forget(gone), one.forget(gone))
    assert forest.n_rows_ == one.n_rows_ == N_ROWS - len(gone)

    # Lazy predictions are of the forest when they were asked for.
    assert np.array_equal(old.compute(), expected)
    collected = forest.collect()
    assert collected.digest() == one.digest()
    assert np.array_equal(collected.ids_, one.ids_)
    assert predicted(collected, TEST_ROWS).tobytes() == predicted(one, TEST_ROWS).tobytes()


def test_rows_without_ids_are_numbered_as_on_one_machine(client, owners):
    owners(3)
    one, rng = clone(CLASSES[0]), np.random.default_rng(3)
    x, y = data(one)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], N_ROWS)
    parts = [slice(0, 100), slice(100, 150), slice(150, 300), slice(300, N_ROWS)]
    one.fit(x[parts[0]], y[parts[0]], weights[parts[0]])
    forest = apart(one, client)
    forest.fit(*parted(rng, x[parts[0]], y[parts[0]], weights[parts[0]]))
    for number, part in enumerate(parts[1:]):
        given = {"ids": np.arange(70_000, 70_050)} if number == 0 else {}
        one.partial_fit(x[part], y[part], sample_weight=weights[part], **given)
        X, Y, W = whole(x[part], y[part], weights[part])
        given = {name: da.from_array(value, chunks=-1) for name, value in given.items()}
        check_same(forest.partial_fit(X, Y, sample_weight=W, **given), one)
        gone = rng.choice(one.ids_, 10, replace=False)
        check_same(forest.forget(gone), one.forget(gone))
    assert np.array_equal(forest.collect().ids_, one.ids_)
    assert forest.collect().digest() == one.digest()


@pytest.mark.parametrize(
    "one",
    [CLASSES[0], pytest.param(NUMBERS[0], marks=pytest.mark.slow)],
    ids=["classes", "numbers"],
)
def test_a_window_keeps_the_newest_rows(client, owners, one):
    owners(2)
    one, rng = clone(one).set_params(window_size=120), np.random.default_rng(4)
    x, y = data(one)
    one.fit(x[:200], y[:200])
    forest = apart(one, client).fit(*parted(rng, x[:200], y[:200]))
    check_same(forest, one)
    assert np.array_equal(forest.collect().ids_, np.arange(80, 200))
    check_same(forest.forget(np.arange(90, 130)), one.forget(np.arange(90, 130)))
    one.partial_fit(x[200:270], y[200:270])
    check_same(forest.partial_fit(*parted(rng, x[200:270], y[200:270])), one)
    assert np.array_equal(forest.collect().ids_, one.ids_)
    # A window may shrink.
    one.set_params(window_size=30).partial_fit(x[270:275], y[270:275])
    check_same(forest.set_params(window_size=30).partial_fit(*whole(x[270:275], y[270:275])), one)
    assert forest.n_rows_ == 30


def test_the_oldest_row_of_a_window(client):
    arrivals = np.array([3, 10, 500, 511, 512, 90_000], np.uint64)

    class Rows:
        def __init__(self, arrivals):
            self.arrivals = arrivals

    pieces = [Rows(arrivals[::2]), Rows(arrivals[1::2]), Rows(arrivals[:0])]
    for window in range(1, 7):
        oldest = _oldest(_Here(), pieces, window, 100_000)
        assert (arrivals >= oldest).sum() == window


class _Here:
    """A client that works in this process."""

    def submit(self, task, *args, pure):
        return task(*args)

    def gather(self, values):
        return values


def test_ranges_are_learned_again_in_the_warm_up(client, owners):
    owners(3)
    one, rng = clone(CLASSES[0]).set_params(warm_up=160), np.random.default_rng(5)
    x, y = data(one)
    x[50:150] *= 3.0  # outside of the first range, inside of those that are learned later
    forest, start = apart(one, client), 0
    for end in (40, 60, 100, 150, 180, 260):
        one.partial_fit(x[start:end], y[start:end])
        check_same(forest.partial_fit(*parted(rng, x[start:end], y[start:end])), one)
        if end == 60:
            assert forest.collect().warm_up_left_ == one.warm_up_left_ == 100
        start = end
    collected = forest.collect()
    one.partial_fit(x[start:], y[start:])
    assert collected.partial_fit(x[start:], y[start:]).digest() == one.digest()


def test_a_discount_is_chosen_again_in_the_warm_up(client, owners):
    owners(3)
    one = clone(CLASSES[0]).set_params(warm_up=200, discount="loo", n_estimators=2)
    x, y = data(one)
    rng, forest, start = np.random.default_rng(9), apart(one, client), 0
    for end in (1, 40, 90, 130, 220, 300):
        one.partial_fit(x[start:end], y[start:end])
        check_same(forest.partial_fit(*whole(x[start:end], y[start:end])), one)
        assert forest.discount_ == one.discount_
        if end == 40:
            gone = rng.choice(40, 11, replace=False)
            check_same(forest.forget(gone), one.forget(gone))
        start = end


def test_classes_come_are_declared_and_leave(client):
    one, rng = clone(CLASSES[0]), np.random.default_rng(6)
    x, _ = data(one)
    y = np.where(np.arange(N_ROWS) < 100, 1, np.where(x[:, 0] > np.median(x[:, 0]), 3, 1))
    names = [1, 2, 9]
    one.partial_fit(x[:100], y[:100], classes=names)
    forest = apart(one, client).partial_fit(*parted(rng, x[:100], y[:100]), classes=names)
    check_same(forest, one)
    # Whole floats are the same classes.
    later = y[100:300].astype(float)
    one.partial_fit(x[100:300], later)
    check_same(forest.partial_fit(*parted(rng, x[100:300], later)), one)
    assert forest.classes_.tolist() == one.classes_.tolist() == [1, 2, 3, 9]
    gone = np.flatnonzero(y[:300] == 3)
    check_same(forest.forget(gone), one.forget(gone))
    assert forest.classes_.tolist() == one.classes_.tolist() == names
    assert forest.collect().digest() == one.digest()
    before = forest.digest()
    for labels, classes, message in [
        (y, [3, 5], r"classes holds \[3, 5\], which were not declared"),
        (y.astype(str), None, "y holds the label '1', but the classes so far are of type int"),
    ]:
        with pytest.raises(ValueError, match=message):
            forest.partial_fit(*whole(x, labels), classes=classes)
    assert forest.digest() == before


def test_parameters_that_do_not_shape_trees_may_change(client):
    one = clone(CLASSES[0])
    x, y = data(one)
    one.fit(x[:200], y[:200])
    forest = apart(one, client).fit(*whole(x[:200], y[:200]))
    for params in ({"discount": 1.0}, {"predictive": "realised"}, {"calibration": None}):
        one.set_params(**params).partial_fit(x[200:], y[200:], ids=np.arange(900, 1100))
        ids = da.arange(900, 1100, chunks=200)
        check_same(forest.set_params(**params).partial_fit(*whole(x[200:], y[200:]), ids=ids), one)
        check_same(forest.forget(np.arange(900, 1100)), one.forget(np.arange(900, 1100)))
    assert forest.discount_ == 1.0


def test_bad_updates_leave_the_forest_as_it_was(client):
    one = clone(NUMBERS[0])
    x, y = data(one)
    ids = np.arange(N_ROWS)
    forest = apart(one, client).fit(*parted(np.random.default_rng(0), x, y))
    before = forest.digest()
    X, Y = (da.from_array(a, chunks=(100, -1)[: a.ndim]) for a in (x, y))

    def refused(error, message, change):
        with pytest.raises(error, match=message):
            change()
        assert forest.digest() == before

    def with_ids(ids):
        return lambda: forest.partial_fit(X, Y, ids=da.from_array(ids, chunks=100))

    refused(ValueError, "id 7 is already in the forest", with_ids(ids + np.where(ids == 7, 0, 900)))
    twice = ids + 1000
    twice[311] = 1104
    message = "found 1104 in row 4 of partition 1 and in row 11 of partition 3"
    refused(ValueError, message, with_ids(twice))
    refused(ValueError, message, lambda: forest.fit(X, Y, ids=da.from_array(twice, chunks=100)))
    message = "'nobody' is not in the forest; nothing was changed"
    refused(KeyError, message, lambda: forest.forget(["nobody", 7]))
    refused(ValueError, "found 7 twice", lambda: forest.forget([7, 7]))
    refused(ValueError, "does not forget all rows", lambda: forest.forget(ids))
    refused(ValueError, "X has no rows", lambda: forest.partial_fit(X[:0], Y[:0]))
    wrong = x.copy()
    wrong[211, 1] = np.inf
    wrong = da.from_array(wrong, chunks=(100, N_FEATURES))
    message = "partition 2: .*row 11"
    refused(ValueError, message, lambda: forest.partial_fit(wrong, Y))
    message = "X has 2 features, but .* is expecting 3"
    refused(ValueError, message, lambda: forest.partial_fit(X[:, :2], Y))
    for name, value in (("lifetime", 1.0), ("partition", "trees")):
        held = forest.get_params()[name]
        forest.set_params(**{name: value})
        message = f"{name} was {held!r} when the forest was grown and is {value!r} now"
        refused(ValueError, message, lambda: forest.partial_fit(X, Y))
        forest.set_params(**{name: held})
    assert forest.forget([]).digest() == before


@pytest.mark.slow
@pytest.mark.parametrize("one", [CLASSES[0], NUMBERS[0]], ids=["classes", "numbers"])
def test_updates_survive_killed_workers(losing_client, one):
    """One dies while the first trees grow, one between updates, and one when all is done."""
    one, client, rng = clone(one), losing_client, np.random.default_rng(0)
    x, y = data(one)
    one.fit(x[:N_FIRST], y[:N_FIRST]).partial_fit(x[N_FIRST:], y[N_FIRST:]).forget([0, 3, 300])
    forest = apart(one, client).fit(*parted(rng, x[:N_FIRST], y[:N_FIRST]))
    kill_worker(client, forest.workers_[0])
    forest.partial_fit(*parted(rng, x[N_FIRST:], y[N_FIRST:])).forget([0, 3, 300])
    check_same(forest, one)
    kill_worker(client, forest.workers_[-1])
    check_same(forest, one)
