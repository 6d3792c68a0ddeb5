"""A real SIGINT ends long calls within a second, and models keep the documented state."""

from __future__ import annotations

import io
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from boscage import (
    MCMC,
    SMC,
    BARTRegressor,
    BayesianTreeClassifier,
    Kernels,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from reference.arrays import Array

# Limits in processor seconds, which do not depend on other work of the machine, and in seconds of
# wall-clock time.
WITHIN, AT_LAST = 1.0, 20.0
pytestmark = [
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(),
        reason="signals need the main thread",
    ),
    pytest.mark.skipif(
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
        reason="SIGINT is ignored here, as by what a shell runs in the background",
    ),
]


def data(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, d)), rng.integers(0, 5, size=n)


def interrupted(call: Callable[[], Any], after: float = 0.4) -> float:
    """Send SIGINT ``after`` seconds into ``call``; return how long threads continued to work."""
    sent: list[tuple[float, float]] = []

    def send() -> None:
        sent.append((time.process_time(), time.perf_counter()))
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - sent[0][1] < AT_LAST
        return time.process_time() - sent[0][0]
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupted_fit_leaves_the_estimator_as_it_was(n_jobs: int) -> None:
    x, y = data(300, 3)
    model = MondrianForestClassifier(100, random_state=0, n_jobs=n_jobs).fit(x[:50], y[:50])
    before = model.digest(), model.predict_proba(x)
    more_x, more_y = data(40_000, 4, seed=1)
    model.set_params(n_estimators=4000)
    assert interrupted(lambda: model.fit(more_x, more_y)) < WITHIN
    assert model.n_features_in_ == 3
    assert model.digest() == before[0]
    np.testing.assert_array_equal(model.predict_proba(x), before[1])


def test_an_interrupted_first_fit_leaves_an_unfitted_estimator() -> None:
    x, y = data(40_000, 4)
    model = MondrianForestClassifier(4000, random_state=0)
    assert interrupted(lambda: model.fit(x, y)) < WITHIN
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        model.predict(x[:1])
    model.set_params(n_estimators=2).fit(x[:100], y[:100])
    assert model.n_rows_ == 100


def test_one_large_tree_can_be_interrupted() -> None:
    """The stop flag is read within a tree, too: one tree of two million rows."""
    x, y = data(2_000_000, 4)
    # Nothing is learned first: the signal comes while the tree grows.
    model = MondrianForestClassifier(1, feature_weights=None, random_state=0)
    assert interrupted(lambda: model.fit(x, y), after=0.3) < WITHIN


@pytest.mark.parametrize(
    "after", [0.2, *(pytest.param(after, marks=pytest.mark.slow) for after in (1.0, 2.0))]
)
def test_interrupted_regression_fit(after: float) -> None:
    """Also while hyperparameters are fitted, which takes most of the time of a small fit."""
    x, _ = data(20_000, 4)
    y = np.sin(5 * x[:, 0]) + np.random.default_rng(0).normal(size=len(x))
    model = MondrianForestRegressor(1500, random_state=0)
    assert interrupted(lambda: model.fit(x, y), after=after) < WITHIN


@pytest.mark.slow
def test_interrupted_joint_posterior_ends_soon() -> None:
    """While trees grow, hyperparameters are fitted and equations solved; and after an update."""
    x, _ = data(20_000, 4)
    y = np.sin(5 * x[:, 0]) + np.random.default_rng(0).normal(size=len(x))
    settings: dict[str, Any] = {"posterior": "joint", "noise": "local", "random_state": 0}
    model = MondrianForestRegressor(100, **settings).fit(x[:500], y[:500])
    before = model.digest(), model.predict(x[:20])
    for after in (0.3, 1.5, 4.0):
        large = MondrianForestRegressor(100, **settings)
        assert interrupted(lambda large=large: large.fit(x, y), after=after) < WITHIN
        assert not hasattr(large, "n_features_in_")
    assert interrupted(lambda: model.fit(x, y)) < WITHIN
    assert model.digest() == before[0]
    np.testing.assert_array_equal(model.predict(x[:20]), before[1])
    model.partial_fit(x[500:4000], y[500:4000])
    assert interrupted(lambda: model.predict(x[:1]), after=0.2) < WITHIN
    assert interrupted(model.loo_predict_dist) < WITHIN
    assert np.isfinite(model.predict(x[:1])).all()


@pytest.mark.slow
def test_interrupted_joint_classes_end_soon() -> None:
    """While equations are solved, for all rows and for those left out; the model goes on."""
    x, y = data(40_000, 4)
    settings: dict[str, Any] = {"posterior": "joint", "random_state": 0}
    model = MondrianForestClassifier(100, **settings).fit(x[:200], y[:200])
    before = model.digest(), model.predict_proba(x[:20])
    assert interrupted(lambda: model.fit(x, y), after=1.5) < WITHIN
    assert model.digest() == before[0]
    np.testing.assert_array_equal(model.predict_proba(x[:20]), before[1])
    model.partial_fit(x[200:30_000], y[200:30_000])
    for after in (0.3, 2.0):
        assert interrupted(lambda: model.predict_proba(x[:1]), after=after) < WITHIN
    model.forget(np.arange(100, 30_000))
    assert interrupted(lambda: [model.loo_predict_proba() for _ in range(100)]) < WITHIN
    assert np.isfinite(model.predict_proba(x[:1])).all()


@pytest.mark.slow
def test_an_interrupted_flush_continues_from_where_it_stopped() -> None:
    """No row is lost and none comes back: the result equals one fit."""
    x, y = data(22_000, 3)
    settings: dict[str, Any] = {"feature_range": (0.0, 1.0), "random_state": 0}
    settings |= {"feature_weights": None}  # nothing is learned from the first rows
    n_trees, n_first = 300, 16_000
    model = MondrianForestClassifier(n_trees, **settings).fit(x[:n_first], y[:n_first])
    # so few rows that trees are updated, one after the other, instead of being drawn again
    model.forget(np.arange(1500)).partial_fit(x[n_first:19_000], y[n_first:19_000])
    assert interrupted(model.flush) < WITHIN
    # rows that all, some or no trees have
    model.forget(np.r_[1500:2000, n_first : n_first + 200, 18_900:19_000])
    model.partial_fit(x[19_000:20_000], y[19_000:20_000])
    assert interrupted(lambda: model.predict(x[:1])) < WITHIN
    model.partial_fit(x[20_000:], y[20_000:]).forget(np.arange(19_900, 20_100))
    assert interrupted(model.digest) < WITHIN
    assert not model._model.is_flushed
    left = np.r_[2000:n_first, n_first + 200 : 18_900, 19_000:19_900, 20_100:22_000]
    np.testing.assert_array_equal(model.ids_, left)
    never = MondrianForestClassifier(n_trees, **settings).fit(x[left], y[left])
    assert model.digest() == never.digest()


def test_interrupted_predictions_end_soon() -> None:
    x, y = data(3_000, 8)
    model = MondrianForestClassifier(100, feature_weights=None, random_state=0).fit(x, y)
    at = np.random.default_rng(2).uniform(size=(60_000, 8))
    assert interrupted(lambda: model.predict_proba(at)) < WITHIN
    assert interrupted(lambda: model.predict(at)) < WITHIN
    assert model.predict_proba(at[:3]).shape == (3, 5)


@pytest.mark.slow
def test_predictions_that_choose_hyperparameters_first_can_be_interrupted() -> None:
    x, _ = data(1_500, 4)
    y = np.sin(5 * x[:, 0]) + np.random.default_rng(0).normal(size=len(x))
    model = MondrianForestRegressor(60, feature_weights=None, random_state=0, n_jobs=2)
    model.fit(x[:-1], y[:-1]).partial_fit(x[-1:], y[-1:])
    assert interrupted(lambda: model.predict(x[:1]), after=0.2) < WITHIN
    assert np.isfinite(model.predict(x[:1])).all()


@pytest.mark.parametrize(
    "after", [0.2, *(pytest.param(after, marks=pytest.mark.slow) for after in (0.7, 2.0))]
)
@pytest.mark.parametrize(
    ("sampler", "n_rows"), [(SMC(n_particles=100), 1_000_000), (MCMC(), 300_000)]
)
def test_interrupted_bayesian_fit_ends_soon_and_changes_nothing(
    sampler: Any, n_rows: int, after: float
) -> None:
    """While columns are sorted, while nodes are opened, and while they are weighed."""
    x, y = data(n_rows, 10)
    model = BayesianTreeClassifier(sampler, random_state=0).fit(x[:50], y[:50])
    before = model._model.to_bytes()
    assert interrupted(lambda: model.fit(x, y), after=after) < WITHIN
    assert model._model.to_bytes() == before


@pytest.mark.slow
def test_interrupted_bart_with_many_particles_ends_soon() -> None:
    x, _ = data(50_000, 5)
    model = BARTRegressor(10, kernels=Kernels("pg", n_particles=30_000), random_state=0)
    assert interrupted(lambda: model.fit(x, x[:, 0]), after=1.5) < WITHIN


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["cgm", "pg"])
def test_interrupted_bart_ends_soon(kernels: str) -> None:
    """Within a sweep, and within the draw of a chain's starting trees: both take seconds."""
    x, _ = data(10_000, 1000)
    for after in (1.5, 3.0):
        model = BARTRegressor(200, kernels=kernels, n_burn=1000, random_state=0)
        assert interrupted(lambda model=model: model.fit(x, x[:, 0]), after=after) < WITHIN


def test_interrupted_bart_leaves_the_estimator_as_it_was() -> None:
    x, _ = data(150, 3)
    model = BARTRegressor(20, n_chains=2, n_burn=50, n_draws=30, random_state=0)
    model.fit(x, x[:, 0])
    before = model._model
    model.set_params(n_draws=4_000_000)
    assert interrupted(lambda: model.fit(x, x[:, 0])) < WITHIN
    assert model._model is before


# -- while another thread updates the forest ------------------------------------------------------


@contextmanager
def updated_elsewhere(forest: Any, seconds: float) -> Iterator[None]:
    """Let another thread have the forest for itself, until the block ends or for some seconds."""
    has, over = threading.Event(), threading.Event()

    def update() -> None:
        with forest._lock.writing:
            has.set()
            over.wait(seconds)

    thread = threading.Thread(target=update)
    thread.start()
    try:
        assert has.wait(AT_LAST)
        yield
    finally:
        over.set()
        thread.join()


def test_a_call_that_waits_for_another_thread_can_be_interrupted() -> None:
    x, y = data(200, 3)
    model = MondrianForestClassifier(10, feature_weights=None, random_state=0)
    model.fit(x[:100], y[:100])
    calls: list[Callable[[], Any]] = [
        lambda: model.predict(x),
        lambda: model.partial_fit(x[100:], y[100:]),
        lambda: model.forget([3]),
        lambda: model.save(io.BytesIO()),
        lambda: pickle.dumps(model),
        model.copy,
    ]
    with updated_elsewhere(model, AT_LAST):
        for call in calls:
            assert interrupted(call, after=0.1) < WITHIN
    once = MondrianForestClassifier(10, feature_weights=None, random_state=0)
    assert model.digest() == once.fit(x[:100], y[:100]).digest()
    model.partial_fit(x[100:], y[100:])
    assert model.n_rows_ == 200


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there are no timers")
def test_a_handler_may_read_a_forest_for_which_its_thread_waits() -> None:
    x, y = data(200, 3)
    model = MondrianForestClassifier(10, feature_weights=None, random_state=0).fit(x, y)
    found: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(model.n_rows_))
    try:
        with updated_elsewhere(model, 0.4):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            model.forget([0])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found == [200]
    assert model.n_rows_ == 199
