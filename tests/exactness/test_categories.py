"""Categories: tables of every library give the same bits, and a forest is that of their places.

Categories lie at places that are learned from targets and then kept. A forest of categories has the
trees and predictions, bit for bit, of a forest of their places.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import BayesianTreeRegressor, MondrianForestClassifier, MondrianForestRegressor
from boscage._input.columns import Column
from boscage.mondrian._categories import as_if_new, single_places
from forests import assert_same_trees, trees_of
from reference.arrays import Array

KINDS = [MondrianForestClassifier, MondrianForestRegressor]
NAMES = np.array(["amber", "blue", "green", "red", "teal", "zinc"])
EFFECTS = np.array([3.0, -1.0, 0.0, 2.0, -3.0, 1.0])
both = pytest.mark.parametrize("kind", KINDS)


class Rows:
    """Rows with a number, a colour that is sometimes missing, and another number."""

    def __init__(self, n: int = 300, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        code = rng.integers(0, 6, n)
        lacks = rng.random(n) < 0.1
        self.x = np.round(rng.normal(size=n), 3)
        self.size = rng.integers(0, 40, n).astype(np.float64)
        self.code = np.where(lacks, np.nan, code)
        self.colour = NAMES[code].astype(object)
        self.colour[lacks] = None
        self.y = EFFECTS[code] + self.x + 0.3 * rng.normal(size=n)

    def targets(self, kind: Any) -> Array:
        return np.digitize(self.y, [-1, 1]) if kind is MondrianForestClassifier else self.y

    def frame(self, colour: Any = None) -> Any:
        pd = pytest.importorskip("pandas")
        colour = self.colour if colour is None else colour
        return pd.DataFrame({"x": self.x, "colour": colour, "size": self.size})

    def codes(self) -> Array:
        return np.column_stack([self.x, self.code, self.size])


def make(kind: Any, **params: Any) -> Any:
    return kind(5, random_state=1, **{"feature_weights": None} | params)


def predictions(model: Any, at: Any) -> list[Array]:
    if isinstance(model, MondrianForestClassifier):
        return [model.predict_proba(at)]
    dist = model.predict_dist(at)
    return [*model.predict(at, return_std=True), dist.means, dist.variances, dist.weights]


def assert_same_predictions(a: Any, at: Any, b: Any, other_at: Any) -> None:
    for one, other in zip(predictions(a, at), predictions(b, other_at), strict=True):
        np.testing.assert_array_equal(one, other)


def tables(rows: Rows) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The same rows in the tables of all libraries, text and categories of any order."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    frame = rows.frame()
    yield frame, {}
    order = [*NAMES[::-1], "unused"]
    for dtype in ("category", "string", pd.CategoricalDtype(order), pd.CategoricalDtype(NAMES)):
        yield frame.assign(colour=frame["colour"].astype(dtype)), {}
    polars = pl.DataFrame({"x": rows.x, "colour": rows.colour.tolist(), "size": rows.size})
    yield polars, {}
    for dtype in (pl.Categorical, pl.Enum(order)):
        yield polars.with_columns(pl.col("colour").cast(dtype)), {}
    arrow = pa.table({"x": rows.x, "colour": pa.array(rows.colour.tolist()), "size": rows.size})
    yield arrow, {}
    encoded = arrow.column("colour").dictionary_encode()
    yield arrow.set_column(1, "colour", encoded), {}
    parts = [arrow.slice(100), arrow.slice(0, 100)]
    parts = [part.set_column(1, "colour", part["colour"].dictionary_encode()) for part in parts]
    yield pa.concat_tables(parts[::-1]), {}
    yield arrow.to_batches()[0], {}
    yield frame.to_numpy(), {"categorical_features": [1]}
    yield frame.to_numpy().tolist(), {"categorical_features": [False, True, False]}


@pytest.mark.slow
@both
def test_tables_of_all_libraries_give_the_same_forest(kind: Any) -> None:
    rows = Rows()
    frame = rows.frame()
    expected = make(kind).fit(frame, rows.targets(kind))
    for table, params in tables(rows):
        model = make(kind, **params).fit(table, rows.targets(kind))
        assert model.digest() == expected.digest()
        assert_same_predictions(model, table, expected, frame)
    # Other names in the same order have another digest, and nothing else.
    for table, features in (
        (rows.codes(), [1]),
        (rows.codes(), np.array([False, True, False])),
        (rows.frame(rows.code), ["colour"]),
    ):
        model = make(kind, categorical_features=features).fit(table, rows.targets(kind))
        assert model.categories_[1].keys() == {None, *range(6)}
        assert_same_predictions(model, table, expected, frame)


@pytest.mark.slow
@both
def test_the_forest_is_that_of_the_places(kind: Any) -> None:
    rows = Rows()
    # A number may have a slope, a category has none.
    learned: dict[str, Any] = {"feature_weights": "learned", "trend": None}
    model = make(kind, feature_range=([-4.0, 0.0, 0.0], [4.0, 1.0, 40.0]), **learned)
    model.fit(rows.frame(), rows.targets(kind))
    np.testing.assert_array_equal(model.is_categorical_, [False, True, False])
    table = model.categories_[1]
    places = rows.codes()
    places[:, 1] = [table[name] for name in rows.colour]
    numbers = make(kind, feature_range=model.feature_range_, **learned)
    numbers.fit(places, rows.targets(kind))
    assert numbers.categories_ is None
    assert_same_trees(trees_of(model), trees_of(numbers))
    assert_same_predictions(model, rows.frame(), numbers, places)
    np.testing.assert_array_equal(model.feature_importances_, numbers.feature_importances_)


@both
def test_neither_the_order_of_the_rows_nor_that_of_their_types_matters(kind: Any) -> None:
    rows = Rows()
    model = make(kind).fit(rows.frame(), rows.targets(kind))
    order = np.random.default_rng(0).permutation(len(rows.x))
    frame = rows.frame().iloc[order]
    assert make(kind).fit(frame, rows.targets(kind)[order]).digest() == model.digest()


@both
def test_unknown_categories_are_missing_values(kind: Any) -> None:
    rows, later = Rows(), Rows(40, 1)
    y, more = rows.targets(kind), later.targets(kind)
    unheard = [name if i % 3 else f"new {i}" for i, name in enumerate(later.colour)]
    missing = [name if i % 3 else None for i, name in enumerate(later.colour)]
    model = make(kind, warm_up=0).partial_fit(rows.frame(), y)
    other = model.copy()
    assert_same_predictions(model, later.frame(unheard), other, later.frame(missing))
    assert not np.array_equal(
        predictions(model, later.frame(missing))[0], predictions(model, later.frame())[0]
    )
    model.partial_fit(later.frame(unheard), more)
    other.partial_fit(later.frame(missing), more)
    assert model.digest() == other.digest()
    assert model.categories_ == make(kind).fit(rows.frame(), y).categories_
    # What no row lacks in training has a place of its own, too.
    complete = rows.colour.astype(str)
    places = make(kind).fit(rows.frame(complete), y).categories_[1].values()
    assert len({*places}) == len(places) == 8


@pytest.mark.parametrize("kind", [MondrianForestRegressor, BayesianTreeRegressor])
def test_numbers_in_place_of_text_are_told(kind: Any) -> None:
    """Nothing is known of them, though they look the same."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"year": ["1", "2", "3"] * 20, "x": np.arange(60.0)})
    model = kind(random_state=0).fit(frame, frame["x"])
    numbers = frame.assign(year=frame["year"].astype(int))
    with pytest.warns(UserWarning, match="X holds 1 in column 'year', and the training rows '1'"):
        model.predict(numbers)
    model.predict(frame.iloc[:1])
    model.predict(numbers.assign(year="4"))


@pytest.mark.slow
@both
def test_a_stream_and_shards_are_one_fit(kind: Any) -> None:
    """During the warm-up categories are found, in any order; then they are kept."""
    rows = Rows()
    y, frame = rows.targets(kind), rows.frame()
    once = make(kind).fit(frame, y)
    stream = make(kind, warm_up=300)
    order = np.argsort(rows.code)  # one colour after the other
    for part in np.array_split(order, 7):
        stream.partial_fit(frame.iloc[part], y[part], ids=part)
        stream = pickle.loads(pickle.dumps(stream)).copy()
        stream.predict(frame.iloc[:2])
    assert stream.digest() == once.digest()
    # Two forests in their warm-up, with different colours.
    parts = [np.flatnonzero(rows.code < 3), np.flatnonzero(~(rows.code < 3))]
    first, second = (make(kind).partial_fit(frame.iloc[part], y[part], ids=part) for part in parts)
    before = second.digest()
    assert first.merge(second).digest() == once.digest()
    assert second.digest() == before
    # Shards with what another forest has learned.
    given = {
        "feature_range": once.feature_range_,
        "feature_weights": once.feature_weights_,
        "feature_maps": once.feature_maps_,
        "categories": once.categories_,
    }
    if kind is MondrianForestRegressor:
        given["trend"] = once.trend_
    shards = [make(kind, **given).fit(frame.iloc[part], y[part], ids=part) for part in parts]
    merged = shards[0] + shards[1]
    assert merged.digest() == once.digest()
    assert merged.forget(parts[1]).digest() == shards[0].digest()


@both
def test_forests_with_different_categories_are_not_merged(kind: Any) -> None:
    rows = Rows()
    y, frame = rows.targets(kind), rows.frame()
    ranges = {"feature_range": (-50.0, 50.0), "feature_weights": None}
    one = make(kind, **ranges).fit(frame[:150], y[:150], ids=np.arange(150))
    other = make(kind, **ranges).fit(frame[150:], y[150:], ids=np.arange(150, 300))
    before = one.digest()
    with pytest.raises(ValueError, match="different categories of feature 'colour'"):
        one.merge(other)
    assert one.digest() == before
    numbers = make(kind, **ranges).fit(rows.codes(), y, ids=np.arange(300, 600))
    with pytest.raises(ValueError, match="different categories of feature 'colour'"):
        one.merge(numbers)


@both
def test_files_and_copies_keep_categories(kind: Any) -> None:
    rows = Rows()
    y, frame = rows.targets(kind), rows.frame()
    model = make(kind).partial_fit(frame[:100], y[:100])
    assert model.warm_up_left_ == 900
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded, twin = boscage.load(file), model.copy()
    assert (loaded.categorical_features, loaded.categories) == ("from_dtype", None)
    new = frame[100:].assign(colour="new")
    for each in (loaded, twin):
        assert each.categories_ == model.categories_
        each.partial_fit(new, y[100:])
    assert "new" in twin.categories_[1]
    assert "new" not in model.categories_[1]
    assert loaded.digest() == twin.digest()


@both
def test_a_refused_batch_changes_nothing(kind: Any) -> None:
    rows = Rows()
    y, frame = rows.targets(kind), rows.frame()
    model = make(kind).partial_fit(frame[:100], y[:100], ids=np.arange(100))
    before, categories = model.digest(), model.categories_
    with pytest.raises(ValueError, match="99"):
        model.partial_fit(frame[100:102].assign(colour="new"), y[100:102], ids=[100, 99])
    assert model.categories_ == categories
    assert model.digest() == before
    model.partial_fit(frame[100:], y[100:])
    assert model.copy().digest() == model.digest()


# -- places ---------------------------------------------------------------------------------------


def order_of(table: dict[Any, float]) -> list[Any]:
    return sorted(table, key=lambda label: table[label])


@both
def test_categories_are_sorted_by_their_targets(kind: Any) -> None:
    rows = Rows(2000)
    model = make(kind, feature_weights=None).fit(rows.frame(), rows.targets(kind))
    found = [name for name in order_of(model.categories_[1]) if name is not None]
    expected = NAMES[np.argsort(EFFECTS)].tolist()
    assert found in (expected, expected[::-1])


@both
def test_categories_that_do_not_differ_beyond_chance_are_sorted_by_name(kind: Any) -> None:
    """Else their order would show rows' targets, from which rates are learned."""
    rng = np.random.default_rng(0)
    for n, n_categories in ((400, 400), (1000, 300), (1000, 5)):
        names = rng.integers(0, n_categories, n)
        y = rng.normal(size=n)
        y = (y > 0.0).astype(int) if kind is MondrianForestClassifier else y
        x = np.column_stack([names, rng.normal(size=n)])
        model = make(kind, categorical_features=[0], feature_weights=None).fit(x, y)
        found = [name for name in order_of(model.categories_[0]) if name is not None]
        assert found == sorted(found)


@both
@pytest.mark.filterwarnings("ignore:column .* is taken for categories:UserWarning")
def test_names_that_only_one_row_has_each_teach_nothing(kind: Any) -> None:
    """Days as text, whose order tells the targets: those of new rows are unknown."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 600
    x = np.sort(rng.uniform(size=n))
    y = np.sin(7.0 * x) + 0.1 * rng.normal(size=n)
    y = (y > 0.0).astype(int) if kind is MondrianForestClassifier else y
    frame = pd.DataFrame({"x": x, "day": pd.date_range("2020-01-01", periods=n).astype(str)})
    order = rng.permutation(n)
    old, new = order[:400], order[400:]
    named = kind(50, random_state=0).fit(frame.iloc[old], y[old])
    plain = kind(50, random_state=0).fit(frame[["x"]].iloc[old], y[old])
    assert named.feature_weights_[1] == 0.0
    found = named.score(frame.iloc[new], y[new])
    assert found > plain.score(frame[["x"]].iloc[new], y[new]) - 0.02
    assert found > 0.9


def test_only_categories_of_single_rows_lie_where_unknown_ones_do() -> None:
    table = {"a": 0.0, "b": 0.2, "c": 0.3, "d": 0.7, "e": 1.0, None: 0.5}
    codes = np.r_[[1, 3, 0, 2, 0, -1, 4], np.full(30, 0)]
    column = Column(codes, list("abcde"))
    singles = single_places(column, table)
    np.testing.assert_array_equal(np.sort(singles), [0.2, 0.3, 0.7, 1.0])
    # Equal entries may come once with their number.
    n_rows = np.r_[1, 2, 1, 1, 1, 1, 1, np.ones(30, int)]
    np.testing.assert_array_equal(np.sort(single_places(column, table, n_rows)), [0.2, 0.3, 1.0])
    # Of few rows none says that its category will not come again.
    assert not single_places(Column(np.arange(5), list("abcde")), table).size
    rows = np.column_stack([np.arange(7.0), [0.2, 0.7, 0.0, 0.3, 0.0, 0.5, 1.0]])
    found = as_if_new(rows, {1: table}, {1: singles})
    np.testing.assert_array_equal(found[:, 0], rows[:, 0])
    np.testing.assert_array_equal(found[:, 1], [0.5, 0.5, 0.0, 0.5, 0.0, 0.5, 0.5])


def test_categories_of_few_rows_or_with_places_that_are_given_matter() -> None:
    """Nothing was learned from the targets of such rows, or nothing speaks for new categories."""
    names = np.array([f"k{i:02}" for i in range(60)], dtype=object)
    x = np.column_stack([names, np.zeros(60)]).astype(object)
    y = np.sin(np.arange(60) / 9.0)
    few = MondrianForestRegressor(20, categorical_features=[0], random_state=0)
    assert few.fit(x[:8], y[:8]).feature_weights_[0] > 0.0
    table = dict(zip(names, np.linspace(0.0, 1.0, 60), strict=True)) | {None: 0.5}
    given = MondrianForestRegressor(
        20, categorical_features=[0], categories=[table, None], random_state=0
    ).fit(x[::2], y[::2])
    assert given.score(x[1::2], y[1::2]) > 0.95


def test_categories_that_are_alone_in_a_sample_matter() -> None:
    """Of 6,000 categories each has two rows, most of them one of the 3,000 that teach rates."""
    rng = np.random.default_rng(0)
    effects = rng.normal(size=6000)
    code = rng.permutation(np.repeat(np.arange(6000), 2))
    x = np.column_stack([code, rng.normal(size=12_000)])
    model = MondrianForestRegressor(5, categorical_features=[0], random_state=0)
    model.fit(x, effects[code] + 0.1 * rng.normal(size=12_000))
    assert model.feature_weights_[0] > model.feature_weights_[1]


def test_rare_categories_are_drawn_to_the_middle() -> None:
    """Two categories with the same mean: the one with fewer rows is nearer to the mean of all."""
    y = np.r_[np.tile([4.0, 6.0], 50), np.tile([4.0, 6.0], 2), np.tile([-1.0, 1.0], 100)]
    x = np.r_[np.zeros(100), np.ones(4), np.full(200, 2.0)][:, None]
    model = MondrianForestRegressor(2, categorical_features=[0], feature_weights=None).fit(x, y)
    assert order_of(model.categories_[0]) in ([2, None, 1, 0], [2, 1, None, 0])


def test_one_cut_parts_a_category_with_the_chance_that_its_places_say() -> None:
    """Of categories at 0, 0.25 and 1 the first cut parts the first with probability 1/4."""
    table = {"a": 0.0, "b": 0.25, "c": 1.0, None: 0.5}
    n = 4000
    model = MondrianForestRegressor(
        n,
        lifetime=1.5,
        categories=[table],
        feature_weights=None,
        predictive="realised",
        posterior="exact",
        noise="global",
        categorical_features=[0],
        random_state=3,
    ).fit(np.array([["a"], ["b"], ["c"]], dtype=object), [0.0, 1.0, 2.0])
    roots = [tree.threshold[0] for tree in model.trees_]
    # Cuts come at rate 1.
    uncut, first = np.mean(np.isnan(roots)), np.mean(np.array(roots) < 0.25)
    for found, chance in ((uncut, np.exp(-1.5)), (first, 0.25 * (1.0 - np.exp(-1.5)))):
        assert abs(found - chance) < 5.0 * np.sqrt(chance * (1.0 - chance) / n)


@both
def test_many_categories_cost_no_memory(kind: Any) -> None:
    rng = np.random.default_rng(0)
    n = 12_000
    x = np.column_stack([rng.permutation(n) % 10_000, rng.normal(size=n)])
    y = (x[:, 1] > 0.0).astype(int) if kind is MondrianForestClassifier else x[:, 1]
    params: dict[str, Any] = {"predictive": "realised"}
    if kind is MondrianForestRegressor:
        params |= {"posterior": "fast", "trend": None}
    model = make(kind, categorical_features=[0], **params).fit(x, y)
    places = [*model.categories_[0].values()]
    assert len({*places}) == 10_001
    assert 0.0 <= min(places) < max(places) <= 1.0
    numbers = make(kind, **params).fit(x, y)
    assert model._model.nbytes < 1.5 * numbers._model.nbytes


# -- the parameter --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("from_type", "must be 'from_dtype' or None, found 'from_type'"),
        ([True, False], "mask of 2 features, but X has 3"),
        ([3], "holds 3, expected 0 to 2"),
        ([-1], "holds -1, expected 0 to 2"),
        (["hue"], "'hue', which is no column of X"),
        ([1.5], "list of booleans, integers or names"),
        (3, "list of booleans, integers or names"),
    ],
)
def test_impossible_features_are_refused(chosen: Any, message: str) -> None:
    rows = Rows(30)
    model = MondrianForestRegressor(2, categorical_features=chosen)
    with pytest.raises(ValueError, match=message):
        model.fit(rows.frame(), rows.y)
    assert not hasattr(model, "n_features_in_")


def test_names_need_columns() -> None:
    with pytest.raises(ValueError, match="X has no names of columns"):
        MondrianForestRegressor(2, categorical_features=["colour"]).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("chosen", [None, []])
def test_no_feature_may_be_a_category(chosen: Any) -> None:
    rows = Rows(30)
    model = MondrianForestRegressor(2, categorical_features=chosen)
    assert model.fit(rows.codes(), rows.y).categories_ is None
    with pytest.raises(ValueError, match="column 'colour'; expected numbers; name columns of"):
        model.fit(rows.frame(), rows.y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([None], r"for each of the 3 features, found \[None\]"),
        ([None, {"red": 0.0}, None], "the key None for missing values"),
        ([None, {"red": 0.5, None: 0.5}, None], "another place for each category"),
        ([None, {"red": np.nan, None: 0.5}, None], r"categories\[1\]\['red'\] must be finite"),
        ({"red": 0.0, None: 0.5}, "a list of a dictionary or None for each of the 3 features"),
        ([None, {("red",): 0.0, None: 0.5}, None], r"\('red',\) for feature 1; expected text"),
        ([{"red": 0.0, None: 0.5}, None, None], "categories must hold those of feature 1"),
    ],
)
def test_impossible_categories_are_refused(given: Any, message: str) -> None:
    rows = Rows(30)
    with pytest.raises(ValueError, match=message):
        MondrianForestRegressor(2, categories=given).fit(rows.frame(), rows.y)


def test_given_categories_may_be_numbers_and_text_of_numpy() -> None:
    rows = Rows(30)
    places = {"red": 0.0, "green": 0.4, "blue": 1.0, None: 0.7}
    of_numpy = {np.asarray(key)[()]: np.float64(place) for key, place in places.items()}
    forests = [
        MondrianForestRegressor(2, categories=[None, given, None], random_state=0)
        for given in (places, of_numpy)
    ]
    digests = {forest.fit(rows.frame(), rows.y).digest() for forest in forests}
    assert len(digests) == 1


def test_a_matrix_of_another_shape_is_called_so() -> None:
    for chosen in ([0], [True]):
        with pytest.raises(ValueError, match="Expected 2D array"):
            MondrianForestRegressor(2, categorical_features=chosen).fit([1.0, 2.0], [1.0, 2.0])


def test_categories_are_hashable() -> None:
    pd = pytest.importorskip("pandas")
    model = MondrianForestRegressor(2, categorical_features=[0])
    for table in (pd.DataFrame({"a": ["x", [1]]}), np.array([["x"], [{}]], dtype=object)):
        with pytest.raises(TypeError, match=r"X holds .* in column .*; expected text"):
            model.fit(table, [0.0, 1.0])


def test_categories_are_text_numbers_or_truth_values() -> None:
    pd = pytest.importorskip("pandas")
    rows = Rows(30)
    for value in (pd.Interval(0, 1), np.inf, 2**70, (1, 2)):
        colour = pd.Series([value, *rows.colour[1:]], dtype=object)
        frame = rows.frame(colour)
        model = MondrianForestRegressor(2, categorical_features=["colour"])
        with pytest.raises((ValueError, TypeError), match="'colour'"):
            model.fit(frame, rows.y)
    mixed = np.array([True, 1, 1.0, "1", 2.5, None, np.nan, "a"] * 4, dtype=object)[:30]
    model = MondrianForestRegressor(2, categorical_features=["colour"])
    table = model.fit(rows.frame(mixed), rows.y).categories_[1]
    assert table.keys() == {1, "1", 2.5, "a", None}
