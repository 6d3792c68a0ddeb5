"""The same bits for 1, 2 and 3 threads: trees, digests, files, predictions, leave-one-out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor, _core
from reference.arrays import Array

N, D = 400, 3


def data(n: int = N) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n, D))
    x[::50] *= 30.0  # outside the reference range
    return x, x[:, 0] + 0.3 * rng.normal(size=n)


def history(model: Any, x: Array, y: Any, **threads: int) -> list[bytes]:
    """Return the results of a model after fit, partial_fit, forget and merge."""
    n = len(x)
    half, ids = n // 2, np.arange(n, dtype=np.uint64)
    labels = {"labels": [0, 1, 2]} if y.dtype == np.uint32 else {}
    shared: dict[str, Any] = {"low": np.zeros(D), "high": np.ones(D)}
    first = {"declared": None} if labels else {}

    def rows(part: slice) -> tuple[Any, ...]:
        return (x[part], y[part], *labels.values())

    seen: list[bytes] = []
    model.fit(*rows(slice(0, half)), ids=ids[:half], **first, **shared, **threads)
    seen.append(model.to_bytes())
    model.partial_fit(*rows(slice(half, n - 50)), ids=ids[half : n - 50])
    model.flush(**threads)
    seen.append(model.digest().encode())
    model.forget(ids[10:60])
    model.flush(**threads)
    seen.append(model.digest().encode())
    other = model.copy()
    other.fit(*rows(slice(n - 50, n)), ids=ids[n - 50 :], **first, **shared, **threads)
    model.merge(other)
    model.flush(**threads)
    seen += [model.digest().encode(), model.to_bytes()]
    at = np.random.default_rng(1).uniform(-1.0, 2.0, size=(100, D))
    if labels:
        seen.append(model.predict_proba(at, **threads).tobytes())
        seen.append(model.loo_proba(None, None, **threads).tobytes())
    else:
        for found in (model.predict, model.predict_dist):
            seen += [part.tobytes() for part in found(at, **threads)]
        seen += [part.tobytes() for part in model.loo_dist(None, **threads)]
        seen.append(repr(model.hyperparameters()).encode())
        seen.append(repr(model.log_marginal_likelihood()).encode())
    seen += [
        np.ascontiguousarray(tree[key]).tobytes() for tree in model.trees() for key in sorted(tree)
    ]
    return seen


@pytest.mark.parametrize(
    ("predictive", "posterior"),
    [
        ("averaged", "kneser-ney"),
        ("realised", "kneser-ney"),
        ("averaged", "joint"),
        pytest.param("realised", "joint", marks=pytest.mark.slow),
    ],
)
def test_classification_does_not_depend_on_the_number_of_threads(
    predictive: str, posterior: str
) -> None:
    # Joint classes leave every row out of the others' equations, three times here.
    x, y = data(150 if posterior == "joint" else N)
    codes = np.clip(y * 3, 0, 2).astype(np.uint32)
    found = [
        history(
            _core.MondrianClassifier(
                n_estimators=7, posterior=posterior, predictive=predictive, seed=3
            ),
            x,
            codes,
            n_threads=n_threads,
        )
        for n_threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("noise", ["global", "local"])
@pytest.mark.parametrize("posterior", ["exact", "fast"])
@pytest.mark.parametrize("hyperparameters", ["ml", "heuristic"])
def test_regression_does_not_depend_on_the_number_of_threads(
    hyperparameters: str, posterior: str, noise: str
) -> None:
    x, y = data()
    found = [
        history(
            _core.MondrianRegressor(
                n_estimators=7,
                min_samples_split=5,
                posterior=posterior,
                hyperparameters=hyperparameters,
                noise=noise,
                seed=3,
            ),
            x,
            y,
            n_threads=n_threads,
        )
        for n_threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


def test_a_model_is_saved_while_another_thread_reads_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(3000, D))
    y = (x.sum(axis=1) * 3).astype(int)
    model = MondrianForestClassifier(
        50, feature_range=(0.0, 1.0), feature_weights=None, random_state=0
    ).fit(x, y)
    begun, saved = Event(), Event()

    def read() -> None:
        while not saved.is_set():
            begun.set()
            model.predict_proba(x)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            begun.wait()
            for _ in range(10):
                model.save(tmp_path / "model.boscage")
        finally:
            saved.set()
        reading.result()
    assert MondrianForestClassifier.load(tmp_path / "model.boscage").digest() == model.digest()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("weights", [None, "learned"])
def test_n_jobs_changes_no_bit_of_the_estimators(n_jobs: int, weights: str | None) -> None:
    x, y = data(150)
    labels = np.where(y > 0.5, "high", "low")
    settings: dict[str, Any] = {"random_state": 1, "feature_weights": weights}
    classify = [
        MondrianForestClassifier(6, n_jobs=jobs, **settings).fit(x, labels) for jobs in (1, n_jobs)
    ]
    regress = [
        MondrianForestRegressor(6, n_jobs=jobs, **settings).fit(x, y) for jobs in (1, n_jobs)
    ]
    for one, other in (classify, regress):
        assert one.digest() == other.digest()
        if weights == "learned":
            np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
            np.testing.assert_array_equal(one.feature_weights_, other.feature_weights_)
    np.testing.assert_array_equal(*[model.predict_proba(x) for model in classify])
    np.testing.assert_array_equal(*[model.predict(x, return_std=True) for model in regress])
