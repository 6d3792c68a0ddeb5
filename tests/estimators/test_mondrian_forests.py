"""Both forests beyond fitting and predicting: lazy updates, parameters, learned rates."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import NotFittedError

from boscage import MondrianForestClassifier, MondrianForestRegressor
from small_forests import X, Y, both, copies, make, predict

# -- pending rows ---------------------------------------------------------------------------------


@both
def test_rows_stay_pending_until_trees_are_read(kind: Any, tmp_path: Path) -> None:
    once = make(kind).fit(X, Y)
    model = make(kind).fit(X[:60], Y[:60])
    model.partial_fit(X[60:70], Y[60:70]).merge(make(kind).fit(X[70:], Y[70:], ids=range(70, 90)))
    assert model.n_rows_ == 90
    assert not model._model.is_flushed
    for name, twin in copies(model, tmp_path).items():
        assert twin.flush() is twin
        assert twin._model.is_flushed, name
        assert twin.digest() == once.digest(), name
    assert not model._model.is_flushed, "a copy is not asked for the trees of the original"
    np.testing.assert_array_equal(predict(model), predict(once))
    assert model._model.is_flushed


@both
def test_pending_rows_are_checked_and_forgotten_at_once(kind: Any) -> None:
    model = make(kind).fit(X[:60], Y[:60]).partial_fit(X[60:80], Y[60:80])
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((1, 3), np.inf), Y[:1])
    with pytest.raises(ValueError, match="75"):
        model.partial_fit(X[80:82], Y[80:82], ids=[100, 75])
    model.forget([75, 3])
    with pytest.raises(KeyError, match="75"):
        model.forget(75)
    rest = np.delete(np.arange(80), [3, 75])
    np.testing.assert_array_equal(model.ids_, rest)
    assert model.digest() == make(kind).fit(X[rest], Y[rest]).digest()


def test_a_far_row_forgotten_before_a_flush_leaves_no_trace() -> None:
    model = make(MondrianForestClassifier, calibration=None).fit(X, Y)
    model.partial_fit(np.full((1, 3), 1e6), [0], ids=[1000]).forget(1000)
    assert model._model.is_flushed, "the trees stay as they are"
    assert model.digest() == make(MondrianForestClassifier, calibration=None).fit(X, Y).digest()


@both
def test_running_out_of_row_ids_is_an_error(kind: Any) -> None:
    model = make(kind).fit(X[:2], Y[:2], ids=np.array([0, 2**64 - 1], dtype=np.uint64))
    with pytest.raises(ValueError, match="ids must be given"):
        model.partial_fit(X[2:4], Y[2:4])
    assert model.n_rows_ == 2
    assert model.partial_fit(X[2:4], Y[2:4], ids=[1, 2]).n_rows_ == 4


@pytest.mark.slow
def test_the_gil_is_released_while_another_thread_flushes() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(10_000, 4)), rng.integers(0, 3, size=10_000)
    model = make(MondrianForestClassifier, n_estimators=100).fit(x[:100], y[:100])
    model.partial_fit(x[100:], y[100:])
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(ask) for ask in (model.flush, lambda: model.predict(x[:1]), model.copy)
        ]
        gaps, last = [0.0], time.perf_counter()
        while not all(each.done() for each in asked):
            time.sleep(0.005)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
    # the calls take a second or more, and would block the interpreter if one of them held it
    assert max(gaps) < 0.5 * sum(gaps)


@pytest.mark.slow
@both
def test_threads_can_predict_at_the_same_time(kind: Any) -> None:
    once = predict(make(kind, n_jobs=2).fit(X, Y))
    for _ in range(5):
        model = make(kind, n_jobs=2).fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(predict, [model] * 16))
        for each in found:
            np.testing.assert_array_equal(each, once)


# -- parameters -----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators must be >= 1, found 0"),
        ({"n_estimators": 2.5}, TypeError, "n_estimators must be an integer, found 2.5"),
        ({"n_estimators": True}, TypeError, "n_estimators must be an integer"),
        ({"lifetime": 0.0}, ValueError, "lifetime must be > 0"),
        ({"lifetime": np.nan}, ValueError, "lifetime"),
        ({"lifetime": "long"}, TypeError, "lifetime must be a number"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split must be >= 2"),
        ({"predictive": "mean"}, ValueError, "'averaged', 'realised', found 'mean'"),
        ({"feature_range": 1.0}, ValueError, r"a pair \(low, high\)"),
        ({"feature_range": (0.0, [1.0, 1.0])}, ValueError, r"each of the 3 features"),
        ({"feature_range": (0.0, [1.0, -1.0, 1.0])}, ValueError, r"-1\.0 for feature 1"),
        ({"feature_range": (0.0, np.inf)}, ValueError, "finite"),
        ({"feature_range": ("a", "b")}, ValueError, "numeric"),
        ({"feature_weights": "learnt"}, ValueError, "'learned'"),
        ({"feature_weights": [1.0]}, ValueError, r"shape \(1,\)"),
        ({"feature_weights": [1.0, -1.0, 0.0]}, ValueError, r"-1\.0 for feature 1"),
        ({"feature_weights": [0.0, 0.0, 0.0]}, ValueError, "all zero"),
        ({"feature_weights": [1.0, np.nan, 0.0]}, ValueError, "finite"),
        ({"window_size": 0}, ValueError, "window_size must be >= 1"),
        ({"window_size": 2.0}, TypeError, "window_size must be an integer"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"random_state": "seed"}, TypeError, "random_state"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_bad_parameters_are_refused_at_fit(
    kind: Any, params: Any, error: Any, message: str
) -> None:
    model = make(kind, **params)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(error, match=message):
            learn(X, Y)
        assert not hasattr(model, "n_features_in_")
        with pytest.raises(NotFittedError):
            model.predict(X)


@both
def test_random_state_is_what_it_is_in_scikit_learn(kind: Any) -> None:
    fits = [make(kind, random_state=seed).fit(X, Y).digest() for seed in (1, 1, np.int32(1), 2)]
    assert fits[0] == fits[1] == fits[2] != fits[3]
    assert len({make(kind, random_state=None).fit(X, Y).digest() for _ in range(2)}) == 2
    states = [make(kind, random_state=np.random.RandomState(5)).fit(X, Y) for _ in range(2)]
    assert states[0].digest() == states[1].digest()
    states[0].fit(X, Y)
    assert states[0].digest() != states[1].digest()  # the generator has moved on
    assert make(kind, random_state=np.random.default_rng(5)).fit(X, Y).n_rows_ == 90
    big = make(kind, random_state=2**64 - 1).fit(X, Y)
    assert big.digest() != fits[0]


@both
def test_feature_range_and_feature_weights_are_used_as_given(kind: Any) -> None:
    model = make(kind, feature_range=None).fit(X, Y)
    np.testing.assert_array_equal(model.feature_range_[0], X.min(axis=0))
    np.testing.assert_array_equal(model.feature_range_[1], X.max(axis=0))
    np.testing.assert_array_equal(model.feature_weights_, np.ones(3))
    given = make(kind, feature_range=(X.min(axis=0), X.max(axis=0))).fit(X, Y)
    assert given.digest() == model.digest()
    scalars = make(kind, feature_range=(-1, [1, 2, 3])).fit(X, Y)
    np.testing.assert_array_equal(scalars.feature_range_, [[-1, -1, -1], [1, 2, 3]])
    off = make(kind, feature_weights=[1.0, 0.0, 2.0]).fit(X, Y)
    np.testing.assert_array_equal(off.feature_weights_, [1.0, 0.0, 2.0])
    for tree in off.trees_:
        assert not (tree.feature == 1).any()
    assert off.feature_importances_[1] == 0.0


@both
def test_the_first_call_of_partial_fit_fixes_the_ranges(kind: Any) -> None:
    model = make(kind, feature_range=None).partial_fit(X[:50], Y[:50])
    low, high = model.feature_range_
    model.partial_fit(X[50:] * 3.0, Y[50:])
    np.testing.assert_array_equal(model.feature_range_, (low, high))
    np.testing.assert_array_equal(low, X[:50].min(axis=0))


@both
def test_parameters_of_trees_cannot_change_between_updates(kind: Any) -> None:
    model = make(kind).fit(X[:50], Y[:50])
    before = model.digest()
    for change in (
        {"n_estimators": 6},
        {"lifetime": 3.0},
        {"min_samples_split": 5},
        {"feature_range": None},
        {"feature_range": (0.0, [1.0, 1.0, 2.0])},
        {"feature_weights": "learned"},
    ):
        old = {name: model.get_params()[name] for name in change}
        model.set_params(**change)
        with pytest.raises(ValueError, match=f"{next(iter(change))} was .* call fit"):
            model.partial_fit(X[50:], Y[50:])
        model.set_params(**old)
        assert model.digest() == before
    # The same value in another guise is no change.
    model.set_params(feature_range=[np.zeros(3), np.ones(3)], n_jobs=2, verbose=1)
    model.set_params(feature_range=(0.0, 1.0)).partial_fit(X[50:], Y[50:])
    assert model.digest() == make(kind).fit(X, Y).digest()


@both
def test_predictive_can_change_between_updates(kind: Any) -> None:
    model = make(kind).fit(X[:50], Y[:50])
    model.set_params(predictive="realised").partial_fit(X[50:], Y[50:])
    assert model.digest() == make(kind, predictive="realised").fit(X, Y).digest()


@both
def test_a_new_fit_starts_afresh(kind: Any) -> None:
    model = make(kind, feature_weights="learned", feature_range=None).fit(X, Y)
    assert model.feature_importances_.shape == (3,)
    model.set_params(feature_weights=None).fit(X[:, :2], Y)
    assert model.n_features_in_ == 2
    assert model.feature_importances_.shape == (2,)


@both
def test_threads_change_nothing(kind: Any) -> None:
    digests = {make(kind, n_jobs=n).fit(X, Y).digest() for n in (None, 1, 2, -1)}
    with parallel_config(n_jobs=2):
        digests.add(make(kind).fit(X, Y).digest())
    assert len(digests) == 1


# -- learned rates --------------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_learned_weights_find_the_feature_that_matters(kind: Any) -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(size=(250, 12))
    target = (rows[:, 4] > 0.5).astype(int)
    model = make(kind, n_estimators=10, feature_weights="learned").fit(rows, target)
    weights, importances = model.feature_weights_, model.feature_importances_
    np.testing.assert_allclose(weights.sum(), 12.0)
    np.testing.assert_allclose(importances.sum(), 1.0)
    assert importances.argmax() == weights.argmax() == 4
    assert weights[4] > 3.0
    plain = make(kind, n_estimators=10).fit(rows, target)
    test = rng.uniform(size=(400, 12))
    truth = (test[:, 4] > 0.5).astype(int)
    assert model.score(test, truth) > plain.score(test, truth)
    # Frozen: more rows do not move them.
    model.partial_fit(test, truth)
    np.testing.assert_array_equal(model.feature_weights_, weights)
    # The same weights and maps given by hand grow the same trees.
    by_hand = make(
        kind, n_estimators=10, feature_weights=weights, feature_maps=model.feature_maps_
    ).fit(rows, target)
    assert by_hand.partial_fit(test, truth).digest() == model.digest()


@both
@pytest.mark.filterwarnings("ignore:y has no other value than:UserWarning")
def test_learned_weights_of_data_without_information_are_equal(kind: Any) -> None:
    model = make(kind, feature_weights="learned").fit(np.ones((5, 3)), np.ones(5, dtype=int))
    np.testing.assert_allclose(model.feature_weights_, np.ones(3))
    model = make(kind, feature_weights="learned").fit(X[:1], Y[:1])
    np.testing.assert_allclose(model.feature_weights_, np.ones(3))


# -- maps -----------------------------------------------------------------------------------------

BENT = [([0.0, 0.1, 1.0], [0.0, 0.8, 1.0]), ([], []), ([0.0, 0.5, 1.0], [0.0, 0.6, 1.0])]


@both
def test_maps_move_the_cuts(kind: Any) -> None:
    rows = np.random.default_rng(6).uniform(size=(200, 1))
    target = np.arange(200) % 2
    shares = []
    for maps in ([BENT[0]], None):
        model = make(kind, n_estimators=50, feature_maps=maps).fit(rows, target)
        roots = [tree.threshold[0] for tree in model.trees_]
        shares.append(np.mean(np.array(roots) < 0.1))
    assert shares[0] > 0.7 > 0.2 > shares[1]


@both
def test_maps_are_kept_in_copies_and_files(kind: Any, tmp_path: Path) -> None:
    model = make(kind, feature_maps=BENT).fit(X, Y)
    for name, twin in copies(model, tmp_path).items():
        assert twin.digest() == model.digest(), name
        np.testing.assert_array_equal(predict(twin), predict(model), name)
        for (knots, shares), bent in zip(twin.feature_maps_, BENT, strict=True):
            np.testing.assert_array_equal(knots, bent[0], name)
            np.testing.assert_array_equal(shares, bent[1], name)
        # A parameter, too: the next fit takes the same maps.
        assert twin.fit(X, Y).digest() == model.digest(), name
    assert model.digest() != make(kind).fit(X, Y).digest()


@both
def test_forests_with_maps_are_functions_of_their_rows(kind: Any) -> None:
    whole = make(kind, feature_maps=BENT).fit(X, Y)
    one = make(kind, feature_maps=BENT).fit(X[:60], Y[:60])
    one.partial_fit(X[:20] + 0.1, Y[:20], ids=range(100, 120)).forget(range(100, 120))
    other = make(kind, feature_maps=BENT).partial_fit(X[60:], Y[60:], ids=range(60, 90))
    assert one.merge(other).digest() == whole.digest()
    np.testing.assert_array_equal(predict(one), predict(whole))
    with pytest.raises(ValueError, match="feature maps are equal"):
        make(kind).fit(X[:60], Y[:60]).merge(other)
    with pytest.raises(ValueError, match=r"feature_maps was .* call fit"):
        whole.set_params(feature_maps=None).partial_fit(X[:1], Y[:1])


@both
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"feature_weights": "learned", "feature_maps": [([], [])] * 3}, "which learns maps"),
        ({"feature_maps": 3}, "a pair"),
        ({"feature_maps": [([], [])]}, "each of the 3 features"),
        ({"feature_maps": [([0.0, 1.0], [0.0, 0.5])] * 3}, "shares from 0 to 1"),
        ({"feature_maps": [([0.0, 0.5], [0.0, 1.0])] * 3}, "feature_maps"),
    ],
)
def test_bad_feature_maps_are_refused(kind: Any, params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(kind, **params).fit(X, Y)


# -- trees ----------------------------------------------------------------------------------------


@both
def test_trees_are_objects_with_arrays(kind: Any) -> None:
    model = make(kind).fit(X, Y)
    trees = model.trees_
    assert len(trees) == 5
    for tree in trees:
        assert tree.lower.shape == tree.upper.shape == (tree.n_nodes, 3)
        assert tree.n_rows[0] == 90
        assert tree.n_leaves == (tree.n_nodes + 1) // 2
        assert tree.depth[0] == 0
        assert (tree.depth[1:] == tree.depth[tree.parent[1:]] + 1).all()
        np.testing.assert_array_equal(
            np.bincount(tree.apply(X), minlength=tree.n_nodes)[tree.is_leaf],
            tree.n_rows[tree.is_leaf],
        )
        assert repr(tree) == f"MondrianTree(n_nodes={tree.n_nodes}, n_rows=90)"
        if kind is MondrianForestClassifier:
            assert tree.counts.shape == (tree.n_nodes, 2)
            assert tree.mean is tree.variance is None
        else:
            assert tree.counts is None
            assert (tree.variance > 0).all()


# -- progress -------------------------------------------------------------------------------------


@both
def test_nothing_is_printed_away_from_a_terminal(kind: Any, capfd: Any) -> None:
    model = make(kind, verbose=1).fit(X, Y).partial_fit(X, Y)
    model.predict(X)
    assert capfd.readouterr() == ("", "")


@both
def test_progress_shows_on_a_terminal(kind: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    make(kind, verbose=1).fit(X, Y)
    assert "growing" in capsys.readouterr().err
    make(kind).fit(X, Y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
def test_predictions_are_finite_where_the_branch_rate_overflows(kind: Any) -> None:
    """The branch rate overflows."""
    x = np.linspace(1.0, 2.0, 20)[:, None] * 1e-200
    y = np.arange(20) % 2
    model = kind(5, random_state=0).fit(x, y)
    far = np.array([[1e120], [-1e120]])
    assert np.isfinite(model.predict(far)).all()
    if kind is MondrianForestClassifier:
        np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)
    else:
        assert (model.predict(far, return_std=True)[1] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MondrianForestClassifier, MondrianForestRegressor])
@pytest.mark.parametrize("weights", [None, "learned"])
def test_narrow_ranges_are_ranges(kind: Any, weights: Any) -> None:
    """A rate per unit of the feature would overflow."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, (60, 3))
    y = (x[:, 0] > 500).astype(int)
    for scale in (1e-300, 1e-309, 5e-324):
        model = kind(5, feature_weights=weights, random_state=0).fit(x * scale, y)
        assert model.score(x * scale, y) > 0.9
        again = kind(5, feature_weights=weights, random_state=0).fit(x[::-1] * scale, y[::-1])
        assert model.digest() == again.digest()


def test_predictions_are_finite_where_the_branch_time_overflows() -> None:
    """The rate is so small that the time of the branch overflows."""
    y = np.array([100 + 1e-10, 100 - 1e-10, 100, 100 + 2e-10])
    for rule in ("loo", "ml", "heuristic"):
        model = MondrianForestRegressor(
            2, random_state=0, feature_range=(0.75, 1.25), hyperparameters=rule
        ).fit([[0.0], [0.0], [1.0], [2.0]], y)
        np.testing.assert_allclose(model.predict([[5e-324], [1e-310], [1e-300]]), 100.0)


@pytest.mark.slow
def test_labels_that_are_forgotten_or_refused_leave_no_trace() -> None:
    model = MondrianForestClassifier(
        5, feature_range=(0.0, 1.0), feature_weights=None, random_state=0
    ).fit(X, np.array(["a", "b"])[Y % 2], ids=range(len(X)))
    before = model._model.to_bytes()
    with pytest.raises(ValueError, match="0"):
        model.partial_fit(X[:1], ["refused"], ids=[0])
    assert model._model.to_bytes() == before
    model.partial_fit(X[:1], ["secret"], ids=[1000]).flush()
    model.forget(1000)
    assert b"secret" not in model._model.to_bytes()
    assert list(model.classes_) == ["a", "b"]
    # labels of forgotten rows must not accumulate
    sizes = []
    for i in range(400):
        model.partial_fit(X[:1], [f"label {i}"], ids=[2000 + i]).flush()
        model.forget(2000 + i)
        sizes.append(model._model.nbytes)
    assert max(sizes[200:]) < 1.1 * max(sizes[:200])
    assert (
        model.digest()
        == MondrianForestClassifier(
            5, feature_range=(0.0, 1.0), feature_weights=None, random_state=0
        )
        .fit(X, np.array(["a", "b"])[Y % 2])
        .digest()
    )


@both
def test_a_forgotten_float64_row_does_not_widen_the_file(kind: Any) -> None:
    narrow = X.astype(np.float32)
    model = make(kind).fit(narrow, Y)
    kept = model.copy()
    model.partial_fit([[0.1, 0.2, 0.3]], Y[:1], ids=[100]).flush()
    wide = model._model.to_bytes()
    model.forget(100).flush()
    kept.partial_fit(narrow[:1], Y[:1], ids=[100]).forget(100)
    assert model._model.to_bytes() == kept._model.to_bytes()
    assert len(wide) > len(kept._model.to_bytes()) + 4 * X.size


def test_an_interrupted_change_of_parameters_is_applied_by_the_next_call(monkeypatch: Any) -> None:
    model = MondrianForestClassifier(
        5, predictive="realised", feature_range=(0.0, 1.0), feature_weights=None, random_state=0
    ).fit(X, Y)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    model.set_params(predictive="averaged")
    with monkeypatch.context() as patch:
        patch.setattr(model, "_enforce_window", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[:1], Y[:1])
    adjust = MondrianForestClassifier._apply_changes

    def adjust_and_interrupt(*args: Any) -> None:
        adjust(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MondrianForestClassifier, "_apply_changes", adjust_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[1:2], Y[1:2])
    model.set_params(predictive="realised").partial_fit(X[2:3], Y[2:3])
    again = MondrianForestClassifier(
        5, predictive="realised", feature_range=(0.0, 1.0), feature_weights=None, random_state=0
    )
    assert model.digest() == again.fit(np.r_[X, X[:3]], np.r_[Y, Y[:3]]).digest()
