"""Inputs that are allowed, but hardly meant: warnings say so, and name the user's line."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from boscage import (
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    load,
)

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"good": RNG.normal(size=60).round(6), "junk": RNG.normal(size=60)})
Y = 3.0 * TABLE["good"] + 0.1 * TABLE["junk"]

SMALL = [
    MondrianForestRegressor(3, random_state=0),
    BayesianTreeRegressor(random_state=0),
    BARTRegressor(3, n_burn=5, n_draws=5, n_chains=1, random_state=0),
]


@pytest.mark.parametrize("model", SMALL, ids=lambda model: type(model).__name__)
def test_numbers_in_text_are_doubted(model):
    text = TABLE.assign(good=TABLE["good"].astype(str))
    message = "column 'good' is taken for categories, 60 different ones in 60 rows"
    with pytest.warns(UserWarning, match=message) as told:
        model.fit(text, Y)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(TABLE, Y)
        # They are meant so, or few differ.
        model.set_params(categorical_features=["good"]).fit(text, Y)
        model.set_params(categorical_features="from_dtype")
        model.fit(text.assign(good=text["good"].astype("category")), Y)
        model.fit(text.assign(good=np.where(TABLE["good"] > 0, "high", "low")), Y)


@pytest.mark.parametrize(
    "kind", [MondrianForestClassifier, MondrianForestRegressor, BayesianTreeClassifier]
)
def test_weights_that_sum_to_one_are_doubted(kind):
    model, weights = kind(random_state=0), np.full(len(Y), 1 / len(Y))
    y = (Y > 0).astype(int) if "Classifier" in kind.__name__ else Y
    with pytest.warns(UserWarning, match=r"sample_weight sums to 1 over 60 rows") as told:
        model.fit(TABLE, y, sample_weight=weights)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(TABLE, y, sample_weight=len(Y) * weights)
        # So few rows may be the last ones of a stream.
        model.fit(TABLE[:5], y[:5], sample_weight=weights[:5])


def test_equal_targets_are_doubted():
    with pytest.warns(UserWarning, match=r"y has no other value than 5.0.*noise_variance") as told:
        MondrianForestRegressor(3, random_state=0).fit(TABLE, np.full(60, 5.0))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest = MondrianForestRegressor(3, noise_variance=0.1, random_state=0)
        forest.fit(TABLE, np.full(60, 5.0))


def test_series_go_by_the_names_of_the_features():
    weights = pd.Series({"junk": 0.0, "good": 2.0})
    low, high = TABLE[["junk", "good"]].min(), TABLE.max()
    forest = MondrianForestRegressor(3, feature_weights=weights, feature_range=(low, high))
    forest.fit(TABLE, Y)
    assert list(forest.feature_weights_) == [2.0, 0.0]
    np.testing.assert_array_equal(forest.feature_range_[0], TABLE.min())
    np.testing.assert_array_equal(forest.feature_range_[1], TABLE.max())
    # In an array there are no names, and in a default index no other names.
    forest.set_params(feature_range=None).fit(TABLE.to_numpy(), Y)
    assert list(forest.feature_weights_) == [0.0, 2.0]
    forest.set_params(feature_weights=pd.Series([0.5, 1.0])).fit(TABLE, Y)
    assert list(forest.feature_weights_) == [0.5, 1.0]


@pytest.mark.parametrize("index", [["good", "other"], ["good", "good"], ["good"], [1, 2]])
def test_series_of_other_names_are_refused(index):
    weights = pd.Series(np.ones(len(index)), index)
    with pytest.raises(ValueError, match="feature_weights is a series whose index is not"):
        MondrianForestRegressor(3, feature_weights=weights).fit(TABLE, Y)


def test_labels_in_an_array_of_objects_are_scored():
    labels = np.array([0, 1] * 30, dtype=object)
    forest = MondrianForestClassifier(3, random_state=0).fit(TABLE, labels)
    assert forest.score(TABLE, labels) == forest.score(TABLE, labels.astype(int))
    text = np.array(["a", "b"] * 30, dtype=object)
    assert 0.0 <= forest.fit(TABLE, text).score(TABLE, text) <= 1.0


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "damaged.boscage"
    path.write_bytes(b"damaged")
    for given in (path, str(path)):
        with pytest.raises(ValueError, match=r"damaged\.boscage: not a valid boscage model"):
            load(given)
