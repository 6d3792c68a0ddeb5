"""Columns of tables: their types, and columns of categories as codes.

Tables are those of pandas, polars and Arrow; matrices are NumPy's arrays, SciPy's sparse ones, and
what becomes an array.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from boscage._input.user_warnings import warn_user
from boscage._types import AnyArray, BoolArray, IntArray, Label

# The names of the types of dates, times and durations in pandas, polars and Arrow. Their columns
# would become numbers in units that nobody has chosen.
_TEMPORAL = re.compile("date|time|duration|period|interval|month_|day_time", re.IGNORECASE)
_CATEGORICAL = re.compile("categor|enum|dictionary", re.IGNORECASE)
_TEXT = re.compile(r"(large_)?str(ing)?(_view)?\b|utf8", re.IGNORECASE)
# The types whose values are made up of others.
_NESTED = re.compile(r"(large_|fixed_size_)?list|struct|map\b|array|\w+_union", re.IGNORECASE)

MIN_DOUBT = 10
"""Fewer values than this may all differ by chance."""

EXPECTED_CATEGORIES = (
    "expected text, booleans, finite numbers or integers of 64 bits (str() makes text of others)"
)


_NO_DATES = (
    "expected numbers: give what matters of them, such as the day of the week, or the days since "
    "some date"
)


@dataclass(frozen=True)
class Column:
    """A column of categories."""

    codes: IntArray
    """The number of each row's category; -1 where it is missing."""
    labels: list[Label]
    """The categories that occur, sorted."""

    def mapped(self, values: Iterable[Any], missing: Any, dtype: Any = None) -> AnyArray:
        """Each row's value, given that of each label and the one where a category is missing."""
        # The last entry is that of the code -1.
        return np.array([*values, missing], dtype=dtype)[self.codes]

    def named(self) -> AnyArray:
        """Each row's category by its name; None where it is missing."""
        return self.mapped(self.labels, None, object)

    def of(self, rows: BoolArray) -> Column:
        """Some of the rows, and the categories that occur in them."""
        codes = self.codes[rows]
        used = np.unique(codes[codes >= 0])
        number = np.full(len(self.labels) + 1, -1)  # the last entry is that of the code -1
        number[used] = np.arange(len(used))
        return Column(number[codes], [self.labels[code] for code in used])


def as_table(X: Any) -> Any:
    """Turn sparse matrices, record batches and masked arrays into tables, and refuse what is none.

    Raises
    ------
    TypeError
        If a column holds dates, times, lists or structs, or all are sparse, or `X` is no table but
        a dictionary, a set, an iterator or a lazy frame.
    ValueError
        If two columns have the same name.
    MemoryError
        If `X` is sparse and does not fit in memory as a dense table.
    """
    X = dense(X)
    _refuse_no_table(X)
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        raise TypeError(f"X has dtype {X.dtype}; {_NO_DATES}")
    if _is_arrow(X) and type(X).__name__ == "RecordBatch":
        import pyarrow

        X = pyarrow.Table.from_batches([X])
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    _refuse_sparse_frame(X)
    seen = set()
    for name, kind in column_types(X):
        if name in seen:
            raise ValueError(f"X has two columns {name!r}; expected columns of different names")
        seen.add(name)
        if _TEMPORAL.match(kind):
            raise TypeError(f"X holds dates or times in column {name!r} ({kind}); {_NO_DATES}")
        if _NESTED.match(kind):
            raise TypeError(
                f"X holds several values in each cell of column {name!r} ({kind}); expected one: "
                "give each of them a column of its own"
            )
    return X


def refuse_masked(values: Any, what: str) -> None:
    """Refuse an array with masked values, which would count as if they were not; name the first."""
    if isinstance(values, np.ma.MaskedArray):
        bad = np.flatnonzero(np.ma.getmaskarray(values))
        if bad.size:
            raise ValueError(
                f"{what} contains a masked value in row {bad[0]}; expected an array without any: "
                "leave such rows out"
            )


def _refuse_no_table(X: Any) -> None:
    """Refuse what has neither rows in order nor a size."""
    kind = type(X).__name__
    if kind == "LazyFrame":
        raise TypeError("X is a LazyFrame, whose rows are not computed yet; give X.collect()")
    if isinstance(X, Mapping):
        raise TypeError(
            f"X is of type {kind}; expected rows, or a table such as pandas.DataFrame(X)"
        )
    if isinstance(X, (Iterator, Set)):
        raise TypeError(f"X is of type {kind}; expected rows in an array, a list or a table")


def _refuse_sparse_frame(X: Any) -> None:
    """Refuse a table of pandas whose columns are all sparse; those of some are made dense."""
    kinds = [kind for _, kind in column_types(X)]
    if kinds and all(kind.startswith("Sparse[") for kind in kinds):
        raise TypeError(
            "X is a table of sparse columns; give X.sparse.to_dense(), or X.sparse.to_coo() for a "
            "sparse matrix (without names of columns)"
        )


def dense(X: Any) -> Any:
    """All entries of a sparse matrix, in which zeros are values.

    Other tables are returned as they are.

    Raises
    ------
    MemoryError
        If they do not fit in memory.
    """
    if not issparse(X):
        return X
    try:
        return X.toarray(order="C")
    except (MemoryError, ValueError) as error:
        n_rows, n_columns = X.shape
        size = n_rows * n_columns * (4 if X.dtype == np.float32 else 8) / 2**30
        raise MemoryError(
            f"X is sparse, {n_rows} rows of {n_columns} columns; the model holds them as a dense "
            f"table, which would take {size:.3g} GiB: choose fewer columns, for example with "
            "sklearn.feature_selection or sklearn.decomposition.TruncatedSVD"
        ) from error


def column_types(X: Any) -> Iterator[tuple[Any, str]]:
    """The name and the type's name of each column of a table; nothing for other inputs."""
    if hasattr(X, "schema") and _is_arrow(X):
        yield from ((field.name, str(field.type)) for field in X.schema)
    elif hasattr(X, "dtypes") and hasattr(X, "columns"):
        for column, (name, kind) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            if str(kind) == "object" and hasattr(X, "iloc"):
                import pandas

                kind = pandas.api.types.infer_dtype(X.iloc[:, column], skipna=True)
            yield name, str(kind)


def is_text(kind: str) -> bool:
    """Whether a column's type, by its name, is text."""
    return _TEXT.match(kind) is not None


def column_names(X: Any) -> Sequence[Any] | None:
    """The names of a table's columns; None for a matrix."""
    names: Sequence[Any] | None = getattr(X, "column_names", getattr(X, "columns", None))
    return names


def column_name(names: Sequence[Any] | None, column: int) -> str:
    """A column as messages name it: by its name, or by its number if it has none."""
    if names is None:
        return str(column)
    name = names[column]
    # An index of pandas returns NumPy's numbers.
    return repr(name.item() if isinstance(name, np.generic) else name)


def select(X: Any, columns: Sequence[int]) -> Any:
    """Some columns of a table, in their types."""
    if isinstance(X, np.ndarray):
        return X[:, columns]
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    names = column_names(X)
    assert names is not None
    return X.select([names[column] for column in columns])


# -- which columns are categories -----------------------------------------------------------------


def categorical_features(chosen: Any, X: Any) -> list[int]:
    """The numbers of the columns that the parameter ``categorical_features`` means, in order."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        if chosen != "from_dtype":
            raise ValueError(
                "categorical_features, unless a list, must be 'from_dtype' or None, "
                f"found {chosen!r}"
            )
        kinds = (kind for _, kind in column_types(X))
        return [d for d, kind in enumerate(kinds) if _CATEGORICAL.match(kind) or is_text(kind)]
    given = np.asarray(chosen)
    if not given.size:
        return []
    if given.ndim != 1 or given.dtype.kind not in "biuUO":
        raise ValueError(
            f"categorical_features must be a list of booleans, integers or names, found {chosen!r}"
        )
    if given.dtype.kind in "UO":
        return by_name("categorical_features", given.tolist(), column_names(X))
    return _by_number(given, n_columns(X))


def by_name(parameter: str, wanted: Sequence[Any], names: Iterable[Any] | None) -> list[int]:
    """The numbers of the columns that a parameter names, in order, given the names of all."""
    if names is None:
        raise ValueError(f"{parameter} holds names ({wanted[0]!r}), but X has no names of columns")
    known = list(names)
    for name in wanted:
        if name not in known:
            raise ValueError(f"{parameter} holds {name!r}, which is no column of X")
    return sorted({known.index(name) for name in wanted})


def _by_number(given: Any, n: int) -> list[int]:
    if n == 0:  # no table, which is refused later
        return []
    if given.dtype.kind == "b":
        if len(given) != n:
            raise ValueError(
                f"categorical_features is a mask of {len(given)} features, but X has {n}"
            )
        return [int(d) for d in np.flatnonzero(given)]
    for d in given:
        if not 0 <= d < n:
            raise ValueError(f"categorical_features holds {d}, expected 0 to {n - 1}")
    return sorted({int(d) for d in given})


def n_columns(X: Any) -> int:
    """The number of columns; 0 for what is no table."""
    shape: Sequence[int] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 0


def as_matrix(X: Any) -> Any:
    """A list of rows as a matrix of objects, so that columns can be taken out of it."""
    try:
        matrix = np.array(X, dtype=object)
    except ValueError:  # rows of different lengths, which checks refuse
        return X
    return matrix if matrix.ndim == 2 else X


# -- columns as codes -----------------------------------------------------------------------------


def take(X: Any, columns: Collection[int]) -> tuple[dict[int, Column], Any]:
    """Read columns of categories; they are zero in the table that is returned."""
    taken: dict[int, Column] = {}
    if not columns:
        return taken, X
    if isinstance(X, np.ndarray):
        X = X.astype(object) if X.dtype.kind in "US" else X.copy()
    names = column_names(X)
    for column in columns:
        values, X = _take_one(X, column)
        name = column_name(names, column)
        try:
            codes, categories = _codes(values)
        except TypeError as error:
            for value in values:
                if not _is_hashable(value):
                    raise TypeError(
                        f"X holds {reprlib.repr(value)} in column {name}; {EXPECTED_CATEGORIES}"
                    ) from error
            raise
        taken[column] = _column(codes, categories, name)
    return taken, X


def _take_one(X: Any, column: int) -> tuple[Any, Any]:
    """The values of one column, and the table with zeros instead."""
    if isinstance(X, np.ndarray):
        values = X[:, column].copy()
        X[:, column] = 0
        return values, X
    n_rows = X.shape[0]
    if _is_arrow(X):
        values = X.column(column)
        return values, X.set_column(column, X.column_names[column], [np.zeros(n_rows)])
    if hasattr(X, "iloc"):
        values, X = X.iloc[:, column], X.copy(deep=False)
        X.isetitem(column, np.zeros(n_rows))
        return values, X
    values = X.to_series(column)
    zeros = type(values)(values.name, np.zeros(n_rows))
    return values.to_list(), X.with_columns(zeros)


def _codes(values: Any) -> tuple[IntArray, list[Any]]:
    """A number for each value, and the values of these numbers; -1 may stand for missing ones."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        unique, codes = np.unique(values, return_inverse=True)
        return codes, unique.tolist()
    if _is_arrow(values):
        if hasattr(values.type, "value_type"):
            values = values.cast(values.type.value_type)
        values = values.combine_chunks().dictionary_encode()
        return values.indices.fill_null(-1).to_numpy(), values.dictionary.to_pylist()
    if hasattr(values, "cat"):
        return values.cat.codes.to_numpy(), values.cat.categories.tolist()
    if hasattr(values, "iloc"):
        import pandas

        codes, unique = pandas.factorize(values)
        return codes, unique.tolist()
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
    return codes, list(numbers)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _column(codes: Any, values: list[Any], name: str) -> Column:
    """Codes of sorted labels, whatever the order of the values and those that do not occur."""
    seen = np.zeros(len(values), dtype=bool)
    seen[codes[codes >= 0]] = True
    labels = {
        i: as_label(values[i], "X holds the category", f" in column {name}")
        for i in np.flatnonzero(seen)
    }
    ordered = distinct_labels(label for label in labels.values() if label is not None)
    numbers: dict[Label | None, int] = {label: i for i, label in enumerate(ordered)}
    # The last entry is that of the code -1.
    new = np.full(len(values) + 1, -1, dtype=np.int64)
    for i, label in labels.items():
        new[i] = numbers.get(label, -1)
    return Column(new[codes], ordered)


def warn_of_types(column: Column, known: Collection[Label | None], name: str) -> None:
    """Warn where no category is known because numbers came as text, or text as numbers."""
    if not column.labels or any(label in known for label in column.labels):
        return
    as_text = {str(label): label for label in known if label is not None}
    for label in column.labels:
        if str(label) in as_text:
            warn_user(
                f"X holds {label!r} in column {name}, and the training rows "
                f"{as_text[str(label)]!r}: none of the column's categories is known; give them the "
                "type that they had"
            )
            return


def warn_of_many(columns: Mapping[int, Column], X: Any) -> None:
    """Warn of columns of text most of whose values differ, as those of numbers in text do."""
    for number, (name, kind) in enumerate(column_types(X)):
        if number not in columns or not is_text(kind):
            continue
        read = columns[number]
        n_rows = int(np.count_nonzero(read.codes >= 0))
        if mostly_differ(n_rows, len(read.labels)):
            warn_user(
                f"column {name!r} is taken for categories, {len(read.labels)} different ones in "
                f"{n_rows} rows, since it is text; make numbers of it (pandas.to_numeric), leave "
                "it out if it names the rows, or name it in categorical_features"
            )


def mostly_differ(n_values: int, n_different: int) -> bool:
    """Whether so many values are hardly those of categories."""
    return n_values >= MIN_DOUBT and n_different > n_values / 2


def distinct_labels(labels: Iterable[Label]) -> list[Label]:
    """The categories that occur, each once and sorted."""
    known = set(labels)
    if any(isinstance(label, bool) for label in known) and not all(
        isinstance(label, bool) for label in known
    ):
        # True equals 1, so one of them must go.
        known = {int(label) if isinstance(label, bool) else label for label in known}
    return sort_labels(known)


def sort_labels(labels: Collection[Label]) -> list[Label]:
    """Booleans, integers, other numbers, text: the order of the compiled module."""
    kinds = [bool, int, float, str]
    return sorted(labels, key=lambda label: (kinds.index(type(label)), label))


def checked_text(text: str, holds: str, where: str = "") -> str:
    """Text that can be stored, as Python's own string; a message says what `holds` it, `where`."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{holds} {text!r}{where}; expected valid text, found a lone surrogate, which is half "
            "a character"
        ) from error
    return str(text)


def is_missing(value: Any) -> bool:
    """Whether a value of any type is missing: None, NaN, or what pandas has for both."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def as_label(value: Any, holds: str, where: str) -> Label | None:
    """A category as a plain value; None if it is missing.

    A message says what `holds` a value that is no category, and `where`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, str):
        return checked_text(value, holds, where)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"{holds} {reprlib.repr(value)}{where}; {EXPECTED_CATEGORIES}")


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow"
