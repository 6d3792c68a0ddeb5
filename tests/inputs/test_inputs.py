"""Inputs: arrays, tables, types and strides; invalid input is refused with its position."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boscage import (
    BARTRegressor,
    BayesianTreeClassifier,
    MondrianForestClassifier,
    MondrianForestRegressor,
    _validation,
    evidence,
)

KINDS = [MondrianForestClassifier, MondrianForestRegressor]
RNG = np.random.default_rng(0)
# Small integers, so that every type holds them exactly.
WHOLE = RNG.integers(0, 100, size=(60, 3))
X = WHOLE.astype(np.float64)
Y = (X[:, 0] > 50).astype(int)
NAMES = ["a", "b", "c"]

both = pytest.mark.parametrize("kind", KINDS)


def make(kind: Any) -> Any:
    return kind(4, feature_range=(0.0, 100.0), feature_weights=None, random_state=1)


def strided(rows: Any) -> Any:
    wide = np.zeros((2 * len(rows), 2 * rows.shape[1]))
    wide[::2, ::2] = rows
    return wide[::2, ::2]


def read_only(rows: Any) -> Any:
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def unaligned(rows: Any) -> Any:
    buffer = np.zeros(rows.nbytes + 1, dtype=np.uint8)
    out = buffer[1:].view(np.float64).reshape(rows.shape)
    out[...] = rows
    return out


# -- arrays ---------------------------------------------------------------------------------------

GUISES = {
    "lists": lambda: X.tolist(),
    "Fortran order": lambda: np.asfortranarray(X),
    "every other entry": lambda: strided(X),
    "backwards": lambda: X[::-1][::-1].copy()[::-1][::-1],
    "read-only": lambda: read_only(X),
    "unaligned": lambda: unaligned(X),
    "big-endian": lambda: X.astype(">f8"),
    "float32": lambda: X.astype(np.float32),
    "big-endian float32": lambda: X.astype(">f4"),
    "float16": lambda: X.astype(np.float16),
    "long double": lambda: X.astype(np.longdouble),
    "uint8": lambda: WHOLE.astype(np.uint8),
    "int64": lambda: WHOLE.astype(np.int64),
    "objects": lambda: WHOLE.astype(object),
    "memory view": lambda: memoryview(X),
}


@both
@pytest.mark.parametrize("guise", GUISES)
def test_the_same_numbers_in_any_array_predict_the_same(kind: Any, guise: str) -> None:
    rows = GUISES[guise]()
    model, reference = make(kind).fit(rows, Y), make(kind).fit(X, Y)
    np.testing.assert_array_equal(model.predict(rows), reference.predict(X))
    np.testing.assert_array_equal(model.partial_fit(rows, Y).ids_, np.arange(120))
    np.testing.assert_array_equal(model.predict(X), reference.partial_fit(X, Y).predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_major_floats_are_not_copied(dtype: Any) -> None:
    rows = X.astype(dtype)
    checked = _validation.check_rows(KINDS[0](), rows, reset=True)
    assert np.shares_memory(checked, rows)
    assert checked.dtype == dtype
    other = _validation.check_rows(KINDS[0](), rows[:, ::-1], reset=True)
    assert other.flags.c_contiguous
    assert other.dtype == dtype


@both
def test_float32_and_float64_may_alternate(kind: Any) -> None:
    model = make(kind).fit(X[:20].astype(np.float32), Y[:20])
    model.partial_fit(X[20:], Y[20:])
    np.testing.assert_array_equal(
        model.predict(X.astype(np.float32)), make(kind).fit(X, Y).predict(X)
    )


# -- tables ---------------------------------------------------------------------------------------


def pandas_table() -> Any:
    return pytest.importorskip("pandas").DataFrame(X, columns=NAMES)


def pandas_mixed() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(
        {
            "a": pd.array(WHOLE[:, 0], dtype="Int64"),
            "b": WHOLE[:, 1].astype(np.float32),
            "c": WHOLE[:, 2].astype(np.uint8),
        }
    )


def polars_table() -> Any:
    return pytest.importorskip("polars").DataFrame(
        {name: WHOLE[:, i].astype(np.int16 if i else float) for i, name in enumerate(NAMES)}
    )


def arrow_table() -> Any:
    return pytest.importorskip("pyarrow").table({name: X[:, i] for i, name in enumerate(NAMES)})


def arrow_batch() -> Any:
    return arrow_table().to_batches()[0]


TABLES = [pandas_table, pandas_mixed, polars_table, arrow_table, arrow_batch]


@both
@pytest.mark.parametrize("table", TABLES)
def test_tables_give_rows_and_names(kind: Any, table: Any) -> None:
    model = make(kind).fit(table(), Y)
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    np.testing.assert_array_equal(model.predict(table()), make(kind).fit(X, Y).predict(X))
    for other in TABLES:
        np.testing.assert_array_equal(model.predict(other()), model.predict(table()))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


@both
def test_columns_must_be_those_of_the_fit(kind: Any) -> None:
    model = make(kind).fit(pandas_table(), Y)
    before = model.digest()
    table = pandas_table()
    for wrong in (table[["b", "a", "c"]], table.rename(columns={"a": "z"})):
        for call in (model.predict, lambda rows: model.partial_fit(rows, Y)):
            with pytest.raises(ValueError, match="feature names should match"):
                call(wrong)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["a", "b"]])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        make(kind).fit(X, Y).predict(X[:, :2])
    assert model.digest() == before


@pytest.mark.parametrize(
    ("module", "build"),
    [
        ("pandas", lambda m, y: m.Series(y)),
        ("pandas", lambda m, y: m.Series(y, dtype="Int64")),
        ("pandas", lambda m, y: m.Series(y, index=np.arange(60)[::-1])),
        ("polars", lambda m, y: m.Series(y)),
        ("pyarrow", lambda m, y: m.array(y)),
        ("pyarrow", lambda m, y: m.chunked_array([y[:10], y[10:]])),
    ],
)
def test_targets_may_be_columns_of_tables(module: str, build: Any) -> None:
    library = pytest.importorskip(module)
    for kind in KINDS:
        expected = make(kind).fit(X, Y).digest()
        assert make(kind).fit(X, build(library, Y)).digest() == expected


@pytest.mark.parametrize(
    ("module", "build"),
    [
        ("pandas", lambda m, y: m.Series(y)),
        ("pandas", lambda m, y: m.Series(y, dtype="category")),
        ("pandas", lambda m, y: m.Series(y, dtype="string")),
        ("polars", lambda m, y: m.Series(y)),
        ("polars", lambda m, y: m.Series(y, dtype=m.Categorical)),
        ("pyarrow", lambda m, y: m.array(y)),
        ("pyarrow", lambda m, y: m.array(y).dictionary_encode()),
    ],
)
def test_labels_may_be_columns_of_text(module: str, build: Any) -> None:
    library = pytest.importorskip(module)
    labels = np.where(Y > 0, "yes", "no").tolist()
    model = make(MondrianForestClassifier).fit(X, build(library, labels))
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    assert model.digest() == make(MondrianForestClassifier).fit(X, labels).digest()


# -- what is refused ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("value", "found"), [(np.inf, "infinity"), (-np.inf, "-infinity")])
def test_an_infinite_value_is_refused_with_its_place(
    kind: Any, dtype: Any, value: float, found: str
) -> None:
    bad = X.astype(dtype)
    bad[7, 2] = value
    model = make(kind).fit(X, Y)
    before = model.digest()
    calls = [
        lambda rows: make(kind).fit(rows, Y),
        lambda rows: model.partial_fit(rows, Y),
        model.predict,
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"contains {found} in row 7, column 2; expected"):
            call(bad)
    bad[8, 1] = np.nan
    bad[9, 0] = np.inf
    with pytest.raises(ValueError, match=r"in row 7, column 2 \(2 such values in all\)"):
        model.predict(bad)
    assert model.digest() == before


@pytest.mark.parametrize("kind", [BARTRegressor, BayesianTreeClassifier])
def test_nulls_of_tables_are_missing_values(kind: Any) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, None, 3.0, None]}
    rows, y = np.array([columns["a"], columns["b"]], dtype=float).T, [0, 1, 0, 1]
    few = {"n_draws": 5, "n_burn": 5} if kind is BARTRegressor else {}
    expected = kind(**few, random_state=0).fit(rows, y).predict(rows)
    nullable = pd.DataFrame(columns).astype("Float64")
    for table in (pd.DataFrame(columns), nullable, pl.DataFrame(columns), pa.table(columns)):
        found = kind(**few, random_state=0).fit(table, y).predict(table)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [MondrianForestClassifier, BARTRegressor, BayesianTreeClassifier])
def test_nulls_of_pandas_among_objects_are_missing_values(kind: Any) -> None:
    pd = pytest.importorskip("pandas")
    rows = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, np.nan], [4.0, 1.0]] * 3)
    y = [0, 1, 0, 1] * 3
    params = {"n_draws": 5, "n_burn": 5} if kind is BARTRegressor else {}
    expected = kind(**params, random_state=0).fit(rows, y).predict(rows)
    for null in (pd.NA, pd.NaT, None):
        cells = [[1, False], [null, True], [3, null], [4, True]] * 3
        table = pd.DataFrame(cells, columns=["a", "b"], dtype=object)
        # A nullable column beside one of objects, and rows that were taken out of a table.
        mixed = table.assign(b=pd.array([False, True, None, True] * 3, dtype="boolean"))
        taken = pd.DataFrame([row for _, row in mixed.iterrows()])
        for given in (cells, table.to_numpy(), table, mixed, taken):
            model = kind(**params, random_state=0).fit(given, y)
            assert hasattr(model, "feature_names_in_") is hasattr(given, "columns")
            np.testing.assert_array_equal(model.predict(given), expected)
        assert table.iloc[1, 0] is null


def test_text_beside_nulls_is_refused_with_its_place() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [pd.NA, 2.0, "x"], "b": [1.0, 2.0, 3.0]}, dtype=object)
    model = MondrianForestClassifier(categorical_features=None)
    with pytest.raises(TypeError, match="text 'x' in row 2, column 'a'; expected numbers"):
        model.fit(table, [0, 1, 0])
    with pytest.raises(TypeError, match=r"Timestamp.* in row 1, column 0; expected a number"):
        model.fit([[pd.NaT, 1.0], [pd.Timestamp("2026-01-01"), 2.0]], [0, 1])


def test_dates_are_refused_with_their_column() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    days = [datetime.date(2026, 1, 1 + day) for day in range(3)]
    times = [datetime.datetime(2026, 1, 1, hour) for hour in range(3)]
    spans = [datetime.timedelta(hours=hours) for hours in range(3)]
    for values in (days, times, spans):
        columns = {"x": [1.0, 2.0, 3.0], "when": values}
        for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            for kind in (MondrianForestClassifier, BARTRegressor):
                with pytest.raises(TypeError, match=r"dates or times in column 'when' \(.*day"):
                    kind().fit(table, [0, 1, 0])
    periods = pd.DataFrame({"when": pd.period_range("2026", periods=3, freq="D")})
    with pytest.raises(TypeError, match="dates or times in column 'when'"):
        MondrianForestClassifier().fit(periods, [0, 1, 0])


def test_great_but_finite_values_are_not_called_infinite() -> None:
    """Their sum overflows, but each is valid."""
    great = np.full((4, 2), 1e308)
    great[2] = -1e308
    model = MondrianForestClassifier(2, random_state=0)
    with np.errstate(over="raise"):
        checked = _validation.check_rows(model, great, reset=True)
    assert checked is great or np.shares_memory(checked, great)
    small = np.full((200, 2), 3e38, dtype=np.float32)
    assert _validation.check_rows(model, small, reset=True).dtype == np.float32


@both
@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "Expected 2D array, got 1D array"),
        (
            np.arange(1.0, 600.0),
            ValueError,
            r"1D array instead: \[  1.   2.   3. ... 597. 598. 599.\], of shape \(599,\). Reshape",
        ),
        (3.0, ValueError, "Expected 2D array, got scalar"),
        (np.zeros((2, 2, 2)), ValueError, "dim 3"),
        (np.zeros((0, 3)), ValueError, r"0 sample\(s\)"),
        (np.zeros((2, 0)), ValueError, r"0 feature\(s\)"),
        ([[1.0], [1.0, 2.0]], ValueError, "inhomogeneous"),
        ([[1.0, "x"], [1.0, 2.0]], ValueError, "text 'x' in row 0, column 1; expected numbers"),
        (
            [["1", 2.0], ["4.5x", 2.0]],
            ValueError,
            r"\(could not convert string to float: '4\.5x'\)$",
        ),
        ([[1.0, 2j], [1.0, 2.0]], TypeError, "complex"),
        (
            np.array([[1.0, 2j], [1.0, 2.0]]),
            ValueError,
            "Complex data not supported: X has dtype complex128; expected real numbers$",
        ),
        ([[1.0, {}], [1.0, 2.0]], TypeError, "argument must be"),
        (np.zeros((2, 2), dtype="datetime64[s]"), TypeError, r"dtype datetime64\[s\]"),
        (sparse.coo_array([1.0, 2.0]), ValueError, "Expected 2D array, got 1D array"),
        ([[1.0, [2.0, 3.0]]] * 2, ValueError, r"\[2.0, 3.0\] in row 0, column 1; expected one"),
        ([[1.0, 2.0], [b"x", 2.0]], ValueError, "b'x' in row 1, column 0; expected a number"),
        (None, ValueError, "Expected 2D array"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(
    kind: Any, rows: Any, error: Any, message: str
) -> None:
    model = make(kind)
    with pytest.raises(error, match=message) as raised:
        model.fit(rows, [0, 1])
    assert len(str(raised.value)) < 300
    assert not hasattr(model, "n_features_in_")


@both
def test_complex_targets_and_weights_are_not_written_out(kind: Any) -> None:
    bad = np.arange(60) + 1j
    with pytest.raises(ValueError, match=r"Complex data not supported: y must be real$"):
        make(kind).fit(X, bad)
    with pytest.raises(ValueError, match=r"sample_weight must hold numbers: Complex [a-z ]+$"):
        make(kind).fit(X, Y, sample_weight=bad)


def test_text_in_a_table_is_refused_with_its_column() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"a": [1, 2], "town": ["1", "Oslo"]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        for kind in (BARTRegressor, BayesianTreeClassifier, MondrianForestClassifier):
            about = "text 'Oslo' in row 1, column 'town'.*by categorical_features"
            with pytest.raises(ValueError, match=about):
                kind(categorical_features=None).fit(table, [0, 1])


@pytest.mark.parametrize("kind", [MondrianForestClassifier, BARTRegressor])
def test_cells_of_several_values_are_refused_with_their_column(kind: Any) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    for values in ([[1, 2], [3, 4]], [{"x": 1}, {"x": 2}]):
        columns = {"a": [1, 2], "pair": values}
        nested = pd.array(values, pd.ArrowDtype(pa.array(values).type))
        typed = pd.DataFrame({"a": [1, 2], "pair": nested})
        for table in (pl.DataFrame(columns), pa.table(columns), typed):
            with pytest.raises(TypeError, match=r"several values in each cell of column 'pair' \("):
                kind().fit(table, [0, 1])
        with pytest.raises((TypeError, ValueError), match="in row 0, column 'pair'; expected one"):
            kind().fit(pd.DataFrame(columns), [0, 1])


def test_columns_without_names_in_text_are_named_by_their_numbers() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([[1.0, "x", 2.0]] * 2, columns=[0, 7, 3])
    with pytest.raises(ValueError, match="row 0, column 7; expected numbers"):
        BARTRegressor(categorical_features=None).fit(table, [0.0, 1.0])
    table[7] = [(1, 2), 1j]
    with pytest.raises(ValueError, match=r"category \(1, 2\) in column '\{7\}'; expected text"):
        MondrianForestClassifier(categorical_features=["{7}"]).fit(
            table.rename(columns=lambda name: f"{{{name}}}"), [0, 1]
        )
    with pytest.raises(ValueError, match=r"category \(1, 2\) in column 7; expected text"):
        MondrianForestClassifier(categorical_features=[1]).fit(table, [0, 1])


def test_text_that_is_not_valid_is_refused() -> None:
    rows = np.array([["\ud800", 1.0], ["x", 2.0]], dtype=object)
    message = r"'\\ud800'.*expected valid text, found a lone surrogate"
    model = MondrianForestClassifier(2, categorical_features=[0])
    with pytest.raises(ValueError, match=f"category {message}"):
        model.fit(rows, [0, 1])
    with pytest.raises(ValueError, match=f"y holds the label {message}"):
        model.fit(X[:2], ["\ud800", "x"])
    model.set_params(categories=[{"\ud800": 0.0, None: 1.0}, None])
    with pytest.raises(ValueError, match=f"categories holds {message}"):
        model.fit(X[:2, :2], [0, 1])


@pytest.mark.slow
def test_categorical_columns_of_any_table_are_categories() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    sizes = [1, 2, 1]
    tables = [
        pd.DataFrame({"a": [1, 2, 3], "size": pd.Categorical(sizes)}),
        pl.DataFrame({"size": pl.Series(["1", "2", "1"], dtype=pl.Enum(["1", "2"]))}),
        pa.table({"size": pa.array(sizes).dictionary_encode()}),
    ]
    for table in tables:
        for model in (BARTRegressor(n_draws=5), BayesianTreeClassifier()):
            found = model.fit(table, [0, 1, 0]).categories_
            assert found is not None
            assert [names and [*map(int, names)] for names in found][-1] == [1, 2]
    for table in tables:
        found = evidence.compare_features(
            BayesianTreeClassifier(), table, [0, 1, 0], {"all": ["size"]}
        )
        assert np.isfinite(found.log_evidence).all()


@pytest.mark.slow
def test_optional_libraries_are_not_imported() -> None:
    """Importing boscage does not import libraries for tables, plots and progress bars."""
    code = (
        "import sys, sklearn.base; before = set(sys.modules); import boscage;"
        "boscage.MondrianForestClassifier(2).fit([[0.0], [1.0]], [0, 1]).predict([[0.0]]);"
        "optional = {'pandas', 'polars', 'pyarrow', 'matplotlib', 'tqdm'};"
        "print(optional & (set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


@pytest.mark.parametrize("n_jobs", [2**64, 2**70, 10**6])
def test_more_threads_than_a_machine_has_are_no_more_threads(n_jobs: int) -> None:
    assert 1 <= _validation.n_threads(n_jobs) <= max(256, os.cpu_count() or 1)


def test_two_columns_of_one_name_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="X has two columns 'a'; expected columns of different"):
        MondrianForestClassifier().fit(frame, np.arange(20) % 2)
