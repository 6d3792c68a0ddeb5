"""A forest on a cluster is the one-machine forest: any workers, partitions, orders and updates."""

import os
import pickle

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from scipy.sparse import csc_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import boscage
from boscage import dask as cluster_forests
from boscage.dask._cluster import tree_ranges
from boscage.dask._shares import ClassifierShare
from clusters import kill_worker
from generated import rows_and_numbers, uniform

pytestmark = pytest.mark.slow

N_ROWS, N_FEATURES = 240, 3
TEST_ROWS = 2.0 * uniform(5, 60, N_FEATURES) - 0.5
WITH_HOLES = np.where(uniform(6, 60, N_FEATURES) < 0.3, np.nan, TEST_ROWS)


def labelled(dtype=np.float64):
    x, y = rows_and_numbers(N_ROWS, N_FEATURES, 1, dtype)
    return x, np.where(y > np.median(y), "high", "low")


def split(rng, n, n_parts):
    """Lengths of parts of `n` rows, none of them empty."""
    ends = np.sort(rng.choice(np.arange(1, n), n_parts - 1, replace=False))
    return tuple(np.diff([0, *ends, n]).tolist())


def collections(rng, *arrays):
    """The same rows as Dask arrays, in random partitions."""
    chunks = split(rng, len(arrays[0]), int(rng.integers(2, 6)))
    return [da.from_array(a, chunks=(chunks, *a.shape[1:])) for a in arrays]


def on_cluster(one, client):
    """The unfitted estimator of the same parameters on the cluster."""
    return getattr(cluster_forests, type(one).__name__)(**one.get_params(), client=client)


def predicted(forest, rows):
    """What a forest predicts, as one array."""
    if hasattr(forest, "predict_proba"):
        found = [forest.predict_proba(rows)]
    else:
        found = forest.predict(rows, return_std=True)
    found = da.compute(*found) if isinstance(rows, (da.Array, dd.DataFrame)) else found
    return np.column_stack(found)


def check_same(forest, one, chunks=25, test_rows=TEST_ROWS):
    assert forest.digest() == one.digest()
    rows = da.from_array(test_rows, chunks=(chunks, 2))
    assert np.array_equal(predicted(forest, rows), predicted(one, test_rows))


FORESTS = [
    boscage.MondrianForestClassifier(5, random_state=1),
    boscage.MondrianForestClassifier(
        3, random_state=2, discount="loo", calibration=None, feature_weights=None
    ),
    boscage.MondrianForestRegressor(
        4, random_state=3, posterior="exact", hyperparameters="heuristic", predictive="realised"
    ),
    boscage.MondrianForestRegressor(3, random_state=4, posterior="fast", feature_weights=None),
    boscage.MondrianForestRegressor(
        34, random_state=5, posterior="exact", feature_weights=None, min_samples_split=8
    ),
]
NAMES = ["learned-rates", "chosen-discount", "heuristic", "fast", "leave-one-out"]


FORESTS_AND_NAMES = [
    pytest.param(one, id=name, marks=[pytest.mark.slow] * (name == "leave-one-out"))
    for one, name in zip(FORESTS, NAMES, strict=True)
]


@pytest.mark.parametrize("one", FORESTS_AND_NAMES)
def test_any_partitions_and_updates_give_the_one_machine_forest(client, one):
    """Rows come in any order and partitions, more come later, and some leave."""
    one, rng = clone(one), np.random.default_rng(one.random_state)
    is_classifier = isinstance(one, boscage.MondrianForestClassifier)
    x, y = labelled() if is_classifier else rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
    ids = rng.permutation(1000)[:N_ROWS].astype(np.uint64)
    first = 200
    one.fit(x[:first], y[:first], ids=ids[:first])
    # A choice of discount looks at rows in their order of arrival.
    order = np.arange(first) if one.get_params().get("discount") == "loo" else None
    order = rng.permutation(first) if order is None else order
    X, Y, I = collections(rng, x[order], y[order], ids[order])  # noqa: E741
    forest = on_cluster(one, client).fit(X, Y, ids=I)
    assert len(forest.workers_) == 2
    check_same(forest, one)
    check_same(forest, one, test_rows=WITH_HOLES)
    old = forest.predict(da.from_array(TEST_ROWS, chunks=(25, 3)))
    expected = one.predict(TEST_ROWS)

    one.partial_fit(x[first:], y[first:], ids=ids[first:])
    X, Y, I = collections(rng, x[first:], y[first:], ids[first:])  # noqa: E741
    forest.partial_fit(X, Y, ids=I)
    check_same(forest, one)

    gone = rng.choice(ids, 30, replace=False)
    check_same(forest.forget(gone), one.forget(gone), chunks=60)
    assert forest.n_rows_ == one.n_rows_ == N_ROWS - 30

    # Lazy predictions are of the forest when they were asked for.
    assert np.array_equal(old.compute(), expected)
    collected = forest.collect()
    assert type(collected) is type(one)
    assert collected.digest() == one.digest()
    assert np.array_equal(predicted(collected, TEST_ROWS), predicted(one, TEST_ROWS))


@pytest.mark.parametrize(
    "one", [FORESTS[0], pytest.param(FORESTS[1], marks=pytest.mark.slow), FORESTS[2]]
)
def test_weights_of_rows_come_in_partitions_too(client, one):
    one, rng = clone(one), np.random.default_rng(7)
    is_classifier = isinstance(one, boscage.MondrianForestClassifier)
    x, y = labelled() if is_classifier else rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
    # Some partitions may have rows of weight 0 alone.
    weights = np.where(np.arange(N_ROWS) < 60, 0.0, rng.gamma(0.7, size=N_ROWS) + 0.01)
    one.fit(x[:200], y[:200], weights[:200])
    X, Y, W = collections(rng, x[:200], y[:200], weights[:200])
    forest = on_cluster(one, client).fit(X, Y, W)
    check_same(forest, one)
    one.partial_fit(x[200:], y[200:], sample_weight=weights[200:])
    X, Y, W = collections(rng, x[200:], y[200:], weights[200:])
    check_same(forest.partial_fit(X, Y, sample_weight=W), one)
    check_same(forest.forget([0, 3]), one.forget([0, 3]))
    W = da.from_array(np.full(N_ROWS - 200, -1.0), chunks=W.chunks)
    with pytest.raises(ValueError, match=r"partition \d: sample_weight holds -1\.0 for row 0"):
        forest.partial_fit(X, Y, sample_weight=W)


def test_hyperparameters_and_what_was_learned_are_those_of_one_machine(client):
    one = clone(FORESTS[2])
    x, y = rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
    one.fit(x, y)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x, y))
    assert forest.hyperparameters_ == one.hyperparameters_
    assert np.array_equal(forest.feature_weights_, one.feature_weights_)
    assert np.array_equal(forest.feature_importances_, one.feature_importances_)


def test_leaves_are_as_large_as_those_of_one_machine(client):
    one = boscage.MondrianForestClassifier(6, random_state=0)
    x, _ = labelled()
    y = (x[:, 0] > 0.5) ^ (np.random.default_rng(1).uniform(size=N_ROWS) < 0.3)
    one.fit(x, y)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x, y))
    assert forest.min_samples_split_ == one.min_samples_split_ > 2
    assert forest.digest() == one.digest()


@pytest.mark.parametrize(
    "one",
    [
        boscage.MondrianForestRegressor(4, random_state=1, feature_weights=None),
        boscage.MondrianForestClassifier(
            4, random_state=1, posterior="joint", feature_weights=None
        ),
    ],
)
def test_the_joint_posterior_has_all_trees_on_one_worker(client, one):
    one = clone(one)
    is_classifier = isinstance(one, boscage.MondrianForestClassifier)
    x, y = labelled() if is_classifier else rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
    one.fit(x, y)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x, y))
    assert len(forest.workers_) == 1
    check_same(forest, one)
    if not is_classifier:
        assert forest.hyperparameters_ == one.hyperparameters_


def test_data_frames_travel_in_their_types_and_files_are_those_of_one_machine(client, tmp_path):
    x, y = labelled()
    table = pd.DataFrame(
        {
            "a": x[:, 0].astype(np.float32),
            "b": (100 * x[:, 1]).astype(np.int8),
            "c": np.where(x[:, 2] < 0.1, np.nan, x[:, 2]),
        }
    )
    one = boscage.MondrianForestClassifier(4, random_state=1, feature_weights=None)
    one.fit(table, y)
    frame = dd.from_pandas(table.assign(target=y), npartitions=3)
    forest = on_cluster(one, client).fit(frame[["a", "b", "c"]], frame["target"])
    assert forest.digest() == one.digest()
    assert forest.feature_names_in_.tolist() == ["a", "b", "c"]
    labels = forest.predict(frame[["a", "b", "c"]]).compute()
    assert np.array_equal(labels, one.predict(table))
    forest.save(tmp_path / "forest.boscage")
    one.save(tmp_path / "one.boscage")
    assert (tmp_path / "forest.boscage").read_bytes() == (tmp_path / "one.boscage").read_bytes()
    loaded = boscage.load(tmp_path / "forest.boscage")
    assert np.array_equal(loaded.predict_proba(table), one.predict_proba(table))


@pytest.mark.parametrize("categories", [[7, 8, 9, 2**60 + 1], [False, True], ["a", "b", "c"]])
def test_partitions_may_have_different_categories(client, categories):
    x, y = labelled()
    kind = pd.Series(np.sort(np.resize(categories, N_ROWS)), dtype=object)
    kind[::17] = None
    frame = pd.DataFrame({"x": x[:, 0], "kind": kind})
    parts = [frame[:90], frame[90:90], frame[90:200], frame[200:]]
    parts = [part.assign(kind=part["kind"].astype("category")) for part in parts]
    whole = frame.assign(kind=frame["kind"].astype("category"))
    rows = dd.from_map(lambda part: part, parts, meta=whole[:0])
    targets = dd.from_map(pd.Series, [y[:90], y[90:90], y[90:200], y[200:]], meta=pd.Series(y[:0]))
    one = boscage.MondrianForestClassifier(4, random_state=7, feature_weights=None).fit(whole, y)
    forest = on_cluster(one, client).fit(rows, targets)
    assert forest.digest() == one.digest()
    assert forest.categories_ == one.categories_
    assert set(forest.categories_[1]) == {None, *categories}
    assert np.array_equal(predicted(forest, rows), predicted(one, whole))


@pytest.mark.parametrize("number", [0, 2])
def test_partitions_may_be_empty(client, number):
    one = [FORESTS[0], FORESTS[2]][number // 2]
    x, y = labelled() if number == 0 else rows_and_numbers(N_ROWS, N_FEATURES, 1)
    empty = np.arange(N_ROWS) >= 120
    rows, targets = (da.from_array(a, chunks=60) for a in (x, y))
    rows, kept = rows.rechunk({1: -1}), ~da.from_array(empty, chunks=60)
    one = clone(one).fit(x[~empty], y[~empty])
    forest = on_cluster(one, client).fit(rows[kept], targets[kept])
    assert forest.digest() == one.digest()
    assert np.array_equal(predicted(forest, rows[kept]), predicted(one, x[~empty]))


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (0, csr_matrix),
        (2, csc_array),
        pytest.param(0, csc_array, marks=pytest.mark.slow),
        pytest.param(2, csr_matrix, marks=pytest.mark.slow),
    ],
)
def test_sparse_chunks_are_those_of_the_dense_rows(client, number, kind):
    one = clone([FORESTS[0], FORESTS[2]][number // 2])
    x, y = labelled() if number == 0 else rows_and_numbers(N_ROWS, N_FEATURES, 1)
    x[x < np.median(x)] = 0.0
    rows = da.from_array(x, chunks=(50, N_FEATURES)).map_blocks(kind)
    forest = on_cluster(one, client).fit(rows, da.from_array(y, chunks=70))
    assert forest.digest() == one.fit(x, y).digest()
    assert np.array_equal(predicted(forest, rows), predicted(one, x))


@pytest.mark.parametrize("kind", ["str", "string", "object"])
def test_types_of_text_may_differ_from_what_the_collection_says(client, kind):
    """Dask believes `meta`, and does not look at what a function returns."""
    x, y = labelled()
    frame = pd.DataFrame({"x": x[:, 0], "kind": np.resize(["a", "b"], N_ROWS)})
    rows = dd.from_pandas(frame, npartitions=2, sort=False).map_partitions(
        pd.DataFrame.astype, {"kind": kind}, meta=frame[:0].astype({"kind": _OTHER_TEXT[kind]})
    )
    assert set(rows.partitions[0].compute().dtypes.astype(str)) == {"float64", kind}
    assert kind not in set(rows.dtypes.astype(str))
    targets = dd.from_pandas(pd.Series(y), npartitions=2, sort=False)
    one = boscage.MondrianForestClassifier(4, random_state=7).fit(frame, y)
    assert on_cluster(one, client).fit(rows, targets).digest() == one.digest()


_OTHER_TEXT = {"str": "object", "string": "str", "object": "string"}


def test_a_stream_learns_again_in_its_warm_up(client):
    x, y = labelled()
    one = boscage.MondrianForestClassifier(3, random_state=1, warm_up=100)
    forest = on_cluster(one, client)
    for rows in (slice(0, 40), slice(40, 70), slice(70, 130), slice(130, 140)):
        one.partial_fit(x[rows], y[rows], classes=["high", "low", "middle"])
        forest.partial_fit(
            da.from_array(x[rows], chunks=(20, 3)),
            da.from_array(y[rows], chunks=20),
            classes=["high", "low", "middle"],
        )
        check_same(forest, one)
    assert forest.classes_.tolist() == ["high", "low", "middle"]


def test_parameters_that_shape_no_tree_may_change(client):
    x, y = labelled()
    one = boscage.MondrianForestClassifier(3, random_state=1, feature_weights=None)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x[:200], y[:200]))
    one.fit(x[:200], y[:200])
    for each in (one, forest):
        each.set_params(discount=3.0, predictive="realised", window_size=150)
    one.partial_fit(x[200:], y[200:])
    forest.partial_fit(*collections(np.random.default_rng(0), x[200:], y[200:]))
    assert forest.n_rows_ == 150
    check_same(forest, one)


@pytest.mark.parametrize(("n_estimators", "weight"), [(1, "balanced"), (4, {"high": 3.0})])
def test_classes_are_weighted(client, n_estimators, weight):
    one = boscage.MondrianForestClassifier(
        n_estimators, class_weight=weight, feature_weights=None, random_state=0
    )
    x, y = labelled()
    forest = on_cluster(one, client)
    forest.fit(*(da.from_array(part, chunks=(100, -1)[: part.ndim]) for part in (x, y)))
    check_same(forest, one.fit(x, y))
    check_same(forest.forget(np.arange(20)), one.forget(np.arange(20)))
    assert forest.collect().class_weight == weight
    for each in (one, forest):
        each.set_params(class_weight={"low": 0.25})
    check_same(forest, one)
    for each in (one, forest):
        each.set_params(class_weight={"none": 2.0})
    check_same(forest, one)
    forest.set_params(class_weight={"low": 0, "high": 0.0})
    with pytest.raises(ValueError, match="class_weight is zero for all classes"):
        forest.predict_proba(da.from_array(TEST_ROWS))


def test_a_share_that_moves_is_the_same_share(client):
    """Dask may move or spill a share; it is grown again from the rows."""
    x, y = labelled(np.float32)
    one = boscage.MondrianForestClassifier(4, random_state=1, feature_weights=None)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x, y))
    share = forest._fitted.shares[1].result()
    assert isinstance(share, ClassifierShare)
    twin = pickle.loads(pickle.dumps(share))
    assert twin.tree_hashes() == share.tree_hashes()
    assert twin.add(None, TEST_ROWS, None, 0).tobytes() == (
        share.add(None, TEST_ROWS, None, 0).tobytes()
    )


def test_a_clone_has_the_client_and_no_trees(client):
    forest = on_cluster(FORESTS[0], client)
    assert clone(forest).client is client
    assert clone(forest).get_params() == forest.get_params()
    with pytest.raises(NotFittedError, match="not fitted"):
        forest.digest()


def test_the_signature_is_that_of_one_machine_and_two_more():
    for name in ("MondrianForestClassifier", "MondrianForestRegressor"):
        own = getattr(cluster_forests, name)().get_params()
        assert own == getattr(boscage, name)().get_params() | {"partition": "trees", "client": None}


@pytest.mark.parametrize(
    ("n_trees", "n_workers", "n_first"),
    [(10, 3, 1), (3, 8, 1), (100, 10, 32), (7, 4, 7), (1, 1, 1)],
)
def test_every_tree_is_in_one_share(n_trees, n_workers, n_first):
    found = tree_ranges(n_trees, n_workers, n_first)
    assert [tree for share in found for tree in range(*share)] == list(range(n_trees))
    assert all(end > start for start, end in found)
    assert len(found) <= n_workers
    assert found[0][1] >= n_first


@pytest.mark.slow
@pytest.mark.parametrize("one", [FORESTS[0], FORESTS[2]], ids=["classes", "numbers"])
def test_a_killed_worker_is_replaced_and_the_bits_stay(losing_client, one):
    """Once while trees grow, and once when all is fitted."""
    one = clone(one).set_params(n_estimators=40)
    is_classifier = isinstance(one, boscage.MondrianForestClassifier)
    x, y = labelled() if is_classifier else rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
    one.fit(x, y)
    client, before = losing_client, losing_client.run(os.getpid)
    forest = on_cluster(one, client).fit(*collections(np.random.default_rng(0), x, y))
    assert len(forest.workers_) == 2
    assert client.run(os.getpid) != before
    check_same(forest, one)
    kill_worker(client, forest.workers_[1])
    check_same(forest, one)
    client.wait_for_workers(2)
    forest.forget([0, 1, 2])
    check_same(forest, one.forget([0, 1, 2]))


@pytest.mark.parametrize("partition", ["trees", "cells"])
def test_a_collected_forest_knows_what_was_set_after_the_fit(client, partition, tmp_path):
    x, y = labelled()
    one = boscage.MondrianForestClassifier(4, random_state=1, feature_weights=None)
    forest = on_cluster(one, client).set_params(partition=partition)
    forest.fit(*collections(np.random.default_rng(0), x[:200], y[:200]))
    one.fit(x[:200], y[:200])
    changed = {"calibration": None, "discount": 3.0}
    for estimator in (one, forest):
        estimator.set_params(**changed)
    forest.save(tmp_path / "forest")
    collected = [forest.collect(), boscage.load(tmp_path / "forest")]
    one.partial_fit(x[200:], y[200:])
    for twin in collected:
        assert {name: twin.get_params()[name] for name in changed} == changed
        twin.partial_fit(x[200:], y[200:])
        assert twin.digest() == one.digest()
        assert np.array_equal(predicted(twin, TEST_ROWS), predicted(one, TEST_ROWS))
    forbidden = forest.set_params(n_estimators=9).collect()
    with pytest.raises(ValueError, match="n_estimators was 4 when the forest was grown"):
        forbidden.partial_fit(x[200:], y[200:])


def test_features_of_a_trend_may_be_named(client):
    x, y = rows_and_numbers(80, 2, 1, np.float64)
    table = pd.DataFrame(x, columns=["b", "a"])
    one = boscage.MondrianForestRegressor(4, trend=["a"], feature_weights=None, random_state=0)
    rows = dd.from_pandas(table, npartitions=2), da.from_array(y, chunks=40)
    forest = on_cluster(one, client).fit(*rows)
    assert forest.digest() == one.fit(table, y).digest()
    assert forest.partial_fit(*rows).digest() == one.partial_fit(table, y).digest()
