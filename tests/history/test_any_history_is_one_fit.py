"""Any history of fit, partial_fit, forget, merge, copy, save and load equals one fit.

Random histories on nasty rows: duplicates, ties, constant features, one row, one class, rows far
outside the reference range, signed zeros, subnormal and huge numbers, missing values, categories
that are known or not. After each history the model is compared with one `fit` on the remaining rows
in another order: digest, trees, predictions, all bit for bit. Ranges are given, since ranges taken
from the data depend on which data came first.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boscage import MondrianForestClassifier, MondrianForestRegressor
from forests import assert_equal_models, through_file
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


def categories(x: Array, seed: int) -> list[Any] | None:
    """In one of three histories the last feature is of categories, of which half are known."""
    if seed % 3:
        return None
    known = np.unique(x[~np.isnan(x[:, -1]), -1]).tolist()[::2]
    places = np.random.default_rng(seed).permutation(np.linspace(0.0, 1.0, len(known) + 1))
    table = dict(zip([*known, None], places.tolist(), strict=True))
    return [*[None] * (x.shape[1] - 1), table]


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
            categories=categories(x, seed),
            posterior=posterior,
            **params,
        )

    model, left = survivors_after(fresh(), x, y, history, fresh)
    np.testing.assert_array_equal(model.ids_, [3 * i + 1 for i in left])
    order = rng.permutation(left)
    assert_equal_models(model, fresh().fit(x[order], y[order]), query_points(x))


@pytest.mark.slow
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
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
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
            categories=categories(x, seed),
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
