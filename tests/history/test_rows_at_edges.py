"""Rows on cuts, far away, equal or nearly so: after any history the forest is that of one fit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from math import inf
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor
from forests import assert_equal_models, trees_of
from reference.arrays import Array


def ties_with_cuts(make: Any, y_of: Any) -> None:
    """Rows with coordinates exactly at a tree's cuts, and the nearest floats beside them."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(12, 2))
    seen = make().fit(x, y_of(x))
    on_cuts = []
    for tree in trees_of(seen):
        for d, cut in zip(tree["feature"], tree["threshold"], strict=True):
            if d >= 0:
                for value in (cut, np.nextafter(cut, 2.0), np.nextafter(cut, -1.0)):
                    row = x[rng.integers(len(x))].copy()
                    row[d] = value
                    on_cuts.append(row)
    more = np.concatenate([x, on_cuts])
    y = y_of(more)
    for lot in np.array_split(np.arange(len(x), len(more)), 5):
        seen.partial_fit(more[lot], y[lot])
    order = rng.permutation(len(more))
    assert_equal_models(seen, make().fit(more[order], y[order]), more)
    seen.forget(np.arange(len(x), len(more)))
    assert_equal_models(seen, make().fit(x, y[: len(x)]), more)


def labels_of(x: Array) -> Array:
    return (np.abs(x).sum(axis=1) * 1e6).astype(int) % 3


def test_rows_that_lie_on_cuts_in_classification() -> None:
    ties_with_cuts(
        lambda: MondrianForestClassifier(
            4, feature_range=(0.0, 1.0), feature_weights=None, random_state=1
        ),
        labels_of,
    )


def test_rows_that_lie_on_cuts_in_regression() -> None:
    ties_with_cuts(
        lambda: MondrianForestRegressor(
            4, feature_range=(0.0, 1.0), feature_weights=None, min_samples_split=3, random_state=1
        ),
        lambda x: np.sin(9.0 * x[:, 0]),
    )


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("far", [3.0, 1e6, 9e18])
def test_a_far_row_that_came_and_went_leaves_no_trace(far: float, predictive: str) -> None:
    """It raises the level of every tree; after it is forgotten the trees are as before."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(30, 2)), rng.integers(0, 2, size=30)

    def make() -> Any:
        return MondrianForestClassifier(
            20,
            feature_range=(0.0, 1.0),
            feature_weights=None,
            predictive=predictive,
            random_state=2,
        )

    model = make().fit(x, y)
    at = np.concatenate([3 * x - 1, 100 * x - 50, [[far, far], [1e300, 0.5]]])
    digest, proba = model.digest(), model.predict_proba(at)
    model.partial_fit([[far, 0.5], [-far, -far]], [1, 0])
    assert model.digest() != digest
    again = make().fit(np.vstack([[[-far, -far], [far, 0.5]], x]), np.append([0, 1], y))
    assert_equal_models(model, again, x)
    model.forget([30, 31])
    assert model.digest() == digest
    np.testing.assert_array_equal(model.predict_proba(at), proba)


def test_a_row_too_far_away_is_refused_and_changes_nothing() -> None:
    """The farthest box is 2^64 reference ranges wide; prediction has no such limit."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(30, 2)), rng.integers(0, 2, size=30)
    for predictive in ("averaged", "realised"):
        model = MondrianForestClassifier(
            5, feature_range=(0.0, 1.0), feature_weights=None, predictive=predictive, random_state=2
        )
        with pytest.raises(ValueError, match=r"row 7.*feature 1|feature 1.*row 7"):
            model.fit(np.where(np.arange(60).reshape(30, 2) == 15, 1e30, x), y)
        digest = model.fit(x, y).digest()
        with pytest.raises(ValueError, match=r"row 1.*feature 0|feature 0.*row 1"):
            model.partial_fit([[0.5, 0.5], [1e30, 0.5]], [0, 1])
        assert model.digest() == digest
        assert model.n_rows_ == 30
        assert np.isfinite(model.predict_proba([[1e30, 0.5], [-1e300, 1e300]])).all()


def test_the_same_rows_in_single_and_double_precision_are_the_same_rows() -> None:
    rng = np.random.default_rng(5)
    single = rng.uniform(size=(40, 3)).astype(np.float32)
    double = single.astype(np.float64)
    y = rng.integers(0, 3, size=40)
    make = lambda: MondrianForestClassifier(  # noqa: E731
        5, feature_range=(0.0, 1.0), feature_weights=None, random_state=5
    )
    one, other = make().fit(single, y), make().fit(double, y)
    mixed = make().fit(single[:20], y[:20]).partial_fit(double[20:], y[20:])
    assert_equal_models(one, other, double)
    assert_equal_models(mixed, other, double)


def test_signed_zeros_are_one_number() -> None:
    """0.0 and -0.0 lie on the same side of every cut, so models of either are equal."""
    y = [0, 1, 1]
    make = lambda: MondrianForestClassifier(  # noqa: E731
        5, feature_range=(-1.0, 1.0), feature_weights=None, random_state=6
    )
    one = make().fit([[0.0], [0.0], [0.7]], y)
    other = make().fit([[-0.0], [0.0], [0.7]], y)
    assert_equal_models(one, other, np.array([[0.0], [-0.0], [0.3]]))


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("lifetime", [inf, 0.7])
def test_coinciding_rows_are_one_leaf_however_they_came_to_be_alone(
    lifetime: float, predictive: str
) -> None:
    """A leaf that is left whole by the lifetime, or because its rows coincide: the same leaf."""
    x = np.array([[0.3, 0.3], [0.3, 0.3], [0.9, 0.35]])
    at = np.array([[1.5, 0.3], [4.0, 0.2], [-1.0, 0.3], [0.3, 30.0], [0.5, 0.5]])
    for seed in range(30):
        models = []
        for n in (2, 3):
            model = MondrianForestClassifier(
                5,
                lifetime=lifetime,
                predictive=predictive,
                feature_range=(0.0, 1.0),
                feature_weights=None,
                random_state=seed,
            )
            models.append(model.fit(x[:n], [0, 1, 1][:n]))
        models[1].forget([2])
        assert_equal_models(models[1], models[0], at)


@pytest.mark.slow
def test_tiny_differences_cost_bounded_time_and_memory() -> None:
    """Rows that differ by less than other features can resolve: no endless cutting of the others.

    Runs in a separate process, limited to 1 GiB of memory and 60 seconds.
    """
    code = """
        import resource, sys
        import numpy as np
        from boscage import MondrianForestClassifier
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        rng = np.random.default_rng(0)
        tiny = [0.0, -0.0, 5e-324, 1e-310, 1e-300, 1e-100, 1e-30, 1e-20, 1e-17, 0.3]
        for trial in range(60):
            n = int(rng.integers(2, 8))
            x = rng.choice(tiny, size=(n, 3))
            x[:, rng.integers(3)] = 0.3
            weights = rng.choice([1.0, 1e-300, 1e-17, 0.0], size=3)
            weights[rng.integers(3)] = 1.0
            y = rng.integers(0, 2, size=n)
            make = lambda: MondrianForestClassifier(
                3, feature_range=(0.0, 1.0), feature_weights=weights, random_state=trial
            )
            once = make().fit(x, y)
            bits = make().fit(x[::-1][:1], y[::-1][:1])
            for i in range(n - 2, -1, -1):
                bits.partial_fit(x[[i]], y[[i]])
            assert once.digest() == bits.digest(), trial
            np.testing.assert_array_equal(once.predict_proba(x), bits.predict_proba(x))
            bits.forget([n - 1])
            assert make().fit(x[1:], y[1:]).digest() == bits.digest(), trial
        print("ok")
    """
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "ok\n", done.stderr[-2000:]
