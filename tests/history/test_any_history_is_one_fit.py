"""Any history of fit, partial_fit, forget, merge, copy, save and load equals one fit.

Random histories on nasty rows: duplicates, ties, constant features, one row, one class, rows far
outside the reference range, signed zeros, subnormal and huge numbers, missing values. After each
history the model is compared with one `fit` on the remaining rows in another order: digest, trees,
predictions, all bit for bit. Ranges are given, since ranges taken from the data depend on which
data came first.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from forests import assert_same_trees, trees_of
from reference.arrays import Array

PROFILE = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

GRID = [0.0, -0.0, 0.25, 0.5, 0.75, 1.0]
NASTY = [np.nextafter(0.5, 1), np.nextafter(1.0, 2), -1e-12, 1e-17, -3.0, 17.0]
FAR = [1e3, -1e3, 1e9, -4.5e15, 9e18]
values = st.one_of(
    st.sampled_from(GRID),
    st.sampled_from(GRID + NASTY + FAR),
    # numbers next to zero are tested in test_tiny_differences_cost_bounded_time_and_memory
    st.floats(0.0, 1.0).map(lambda v: round(v, 15)),
    st.floats(-2.0, 3.0).map(lambda v: round(v, 15)),
)


@dataclass(frozen=True)
class Step:
    """One update of the model; ``pick`` chooses the rows when it is applied."""

    what: str
    size: int
    pick: int


WHAT = ["add", "add", "add one", "flush", "flush", "flush", "forget", "forget"]
WHAT += ["merge", "plus", "file", "pickle", "copy"]
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(WHAT),
        st.integers(1, 6),
        st.integers(0, 2**32 - 1),
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def rows(draw: st.DrawFn) -> Array:
    d = draw(st.integers(1, 3))
    x = np.array(draw(st.lists(st.tuples(*[values] * d), min_size=4, max_size=24)))
    if draw(st.booleans()):
        x[:, draw(st.integers(0, d - 1))] = 0.5
    if draw(st.booleans()):
        x = x.astype(np.float32)
    if draw(st.integers(0, 2)) == 0:
        x[np.random.default_rng(draw(st.integers(0, 99))).random(x.shape) < 0.4] = np.nan
    return x


def substitutes(x: Array) -> list[Any] | None:
    """What stands for missing values of some rows, if values are missing."""
    if not np.isnan(x).any():
        return None
    last = x.shape[1] - 1
    linear = [(d, 0.5, 0.25) for d in range(1, x.shape[1])]
    return [(0.5, linear), 0.75, (-0.5, [])][: last + 1]


tree_settings = st.fixed_dictionaries(
    {
        "n_estimators": st.just(3),
        "lifetime": st.sampled_from([inf, inf, 1.7]),
        "min_samples_split": st.sampled_from([2, 2, 4]),
        "predictive": st.sampled_from(["averaged", "realised"]),
        "random_state": st.integers(0, 2**31 - 1),
        "n_jobs": st.sampled_from([1, 2]),
    }
)


def through_file(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.boscage"
        model.save(path)
        return boscage.load(path)


def survivors_after(
    model: Any, x: Array, y: Array, history: list[Step], fresh: Any
) -> tuple[Any, list[int]]:
    """Apply the history; return the model and the remaining rows, oldest first."""
    left: list[int] = []
    to_come = list(range(len(x)))

    def take(n: int) -> list[int]:
        taken, to_come[:] = to_come[:n], to_come[n:]
        return taken

    def ids(chosen: list[int]) -> Array:
        return np.array([3 * i + 1 for i in chosen], dtype=np.uint64)

    first = take(2)
    model.fit(x[first], y[first], ids=ids(first))
    left += first
    for step in history:
        rng = np.random.default_rng(step.pick)
        if step.what == "add":
            new = take(step.size)
            if new:
                model.partial_fit(x[new], y[new], ids=ids(new))
                left += new
        elif step.what == "add one":
            for i in take(step.size):
                model.partial_fit(x[[i]], y[[i]], ids=ids([i]))
                left.append(i)
        elif step.what == "forget":
            gone = rng.permutation(left)[: min(step.size, len(left) - 1)].tolist()
            if gone:
                model.forget(ids(gone))
                left = [i for i in left if i not in gone]
                if rng.random() < 0.5:  # it may come back
                    to_come += gone
        elif step.what in {"merge", "plus"}:
            new = take(step.size)
            if new:
                other = fresh().fit(x[new], y[new], ids=ids(new))
                if step.what == "merge":
                    model.merge(other)
                else:
                    model = model + other
                left += new
        elif step.what == "flush":
            model.flush()
        elif step.what == "file":
            model = through_file(model)
        elif step.what == "pickle":
            model = pickle.loads(pickle.dumps(model))
        else:
            model = model.copy()
    return model, left


def assert_equal_models(model: Any, once: Any, at: Array) -> None:
    assert model.digest() == once.digest()
    assert model.n_rows_ == once.n_rows_
    assert_same_trees(trees_of(model), trees_of(once))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.classes_, once.classes_)
        np.testing.assert_array_equal(model.predict_proba(at), once.predict_proba(at))
    else:
        for a, b in zip(
            model.predict(at, return_std=True), once.predict(at, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        # also what mean and variance do not show
        dist, expected = model.predict_dist(at), once.predict_dist(at)
        for name in ("offsets", "weights", "means", "variances"):
            np.testing.assert_array_equal(getattr(dist, name), getattr(expected, name))


def query_points(x: Array) -> Array:
    inside = np.random.default_rng(0).uniform(-0.5, 1.5, size=(6, x.shape[1]))
    return np.concatenate([np.asarray(x, dtype=np.float64), inside])


@PROFILE
@given(
    rows(),
    steps,
    tree_settings,
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["kneser-ney", "joint"]),
)
def test_classification_is_a_function_of_the_rows_that_are_left(
    x: Array,
    history: list[Step],
    params: dict[str, Any],
    n_classes: int,
    seed: int,
    named: bool,
    posterior: Any,
) -> None:
    rng = np.random.default_rng(seed)
    y: Array = rng.integers(0, n_classes, size=len(x))
    if named:
        y = np.array(["ash", "birch", "cedar"])[y]

    def fresh() -> Any:
        return MondrianForestClassifier(
            feature_range=(0.0, 1.0),
            feature_weights=None,
            substitutes=substitutes(x),
            posterior=posterior,
            **params,
        )

    model, left = survivors_after(fresh(), x, y, history, fresh)
    np.testing.assert_array_equal(model.ids_, [3 * i + 1 for i in left])
    order = rng.permutation(left)
    assert_equal_models(model, fresh().fit(x[order], y[order]), query_points(x))


@PROFILE
@given(
    rows(),
    steps,
    tree_settings,
    st.sampled_from(["exact", "fast", "joint"]),
    st.sampled_from(["loo", "ml", "heuristic"]),
    st.sampled_from(["global", "local"]),
    st.sampled_from([None, "linear"]),
    st.integers(0, 2**32 - 1),
)
def test_regression_is_a_function_of_the_rows_that_are_left(
    x: Array,
    history: list[Step],
    params: dict[str, Any],
    posterior: str,
    hyperparameters: str,
    noise: str,
    trend: Any,
    seed: int,
) -> None:
    if posterior != "joint":  # it has none
        trend = None
    if posterior == "fast":  # it has no other
        hyperparameters, noise = "loo", "global"
    rng = np.random.default_rng(seed)
    y = rng.choice([0.0, 1.0, 1e6, -3.3, 0.1, 0.2, 0.3], size=len(x)) + rng.integers(0, 3)

    def fresh() -> Any:
        return MondrianForestRegressor(
            feature_range=(0.0, 1.0),
            feature_weights=None,
            substitutes=substitutes(x),
            posterior=posterior,
            hyperparameters=hyperparameters,
            noise=noise,
            trend=trend,
            **params,
        )

    model, left = survivors_after(fresh(), x, y, history, fresh)
    order = rng.permutation(left)
    once = fresh().fit(x[order], y[order])
    if rng.random() < 0.5:
        # hyperparameters and posteriors are caches: having predicted before must change nothing
        model.predict(x[:1])
    assert_equal_models(model, once, query_points(x))


@pytest.mark.parametrize(
    ("predictive", "posterior"),
    [
        pytest.param("averaged", "joint", marks=pytest.mark.slow),
        ("averaged", "kneser-ney"),
        pytest.param("realised", "exact", marks=pytest.mark.slow),
        pytest.param("averaged", "exact", marks=pytest.mark.slow),
        pytest.param("realised", "joint", marks=pytest.mark.slow),
        pytest.param("realised", "kneser-ney", marks=pytest.mark.slow),
    ],
)
def test_any_history_with_learned_maps_is_one_fit(predictive: str, posterior: str) -> None:
    """Maps are frozen like ranges and rates: a forest that forgot all its rows starts from them.

    They are learned from rows most of which are forgotten at once.
    """
    rng = np.random.default_rng(5)
    x = np.round(rng.uniform(size=(760, 3)), 2)
    x[:160:40, 1] = [1e6, -3.0, 1.5, -1e-12]
    y = np.where(x[:, 0] < 0.2, np.sin(60.0 * x[:, 0]), 0.0) + 0.01 * rng.normal(size=760)
    if posterior == "kneser-ney":
        # Half of the rows lie in a thousandth of the range, and their labels vary there.
        y = np.digitize(np.sin(20.0 * x[:, 0]) + x[:, 2], [0.0, 0.7])
        x[:, 0] = np.exp(14.0 * (x[:, 0] - 1.0))
    first = np.r_[:80, 160:760]
    x[first] = x[first].astype(np.float32)
    settings: dict[str, Any] = {"n_estimators": 4, "feature_range": (0.0, 1.0), "random_state": 5}
    settings |= {"feature_weights": "learned", "predictive": predictive, "posterior": posterior}
    if posterior == "kneser-ney":
        learned: Any = MondrianForestClassifier(**settings)
    else:
        learned = MondrianForestRegressor(**settings, noise="local")
    learned.fit(x[first].astype(np.float32), y[first], ids=first)
    learned.forget(first[80:])
    x, y = x[:160], y[:160]
    assert learned.feature_maps_ is not None
    assert any(len(knots) > 2 for knots, _ in learned.feature_maps_)
    blank = learned.copy().forget(learned.ids_)

    def forest(rows: Array) -> Any:
        return blank.copy().partial_fit(x[rows], y[rows], ids=rows)

    at = np.vstack([x, 3.0 * x - 1.0])
    whole = forest(rng.permutation(160))
    assert whole.digest() != learned.digest()
    in_parts = learned.copy()
    for rows in np.array_split(np.arange(80, 160), 11):
        in_parts.partial_fit(x[rows], y[rows], ids=rows)
    assert_equal_models(in_parts, whole, at)
    assert_equal_models(in_parts.forget(np.arange(80, 160)), learned, at)
    odd, even = np.arange(1, 160, 2), np.arange(0, 160, 2)
    assert_equal_models(forest(odd).merge(forest(even)), whole, at)
    assert_equal_models(pickle.loads(pickle.dumps(whole)), whole, at)
    assert_equal_models(through_file(whole), whole, at)
    for tree in whole.trees_:
        counts = np.bincount(tree.apply(x), minlength=tree.n_nodes)
        np.testing.assert_array_equal(counts[tree.is_leaf], tree.n_rows[tree.is_leaf])
        np.testing.assert_array_equal(tree.lower[0], x.min(axis=0))
        np.testing.assert_array_equal(tree.upper[0], x.max(axis=0))


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


@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
def test_a_table_larger_than_the_cache_equals_its_parts(kind: Any) -> None:
    # Subtrees of such a table grow on copies of their rows; those of added rows do not.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 16)).astype(np.float32)
    X[::3] = np.round(X[::3], 1)
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.0)
    ranges = (X.min(axis=0), X.max(axis=0))
    params: dict[str, Any] = {"n_estimators": 2, "feature_range": ranges, "min_samples_split": 3}
    params["feature_weights"] = None
    if kind is MondrianForestRegressor:
        params |= {"hyperparameters": "heuristic", "posterior": "exact", "noise": "global"}
    parts = kind(**params, random_state=3)
    for rows in np.array_split(rng.permutation(len(X)), 40):
        parts.partial_fit(X[rows], y[rows], ids=rows)
    whole = kind(**params, random_state=3).fit(X, y)
    assert whole.digest() == parts.digest()
    parts.forget(np.arange(1, len(X), 2))
    half = kind(**params, random_state=3).fit(X[::2], y[::2], ids=np.arange(0, len(X), 2))
    assert half.digest() == parts.digest()


@pytest.mark.parametrize("n_shards", [2, 5])
def test_merged_shards_equal_one_fit(n_shards: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(0.5, 1.0, size=(200, 3))
    y = rng.integers(0, 4, size=200)
    make = lambda: MondrianForestClassifier(  # noqa: E731
        5, feature_range=(0.0, 1.0), feature_weights=None, random_state=3
    )
    shards = [
        make().fit(x[part], y[part], ids=part)
        for part in np.array_split(rng.permutation(200), n_shards)
    ]
    total = shards[0]
    for shard in shards[1:]:
        total = total + shard
    assert_equal_models(total, make().fit(x, y), x)


@pytest.mark.parametrize("task", ["classes", "numbers"])
@pytest.mark.parametrize("window", [1, 7, 40])
def test_a_window_keeps_the_newest_rows(task: str, window: int) -> None:
    """A stream through `window_size` equals one fit on the newest rows."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-0.2, 1.2, size=(60, 2))
    y = rng.integers(0, 3, size=60) if task == "classes" else rng.normal(size=60)
    kind = MondrianForestClassifier if task == "classes" else MondrianForestRegressor

    def make() -> Any:
        return kind(
            4, feature_range=(0.0, 1.0), feature_weights=None, window_size=window, random_state=4
        )

    model, end = make(), 0
    for size in (3, 1, 20, 1, 1, 25, 9):
        lot = slice(end, end + size)
        model.partial_fit(x[lot], y[lot])
        end += size
        start = max(0, end - window)
        assert model.n_rows_ == end - start
        np.testing.assert_array_equal(model.ids_, np.arange(start, end))
        assert_equal_models(model, make().fit(x[start:end], y[start:end]), x)


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


def test_a_loaded_model_goes_on_learning_as_if_it_had_never_been_saved() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.normal(0.5, 1.0, size=(60, 2)), rng.normal(size=60)
    make = lambda: MondrianForestRegressor(  # noqa: E731
        4, feature_range=(0.0, 1.0), feature_weights=None, min_samples_split=4, random_state=9
    )
    stayed, went = make().fit(x[:20], y[:20]), through_file(make().fit(x[:20], y[:20]))
    for lot in (slice(20, 21), slice(21, 50), slice(50, 60)):
        for model in (stayed, went):
            model.partial_fit(x[lot], y[lot])
            model.forget([lot.start])
        went = through_file(went)
        assert_equal_models(went, stayed, x)
        np.testing.assert_array_equal(went.ids_, stayed.ids_)
