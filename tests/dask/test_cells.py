"""A forest whose cells are apart is that of one machine, and workers hold no more than a share."""

import os
import pickle

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.base import clone

import boscage
from boscage import _core
from boscage.dask import MondrianForestClassifier
from boscage.dask._cells import forest as cell_forest
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


@pytest.mark.parametrize(
    ("number", "seed"),
    [
        pytest.param(number, seed, marks=[pytest.mark.slow] * (seed != number % 3))
        for number in range(len(CLASSES + NUMBERS))
        for seed in range(3)
    ],
)
def test_any_owners_partitions_and_orders_give_the_forest_of_one_machine(
    client, owners, number, seed
):
    one = clone([*CLASSES, *NUMBERS][number])
    rng = np.random.default_rng([seed, one.random_state])
    n_owners = int(rng.integers(1, 7))
    owners(n_owners)
    x, y = data(one, [np.float64, np.float32][seed % 2])
    if seed == 2:
        x[::50] *= 30.0  # far outside of the range
    one.fit(x, y)
    order = rng.permutation(N_ROWS)
    forest = apart(one, client).fit(*parted(rng, x[order], y[order]))
    assert len(forest.workers_) == n_owners
    check_same(forest, one)
    held = client.gather(forest._fitted.each(lambda share: share.core.n_pairs))
    n_pairs = N_ROWS * one.n_estimators
    assert sum(held) == n_pairs
    if one.lifetime == np.inf:
        # Cells are cut as long as they have more rows than this, unless rows coincide.
        most = max(-(-N_ROWS // (4 * n_owners)), 16, 2)
        assert max(held) <= n_pairs / n_owners + most
    collected = forest.collect()
    assert type(collected) is type(one)
    again = clone(one).fit(x[order], y[order])
    assert collected.digest() == again.digest()
    assert np.array_equal(collected._model.rows(), again._model.rows())
    assert predicted(collected, TEST_ROWS).tobytes() == predicted(one, TEST_ROWS).tobytes()


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("one", [CLASSES[0], NUMBERS[2]], ids=["classes", "numbers"])
def test_features_of_weight_0(client, owners, one, lacking):
    """Rows that are equal to the trees count as copies, unless a substitute tells them apart."""
    owners(2)
    one = clone(one).set_params(feature_weights=[1.0, 0.0, 2.0])
    x, y = data(one)
    x[:60, [0, 2]] = x[60:120, [0, 2]]
    if lacking:
        one.set_params(substitutes=[(0.3, [(1, 2.0, 0.5)]), 0.5, 0.5])
        x[::3, 0] = np.nan
    one.fit(x, y)
    X, Y = (da.from_array(a, chunks=(70, -1)[: a.ndim]) for a in (x, y))
    check_same(apart(one, client).fit(X, Y), one)


@pytest.mark.parametrize("one", [CLASSES[0], NUMBERS[0]], ids=["classes", "numbers"])
def test_weights_of_rows(client, owners, one):
    owners(3)
    one, rng = clone(one), np.random.default_rng(7)
    x, y = data(one)
    # Some partitions may have rows of weight 0 alone.
    weights = np.where(np.arange(N_ROWS) < 90, 0.0, rng.gamma(0.7, size=N_ROWS) + 0.01)
    one.fit(x, y, weights)
    X, Y, W = (da.from_array(a, chunks=(80, -1)[: a.ndim]) for a in (x, y, weights))
    forest = apart(one, client).fit(X, Y, W)
    check_same(forest, one)
    assert forest.collect().digest() == one.digest()
    assert forest.n_rows_ == one.n_rows_ == N_ROWS - 90


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(CLASSES[1], id="classes"),
        pytest.param(NUMBERS[1], id="numbers", marks=pytest.mark.slow),
    ],
)
def test_partitions_may_be_empty_or_sparse(client, owners, one):
    owners(4)
    one = clone(one)
    x, y = data(one)
    x[x < np.median(x)] = 0.0
    kept = np.arange(N_ROWS) >= 120
    one.fit(x[kept], y[kept])
    rows, targets, stay = (da.from_array(a, chunks=(60, -1)[: a.ndim]) for a in (x, y, kept))
    forest = apart(one, client).fit(rows[stay], targets[stay])
    assert forest.digest() == one.digest()
    assert predicted(forest, rows[stay]).tobytes() == predicted(one, x[kept]).tobytes()
    sparse = rows.map_blocks(csr_matrix)
    forest = apart(one, client).fit(sparse, targets)
    assert forest.digest() == one.fit(x, y).digest()
    assert predicted(forest, sparse).tobytes() == predicted(one, x).tobytes()


def test_data_frames_and_files(client, owners, tmp_path):
    owners(3)
    one = clone(CLASSES[0])
    x, y = data(one)
    table = pd.DataFrame({"a": x[:, 0].astype(np.float32), "b": x[:, 1], "c": x[:, 2]})
    one.fit(table, y)
    frame = dd.from_pandas(table.assign(target=y), npartitions=3, sort=False)
    forest = apart(one, client).fit(frame[["a", "b", "c"]], frame["target"])
    assert forest.feature_names_in_.tolist() == ["a", "b", "c"]
    assert forest.classes_.tolist() == one.classes_.tolist()
    assert forest.discount_ == one.discount_
    assert np.array_equal(forest.feature_weights_, one.feature_weights_)
    assert forest.categories_ is None
    labels = forest.predict(frame[["a", "b", "c"]]).compute()
    assert np.array_equal(labels, one.predict(table))
    forest.save(tmp_path / "forest.boscage")
    one.save(tmp_path / "one.boscage")
    assert (tmp_path / "forest.boscage").read_bytes() == (tmp_path / "one.boscage").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        pytest.param([0.0, 2.0], marks=pytest.mark.slow),
        pytest.param([False, True], marks=pytest.mark.slow),
        ["a", "bcd"],
    ],
    ids=str,
)
def test_labels_of_any_type(client, labels):
    one = clone(CLASSES[0])
    x, y = data(one)
    y = np.where(y == "low", labels[0], labels[1])
    one.fit(x, y)
    forest = apart(one, client).fit(*parted(np.random.default_rng(3), x, y))
    check_same(forest, one)
    assert forest.classes_.dtype == one.classes_.dtype
    assert forest.classes_.tolist() == one.classes_.tolist()


def test_rates_and_maps_that_one_machine_has_learned(client, owners):
    owners(3)
    x, y = data(CLASSES[0])
    x[:, 2] = np.exp(20.0 * x[:, 2])  # heavy tails, which maps are for
    learned = boscage.MondrianForestClassifier(3, random_state=0).fit(x[::2], y[::2])
    maps = learned.feature_maps_
    one = boscage.MondrianForestClassifier(
        3,
        random_state=1,
        feature_weights=learned.feature_weights_,
        feature_maps=maps,
        feature_range=(x[::2].min(axis=0), x[::2].max(axis=0)),
        calibration=None,
    ).fit(x, y)
    forest = apart(one, client).fit(*parted(np.random.default_rng(2), x, y))
    assert forest.digest() == one.digest()
    rows = da.from_array(x, chunks=(90, 3))
    assert predicted(forest, rows).tobytes() == predicted(one, x).tobytes()
    assert forest.collect().digest() == one.digest()


@pytest.mark.parametrize(
    ("one", "is_weighted"), [(CLASSES[0], False), (CLASSES[1], True), (NUMBERS[0], True)]
)
def test_learned_rates(client, owners, one, is_weighted):
    owners(3)
    one, rng = clone(one).set_params(feature_weights="learned"), np.random.default_rng(5)
    x, y = data(one)
    x[:, 2] = np.exp(20.0 * x[:, 2])  # heavy tails, which maps are for
    x[: N_ROWS // 4] = x[0]  # in several partitions
    weights = (rng.integers(1, 4, N_ROWS).astype(float),) if is_weighted else ()
    one.fit(x, y, *weights)
    assert np.ptp(one.feature_weights_) > 0.0
    parts = (da.from_array(a, chunks=(70, -1)[: a.ndim]) for a in (x, y, *weights))
    forest = apart(one, client).fit(*parts)
    assert np.array_equal(forest.feature_weights_, one.feature_weights_)
    assert np.array_equal(forest.feature_importances_, one.feature_importances_)
    check_same(forest, one)
    collected = forest.collect()
    assert np.array_equal(collected.feature_importances_, one.feature_importances_)
    if not is_weighted:
        # The rates are kept.
        one.partial_fit(x[:50], y[:50])
        forest.partial_fit(*(da.from_array(a[:50], chunks=25) for a in (x, y)))
        assert np.array_equal(forest.feature_weights_, one.feature_weights_)
        check_same(forest, one)


@pytest.mark.parametrize("has_noise", [False, True])
def test_the_defaults_of_the_classifier(client, has_noise):
    one = boscage.MondrianForestClassifier(10, random_state=0)
    x, y = data(one)
    if not has_noise:
        y = x[:, 0] > 0.4
    one.fit(x, y)
    forest = MondrianForestClassifier(10, random_state=0, partition="cells", client=client)
    check_same(forest.fit(*parted(np.random.default_rng(0), x, y)), one)
    assert (forest.min_samples_split_ > 2) == has_noise
    assert forest.min_samples_split_ == one.min_samples_split_


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_rows_that_are_hard_to_leave_out_calibrate_as_on_one_machine(
    client, owners, predictive, is_weighted
):
    """Rows alone in their cells, rows without which a node has one class, a lone class."""
    owners(5)
    rng = np.random.default_rng(3)
    x, y = data(CLASSES[0])
    x[::40] = rng.normal(scale=20.0, size=x[::40].shape)
    y[:] = np.where(x[:, 0] > 0.5, "low", "high")
    y[rng.choice(N_ROWS, 6, replace=False)] = "odd"
    y[7] = "lone"
    one = boscage.MondrianForestClassifier(
        6,
        random_state=4,
        feature_range=(0.0, 1.0),
        feature_weights=None,
        predictive=predictive,
        lifetime=6.0,
        discount=0.1,
    )
    weights = (rng.choice([0.25, 1.0, 3.0], N_ROWS),) if is_weighted else ()
    one.fit(x, y, *weights)
    parts = [da.from_array(a, chunks=(70, -1)[: a.ndim]) for a in (x, y, *weights)]
    forest = apart(one, client).fit(*parts)
    assert one.calibration_power_ != 1.0
    check_same(forest, one)


@pytest.mark.parametrize("table", ["cells", "repeated", "two rows", "rare"])
def test_tables_of_copies_and_of_rare_classes(client, owners, table):
    """Copies by chance and on purpose, no row that calibrates, and more of them than 300."""
    owners(3)
    rng = np.random.default_rng(8)
    one = boscage.MondrianForestClassifier(4, random_state=1, feature_weights=None)
    n_rows = 1500 if table == "rare" else N_ROWS
    x = rng.uniform(size=(n_rows, 3))
    if table == "cells":
        x = np.floor(x * [6, 5, 2])
    y = np.where(x[:, 0] + x[:, 1] > (4.0 if table == "cells" else 1.0), "high", "low")
    if table == "cells":
        x[0] = 2.5  # without a copy
    elif table == "repeated":
        x[N_ROWS // 2 :], y[N_ROWS // 2 :] = x[: N_ROWS // 2], y[: N_ROWS // 2]
    elif table == "two rows":
        x, y = x[:2], np.array(["high", "low"])
    else:
        y[:] = np.where(rng.uniform(size=n_rows) < 0.02, "high", "low")
    one.fit(x, y)
    parts = (da.from_array(a, chunks=(len(x) // 4 + 1, -1)[: a.ndim]) for a in (x, y))
    forest = apart(one, client).fit(*parts)
    check_same(forest, one)
    n_calibrating = len(forest._fitted.growth.left_out.arrivals)
    assert n_calibrating == {"rare": 20 * n_rows // (y == "high").sum() + 1}.get(
        table, min(len(x), 300)
    )
    if table in ("repeated", "two rows"):
        assert one.calibration_power_ == 1.0
    assert one.predict_proba(TEST_ROWS).min() > 0.0


@pytest.mark.parametrize(("calibration", "is_weighted"), [("loo", True), (None, False)])
def test_a_discount_that_left_out_rows_choose(client, owners, calibration, is_weighted):
    owners(4)
    rng = np.random.default_rng(6)
    one = clone(CLASSES[0]).set_params(discount="loo", calibration=calibration, n_estimators=3)
    x, y = data(one)
    y[5] = "lone"
    weights = (rng.choice([0.0, 0.5, 1.0, 3.0], N_ROWS),) if is_weighted else ()
    one.fit(x, y, *weights)
    parts = [da.from_array(a, chunks=(90, -1)[: a.ndim]) for a in (x, y, *weights)]
    forest = apart(one, client).fit(*parts)
    assert forest.discount_ == one.discount_ != 10.0
    check_same(forest, one)
    # It stays.
    one.partial_fit(x[:50] + 1.0, y[:50]).forget([1, 2, 3])
    forest.partial_fit(*(da.from_array(a, chunks=25) for a in (x[:50] + 1.0, y[:50])))
    check_same(forest.forget([1, 2, 3]), one)
    assert forest.discount_ == one.discount_ == forest.collect().discount_
    share = pickle.loads(pickle.dumps(forest._fitted.shares[0].result()))
    assert share.hashes() == forest._fitted.shares[0].result().hashes()


@pytest.mark.parametrize("class_weight", ["balanced", {"low": 0.5, "rare": 3.0}])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_weights_of_classes(client, class_weight, is_weighted):
    one = clone(CLASSES[0]).set_params(class_weight=class_weight)
    rng = np.random.default_rng(11)
    x, y = data(one)
    arrays = [x, y, rng.exponential(1.0, N_ROWS)] if is_weighted else [x, y]
    forest = apart(one, client).fit(*parted(rng, *arrays))
    check_same(forest, one.fit(*arrays))
    weighted = predicted(one, TEST_ROWS)
    for each in (one, forest):
        each.set_params(class_weight=None)
    check_same(forest, one)
    assert predicted(one, TEST_ROWS).tobytes() != weighted.tobytes()


def test_targets_whose_squares_vanish_are_refused(client):
    one = clone(NUMBERS[0])
    x, y = data(one)
    forest = apart(one, client)
    tiny = parted(np.random.default_rng(0), x, 1e-200 * y)
    with pytest.raises(ValueError, match="so that squares do not vanish; found a largest"):
        forest.fit(*tiny)
    assert not hasattr(forest, "_fitted")
    forest.fit(*parted(np.random.default_rng(1), x, y)).partial_fit(*tiny)
    check_same(forest, one.fit(x, y).partial_fit(x, 1e-200 * y))


def test_hyperparameters_are_those_of_one_machine(client):
    for one in NUMBERS:
        one = clone(one)
        x, y = data(one)
        forest = apart(one, client).fit(*parted(np.random.default_rng(0), x, y))
        assert forest.hyperparameters_ == one.fit(x, y).hyperparameters_


@pytest.mark.parametrize("hyperparameters", ["loo", "ml"])
def test_hyperparameters_of_more_rows_than_a_rule_looks_at(client, hyperparameters):
    rng, n = np.random.default_rng(12), _core.RULE_ROWS + 1500
    x = rng.integers(0, 900, (n, N_FEATURES)) / 1000  # many rows coincide
    y, weights = x[:, 0] + rng.normal(0, 0.2, n), rng.integers(1, 4, n).astype(float)
    one = boscage.MondrianForestRegressor(
        2,
        random_state=10,
        feature_weights=None,
        posterior="exact",
        hyperparameters=hyperparameters,
        min_samples_split=100,
    )
    forest = apart(one, client).fit(*parted(rng, x, y, weights))
    check_same(forest, one.fit(x, y, weights))
    assert forest.hyperparameters_ == one.hyperparameters_


@pytest.mark.parametrize(
    "one", [CLASSES[0], NUMBERS[0], NUMBERS[2]], ids=["classes", "numbers", "rule"]
)
def test_a_share_that_moves_is_the_same_share(client, one):
    x, y = data(one, np.float32)
    forest = apart(one, client).fit(*parted(np.random.default_rng(0), x, y))
    share = forest._fitted.shares[1].result()
    twin = pickle.loads(pickle.dumps(share))
    assert twin.hashes() == share.hashes()
    plan = pickle.loads(pickle.dumps(forest._fitted.plan))
    own = TEST_ROWS[plan.rows_by_owner(TEST_ROWS, 2)[1]]
    assert len(own)
    assert np.array_equal(twin.lists(own), share.lists(own))
    # It may be asked to join its trees twice, and for its summary afterwards.
    assert np.array_equal(share.summaries(), twin.summaries())
    assert share.join([]) is share


def test_rows_that_hardly_differ_stay_together(client, owners):
    """Cuts never part rows that coincide: their cell may be too large; the forest is the same."""
    owners(4)
    one = clone(CLASSES[0])
    x, y = data(one)
    x[100:300] = x[100]
    one.fit(x, y)
    check_same(apart(one, client).fit(*parted(np.random.default_rng(1), x, y)), one)
    x[:] = x[0]
    check_same(apart(one, client).fit(*parted(np.random.default_rng(1), x, y)), one.fit(x, y))


def test_one_row_and_one_class(client, owners):
    owners(3)
    one = clone(CLASSES[0])
    x, y = data(one)
    for rows in (slice(0, 1), slice(0, 2), y == "low"):
        one.fit(x[rows], y[rows])
        forest = apart(one, client)
        forest.fit(da.from_array(x[rows], chunks=(50, 3)), da.from_array(y[rows], chunks=50))
        check_same(forest, one)


def test_large_cells_go_first_to_whoever_has_least():
    n_rows = np.array([5, 1, 9, 4, 4, 1], np.uint64)
    owners = cell_forest.shared_out(n_rows, 3)
    assert sorted(np.bincount(owners, weights=n_rows).tolist()) == [7.0, 8.0, 9.0]
    assert cell_forest.shared_out(n_rows[:2], 5) == [0, 1]


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "params", "message"),
    [
        (CLASSES[0], {"posterior": "joint"}, "posterior='joint': .*; set posterior='kneser-ney'"),
        (NUMBERS[0], {"posterior": "joint"}, "posterior='joint': .*; set posterior='exact'"),
    ],
)
def test_what_is_not_offered_is_refused_before_anything_travels(client, one, params, message):
    forest = apart(clone(one).set_params(**params), client)
    x, y = data(one)
    travelled = []

    def seen(block):
        travelled.append(block)
        return block

    X = da.from_array(x, chunks=(100, 3)).map_blocks(seen, meta=np.empty((0, 3)))
    with pytest.raises(ValueError, match=f"partition='cells' does not offer {message}"):
        forest.fit(X, da.from_array(y, chunks=100))
    assert not travelled
    assert not hasattr(forest, "_fitted")


def test_bad_rows_are_refused_by_partition_and_row(client):
    one = clone(CLASSES[0])
    x, y = data(one)
    forest = apart(one, client)
    Y = da.from_array(y, chunks=100)
    wrong = x.copy()
    wrong[211, 1] = np.inf
    message = "partition 2: .*row 11"
    with pytest.raises(ValueError, match=message):
        forest.fit(da.from_array(wrong, chunks=(100, 3)), Y)
    wrong[211, 1] = 1e300
    row = "partition 2: row 11, feature 1 of X is "
    with pytest.raises(ValueError, match=row + "1e300: more than"):
        forest.set_params(feature_range=(0.0, 1.0)).fit(da.from_array(wrong, chunks=(100, 3)), Y)
    forest.fit(da.from_array(x, chunks=(100, 3)), Y)
    wrong[211, 1] = np.inf
    with pytest.raises(ValueError, match=message):
        forest.predict_proba(da.from_array(wrong, chunks=(100, 3))).compute()


@pytest.mark.slow
@pytest.mark.parametrize("one", [CLASSES[0], NUMBERS[0]], ids=["classes", "numbers"])
def test_a_killed_worker_is_replaced_and_the_bits_stay(losing_client, one):
    """Once while trees grow, and once when all is fitted."""
    one = clone(one)
    x, y = data(one)
    one.fit(x, y)
    client, before = losing_client, losing_client.run(os.getpid)
    forest = apart(one, client).fit(*parted(np.random.default_rng(0), x, y))
    assert client.run(os.getpid) != before
    check_same(forest, one)
    kill_worker(client, forest.workers_[1])
    check_same(forest, one)
