"""Bad input is refused by name, with partition and row, and leaves the estimator as it was."""

import importlib
import logging
import sys

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd

from boscage.dask import MondrianForestClassifier, MondrianForestRegressor, _shares
from generated import uniform

pytestmark = pytest.mark.slow

ROWS = uniform(1, 40, 2)
LABELS = (ROWS[:, 0] > 0.5).astype(int)


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    """Workers log the errors that are provoked here."""
    loggers = [logging.getLogger(name) for name in ("distributed.worker", "distributed.scheduler")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def fitted(client):
    forest = MondrianForestClassifier(2, random_state=1, feature_weights=None, client=client)
    ids = da.arange(40, chunks=20)
    return forest.fit(arrays(ROWS), arrays(LABELS), ids=ids)


def arrays(values, n=20):
    return da.from_array(values, chunks=(n, *values.shape[1:]))


def of_parts(parts, dtype=np.float64):
    """A Dask array that says of its partitions what is not true of all of them."""
    blocks = [
        da.from_delayed(dask.delayed(part), shape=(20, *parts[0].shape[1:]), dtype=dtype)
        for part in parts
    ]
    return da.concatenate(blocks)


def frame(parts):
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0], verify_meta=False)


def check_refused(fitted, error, message, X, y=None, ids=None):
    """`fit` and `partial_fit` refuse the rows, and the fitted forest is as it was."""
    before, n_rows = fitted.digest(), fitted.n_rows_
    y = arrays(LABELS) if y is None else y
    new = MondrianForestClassifier(2, random_state=1, client=fitted.client)
    for forest in (new, fitted):
        with pytest.raises(error, match=message):
            forest.partial_fit(X, y, ids=ids)
    with pytest.raises(error, match=message):
        fitted.fit(X, y, ids=ids)
    assert not hasattr(new, "_fitted")
    assert (fitted.digest(), fitted.n_rows_) == (before, n_rows)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([ROWS[:20], ROWS[20:, :1]], "partition 1: found 1 features, expected 2"),
        ([ROWS[:20], ROWS[20:].astype(np.float32)], "partition 1: X is of type float32, expected"),
        ([ROWS[:20], ROWS[:0]], "partition 1: y has 20 entries for 0 rows of X"),
    ],
)
def test_a_partition_unlike_the_others(fitted, parts, message):
    error = TypeError if "type" in message else ValueError
    check_refused(fitted, error, message, of_parts(parts))


def test_a_value_that_is_not_finite(fitted):
    rows = ROWS.copy()
    rows[23, 1] = np.inf
    check_refused(fitted, ValueError, "partition 1: .*row 3", arrays(rows))


def test_data_frames_with_other_columns_or_types(fitted):
    one, two = (pd.DataFrame(rows, columns=["a", "b"]) for rows in (ROWS[:20], ROWS[20:]))
    labels = frame([pd.Series(LABELS[:20]), pd.Series(LABELS[20:])])
    message = r"partition 1: found the columns \['b', 'a'\], expected \['a', 'b'\]"
    check_refused(fitted, ValueError, message, frame([one, two[["b", "a"]]]), labels)
    message = "partition 1: b is of type float32, expected float64"
    wrong = frame([one, two.astype({"b": np.float32})])
    check_refused(fitted, TypeError, message, wrong, labels)


def test_ids_that_occur_twice_in_two_partitions(fitted):
    ids = np.arange(100, 140)
    ids[27] = 104
    message = "found 104 in row 4 of partition 0 and in row 7 of partition 1"
    check_refused(fitted, ValueError, message, arrays(ROWS), ids=arrays(ids))


def test_ids_that_the_forest_has(fitted):
    before = fitted.digest()
    with pytest.raises(ValueError, match="id 7 is already in the forest"):
        fitted.partial_fit(arrays(ROWS[:1]), arrays(LABELS[:1]), ids=da.from_array([7]))
    assert fitted.digest() == before
    with pytest.raises(KeyError, match="'nobody' is not in the forest"):
        fitted.forget(["nobody", 7])
    assert fitted.digest() == before


def test_targets_of_other_lengths_and_types(fitted):
    check_refused(
        fitted, ValueError, "y has 39 entries for 40 rows", arrays(ROWS), arrays(LABELS[1:])
    )
    labels = of_parts([LABELS[:20].astype(str), LABELS[20:]], dtype=object)
    check_refused(
        fitted, TypeError, "partition 1: y is of type int64, and of type <U", arrays(ROWS), labels
    )


def test_arrays_of_numpy(fitted):
    message = "X must be a Dask array or a Dask data frame, found ndarray"
    check_refused(fitted, TypeError, message, ROWS)
    with pytest.raises(TypeError, match=message):
        fitted.predict(ROWS)


def test_rows_to_predict_are_refused_when_they_are_computed(fitted):
    rows = ROWS.copy()
    rows[31, 0] = np.inf
    lazy = fitted.predict_proba(arrays(rows))
    with pytest.raises(ValueError, match=r"partition 1: .*row 11"):
        lazy.compute()
    lazy = fitted.predict_proba(arrays(ROWS[:, :1]))
    with pytest.raises(ValueError, match=r"partition \d: X has 1 features, but .* is expecting 2"):
        lazy.compute()


def test_parameters(fitted):
    X, y = arrays(ROWS), arrays(LABELS)
    for params, message in [
        ({"partition": "rows"}, "partition must be one of 'trees', 'cells', found 'rows'"),
        ({"n_estimators": 0}, "n_estimators must be >= 1"),
        ({"feature_range": (1.0, 0.0)}, "feature_range must have low <= high"),
    ]:
        forest = MondrianForestClassifier(2, client=fitted.client).set_params(**params)
        with pytest.raises(ValueError, match=message):
            forest.fit(X, y)
    before = fitted.digest()
    with pytest.raises(
        ValueError, match="with posterior='joint' one worker needs the first 2 trees, and it has 1"
    ):
        fitted.set_params(posterior="joint").partial_fit(X, y)
    with pytest.raises(ValueError, match="lifetime was inf when the forest was grown"):
        fitted.set_params(posterior="kneser-ney", lifetime=1.0).partial_fit(X, y)
    fitted.set_params(lifetime=np.inf)
    assert fitted.digest() == before


def test_a_rule_that_needs_more_trees_than_one_worker_has(client):
    X, y = arrays(ROWS), arrays(ROWS[:, 0])
    forest = MondrianForestRegressor(
        6,
        random_state=1,
        feature_weights=None,
        posterior="exact",
        hyperparameters="heuristic",
        client=client,
    )
    forest.fit(X, y)
    assert len(forest.workers_) == 2
    before = forest.digest()
    message = (
        "with posterior='exact' and hyperparameters='loo' one worker needs the first 6 trees, and "
        "it has 3"
    )
    with pytest.raises(ValueError, match=message):
        forest.set_params(hyperparameters="loo").partial_fit(X, y)
    assert forest.digest() == before
    assert len(forest.set_params(hyperparameters="ml").fit(X, y).workers_) == 2
    assert len(forest.set_params(hyperparameters="loo").fit(X, y).workers_) == 1


def test_a_fitted_forest_is_not_pickled(fitted):
    with pytest.raises(TypeError, match="collect"):
        fitted.__getstate__()


def test_a_cluster_without_workers():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=False) as cluster,
        distributed.Client(cluster) as empty,
        pytest.raises(ValueError, match="the cluster has no workers"),
    ):
        MondrianForestRegressor(2, client=empty).fit(arrays(ROWS), arrays(ROWS[:, 0]))


def test_partitions_that_are_all_empty(fitted):
    check_refused(
        fitted, ValueError, "X has no rows", of_parts([ROWS[:0]]), of_parts([ROWS[:0, 0]])
    )


def test_a_closed_client(client):
    with distributed.Client(client.cluster) as other:
        forest = MondrianForestRegressor(2, random_state=0, client=other)
        forest.fit(arrays(ROWS), arrays(ROWS[:, 0]))
    for call in (
        lambda: forest.predict(arrays(ROWS)),
        forest.digest,
        forest.collect,
        lambda: forest.partial_fit(arrays(ROWS), arrays(ROWS[:, 0])),
        lambda: forest.fit(arrays(ROWS), arrays(ROWS[:, 0])),
    ):
        with pytest.raises(RuntimeError, match="the Dask client is closed"):
            call()


def test_no_client(client, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match="there is no Dask client"):
        MondrianForestRegressor(2).fit(arrays(ROWS), arrays(ROWS[:, 0]))


def test_a_worker_of_another_version(client, fitted):
    worker = sorted(client.nthreads())[1]
    # Lambdas travel by value; a function of this file could not be imported on a worker.
    client.run(lambda: setattr(_shares, "VERSION", "0.0.7"), workers=[worker])
    ours = _shares.VERSION
    try:
        message = f"worker {worker} has boscage 0.0.7, and this process has {_shares.VERSION}"
        before = fitted.digest()
        with pytest.raises(RuntimeError, match=message):
            fitted.fit(arrays(ROWS), arrays(LABELS))
        assert fitted.digest() == before
        # One that joined later is found out by its first task.
        late = client.submit(_shares.check_version, _shares.VERSION, workers=[worker], pure=False)
        with pytest.raises(
            RuntimeError, match=f"worker {worker} has boscage 0.0.7, and the client"
        ):
            late.result()
    finally:
        client.run(lambda: setattr(_shares, "VERSION", ours), workers=[worker])


def test_a_worker_that_dies_while_it_is_asked_is_left_to_dask(client, monkeypatch):
    first, second = sorted(client.nthreads())
    answers = {first: OSError("Stream is closed"), second: _shares.VERSION}
    monkeypatch.setattr(client, "run", lambda *_, **__: answers)
    forest = MondrianForestClassifier(2, feature_weights=None, random_state=1, client=client)
    assert forest.fit(arrays(ROWS), arrays(LABELS)).workers_ == [second]
    answers[second] = OSError("Stream is closed")
    with pytest.raises(ValueError, match="the cluster has no workers"):
        forest.fit(arrays(ROWS), arrays(LABELS))


def test_a_worker_without_the_library(client, monkeypatch):
    worker = sorted(client.nthreads())[0]
    answers = {worker: ModuleNotFoundError("No module named 'boscage'")}
    monkeypatch.setattr(client, "run", lambda *_, **__: answers)
    with pytest.raises(RuntimeError, match=f"worker {worker} cannot import boscage"):
        MondrianForestClassifier(2, client=client).fit(arrays(ROWS), arrays(LABELS))


def test_without_dask_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("boscage.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "boscage\[dask\]"'):
        importlib.import_module("boscage.dask")


@pytest.mark.parametrize("partition", ["trees", "cells"])
def test_weights_of_no_class_are_refused_by_fit(client, partition):
    forest = MondrianForestClassifier(
        2, partition=partition, random_state=1, class_weight={"typo": 3.0}, client=client
    )
    with pytest.raises(ValueError, match="class_weight has weights for 'typo', but y has the"):
        forest.fit(arrays(ROWS), arrays(LABELS))
    assert not hasattr(forest, "_fitted")
