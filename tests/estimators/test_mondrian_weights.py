"""Rows with weights in Mondrian forests: a row of weight w counts as w rows, and keeps it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from small_forests import both, copies, make, predict
from weights import impossible

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(90, 3))
Y = (3 * X[:, 0] + 0.5 * RNG.normal(size=90)).clip(0, 2).astype(int)
WEIGHTS = RNG.gamma(0.7, size=90) + 0.01
WHOLE = RNG.integers(1, 5, size=90)
AT = RNG.uniform(-0.5, 1.5, size=(50, 3))
EQUAL: dict[str, Any] = {"calibration": None}
"""Settings under which a row of a whole weight is as many rows, to the bit."""


def classifier(**params: Any) -> Any:
    return make(MondrianForestClassifier, **params)


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(predict(one, AT), predict(other, AT))
    assert one.digest() == other.digest()


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
@pytest.mark.parametrize("settings", [{}, {"min_samples_split": 6}, {"lifetime": 2.0}])
def test_whole_weights_are_repeated_rows(predictive: Any, settings: Any) -> None:
    once = classifier(predictive=predictive, **EQUAL, **settings).fit(X[:60], Y[:60], WHOLE[:60])
    rows, targets = X.repeat(WHOLE, axis=0), Y.repeat(WHOLE)
    ids = np.arange(len(rows))
    which = np.arange(90).repeat(WHOLE)
    often = classifier(predictive=predictive, **EQUAL, **settings)
    often.fit(rows[which < 60], targets[which < 60])
    np.testing.assert_array_equal(predict(once, AT), predict(often, AT))
    once.partial_fit(X[60:], Y[60:], sample_weight=WHOLE[60:])
    often.partial_fit(rows[which >= 60], targets[which >= 60])
    once.forget(np.arange(20, 70))
    often.forget(ids[(which >= 20) & (which < 70)])
    np.testing.assert_array_equal(predict(once, AT), predict(often, AT))
    np.testing.assert_array_equal(once.feature_importances_, often.feature_importances_)
    for one, other in zip(once.trees_, often.trees_, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)
    one, other = once.contributions(AT[:5]), often.contributions(AT[:5])
    np.testing.assert_array_equal(one.values, other.values)


def test_whole_weights_balance_classes_as_repeated_rows() -> None:
    once = classifier(class_weight="balanced", **EQUAL).fit(X, Y, WHOLE)
    often = classifier(class_weight="balanced", **EQUAL).fit(
        X.repeat(WHOLE, axis=0), Y.repeat(WHOLE)
    )
    np.testing.assert_array_equal(predict(once, AT), predict(often, AT))
    once.set_params(class_weight=None)
    assert not np.array_equal(predict(once, AT), predict(often, AT))


@pytest.mark.parametrize("calibration", [None, "loo"])
def test_any_history_is_one_fit(calibration: Any) -> None:
    """Batches, orders, removals, shards and files: the forest is that of its weighted rows."""
    settings = {"calibration": calibration, "min_samples_split": 3}
    one = classifier(**settings).fit(X[:70], Y[:70], WEIGHTS[:70], ids=np.arange(70))
    order = RNG.permutation(90)
    streamed = classifier(**settings, warm_up=0)
    for part in np.array_split(order, 7):
        streamed.partial_fit(X[part], Y[part], [0, 1, 2], WEIGHTS[part], ids=part)
        streamed.predict_proba(AT)
    streamed.forget(np.arange(70, 90))
    shards = [
        classifier(**settings).fit(X[part], Y[part], WEIGHTS[part], ids=part)
        for part in (np.arange(0, 70, 2), np.arange(1, 70, 2))
    ]
    merged = shards[0].merge(shards[1])
    file = io.BytesIO()
    merged.save(file)
    file.seek(0)
    for other in (
        merged,
        boscage.load(file),
        classifier(**settings, n_jobs=2).fit(X[69::-1], Y[69::-1], WEIGHTS[69::-1]),
    ):
        assert_same(other, one)
    np.testing.assert_array_equal(predict(streamed, AT), predict(one, AT))


def test_weights_may_come_late_and_go() -> None:
    """Until a weight other than 1 comes, and once it is gone, all is as without weights."""
    plain = classifier().fit(X[:60], Y[:60])
    model = classifier(warm_up=0).partial_fit(X[:60], Y[:60])
    before = model.digest()
    model.partial_fit(X[60:], Y[60:], sample_weight=WEIGHTS[60:])
    assert_same(model, classifier().fit(X, Y, np.r_[np.ones(60), WEIGHTS[60:]]))
    assert model.digest() != classifier().fit(X, Y).digest()
    model.forget(np.arange(60, 90))
    assert_same(model, plain)
    assert model.digest() == before
    with_ones = classifier().fit(X[:60], Y[:60], np.ones(60))
    assert_same(with_ones, plain)
    files = [io.BytesIO() for _ in range(2)]
    with_ones.save(files[0])
    plain.save(files[1])
    assert files[0].getvalue() == files[1].getvalue()


def test_rows_of_weight_zero_are_as_if_absent() -> None:
    kept = np.arange(90) % 3 > 0
    found = classifier().fit(X, Y, np.where(kept, WEIGHTS, 0.0))
    assert_same(found, classifier().fit(X[kept], Y[kept], WEIGHTS[kept]))
    assert found.ids_.tolist() == list(range(60))
    named = classifier().fit(X, Y, np.where(kept, WEIGHTS, 0.0), ids=np.arange(90))
    assert named.ids_.tolist() == np.flatnonzero(kept).tolist()
    with pytest.raises(KeyError, match="nothing was changed"):
        named.forget([0])
    # A class that only such rows have is unknown.
    only = classifier().fit(X, Y, (Y < 2).astype(float))
    assert only.classes_.tolist() == [0, 1]


def test_a_window_counts_rows_and_not_weights() -> None:
    model = classifier(window_size=40).fit(X, Y, WEIGHTS)
    assert_same(model, classifier().fit(X[50:], Y[50:], WEIGHTS[50:]))
    model.partial_fit(X[:10], Y[:10], sample_weight=WEIGHTS[:10])
    held = np.r_[60:90, 0:10]
    assert_same(model, classifier().fit(X[held], Y[held], WEIGHTS[held]))


def test_a_warm_up_is_a_fit_with_weights() -> None:
    params: dict[str, Any] = {
        "feature_range": None,
        "feature_weights": "learned",
        "n_estimators": 3,
    }
    one = classifier(**params).fit(X, Y, WEIGHTS)
    streamed = classifier(**params, warm_up=90)
    for part in (slice(0, 20), slice(20, 60), slice(60, 90)):
        streamed.partial_fit(X[part], Y[part], sample_weight=WEIGHTS[part])
    assert_same(streamed, one)
    order = RNG.permutation(90)
    assert_same(classifier(**params).fit(X[order], Y[order], WEIGHTS[order]), one)


def test_copies_keep_weights(tmp_path: Any) -> None:
    model = classifier().fit(X, Y, WEIGHTS)
    for name, twin in copies(model, tmp_path).items():
        assert twin.digest() == model.digest(), name
        np.testing.assert_array_equal(predict(twin, AT), predict(model, AT), name)
        twin.partial_fit(AT[:3], Y[:3], sample_weight=[0.5, 2.0, 1e-3])
        assert twin.forget(twin.ids_[-3:]).digest() == model.digest(), name


def test_left_out_rows_leave_with_all_of_their_weight() -> None:
    model = classifier(calibration=None).fit(X, Y, WHOLE)
    found = model.loo_predict_proba()
    for row in range(0, 90, 7):
        without = model.copy().forget(row)
        np.testing.assert_array_equal(found[row], without.predict_proba(X[[row]])[0])


@pytest.mark.filterwarnings("ignore:sample_weight sums to:UserWarning")
def test_small_weights_do_not_stop_splits_and_only_shares_matter() -> None:
    """Weights that sum to one give the trees of rows, and far below 1 the scale is lost."""
    one = classifier(calibration=None, min_samples_split=5).fit(X, Y, WEIGHTS / WEIGHTS.sum() / 100)
    rows = classifier(calibration=None, min_samples_split=5).fit(X, Y)
    for small, whole in zip(one.trees_, rows.trees_, strict=True):
        np.testing.assert_array_equal(small.threshold, whole.threshold)
    smaller = classifier(calibration=None, min_samples_split=5).fit(
        X, Y, WEIGHTS / WEIGHTS.sum() / 1000
    )
    np.testing.assert_allclose(predict(smaller, AT), predict(one, AT), rtol=1e-9)
    assert not np.allclose(predict(rows, AT), predict(one, AT), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("discount", [10.0, "loo"])
def test_what_is_learned_is_learned_for_weighted_rows(discount: Any) -> None:
    """Rows of next to no weight have next to no say."""
    x = RNG.uniform(size=(200, 2))
    y = (x[:, 0] > 0.5).astype(int)
    y[100:] = (x[100:, 1] > 0.5).astype(int)
    for first, weights in ((True, [1.0, 1e-6]), (False, [1e-6, 1.0])):
        model = MondrianForestClassifier(20, random_state=0, discount=discount)
        model.fit(x, y, np.repeat(weights, 100))
        alone = slice(0, 100) if first else slice(100, 200)
        assert model.score(x[alone], y[alone]) > 0.9


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
def test_weights_of_every_size_give_probabilities(posterior: Any) -> None:
    weights = 10.0 ** RNG.integers(-12, 10, size=90)
    model = classifier(posterior=posterior).fit(X, Y, weights)
    proba = model.predict_proba(np.concatenate([X, AT]))
    assert ((proba >= 0.0) & (proba <= 1.0)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    order = RNG.permutation(90)
    assert_same(classifier(posterior=posterior).fit(X[order], Y[order], weights[order]), model)


@both
@pytest.mark.parametrize(("weights", "message"), impossible(90))
def test_impossible_weights_are_refused_before_anything_changes(
    kind: Any, weights: Any, message: str
) -> None:
    model = make(kind).fit(X, Y)
    before = model.digest()
    message = message.replace("at least", "from 1e-12 to 1e9")
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, weights)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y, sample_weight=weights)
    assert model.digest() == before


@pytest.mark.parametrize("weight", [1e-13, 2e9, np.inf])
def test_weights_beyond_the_unit_are_refused(weight: float) -> None:
    weights = np.ones(90)
    weights[4] = weight
    with pytest.raises(ValueError, match=r"infinity|for row 4; expected 0, or from 1e-12 to 1e9"):
        classifier().fit(X, Y, weights)


def test_weights_are_routed() -> None:
    with config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        found = cross_validate(
            pipeline, X, Y, params={"sample_weight": WEIGHTS}, return_estimator=True
        )
        assert all(one[-1]._model.sample_weight() is not None for one in found["estimator"])


N = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=90)
GIVEN = {"mu": 0.5, "gamma1": 2.0, "gamma2": 0.8, "noise_variance": 0.04}
REGRESSIONS: list[dict[str, Any]] = [
    {"posterior": "exact", "hyperparameters": GIVEN, "noise": "global"},
    {"posterior": "exact", "hyperparameters": "heuristic", "noise": "global", "prior_scale": None},
    {"posterior": "exact", "hyperparameters": "ml", "noise": "global"},
    {"posterior": "exact", "hyperparameters": "loo", "noise": "local"},
    {"posterior": "fast"},
    {"posterior": "joint", "hyperparameters": GIVEN, "noise": "global", "trend": None},
    {
        "posterior": "joint",
        "hyperparameters": GIVEN | {"trend_variance": 0.5},
        "noise": "global",
        "trend": "linear",
    },
    {"posterior": "joint", "hyperparameters": "ml", "noise": "global", "trend": "linear"},
    {},
]
"""The first of these know no leaving out of rows, so that a row of weight w is w rows."""


def regressor(**params: Any) -> Any:
    return make(MondrianForestRegressor, **params)


@pytest.mark.parametrize("settings", REGRESSIONS[:3] + REGRESSIONS[4:7])
@pytest.mark.parametrize("more", [{}, {"min_samples_split": 6, "lifetime": 3.0}])
def test_whole_weights_are_repeated_rows_of_regressors(settings: Any, more: Any) -> None:
    """But for rounding, and for what a search and equations that are solved step by step leave."""
    once = regressor(**settings, **more).fit(X, N, WHOLE)
    often = regressor(**settings, **more).fit(X.repeat(WHOLE, axis=0), N.repeat(WHOLE))
    rough = settings.get("hyperparameters") == "ml" or settings["posterior"] == "joint"
    np.testing.assert_allclose(predict(once, AT), predict(often, AT), rtol=2e-4 if rough else 1e-9)
    mine, theirs = once.hyperparameters_, often.hyperparameters_
    for name, value in mine.items():
        assert value == pytest.approx(theirs[name], rel=1e-3 if rough else 1e-9), name


@pytest.mark.parametrize("settings", REGRESSIONS)
def test_any_history_of_a_regressor_is_one_fit(settings: Any) -> None:
    one = regressor(**settings).fit(X[:70], N[:70], WEIGHTS[:70])
    order = RNG.permutation(90)
    streamed = regressor(**settings, warm_up=0)
    for part in np.array_split(order, 4):
        streamed.partial_fit(X[part], N[part], WEIGHTS[part], ids=part)
        streamed.flush()
    streamed.forget(np.arange(70, 90))
    shards = [
        regressor(**settings).fit(X[part], N[part], WEIGHTS[part], ids=part)
        for part in (np.arange(0, 70, 2), np.arange(1, 70, 2))
    ]
    merged = shards[0].merge(shards[1])
    file = io.BytesIO()
    merged.save(file)
    file.seek(0)
    reversed_rows = regressor(**settings).fit(X[69::-1], N[69::-1], WEIGHTS[69::-1])
    for other in (streamed, merged, boscage.load(file, n_jobs=2), reversed_rows):
        assert_same(other, one)
    np.testing.assert_array_equal(merged.loo_predict_dist([3]).mean, one.loo_predict_dist([3]).mean)


@pytest.mark.parametrize("settings", REGRESSIONS)
def test_weights_of_one_are_none_and_late_weights_go(settings: Any) -> None:
    plain = regressor(**settings).fit(X[:60], N[:60])
    assert_same(regressor(**settings).fit(X[:60], N[:60], np.ones(60)), plain)
    model = regressor(**settings, warm_up=0).fit(X[:60], N[:60])
    model.partial_fit(X[60:], N[60:], WEIGHTS[60:])
    assert_same(model, regressor(**settings).fit(X, N, np.r_[np.ones(60), WEIGHTS[60:]]))
    assert_same(model.forget(np.arange(60, 90)), plain)


@pytest.mark.parametrize("settings", REGRESSIONS)
def test_rows_of_next_to_no_weight_have_no_say(settings: Any) -> None:
    y = np.where(np.arange(90) < 60, N, 50.0)
    weights = np.where(np.arange(90) < 60, 1.0, 1e-9)
    found = regressor(**settings).fit(X, y, weights).predict(AT)
    assert np.abs(found).max() < 10.0


@pytest.mark.parametrize("settings", [REGRESSIONS[3], REGRESSIONS[4], {}])
@pytest.mark.filterwarnings("ignore:sample_weight sums to:UserWarning")
def test_weights_of_every_size_give_distributions(settings: Any) -> None:
    for weights in (10.0 ** RNG.integers(-12, 10, size=90), np.full(90, 1e-12), np.full(90, 1e9)):
        model = regressor(**settings).fit(X, N, weights)
        mean, std = model.predict(AT, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()


def test_left_out_rows_of_regressors_leave_with_all_of_their_weight() -> None:
    for settings in (REGRESSIONS[0], REGRESSIONS[5], REGRESSIONS[6]):
        model = regressor(**settings).fit(X, N, WEIGHTS)
        for row in range(0, 90, 30):
            rest = model.copy().forget([row]).predict_dist(X[[row]])
            found = model.loo_predict_dist([row])
            np.testing.assert_allclose(found.means, rest.means, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.variances, rest.variances, rtol=1e-5)


@pytest.mark.parametrize("weight", [1.0, 1e6, 1e9])
def test_pure_targets_of_any_weight_have_whole_distributions(weight: float) -> None:
    """Local noise falls towards 0 where targets are equal, and never reaches it."""
    rng = np.random.default_rng(7)
    rows, test = rng.uniform(size=(100, 3)), rng.uniform(size=(200, 3))
    target = (rows[:, 0] > 0.5) * 1.0
    forest = MondrianForestRegressor(10, random_state=0, feature_weights=None)
    dist = forest.fit(rows, target, np.full(100, weight)).predict_dist(test)
    mean, std = forest.predict(test, return_std=True)
    np.testing.assert_allclose(dist.mean, mean, atol=1e-6)
    # Variances of 1e-18 are differences of far greater numbers, which round.
    np.testing.assert_allclose(dist.std, std, rtol=1e-3)
    assert np.isfinite(dist.quantile(0.9)).all()
