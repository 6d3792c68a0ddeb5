"""Arguments that estimators refuse, with messages that name them."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("trend", [["a", 0], [0.5], np.array([True, False]), True, 3, [True], b"x"])
@pytest.mark.parametrize("posterior", ["joint", "exact"])
def test_the_trend_is_a_word_or_a_list_of_numbers_or_names(trend: Any, posterior: Any) -> None:
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


@pytest.mark.parametrize("kind", [*FORESTS, *SAMPLERS])
@pytest.mark.parametrize("kept", [np.float64, np.int64])
def test_masked_targets_and_weights_are_refused(kind: Any, kept: Any) -> None:
    mask = np.arange(40) == 17
    for values, given, what in (
        (Y, {"y": np.ma.array(Y.astype(kept), mask=mask)}, "Input y"),
        (Y, {"y": np.ma.array(Y[:, None], mask=mask[:, None])}, "Input y"),
        (Y, {"sample_weight": np.ma.array(np.ones(40, dtype=kept), mask=mask)}, "sample_weight"),
    ):
        with pytest.raises(
            ValueError, match=f"^{what} contains a masked value in row 17; expected"
        ):
            kind().fit(X, **{"y": values, **given})


@pytest.mark.parametrize("kind", FORESTS)
def test_arrays_whose_mask_hides_nothing_are_arrays(kind: Any) -> None:
    plain = kind(2, feature_weights=None, random_state=0).fit(X, Y, sample_weight=1.0 + Y)
    masked = kind(2, feature_weights=None, random_state=0)
    masked.fit(X, np.ma.array(Y, mask=np.zeros(40, dtype=bool)), sample_weight=np.ma.array(1.0 + Y))
    assert masked.digest() == plain.digest()
    with pytest.raises(ValueError, match="masked value in row 1"):
        masked.partial_fit(X[:2], np.ma.array(Y[:2], mask=[False, True]))
    assert masked.n_rows_ == 40


@pytest.mark.parametrize("kind", [MondrianForestClassifier, BayesianTreeClassifier, BARTClassifier])
def test_labels_of_several_types_are_refused_in_any_sequence(kind: Any) -> None:
    for mixed in ([0, "a"] * 20, [0.0, "a"] * 20, [True, "a"] * 20):
        for labels in (mixed, tuple(mixed), np.array(mixed, dtype=object)):
            with pytest.raises(TypeError, match=r"^y mixes labels of types \w+, str; expected"):
                kind().fit(X, labels)
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match="Input y contains NaN in row 39"):
            kind().fit(X, ["a", "b"] * 19 + ["a", missing])


def test_declared_classes_of_several_types_are_refused() -> None:
    forest = MondrianForestClassifier(2, feature_weights=None)
    for classes in ([0, "a"], np.array([0, "a"], dtype=object)):
        with pytest.raises(TypeError, match="classes mixes labels of several types"):
            forest.partial_fit(X, Y, classes=classes)
    words = forest.partial_fit(X, ["a", np.str_("b")] * 20, classes=["a", np.str_("b"), "c"])
    assert words.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([np.nan, 0, 0], "nan for feature 0"),
        ([0, np.float64(-np.inf), 0], "-inf for feature 1"),
        ([0, 0, 5e307], "5e+307 for feature 2"),
        ([0, (1, [(0, np.nan, 0)]), 0], "(1.0, [(0, nan, 0.0)]) for feature 1"),
        ([0, (1, [(0, 1, np.inf)]), 0], "(1.0, [(0, 1.0, inf)]) for feature 1"),
        ([0, (1, [(1, 1, 0)]), 0], "(1.0, [(1, 1.0, 0.0)]) for feature 1"),
        ([0, (1, [(3, 1, 0)]), 0], "(1.0, [(3, 1.0, 0.0)]) for feature 1"),
        ([0, (1, [(-1, 1, 0)]), 0], "(1.0, [(-1, 1.0, 0.0)]) for feature 1"),
    ],
)
@pytest.mark.parametrize("kind", FORESTS)
def test_substitutes_are_named(kind: Any, given: Any, found: str) -> None:
    expected = (
        "substitutes must be numbers within +-4e+307, with terms of other features (0 to 2) if "
        f"any, found {found}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        kind(2, feature_weights=None, substitutes=given).fit(X, Y)


@pytest.mark.parametrize("kind", FORESTS)
def test_the_greatest_weights_of_features_are_named(kind: Any) -> None:
    message = r"^feature_weights must be at most 1e\+100, found 1e\+300 for feature 2$"
    with pytest.raises(ValueError, match=message):
        kind(2, feature_weights=[1e-300, 1, 1e300]).fit(X, Y)
    kind(2, feature_weights=[1e-300, 1, 1e100]).fit(X, Y)


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


def test_leave_one_out_of_a_single_row_is_refused() -> None:
    message = "^leave-one-out needs at least two rows, found a forest of one row$"
    classifier = MondrianForestClassifier(3, feature_weights=None, random_state=0)
    with pytest.raises(ValueError, match=message):
        classifier.fit(X[:1], Y[:1]).loo_predict_proba()
    for posterior in ("exact", "fast", "joint"):
        regressor = MondrianForestRegressor(3, posterior=posterior, feature_weights=None)
        with pytest.raises(ValueError, match=message):
            regressor.fit(X[:1], [2.5]).loo_predict_dist()
        # Of two rows each is predicted from the other one.
        dist = regressor.partial_fit(X[1:2], [0.5]).loo_predict_dist()
        assert dist.mean[0] < dist.mean[1]
        assert (dist.std > 0.01).all()
    two = classifier.partial_fit(X[1:3], [7, 8]).forget([0]).loo_predict_proba()
    assert two.tolist() == [[0.0, 1.0], [1.0, 0.0]]  # each by a forest of the other class
    assert classifier.forget([1]).loo_score_samples().tolist() == [0.0]


@pytest.mark.parametrize("posterior", ["exact", "joint"])
def test_leave_one_out_of_a_single_row_is_the_prior_that_is_given(posterior: Any) -> None:
    given = HYPERPARAMETERS | {"mu": 3.0}
    one, other = (
        MondrianForestRegressor(
            3, posterior=posterior, hyperparameters=given, trend=None, feature_weights=None
        )
        .fit(X[:1], [y])
        .loo_predict_dist()
        for y in (2.5, -7.0)
    )
    assert one.mean == other.mean == 3.0
    # A node far down the tree has half of gamma1, and noise comes on top.
    np.testing.assert_allclose([*one.var, *other.var], 1.5)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("end", [1e-320, 1e-200, 1e-19])
def test_rows_too_far_from_a_range_are_refused_for_the_range(kind: Any, end: float) -> None:
    forest = kind(5, feature_range=([-5.0, 0.0, -5.0], [5.0, end, 5.0]), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"more than .* wider feature_range") as error:
            forest.fit(X, Y)
    [found] = re.findall(r"X holds (\S+) in column 1:", str(error.value))
    assert np.abs(X[:, 1] - float(found)).min() < 1e-5
