"""Arguments that estimators refuse, with messages that name them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0.0).astype(int)
FORESTS = [MondrianForestClassifier, MondrianForestRegressor]
SAMPLERS = [BayesianTreeClassifier, BayesianTreeRegressor, BARTClassifier, BARTRegressor]
HYPERPARAMETERS = {"mu": 0.0, "gamma1": 1.0, "gamma2": 1.0, "noise_variance": 1.0}


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        ([0, 1, np.nan], "nan"),
        ([0, 1, 0.5], "0.5"),
        ([0, 1, np.inf], "inf"),
        ([0, 1, 2.0**54], "1.8014398509481984e"),
        (np.array([0.0, 0.5], dtype=object), "0.5"),
    ],
    ids=str,
)
def test_declared_classes_are_checked_as_labels_are(classes: Any, shown: str) -> None:
    forest = MondrianForestClassifier(3, feature_weights=None, random_state=0)
    for known in (False, True):
        if known:
            forest.partial_fit(X, Y, classes=[0, 1, 2])
        with pytest.raises(ValueError, match=f"classes holds {shown}.*whole number up to"):
            forest.partial_fit(X, Y, classes=classes)
        assert hasattr(forest, "_model") is known
    with pytest.raises(ValueError, match=r"NaN|infinity|whole number|Unknown label type"):
        forest.fit(X, np.resize(np.asarray(classes, dtype=float), 40))
    whole = MondrianForestClassifier(3, feature_weights=None).partial_fit(X, Y, classes=[0.0, 1.0])
    assert list(whole.classes_) == [0, 1]


@pytest.mark.parametrize("kind", [MondrianForestClassifier, BayesianTreeClassifier])
def test_labels_in_half_precision_are_labels(kind: Any) -> None:
    model = kind(random_state=0).fit(X, Y.astype(np.float16))
    assert model.classes_.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="whole number up to"):
        kind().fit(X, np.where(Y, np.float32(2.0**54), 0.0))


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("warm_up", -1, ValueError, "warm_up must be >= 0, found -1"),
        ("warm_up", 2.5, TypeError, "warm_up must be an integer, found 2.5"),
        ("warm_up", "a", TypeError, "warm_up must be an integer, found 'a'"),
        ("verbose", "loud", TypeError, "verbose must be a boolean or an integer, found 'loud'"),
        ("verbose", 0.5, TypeError, "verbose must be a boolean or an integer, found 0.5"),
    ],
)
def test_forests_check_what_does_not_shape_trees(
    kind: Any, name: str, value: Any, error: type[Exception], message: str
) -> None:
    wrong = kind(3, feature_weights=None, **{name: value})
    for method in ("fit", "partial_fit"):
        with pytest.raises(error, match=message):
            getattr(wrong, method)(X, Y)
        assert not hasattr(wrong, "_model")
    fitted = kind(3, feature_weights=None).fit(X, Y).set_params(**{name: value})
    with pytest.raises(error, match=message):
        fitted.partial_fit(X, Y)
    assert fitted.n_rows_ == 40


@pytest.mark.parametrize("kind", SAMPLERS)
def test_samplers_check_verbose(kind: Any) -> None:
    with pytest.raises(TypeError, match="verbose must be a boolean or an integer, found 'loud'"):
        kind(verbose="loud").fit(X, Y)


def test_verbose_may_be_a_boolean_or_an_integer() -> None:
    for verbose in (True, np.True_, 2, np.int64(1), -1):
        MondrianForestRegressor(2, feature_weights=None, verbose=verbose).fit(X, Y)


@pytest.mark.parametrize("trend", [["a"], [0.5], np.array([True, False]), True, 3, [True], b"x"])
@pytest.mark.parametrize("posterior", ["joint", "exact"])
def test_the_trend_is_a_word_or_a_list_of_numbers(trend: Any, posterior: Any) -> None:
    with pytest.raises(TypeError, match="trend must be 'auto', 'linear', None or a list of"):
        MondrianForestRegressor(3, trend=trend, posterior=posterior).fit(X, Y)


@pytest.mark.parametrize("trend", [[0, 2], (2, 0), {0, 2}, np.array([0, 2]), range(0, 3, 2)])
def test_the_trend_is_any_collection_of_numbers(trend: Any) -> None:
    forest = MondrianForestRegressor(3, trend=trend, feature_weights=None).fit(X, Y)
    assert forest.trend_ == [0, 2]


@pytest.mark.parametrize("kind", [*FORESTS, *SAMPLERS])
def test_weights_of_rows_are_named(kind: Any) -> None:
    with pytest.raises(TypeError, match="sample_weight must hold one weight for each of 40 rows"):
        kind().fit(X, Y, sample_weight=2)
    with pytest.raises(ValueError, match="sample_weight must hold numbers: could not convert"):
        kind().fit(X, Y, sample_weight=["a"] * 40)
    with pytest.raises(ValueError, match="sample_weight must hold numbers: "):
        kind().fit(X, Y, sample_weight=[[1.0], [1.0, 2.0]] * 20)


@pytest.mark.parametrize("value", ["x", None, True, [1.0]])
def test_hyperparameters_are_named(value: Any) -> None:
    given = HYPERPARAMETERS | {"gamma2": value}
    with pytest.raises(TypeError, match=r"hyperparameters\['gamma2'\] must be a number, found"):
        MondrianForestRegressor(3, trend=None, hyperparameters=given).fit(X, Y)


def test_rows_of_distributions_are_named() -> None:
    dist = MondrianForestRegressor(3, feature_weights=None).fit(X, Y).predict_dist(X[:3])
    for first, second in zip(dist.components(-1), dist.components(2), strict=True):
        np.testing.assert_array_equal(first, second)
    for row in (9, 3, -4):
        with pytest.raises(IndexError, match=f"row must be below 3, .*found {row}"):
            dist.components(row)
    with pytest.raises(TypeError, match=r"row must be an integer, found 1.0"):
        dist.components(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [*FORESTS, *SAMPLERS])
def test_lazy_frames_are_to_be_collected(kind: Any) -> None:
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame(X).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"X is a LazyFrame, .*give X.collect\(\)"):
            kind().fit(lazy, Y)


@pytest.mark.parametrize("kind", FORESTS)
def test_what_has_no_rows_in_order_is_refused(kind: Any) -> None:
    fitted = kind(2, feature_weights=None).fit(X, Y)
    for method in (lambda rows: kind().fit(rows, Y), fitted.predict):
        with pytest.raises(TypeError, match=r"X is of type dict; .* pandas.DataFrame\(X\)"):
            method({"a": X[:, 0]})
        for rows in (iter(X), (row for row in X), map(list, X), {1.0, 2.0}):
            with pytest.raises(TypeError, match="expected rows in an array, a list or a table"):
                method(rows)


@pytest.mark.parametrize("kind", FORESTS)
def test_rows_too_far_apart_for_a_range_are_named(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    far = X.copy()
    far[:2, 1] = 1.7e308, -1.7e308
    message = r"^X holds -1.7e\+308 in column {}; expected numbers within \+-4e\+307.{{,60}}column$"
    with pytest.raises(ValueError, match=message.format(1)):
        kind(3).fit(far, Y)
    with pytest.raises(ValueError, match=message.format("'b'")):
        kind(3).partial_fit(pandas.DataFrame(far, columns=["a", "b", "c"]), Y)
    given = kind(3, feature_range=(-1.7e308, 1.7e308))
    with pytest.raises(ValueError, match=r"feature_range must lie within \+-4e\+307, found -1.7e"):
        given.fit(X, Y)
