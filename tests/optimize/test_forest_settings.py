"""The forest whose settings an optimizer takes."""

from fractions import Fraction

import numpy as np
import pytest

from boscage import MondrianForestRegressor
from boscage.optimize import Categorical, Integer, MondrianOptimizer, Real, Space

SPACE = {"x": Real(0, 1), "kind": Categorical(np.array([1, 2]))}


def test_a_forest_must_be_one():
    with pytest.raises(TypeError, match="forest must be a MondrianForestRegressor"):
        MondrianOptimizer(SPACE, forest=Space(SPACE))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"posterior": "slow"}, "posterior"),
        ({"posterior": "fast", "hyperparameters": "ml"}, "does not use hyperparameters"),
        ({"trend": [0], "posterior": "exact"}, "needs posterior='joint'"),
        ({"trend": ["x"]}, "trend holds names .*, but X has no names"),
        ({"trend": [0, 3]}, "feature that rows of the space, which have 3, do not have"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_evaluated(settings, message):
    with pytest.raises(ValueError, match=message):
        MondrianOptimizer(SPACE, forest=MondrianForestRegressor(**settings))


@pytest.mark.parametrize("trend", ["linear", [0], np.array([0, 1])])
def test_functions_of_trees_know_no_trend(trend):
    with pytest.raises(ValueError, match="know no trend"):
        MondrianOptimizer(
            SPACE, forest=MondrianForestRegressor(trend=trend), acquisition="thompson"
        )


@pytest.mark.parametrize(
    "settings",
    [
        {"trend": [0], "hyperparameters": "ml"},
        {"prior_scale": np.float32(2), "min_samples_split": np.int64(4), "trend": None},
        {"trend": np.array([0]), "posterior": "joint"},
        {"noise_variance": Fraction(1, 10), "noise": "global", "trend": None},
        # The optimizer's rows are numbers of its own making.
        {"categorical_features": [0], "substitutes": [0.5, 0.5, 0.5], "trend": None},
    ],
)
def test_a_resumed_study_has_the_same_forest(settings, tmp_path):
    optimizer = MondrianOptimizer(
        SPACE | {"n": Integer(0, 9)},
        forest=MondrianForestRegressor(np.int64(5), **settings),
        n_initial=3,
        random_state=0,
    )
    for n in range(5):
        trial = {"x": np.float64(0.1 * n), "n": np.int64(n), "kind": np.int64(1 + n % 2)}
        optimizer.tell(trial, float(n))
    optimizer.save(tmp_path / "study.json")
    loaded = MondrianOptimizer.load(tmp_path / "study.json")
    assert loaded.surrogate.trend_ == optimizer.surrogate.trend_
    assert loaded.predict(optimizer.trials[2].params) == optimizer.predict(
        optimizer.trials[2].params
    )
    assert loaded.ask() == optimizer.ask()
