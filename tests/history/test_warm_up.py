"""The warm-up of a stream: what first rows teach is learned anew until it is final."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from boscage import MondrianForestClassifier, MondrianForestRegressor
from reference.arrays import Array
from small_forests import both, copies, predict

N = 160
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(2 * N, 4)) * [1.0, 2.0, 3.0, 4.0]
# The first rows say little: they lie in a corner, and have one target.
X[:20] *= 0.1
SCORE = np.where(np.arange(2 * N) < 20, 0.0, np.sin(5.0 * X[:, 0]) + 0.1 * X[:, 1])
FAST: dict[str, Any] = {"n_estimators": 4, "random_state": 0}


def target_of(kind: Any) -> Array:
    return SCORE if kind is MondrianForestRegressor else (SCORE > 0.3).astype(int)


def make(kind: Any, **params: Any) -> Any:
    # They are chosen when trees are grown; the warm-up is about what is learned before.
    cheap = (
        {"hyperparameters": "heuristic", "noise": "global", "trend": None}
        if kind is MondrianForestRegressor
        else {}
    )
    return kind(**(FAST | cheap | {"warm_up": N} | params))


def stream(model: Any, sizes: Any, start: int = 0) -> Any:
    """Feed batches of these sizes."""
    y = target_of(type(model))
    for size in sizes:
        model.partial_fit(X[start : start + size], y[start : start + size])
        start += size
    return model


def learned(model: Any) -> Any:
    ranges = np.concatenate(model.feature_range_)
    return np.concatenate([ranges, model.feature_weights_, [getattr(model, "discount_", 0.0)]])


# -- the law --------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 3 + [N - 3],
        [30, 40, 50, 40],
        pytest.param([N], marks=pytest.mark.slow),
        pytest.param([N - 1, 1], marks=pytest.mark.slow),
    ],
)
def test_after_the_warm_up_the_forest_is_one_that_was_fitted(kind: Any, sizes: list[int]) -> None:
    model = stream(make(kind), sizes)
    assert model.warm_up_left_ == 0
    y = target_of(kind)
    fitted = make(kind).fit(X[:N], y[:N])
    assert model.digest() == fitted.digest()
    np.testing.assert_array_equal(model.ids_, fitted.ids_)
    np.testing.assert_array_equal(model.feature_importances_, fitted.feature_importances_)
    for each in (model, fitted):
        stream(each, [50, N - 50], start=N)
    assert model.digest() == fitted.digest()
    np.testing.assert_array_equal(predict(model, X), predict(fitted, X))


@pytest.mark.slow
def test_after_the_warm_up_the_default_forest_is_one_that_was_fitted() -> None:
    model = stream(MondrianForestRegressor(**FAST, warm_up=N), [30, 40, 50, 40])
    fitted = MondrianForestRegressor(**FAST).fit(X[:N], SCORE[:N])
    assert model.digest() == fitted.digest()
    assert model.trend_ == fitted.trend_
    np.testing.assert_array_equal(predict(model, X), predict(fitted, X))


@both
def test_the_batch_that_ends_the_warm_up_counts_as_a_whole(kind: Any) -> None:
    model = stream(make(kind), [100, 120])
    y = target_of(kind)
    assert model.digest() == make(kind).fit(X[:220], y[:220]).digest()


@pytest.mark.slow
@both
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_what_is_learned_is_learned_again_when_rows_have_doubled(kind: Any) -> None:
    model = make(kind)
    y = target_of(kind)
    last, left, changed = None, [], []
    for n in range(10, 2 * N + 1, 10):
        model.partial_fit(X[n - 10 : n], y[n - 10 : n])
        left.append(model.warm_up_left_)
        if last is None or not np.array_equal(learned(model), last):
            changed.append(n)
            last = learned(model)
            assert model.digest() == make(kind).fit(X[:n], y[:n]).digest()
    assert changed == [10, 20, 40, 80, 160]
    assert left == [*range(N - 10, 0, -10), *[0] * (N // 10 + 1)]


@both
def test_without_a_warm_up_the_first_call_decides(kind: Any) -> None:
    model = stream(make(kind, warm_up=0), [20])
    assert model.warm_up_left_ == 0
    before = learned(model)
    np.testing.assert_array_equal(learned(stream(model, [N], start=20)), before)
    np.testing.assert_array_equal(model.feature_range_[0], X[:20].min(axis=0))


@both
@pytest.mark.parametrize("warm_up", [0, N])
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_fit_is_final(kind: Any, warm_up: int) -> None:
    y = target_of(kind)
    model = make(kind, warm_up=warm_up).fit(X[:20], y[:20])
    assert model.warm_up_left_ == 0
    before = learned(model)
    np.testing.assert_array_equal(learned(stream(model, [N], start=20)), before)


@both
def test_where_nothing_is_to_be_learned_there_is_no_warm_up(kind: Any) -> None:
    given: dict[str, Any] = {"feature_range": (0.0, 4.0), "feature_weights": None}
    model = stream(make(kind, **given), [5])
    assert model.warm_up_left_ == 0
    compiled = model._model
    stream(model, [N], start=5)
    assert model._model is compiled
    assert stream(make(kind, **given | {"feature_range": None}), [5]).warm_up_left_ == N - 5


def test_the_discount_is_chosen_again() -> None:
    rows = np.random.default_rng(0).uniform(size=(N, 4))
    labels = (rows[:, 0] > 0.5).astype(int)
    given: dict[str, Any] = {"feature_range": (0.0, 1.0), "feature_weights": None}
    model = make(MondrianForestClassifier, discount="loo", **given)
    first = model.partial_fit(rows[:20], labels[:20]).discount_
    chosen = model.partial_fit(rows[20:], labels[20:]).discount_
    assert chosen == clone(model).fit(rows, labels).discount_ != first


# -- whatever happens meanwhile -------------------------------------------------------------------


@both
def test_forgotten_rows_leave_no_trace(kind: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind), [60])
    model.forget(range(20))
    stream(model, [100], start=60)
    assert model.warm_up_left_ == 0
    ids = np.arange(20, 160)
    assert model.digest() == make(kind).fit(X[ids], y[ids], ids=ids).digest()
    # The numbers of rows go on.
    np.testing.assert_array_equal(model.ids_, ids)


@both
def test_a_forest_that_forgot_all_its_rows_goes_on(kind: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind), [60])
    model.forget(model.ids_)
    assert model.warm_up_left_ == 100
    stream(model, [100], start=60)
    assert model.digest() == make(kind).fit(X[60:160], y[60:160]).digest()


@both
def test_a_window_shorter_than_the_warm_up(kind: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind, window_size=50), [40] * 4)
    assert (model.n_rows_, model.warm_up_left_) == (50, 0)
    last = slice(N - 50, N)
    assert model.digest() == make(kind).fit(X[last], y[last]).digest()


@pytest.mark.slow
@both
@pytest.mark.parametrize("n_first", [30, 100])
def test_copies_and_files_go_on_alike(kind: Any, n_first: int, tmp_path: Path) -> None:
    half = stream(make(kind), [n_first, 10])
    left = N - n_first - 10
    whole = stream(half.copy(), [left], start=n_first + 10)
    for name, twin in copies(half, tmp_path).items():
        assert twin.warm_up_left_ == half.warm_up_left_ == left, name
        assert twin.digest() == half.digest(), name
        assert twin.get_params()["warm_up"] == N
        if name in ("deepcopy", "pickle", "load"):  # the others are like one of these
            assert stream(twin, [left], start=n_first + 10).digest() == whole.digest(), name
    # Neither is a file's model changed by what its copies did.
    assert half.warm_up_left_ == left


@both
def test_a_clone_starts_anew(kind: Any) -> None:
    model = stream(make(kind), [N])
    twin = stream(clone(model), [10])
    assert twin.warm_up_left_ == N - 10


@both
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_a_new_fit_ends_the_warm_up_and_forgets_it(kind: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind), [30])
    assert model.fit(X[:20], y[:20]).warm_up_left_ == 0
    before = learned(model)
    np.testing.assert_array_equal(learned(stream(model, [2 * N - 20], start=20)), before)


@both
def test_the_length_can_change_on_the_way(kind: Any) -> None:
    model = stream(make(kind), [30])
    model.set_params(warm_up=40)
    assert model.warm_up_left_ == 10
    stream(model, [10], start=30)
    assert model.warm_up_left_ == 0
    y = target_of(kind)
    assert model.digest() == make(kind).fit(X[:40], y[:40]).digest()
    model.set_params(warm_up=1000)
    assert stream(model, [10], start=40).warm_up_left_ == 0


@both
@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (2.5, TypeError), (None, TypeError), (True, TypeError)]
)
def test_a_bad_length_is_refused(kind: Any, value: Any, error: Any) -> None:
    with pytest.raises(error, match="warm_up"):
        stream(make(kind, warm_up=value), [5])


@both
def test_refused_rows_change_nothing(kind: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind), [30])
    before = model.digest()
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((100, 4), np.inf), y[:100])
    with pytest.raises(ValueError, match="5"):
        model.partial_fit(X[30:130], y[30:130], ids=[5, *range(200, 299)])
    assert (model.digest(), model.warm_up_left_) == (before, N - 30)


@pytest.mark.slow
@both
def test_an_interrupted_learning_loses_no_row(kind: Any, monkeypatch: Any) -> None:
    y = target_of(kind)
    model = stream(make(kind), [100])

    def interrupted(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_learn_rates", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[100:200], y[100:200])
    assert model.n_rows_ == 200
    # The next call catches up.
    model.partial_fit(X[200:210], y[200:210])
    assert model.digest() == make(kind).fit(X[:210], y[:210]).digest()


@both
def test_notes_in_a_file_survive(kind: Any, tmp_path: Path) -> None:
    model = stream(make(kind), [30])
    model._save_annotated(tmp_path / "model", {"notes": "kept"})
    loaded = stream(kind.load(tmp_path / "model"), [N], start=30)
    assert loaded.warm_up_left_ == 0
    assert loaded._annotations()["notes"] == "kept"


# -- merging --------------------------------------------------------------------------------------


def part(kind: Any, rows: slice, **params: Any) -> Any:
    y = target_of(kind)
    ids = np.arange(2 * N)[rows]
    return make(kind, **params).partial_fit(X[rows], y[rows], ids=ids)


@pytest.mark.slow
@both
def test_two_forests_in_their_warm_up_learn_from_the_rows_of_both(kind: Any) -> None:
    y = target_of(kind)
    one, other = part(kind, slice(0, 30)), part(kind, slice(30, 100))
    before = other.digest()
    both_ways = one + other, other + one
    for total in both_ways:
        assert total.warm_up_left_ == N - 100
        assert total.digest() == make(kind).fit(X[:100], y[:100]).digest()
    assert (other.digest(), other.warm_up_left_) == (before, N - 70)
    assert (one.n_rows_, one.warm_up_left_) == (30, N - 30)
    # Together they may have had enough rows.
    assert (part(kind, slice(0, 90)) + part(kind, slice(90, 200))).warm_up_left_ == 0


@both
def test_a_forest_in_its_warm_up_takes_over_what_is_final(kind: Any) -> None:
    final, young = part(kind, slice(0, N)), part(kind, slice(N, N + 30))
    totals = final + young, young + final
    for total in totals:
        assert total.warm_up_left_ == 0
        np.testing.assert_array_equal(learned(total), learned(final))
        np.testing.assert_array_equal(total.feature_importances_, final.feature_importances_)
    assert totals[0].digest() == totals[1].digest()
    assert totals[0].digest() == stream(final.copy(), [30], start=N).digest()
    assert young.warm_up_left_ == N - 30


@both
def test_merges_in_the_warm_up_that_are_refused_change_nothing(kind: Any) -> None:
    model = part(kind, slice(0, 30))
    before = model.digest()
    for other, message in (
        (part(kind, slice(20, 50)), "20"),
        (part(kind, slice(30, 50), feature_range=(0.0, 4.0)), "feature_range"),
        (part(kind, slice(30, 50), feature_weights=None), "feature_weights"),
        (part(kind, slice(30, 50), random_state=1), "seed"),
        (part(kind, slice(30, 50), n_estimators=3), "trees"),
    ):
        with pytest.raises(ValueError, match=message):
            model.merge(other)
        assert (model.digest(), model.warm_up_left_) == (before, N - 30)


@both
def test_an_empty_forest_in_its_warm_up_can_be_merged(kind: Any) -> None:
    model, empty = part(kind, slice(0, 30)), part(kind, slice(30, 50)).forget(range(30, 50))
    y = target_of(kind)
    fitted = make(kind).fit(X[:30], y[:30])
    assert (model + empty).digest() == (empty + model).digest() == fitted.digest()
    assert (empty.copy().merge(part(kind, slice(50, 60)).forget(range(50, 60)))).n_rows_ == 0


# -- as a stranger meets it -----------------------------------------------------------------------


@both
def test_first_rows_that_are_all_equal(kind: Any) -> None:
    model = make(kind)
    for _ in range(20):
        model.partial_fit(X[:1], target_of(kind)[:1])
    assert np.isfinite(predict(model, X)).all()
    stream(model, [N], start=20)
    assert (model.feature_range_[1] > model.feature_range_[0]).all()


def test_first_rows_of_one_class() -> None:
    model = stream(make(MondrianForestClassifier), [1] * 20)
    np.testing.assert_array_equal(model.predict(X), 0)
    y = target_of(MondrianForestClassifier)
    assert stream(model, [N], start=20).score(X, y) > 0.9
    declared = make(MondrianForestClassifier).partial_fit(X[:5], y[:5], classes=[0, 1, 7])
    np.testing.assert_array_equal(stream(declared, [N], start=5).classes_, [0, 1, 7])


@both
def test_one_row_a_call_learns_a_few_times_only(kind: Any, monkeypatch: Any) -> None:
    counts = []
    learn = kind._learn_rates
    monkeypatch.setattr(
        kind, "_learn_rates", lambda *args, **options: counts.append(1) or learn(*args, **options)
    )
    stream(make(kind), [1] * (N + 20))
    assert len(counts) == 9  # after 1, 2, 4, ..., 128 and 160 rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [MondrianForestClassifier, MondrianForestRegressor],
)
def test_few_first_rows_that_lack_most_of_what_comes(kind: Any) -> None:
    """Indicators that are constant in the first rows, and ranges that are too narrow."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 12, size=700)
    rows = np.hstack([np.eye(12)[kinds], rng.uniform(size=(700, 3))])
    rows[:10, 12:] *= 0.01
    score = np.where(kinds % 3 == 0, rows[:, 12], rows[:, 13])
    y = score if kind is MondrianForestRegressor else (score > 0.5).astype(int)
    scores = []
    for warm_up in (0, 300):
        model = kind(20, warm_up=warm_up, random_state=0)
        for start, stop in ((0, 10), (10, 20), (20, 400)):
            model.partial_fit(rows[start:stop], y[start:stop])
        scores.append(model.score(rows[400:], y[400:]))
    assert scores[1] > scores[0] + 0.1
    assert scores[1] > 0.9
