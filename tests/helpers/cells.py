"""Forests of one machine, and the same ones with cells apart."""

import dask.array as da
import numpy as np

import boscage
from boscage.dask import MondrianForestClassifier, MondrianForestRegressor
from generated import rows_and_numbers, uniform

N_ROWS, N_FEATURES = 400, 3
TEST_ROWS = 2.0 * uniform(5, 70, N_FEATURES) - 0.5
HYPER = {"mu": 0.5, "gamma1": 2.0, "gamma2": 0.3, "noise_variance": 0.05}

CLASSES = [
    boscage.MondrianForestClassifier(5, random_state=1, feature_weights=None, discount=3.0),
    boscage.MondrianForestClassifier(
        3,
        random_state=2,
        feature_weights=[1.0, 0.2, 3.0],
        feature_range=(0.25, 0.5),
        predictive="realised",
        min_samples_split=6,
    ),
    boscage.MondrianForestClassifier(
        2, random_state=3, feature_weights=None, calibration=None, lifetime=2.5
    ),
]
NUMBERS = [
    boscage.MondrianForestRegressor(
        4, random_state=4, feature_weights=None, posterior="exact", hyperparameters=HYPER
    ),
    boscage.MondrianForestRegressor(
        3,
        random_state=5,
        feature_weights=[0.0, 1.0, 2.0],
        feature_range=(0.25, 0.5),
        posterior="exact",
        noise="global",
        hyperparameters=HYPER | {"coarse_variance": 0.5, "coarse_rate": 0.1},
        predictive="realised",
        min_samples_split=5,
    ),
    boscage.MondrianForestRegressor(
        4, random_state=6, feature_weights=None, posterior="exact", noise="local"
    ),
    boscage.MondrianForestRegressor(
        5, random_state=7, feature_weights=None, posterior="exact", hyperparameters="ml"
    ),
    boscage.MondrianForestRegressor(
        2,
        random_state=8,
        feature_weights=None,
        posterior="exact",
        noise="global",
        hyperparameters="heuristic",
        prior_scale=1.5,
        lifetime=3.0,
    ),
    boscage.MondrianForestRegressor(
        35,
        random_state=9,
        feature_weights=None,
        posterior="exact",
        noise_variance=0.1,
        predictive="realised",
        min_samples_split=8,
    ),
]


def data(one, dtype=np.float64):
    """Rows and targets; some labels are rare, and some rows coincide."""
    x, y = rows_and_numbers(N_ROWS, N_FEATURES, 1, dtype)
    x[:40] = x[40:80]
    if isinstance(one, boscage.MondrianForestRegressor):
        return x, y
    return x, np.array(["low", "middle", "high", "rare"])[np.digitize(y, [0.2, 0.9, 2.1])]


def parted(rng, *arrays):
    """The same rows as Dask arrays, in random partitions."""
    n = len(arrays[0])
    ends = np.sort(rng.choice(np.arange(1, n), int(rng.integers(1, 6)), replace=False))
    chunks = tuple(np.diff([0, *ends, n]).tolist())
    return [da.from_array(a, chunks=(chunks, *a.shape[1:])) for a in arrays]


def apart(one, client):
    """The unfitted estimator of the same parameters, whose cells are apart."""
    is_classifier = isinstance(one, boscage.MondrianForestClassifier)
    kind = MondrianForestClassifier if is_classifier else MondrianForestRegressor
    return kind(**one.get_params(), partition="cells", client=client)


def predicted(forest, rows):
    if hasattr(forest, "predict_proba"):
        return np.asarray(forest.predict_proba(rows))
    return np.column_stack([np.asarray(part) for part in forest.predict(rows, return_std=True)])


def with_substitutes(one, rows):
    """What a one-machine forest predicts where substitutes, not donors, have missing values."""
    complete = one._complete(rows)
    if hasattr(one, "predict_proba"):
        return one._weighted(one._model.predict_proba(complete))
    mean, variance = one._model.predict(complete)
    return np.column_stack([mean, np.sqrt(variance)])


def check_same(forest, one, rows=TEST_ROWS, chunks=25):
    assert forest.digest() == one.digest()
    found = predicted(forest, da.from_array(rows, chunks=(chunks, N_FEATURES)))
    assert found.tobytes() == with_substitutes(one, rows).tobytes()
