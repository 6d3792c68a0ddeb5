"""Hyperparameters that were chosen and are then given: predictions stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from boscage import MondrianForestRegressor, load

# Each with what the forest fits beside the hyperparameters of the hierarchy.
OF_JOINT = {"joint_gamma1", "joint_gamma2", "joint_noise_variance", "joint_share", "tree_spread"}
OF_NOISE = {"noise_rows", "tail_share", "tail_offset", "tail_variance", "core_variance"}
SETTINGS = {
    "default": ({}, OF_JOINT | OF_NOISE),
    "trees": ({"joint_kernel": "trees"}, OF_JOINT | OF_NOISE),
    "global noise": ({"noise": "global"}, OF_JOINT),
    "known noise": ({"noise_variance": 0.01}, OF_JOINT),
    "no prior scale": ({"prior_scale": None}, OF_JOINT | OF_NOISE),
    "wide prior": ({"prior_scale": 3.0}, OF_JOINT | OF_NOISE),
    "marginal likelihood": ({"hyperparameters": "ml"}, set()),
    "heuristic": ({"hyperparameters": "heuristic"}, set()),
    "exact": ({"posterior": "exact"}, OF_NOISE),
    "exact, global noise": ({"posterior": "exact", "noise": "global"}, set()),
    "realised": ({"predictive": "realised"}, OF_JOINT | OF_NOISE),
    "leaves of several rows": ({"min_samples_split": 8}, OF_JOINT | OF_NOISE),
}


@pytest.fixture(scope="module")
def rows():
    """Rows with a trend, noise that varies, and two features that do not matter."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 4))
    y = 3.0 * X[:, 0] + np.sin(9.0 * X[:, 1]) + rng.exponential(0.3 * X[:, 0])
    return X, y


def _forest(**settings):
    return MondrianForestRegressor(8, **{"random_state": 3, "feature_range": (0, 1)} | settings)


def _given(forest, **settings):
    """A forest that is given all that another one has chosen."""
    settings |= {
        "hyperparameters": forest.hyperparameters_,
        "feature_weights": forest.feature_weights_,
        "feature_maps": forest.feature_maps_,
        "trend": forest.trend_,
    }
    settings.pop("noise_variance", None)
    return _forest(**settings)


def _assert_same(one, other, X):
    ours, theirs = one.predict_dist(X), other.predict_dist(X)
    for name in ("offsets", "weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for mine, yours in zip(
        one.predict(X, return_std=True), other.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(mine, yours)


# Among the rows, beside them and far away.
QUERIES = np.vstack([np.random.default_rng(1).uniform(-0.4, 1.4, (40, 4)), np.full((1, 4), 1e6)])


@pytest.mark.parametrize("case", SETTINGS)
def test_what_was_chosen_gives_the_same_predictions(rows, case):
    X, y = rows
    settings, fitted = SETTINGS[case]
    forest = _forest(**settings).fit(X, y)
    chosen = forest.hyperparameters_
    assert set(chosen) & (OF_JOINT | OF_NOISE) == fitted
    if case == "known noise":
        settings = {"noise": "global"}
    given = _given(forest, **settings).fit(X, y)
    _assert_same(forest, given, QUERIES)
    assert given.hyperparameters_ == chosen
    # What all rows predict of some of them.
    ours, theirs = (one.loo_predict_dist([0, 9]) for one in (forest, given))
    np.testing.assert_array_equal(ours.means, theirs.means)


def test_defaults_choose_a_trend_here(rows):
    """Else the cases above would say nothing about its scales."""
    forest = _forest().fit(*rows)
    assert forest.trend_ is not None
    assert {"trend_variance", "trend_scale"} < set(forest.hyperparameters_)


def test_a_grown_forest_keeps_what_it_chose(rows):
    X, y = rows
    stream = _forest().fit(X[:100], y[:100])
    stream.set_params(hyperparameters=stream.hyperparameters_)
    chosen = stream.hyperparameters_
    stream.partial_fit(X[100:], y[100:])
    assert stream.hyperparameters_ == chosen
    once = _given(stream).fit(X, y)
    _assert_same(stream, once, QUERIES)
    assert stream.digest() == once.digest()
    # It differs from what all rows would choose.
    stream.set_params(hyperparameters="loo").partial_fit(X[:1], y[:1])
    assert stream.hyperparameters_ != chosen
    stream.forget(len(X))
    again = _forest(
        feature_weights=stream.feature_weights_,
        feature_maps=stream.feature_maps_,
        trend=stream.trend_,
    ).fit(X, y)
    _assert_same(stream, again, QUERIES)
    assert stream.digest() == again.digest()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", "global"),
        ("noise_variance", 0.02),
        ("prior_scale", 2.0),
        ("joint_kernel", "trees"),
    ],
)
def test_what_trees_do_not_depend_on_may_change(rows, name, value):
    X, y = rows
    forest = _forest().fit(X[:100], y[:100])
    learned = {
        "feature_weights": forest.feature_weights_,
        "feature_maps": forest.feature_maps_,
        "trend": forest.trend_,
    }
    forest.set_params(**{name: value}).partial_fit(X[100:], y[100:])
    once = _forest(**learned, **{name: value}).fit(X, y)
    _assert_same(forest, once, QUERIES)
    assert forest.digest() == once.digest()


def test_kept_hyperparameters_are_saved_and_merged(rows, tmp_path):
    X, y = rows
    forest = _forest().fit(X[:100], y[:100])
    forest.set_params(hyperparameters=forest.hyperparameters_).partial_fit(X[100:120], y[100:120])
    forest.save(tmp_path / "kept.boscage")
    loaded = load(tmp_path / "kept.boscage")
    _assert_same(forest, loaded, QUERIES)
    assert loaded.hyperparameters == forest.hyperparameters_
    loaded.partial_fit(X[120:130], y[120:130])
    forest.partial_fit(X[120:130], y[120:130])
    _assert_same(forest, loaded, QUERIES)
    assert forest.digest() == loaded.digest()
    shard = _given(forest).fit(X[130:], y[130:], ids=np.arange(130, 150))
    merged = forest + shard
    _assert_same(merged, _given(forest).fit(X, y), QUERIES)


def test_kept_during_the_warm_up_they_stay(rows):
    X, y = rows
    forest = _forest(warm_up=120)
    forest.partial_fit(X[:60], y[:60])
    chosen = forest.hyperparameters_
    forest.set_params(hyperparameters=chosen)
    forest.partial_fit(X[60:], y[60:])
    assert forest.warm_up_left_ == 0
    assert forest.hyperparameters_ == chosen


@pytest.mark.parametrize(
    ("settings", "extra", "message"),
    [
        ({"posterior": "exact"}, {"joint_share": 1.0}, "posterior='joint' alone uses"),
        ({"noise": "global"}, {"noise_rows": 5.0}, "noise='local' alone uses"),
        ({}, {"joint_share": 1.0}, "joint_gamma1"),
        ({}, {"tail_share": 0.1}, "tail_offset"),
        ({}, {"noise_rows": -1.0}, "noise_rows"),
        ({}, {"gama1": 1.0}, "unknown: \\['gama1'\\]"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(rows, settings, extra, message):
    needed = {"mu": 0.0, "gamma1": 1.0, "gamma2": 1.0, "noise_variance": 0.1}
    forest = _forest(hyperparameters=needed | extra, feature_weights=None, **settings)
    with pytest.raises(ValueError, match=message):
        forest.fit(*rows)


def test_a_refused_change_changes_nothing(rows):
    X, y = rows
    forest = _forest().fit(X, y)
    before = forest.digest()
    forest.set_params(hyperparameters=forest.hyperparameters_ | {"gamma2": -1.0})
    with pytest.raises(ValueError, match="gamma2"):
        forest.partial_fit(X[:1], y[:1])
    forest.set_params(hyperparameters="loo")
    assert forest.digest() == before
