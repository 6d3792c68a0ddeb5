"""Missing values: a forest with substitutes is the forest of the filled rows, and they are learned.

Where a row lacks a value, a number or a linear function of its other features stands for it. So a
forest of such rows has the trees and predictions, bit for bit, of a forest of the filled rows.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage.mondrian._forest import growth
from boscage.mondrian._missing import fill, learn_substitutes
from forests import assert_same_trees, trees_of
from reference.arrays import Array

KINDS = [MondrianForestClassifier, MondrianForestRegressor]
NAN = np.nan
# A linear function of two others, and numbers; the last lies outside of the range.
SUBSTITUTES = [(0.5, [(1, 0.75, 0.25), (2, -0.5, 0.5)]), 0.25, (-2.0, [])]


def filled(x: Array) -> Array:
    """The substitutes above, by hand."""
    x = np.array(x, dtype=np.float64)
    second, third = x[:, 1], x[:, 2]
    terms = 0.75 * (second - 0.25), -0.5 * (third - 0.5)
    linear = (
        0.5 + np.where(np.isnan(second), 0.0, terms[0]) + np.where(np.isnan(third), 0.0, terms[1])
    )
    stands = [
        np.clip(linear, 0.0, 1.0).astype(np.float32),
        np.full(len(x), 0.25),
        np.full(len(x), -2.0),
    ]
    return np.where(np.isnan(x), np.stack(stands, axis=1), x)


def rows(n: int, seed: int, share: float = 0.3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(size=(n, 3)), 6)
    y = (x[:, 0] + x[:, 1] > 1.0).astype(np.int64)
    x[rng.random(x.shape) < share] = NAN
    return x, y


def forest(kind: Any, **params: Any) -> Any:
    params = {"substitutes": SUBSTITUTES, "feature_weights": None} | params
    if kind is MondrianForestClassifier:
        # The rows that calibrate are chosen by their contents, and filled rows have others.
        params.setdefault("calibration", None)
    return kind(5, feature_range=(0.0, 1.0), random_state=1, **params)


def predictions(model: Any, at: Array) -> list[Array]:
    if isinstance(model, MondrianForestClassifier):
        return [model.predict_proba(at)]
    dist = model.predict_dist(at)
    return [*model.predict(at, return_std=True), dist.means, dist.variances, dist.weights]


def as_targets(kind: Any, y: Array) -> Array:
    return y if kind is MondrianForestClassifier else y.astype(np.float64)


def assert_same_predictions(a: Any, b: Any, at: Array, filled_at: Array) -> None:
    for one, other in zip(predictions(a, at), predictions(b, filled_at), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("params", [{}, {"predictive": "realised"}, {"feature_weights": "learned"}])
def test_the_forest_is_that_of_the_filled_rows(kind: Any, params: dict[str, Any]) -> None:
    x, y = rows(200, 0)
    at, _ = rows(50, 1, 0.6)
    model = forest(kind, **params).fit(x, y)
    other = forest(kind, **params).fit(filled(x), y)
    assert_same_trees(trees_of(model), trees_of(other))
    assert_same_predictions(model, other, at, filled(at))
    # Both know what stands for missing values, but their rows differ.
    assert model.digest() != other.digest()


@pytest.mark.slow
def test_joint_classes_are_calibrated_on_filled_rows() -> None:
    """From 1,000 rows on, rows are left out in groups, and predicted as test rows are."""
    x, y = rows(1000, 12)
    model = forest(KINDS[0], posterior="joint", calibration="loo").fit(x, y)
    assert log_loss(y, model.predict_proba(x)) < 0.9 * log_loss(y, np.full((1000, 2), 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("trend", ["linear", "auto"])
def test_trends_go_through_filled_rows(trend: str) -> None:
    x, y = rows(300, 13)
    settings = {"trend": trend, "feature_weights": "learned"}
    model = forest(KINDS[1], **settings).fit(x, y)
    other = forest(KINDS[1], **settings).fit(filled(x), y)
    assert model.trend_ == other.trend_
    assert_same_predictions(model, other, x, filled(x))


@pytest.mark.parametrize("kind", KINDS)
def test_maps_apply_to_filled_rows(kind: Any) -> None:
    x, y = rows(100, 2)
    maps = [([0.0, 0.25, 1.0], [0.0, 0.75, 1.0]), ([], []), ([0.0, 0.5, 1.0], [0.0, 0.1, 1.0])]
    model = forest(kind, feature_maps=maps).fit(x, y)
    other = forest(kind, feature_maps=maps).fit(filled(x), y)
    assert_same_predictions(model, other, x, filled(x))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_back_as_they_were_given(kind: Any) -> None:
    x, y = rows(60, 3)
    model = forest(kind).fit(x[:20], y[:20]).partial_fit(x[20:], y[20:]).forget(np.arange(5, 15))
    left = np.r_[0:5, 15:60]
    np.testing.assert_array_equal(model._model.rows(), x[left])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy._model.rows(), x[left])
    assert copy.digest() == model.digest() == forest(kind).fit(x[left], y[left]).digest()
    assert copy.substitutes_ == model.substitutes_


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_missing_value_may_come_late(kind: Any) -> None:
    """Trees of complete rows stay; what stands for missing values is a function of all rows."""
    x, y = rows(120, 4, 0.0)
    more, y_more = rows(30, 5)
    model = forest(kind, substitutes=None).fit(x, y)
    assert model.substitutes_ is None
    before, digest = predictions(model, x), model.digest()
    predictions(model, more)
    guess = fill(more, learn_substitutes(x, as_targets(kind, y), seed=1), *model.feature_range_)
    np.testing.assert_array_equal(model._complete(more), guess)
    assert model.substitutes_ is None
    assert model.digest() == digest
    for one, other in zip(predictions(model, x), before, strict=True):
        np.testing.assert_array_equal(one, other)
    model.partial_fit(more, y_more)
    targets = as_targets(kind, np.r_[y, y_more])
    expected = learn_substitutes(np.r_[x, more], targets, seed=1)
    assert model.substitutes_ == expected
    again = forest(kind, substitutes=expected).fit(np.r_[more, x], np.r_[y_more, y])
    assert model.digest() == again.digest()
    # A row that comes later changes nothing about them.
    model.partial_fit(np.full((1, 3), NAN), y[:1])
    assert model.substitutes_ == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_guess_of_missing_values_lasts_as_long_as_the_rows(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = rows(200, 14, 0.0)
    at, _ = rows(30, 15)
    n_learned = 0

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal n_learned
        n_learned += 1
        return learn_substitutes(*args, **options)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def assert_is_of(model: Any, own: Array, n: int = 2) -> None:
        """Predictions are those of a new forest, and only the first one learns."""
        fresh = forest(kind, substitutes=None).fit(x[own], y[own])
        before = n_learned
        for _ in range(2):
            assert_same_predictions(model, fresh, at, at)
        assert n_learned == before + n

    monkeypatch.setattr(growth, "learn_substitutes", counted)
    model = forest(kind, substitutes=None, window_size=150).fit(x[:80], y[:80])
    assert_is_of(model, np.arange(80))
    model.partial_fit(x[80:120], y[80:120])
    assert_is_of(model, np.arange(120))
    model.forget(np.arange(40))
    assert_is_of(model, np.arange(40, 120))
    # The same row numbers, but other rows.
    model.partial_fit(x[120:160], y[120:160], ids=np.arange(40))
    assert_is_of(model, np.arange(40, 160))
    twin = model.copy()
    model.merge(
        forest(kind, substitutes=None).fit(x[160:180], y[160:180], ids=1000 + np.arange(20))
    )
    assert_is_of(model, np.arange(40, 180))
    assert_is_of(twin, np.arange(40, 160), 1)  # it knows what the other one learned
    with monkeypatch.context() as patch:
        patch.setattr(kind, "_apply_changes", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(x[180:], y[180:])
    assert_is_of(model, np.arange(50, 200))  # the window
    model.fit(x[:60], y[:60])
    assert_is_of(model, np.arange(60))


@pytest.mark.parametrize("kind", KINDS)
def test_shards_with_and_without_missing_values_merge(kind: Any) -> None:
    x, y = rows(80, 6)
    complete, y_complete = rows(40, 7, 0.0)
    some = forest(kind).fit(x, y, ids=np.arange(80))
    none = forest(kind, substitutes=None).fit(complete, y_complete, ids=np.arange(80, 120))
    whole = forest(kind).fit(np.r_[x, complete], np.r_[y, y_complete])
    assert some.copy().merge(none).digest() == none.copy().merge(some).digest() == whole.digest()
    other = forest(kind, substitutes=[0.1, 0.2, 0.3]).fit(x, y, ids=np.arange(200, 280))
    with pytest.raises(ValueError, match="only if their substitutes for missing values are equal"):
        some.merge(other)


@pytest.mark.parametrize("kind", KINDS)
def test_other_substitutes_need_a_new_fit(kind: Any) -> None:
    x, y = rows(60, 14)
    model = forest(kind).fit(x, y).set_params(substitutes=[0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match=r"substitutes was .* when the forest was grown"):
        model.partial_fit(x, y)
    first, second = (
        kind(5, random_state=0, warm_up=500, substitutes=given).partial_fit(x, y, ids=ids)
        for given, ids in ((SUBSTITUTES, np.arange(60)), (None, np.arange(60, 120)))
    )
    with pytest.raises(ValueError, match="cannot be merged: substitutes is"):
        first.merge(second)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_and_the_batches_of_a_warm_up_do_not_matter(kind: Any) -> None:
    x, y = rows(240, 8)
    params = {"random_state": 2, "warm_up": 240}
    whole = kind(5, **params).fit(x, y)
    assert whole.substitutes_ is not None
    order = np.random.default_rng(0).permutation(240)
    stream = kind(5, **params)
    for part in np.array_split(order, 7):
        stream.partial_fit(x[part], y[part], ids=part)
    assert stream.warm_up_left_ == 0
    assert stream.substitutes_ == whole.substitutes_
    assert stream.digest() == whole.digest()


# -- what is learned ------------------------------------------------------------------------------


def correlated(n: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 1] = 2.0 * x[:, 0] - x[:, 2] + 0.1 * rng.normal(size=n)
    return x


def test_values_that_are_missing_at_random_are_functions_of_the_others() -> None:
    x = correlated(2000)
    y = np.random.default_rng(1).normal(size=2000)
    holes = x.copy()
    holes[np.random.default_rng(2).random(2000) < 0.3, 1] = NAN
    substitutes = learn_substitutes(holes, y, seed=0)
    centre, terms = substitutes[1]
    lacks = np.isnan(holes[:, 1])
    values = centre + sum(slope * (holes[lacks, k] - origin) for k, slope, origin in terms)
    assert np.std(values - x[lacks, 1]) < 0.15
    # The last feature depends on no other.
    assert substitutes[3] == (np.median(x[:, 3]), [])


@pytest.mark.parametrize("numeric", [False, True])
def test_values_that_are_missing_because_they_are_high_lie_high(numeric: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(1500, 2))
    y = x[:, 0] + 0.1 * rng.normal(size=1500)
    holes = x.copy()
    holes[(x[:, 0] > 0.7) & (rng.random(1500) < 0.8), 0] = NAN
    target = y if numeric else (y > 0.6).astype(np.int64)
    centre, terms = learn_substitutes(holes, target, seed=0)[0]
    assert not terms
    assert centre > np.nanquantile(holes[:, 0], 0.85)


def joined(n: int = 600, seed: int = 0) -> tuple[Array, Array]:
    """Rows of two studies, each of which measured a feature that the other did not."""
    rng = np.random.default_rng(seed)
    x, study = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    x[study == 0, 1] = x[study == 1, 2] = np.nan
    return x, study


@pytest.mark.parametrize("numeric", [False, True])
def test_values_whose_absence_tells_the_target_lie_apart(numeric: bool) -> None:
    x, study = joined()
    y = 3.0 * study + 0.3 * x[:, 0] if numeric else study
    kind = MondrianForestRegressor if numeric else MondrianForestClassifier
    model = kind(30, random_state=0).fit(x[:400], y[:400])
    assert model.score(x[400:], y[400:]) > 0.98
    for feature in (1, 2):
        place, terms = model.substitutes_[feature]
        present = x[:400, feature][~np.isnan(x[:400, feature])]
        away = 0.25 * np.ptp(present)
        assert not terms
        assert place in (
            pytest.approx(present.min() - away),
            pytest.approx(present.max() + away),
        )
    for feature in (0, 3):
        assert model.substitutes_[feature] == (pytest.approx(np.median(x[:400, feature])), [])


def test_a_stream_with_places_apart_is_one_fit() -> None:
    x, study = joined()
    params: dict[str, Any] = {
        "feature_range": ([-3.0] * 4, [3.0] * 4),
        "substitutes": MondrianForestClassifier(5, random_state=0).fit(x, study).substitutes_,
        "random_state": 1,
        "feature_weights": None,
    }
    for feature in (1, 2):
        place = params["substitutes"][feature][0]
        assert not np.nanmin(x[:, feature]) <= place <= np.nanmax(x[:, feature])
    once = MondrianForestClassifier(5, **params).fit(x, study, ids=np.arange(600))
    order = np.random.default_rng(1).permutation(600)
    stream = MondrianForestClassifier(5, **params)
    for part in np.array_split(order, 7):
        stream.partial_fit(x[part], study[part], ids=part)
    assert stream.digest() == once.digest()
    np.testing.assert_array_equal(stream.predict_proba(x), once.predict_proba(x))


def test_substitutes_are_scaled_and_shifted_with_their_feature() -> None:
    x = correlated(400)
    x[np.random.default_rng(0).random(x.shape) < 0.2] = NAN
    y = np.nan_to_num(x[:, 0])
    plain = learn_substitutes(x, y, seed=0)
    for factor in (2.0**-600, 2.0**600):
        scaled = learn_substitutes(x * factor, y, seed=0)
        # Other contents choose other rows; these are all.
        for (a, terms), (b, others) in zip(plain, scaled, strict=True):
            assert b == pytest.approx(factor * a, rel=1e-5)
            assert [k for k, _, _ in terms] == [k for k, _, _ in others]
            for (_, slope, _), (_, other, _) in zip(terms, others, strict=True):
                assert other == pytest.approx(slope, rel=1e-3)


def test_every_nan_is_the_same() -> None:
    """R's NA is a NaN of other bits, and a masked entry is none at all."""
    x, y = rows(80, 15)
    expected = KINDS[0](5, random_state=0).fit(x, y)
    bits = x.copy().view(np.uint64)
    bits[np.isnan(x)] = 0x7FF00000000007A2
    masked = np.ma.masked_invalid(x)
    masked.data[masked.mask] = 99.0
    for other in (bits.view(np.float64), masked):
        model = KINDS[0](5, random_state=0).fit(other, y)
        np.testing.assert_array_equal(model.feature_range_, expected.feature_range_)
        assert model.digest() == expected.digest()


def test_exported_trees_refuse_missing_values() -> None:
    x, y = rows(80, 16)
    tree = forest(KINDS[0]).fit(x, y).trees_[0]
    with pytest.raises(ValueError, match="rows without missing values"):
        tree.apply(x)
    assert tree.apply(filled(x)).shape == (80,)


@pytest.mark.slow
def test_values_far_from_zero_and_of_extreme_units() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(400, 3))
    x[:, 1] = x[:, 0] + 0.1 * rng.uniform(size=400)
    y = x[:, 0].copy()
    # Seconds since 1970, which single precision would round to two minutes; and units far apart.
    x = x * [100.0, 1e30, 1e-30] + [1.7e9, 0.0, 0.0]
    x[rng.random(x.shape) < 0.3] = NAN
    model = KINDS[1](5, random_state=0, noise="global").fit(x, y)
    low, high = model.feature_range_
    fills = fill(x, model.substitutes_, low, high)
    assert ((low <= fills) & (fills <= high)).all()
    assert np.std(fills[np.isnan(x[:, 0]), 0]) > 0.1
    assert np.isfinite(model.predict(x)).all()


def test_features_of_few_values() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, size=(400, 3)).astype(float)
    y = (x[:, 0] == 2.0).astype(np.int64)
    x[(x == 2.0) & (rng.random(x.shape) < 0.7)] = NAN
    substitutes = learn_substitutes(x, y, seed=0)
    assert substitutes[0] == (2.0, [])
    assert all(0.0 <= centre <= 2.0 for centre, _ in substitutes)


def test_features_without_values_and_few_rows() -> None:
    x = np.array([[NAN, 1.0], [NAN, 3.0], [NAN, NAN]])
    assert learn_substitutes(x, np.array([0, 1, 1]), seed=0) == [(0.0, []), (2.0, [])]
    for kind in KINDS:
        model = kind(5, random_state=0).fit(x, [0, 1, 1])
        assert all(np.isfinite(part).all() for part in predictions(model, np.full((1, 2), NAN)))
        np.testing.assert_array_equal(model.feature_range_, [[0.0, 1.0], [0.0, 3.0]])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["at random", "the highest"])
def test_missing_values_are_learned_better_than_medians(how: str) -> None:
    """With defaults, on data that the rules above were not made from.

    Where targets do not grow with a feature, they cannot say that its high values are missing.
    """
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2400, 6))
    x[:, 3:] = x[:, :3] + 0.3 * rng.normal(size=(2400, 3))
    others = x[:, 1] * x[:, 2] if how == "at random" else x[:, 1] + x[:, 2]
    y = (x[:, 0] + others + 0.3 * rng.normal(size=2400) > 0.0).astype(np.int64)
    chance = rng.random(x.shape)
    x[chance < 0.3 if how == "at random" else (x > 0.5) & (chance < 0.9)] = NAN
    train, test = slice(0, 1200), slice(1200, None)
    medians = np.nanmedian(x[train], axis=0)
    losses = [
        log_loss(
            y[test],
            MondrianForestClassifier(30, random_state=0)
            .fit(x[train], y[train])
            .predict_proba(x[test]),
        )
        for x in (x, np.where(np.isnan(x), medians, x))
    ]
    assert losses[0] < 0.95 * losses[1]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_infinity_and_impossible_substitutes_are_refused(kind: Any) -> None:
    x, y = rows(20, 9)
    x[3, 1] = np.inf
    message = "infinity in row 3, column 1; expected finite numbers, or NaN for missing values"
    with pytest.raises(ValueError, match=message):
        forest(kind).fit(x, y)
    x[3, 1] = NAN
    for wrong, message in [
        ([0.1, 0.2], "one value for each of the 3 features, found 2"),
        ([0.1, 0.2, "much"], "must hold for each feature a number"),
        ([0.1, 0.2, (0.1, [(2, 1.0, 0.0)])], "terms of other features"),
        ([0.1, 0.2, NAN], "numbers within"),
        (0.5, "must hold for each feature a number"),
    ]:
        with pytest.raises(ValueError, match=message):
            forest(kind, substitutes=wrong).fit(x, y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_update_leaves_the_forest_as_it_was(kind: Any) -> None:
    x, y = rows(40, 10, 0.0)
    model = forest(kind, substitutes=None).fit(x, y)
    before = model.digest()
    with pytest.raises(ValueError, match="already in the forest"):
        model.partial_fit(np.full((1, 3), NAN), y[:1], ids=[3])
    assert model.digest() == before
    assert model.substitutes_ is None


def test_missing_entries_of_tables_are_missing_values() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, y = rows(60, 11)
    expected = forest(KINDS[0]).fit(x, y).predict_proba(x)
    lists = {f"f{d}": [None if np.isnan(v) else float(v) for v in x[:, d]] for d in range(3)}
    nullable = pandas.DataFrame(lists).astype("Float64")
    for table in (pandas.DataFrame(lists), nullable, polars.DataFrame(lists), x.astype(object)):
        np.testing.assert_array_equal(forest(KINDS[0]).fit(table, y).predict_proba(table), expected)
