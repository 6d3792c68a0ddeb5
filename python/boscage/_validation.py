"""Checks of arguments. Each message says what was found, where, and what was expected."""

from __future__ import annotations

import math
import operator
import os
import reprlib
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from scipy.sparse import issparse
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from boscage._input.columns import as_table, column_name, column_names, is_missing, refuse_masked
from boscage._input.labels import as_labels, as_numbers
from boscage._types import AnyArray, FloatArray, Rows

# The greatest id, seed or count that the compiled module can take.
_MAX_U64 = 2**64 - 1
# The most threads on a machine with fewer processors.
_MAX_THREADS = 256

# Words of NumPy's errors about cells that are not numbers.
_ABOUT_CELLS = ("could not convert string", "with a sequence", "argument must be a string")
# The types of pandas' nulls, which are no numbers to NumPy.
_NULLS = ("NAType", "NaTType")

# -- rows -----------------------------------------------------------------------------------------


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """Rows as a row-major matrix of float32 or float64, copied only if they are not one.

    Values are finite, or NaN where they are missing. Sets or compares ``n_features_in_`` and
    ``feature_names_in_`` as scikit-learn does.
    """
    if not reset and _is_checked(estimator, X):
        require_finite(X, "X", missing=True)
        return X  # type: ignore[no-any-return]
    X = as_table(X)
    try:
        rows = _as_numbers(estimator, X, reset=reset)
    except (TypeError, ValueError) as error:
        if (message := _without_array(str(error), X)) != str(error):
            raise ValueError(message) from error
        is_about_cells = any(words in message for words in _ABOUT_CELLS)
        if not is_about_cells or (filled := _filled(X, error)) is None:
            raise
        rows = _as_numbers(estimator, filled, reset=reset)
    if not rows.dtype.isnative or not rows.flags.aligned:
        rows = np.require(rows, rows.dtype.newbyteorder("="), ["C", "A"])
    names = getattr(estimator, "feature_names_in_", None)
    require_finite(rows, "X", names, missing=True)
    return rows


def _as_numbers(estimator: Any, X: Any, *, reset: bool) -> Rows:
    # Finiteness is checked later, where the message can name row and column.
    rows: Rows = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
    )
    return rows


def check_sparse_rows(estimator: Any, X: Any, *, reset: bool) -> Rows:
    """Sparse rows, finite or NaN where values are missing, in compressed rows with sorted indices.

    Sets or compares ``n_features_in_`` as scikit-learn does.
    """
    rows: Any = validate_data(
        estimator, X, reset=reset, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False
    )
    if not rows.has_canonical_format:
        rows = rows.copy()  # perhaps the caller's
        rows.sum_duplicates()
    parts = (rows.data, rows.indices, rows.indptr)
    if not all(part.flags.c_contiguous and part.flags.aligned for part in parts):
        rows = rows.copy()
    require_finite(rows, "X", missing=True)
    return rows  # type: ignore[no-any-return]


def stored_values(X: Any) -> AnyArray:
    """The values that a sparse matrix stores."""
    values: AnyArray = X.data if X.format in ("csr", "csc", "coo", "bsr") else X.tocsr().data
    return values


def _is_checked(estimator: Any, X: Any) -> bool:
    """Whether scikit-learn's checks would find nothing to do.

    They take as long as learning a row, which matters if rows arrive one by one.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and X.flags.aligned
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _without_array(message: str, X: Any) -> str:
    """A message of scikit-learn's without the whole array that it may show."""
    if message.startswith("Complex data"):
        kind = getattr(X, "dtype", "complex")
        return f"Complex data not supported: X has dtype {kind}; expected real numbers"
    before, found, rest = message.partition("\narray=")
    if not found:
        return message
    few = np.array2string(np.asarray(X), threshold=6, precision=4, max_line_width=1000)
    return f"{before} {few}, of shape {np.shape(X)}. {rest.rpartition(chr(10))[2]}"


def _filled(X: Any, error: Exception) -> Any:
    """A table of objects with NaN for its nulls; None if it is no matrix.

    An error names the first cell that is neither a number nor missing.
    """
    try:
        cells = np.array(X, dtype=object)
    except ValueError:  # rows of different lengths
        return None
    if cells.ndim != 2:
        return None
    names = column_names(X)
    for (row, column), value in np.ndenumerate(cells):
        if value is None or type(value).__name__ in _NULLS:
            cells[row, column] = np.nan
        elif not _is_number(value):
            what = f"the text {value!r}" if isinstance(value, str) else reprlib.repr(value)
            raise type(error)(
                f"X holds {what} in row {row}, column {column_name(names, column)}; expected "
                f"{_expected_cell(value)} ({str(error).partition('. The requested')[0]})"
            ) from error
    return type(X)(cells, X.index, X.columns) if hasattr(X, "iloc") else cells


def _is_number(value: Any) -> bool:
    """Whether a cell is a number."""
    if isinstance(value, np.ndarray):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _expected_cell(value: Any) -> str:
    """What a message expects in place of a cell that is not a number."""
    if isinstance(value, (list, tuple, dict, set, frozenset, np.ndarray)):
        return "one number: give each of several values a column of its own"
    if not isinstance(value, str):
        return "a number"
    return "numbers; name columns of categories by categorical_features"


def require_finite(
    values: Any, what: str, names: Any = None, *, missing: bool = False, why: str = ""
) -> None:
    """Refuse infinite values, and missing ones unless they are allowed; name the first.

    The values are an array, or a sparse matrix in compressed rows. `why` ends the message.
    """
    stored: AnyArray = values.data if issparse(values) else values
    # A finite sum proves that every term is finite, and needs no memory.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(stored.sum()):
            return
    bad = np.flatnonzero(np.isinf(stored) if missing else ~np.isfinite(stored))
    if not bad.size:
        return
    first = bad[0]
    if issparse(values):
        at = (np.searchsorted(values.indptr, first, side="right") - 1, values.indices[first])
    else:
        at = np.unravel_index(first, values.shape)
    value = stored.flat[first]
    found = "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
    place = f"row {at[0]}"
    if values.ndim == 2:
        place += f", column {column_name(names, at[1])}"
    more = f" ({bad.size} such values in all)" if bad.size > 1 else ""
    expected = "finite numbers, or NaN for missing values" if missing else "finite numbers"
    raise ValueError(f"Input {what} contains {found} in {place}{more}; expected {expected}{why}")


# -- targets --------------------------------------------------------------------------------------


def check_numbers(estimator: Any, y: Any, n_rows: int) -> FloatArray:
    """Regression targets as finite float64."""
    column = _column(estimator, y, n_rows)
    if column.dtype.kind not in "biufO":
        raise ValueError(f"y must be numeric, found {column.dtype}")
    try:
        numbers = np.ascontiguousarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must be numeric: {error}") from error
    require_finite(numbers, "y")
    return numbers


def check_labels(estimator: Any, y: Any, n_rows: int) -> AnyArray:
    """Class labels as a one-dimensional array; `boscage._input.labels.encode` makes codes."""
    column = _column(estimator, as_labels(y), n_rows)
    if column.dtype.kind == "O":
        column = as_numbers(column)
        kinds = {type(value) for value in column}
        if column.dtype.kind == "O" and len(kinds) > 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"y mixes labels of types {names}; expected labels of one type")
    if column.dtype.kind == "f":
        require_finite(column, "y")
        # Half precision does not have the bound.
        wide = column.astype(np.promote_types(column.dtype, np.float64), copy=False)
        large = np.flatnonzero(np.abs(wide) > 2.0**53)
        if large.size:
            raise ValueError(
                f"y holds {column[large[0]]} in row {large[0]}; a label of type float must be "
                "a whole number up to 2**53"
            )
    # Integers and strings are labels. scikit-learn would warn of few rows with many classes, which
    # are common in a stream.
    if column.dtype.kind not in "biuUO":
        check_classification_targets(column)
    return column


def _column(estimator: Any, y: Any, n_rows: int) -> AnyArray:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, "
            "but the target y is None."
        )
    refuse_masked(y, "Input y")
    if not isinstance(y, (np.ndarray, list, tuple)) and hasattr(y, "__array__"):
        # NumPy keeps the type of a table's column. scikit-learn would turn nullable integers into
        # floats, which are other labels.
        y = np.asarray(y)
    if np.iscomplexobj(y):
        # scikit-learn's message would hold all targets.
        raise ValueError("Complex data not supported: y must be real")
    column: AnyArray = y if _is_column(y) else column_or_1d(y, warn=True)
    if len(column) != n_rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, y has {len(column)}"
        )
    if column.dtype.kind == "O":
        for row, value in enumerate(column):
            if is_missing(value):
                raise ValueError(f"Input y contains NaN in row {row} ({value!r})")
    return column


def _is_column(y: Any) -> bool:
    """Whether scikit-learn's checks, which are slow, would find nothing to do."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"


# -- parameters -----------------------------------------------------------------------------------


def is_integer(value: Any) -> bool:
    """Whether a value is an integer; booleans are none."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Whether a value is a real number, infinite and NaN too; booleans are none."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter is a word; an array is none."""
    return isinstance(value, str) and value == word


def check_integer(name: str, value: Any) -> int:
    """An integer."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, found {value!r}")
    return operator.index(value)


def check_feature(name: str, value: Any, names: AnyArray | None, n_features: int) -> int:
    """The number of a feature that is given by number or, if features have names, by name."""
    known = [] if names is None else names.tolist()
    if isinstance(value, str) and value in known:
        return int(known.index(value))
    if not is_integer(value) or not 0 <= value < n_features:
        raise ValueError(
            f"{name} must be a number below {n_features}{or_names(names)}, found {value!r}"
        )
    return operator.index(value)


def or_names(names: AnyArray | None) -> str:
    """What a message about numbers of features adds if features have names."""
    return "" if names is None else f" or one of the names {reprlib.repr(names.tolist())}"


def check_count(name: str, value: Any, minimum: int) -> int:
    """An integer of at least `minimum`."""
    count = check_integer(name, value)
    if count < minimum:
        raise ValueError(f"{name} must be >= {minimum}, found {count}")
    if count > _MAX_U64:
        raise ValueError(f"{name} must be below 2**64, found {count}")
    return count


def check_positive(name: str, value: Any, *, finite: bool = True, zero: bool = False) -> float:
    """A positive real number; optionally zero or infinity."""
    number = to_float(name, value)
    if not (number >= 0.0 if zero else number > 0.0) or (finite and math.isinf(number)):
        bound = ">= 0" if zero else "> 0"
        raise ValueError(f"{name} must be {'finite and ' * finite}{bound}, found {value!r}")
    return number


def check_real(name: str, value: Any) -> float:
    """A finite number."""
    number = to_float(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, found {value!r}")
    return number


def to_float(name: str, value: Any) -> float:
    """A real number, infinite and NaN too."""
    if not is_real(value):
        raise TypeError(f"{name} must be a number, found {value!r}")
    try:
        return float(value)
    except OverflowError:
        # Not shown, since it has hundreds of digits.
        raise ValueError(
            f"{name} must be a number below 1.8e308 in size, which a float can hold"
        ) from None


def check_probabilities(name: str, value: Any) -> FloatArray:
    """Numbers in [0, 1], as an array of any shape."""
    try:
        probabilities = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number or an array, found {value!r}") from error
    if not ((probabilities >= 0.0) & (probabilities <= 1.0)).all():
        raise ValueError(f"{name} must lie in [0, 1], found {value!r}")
    return probabilities


def check_draws(n: Any) -> int:
    """A number of draws, which may be zero."""
    if not is_integer(n) or n < 0:
        raise ValueError(f"n must be an integer >= 0, found {n!r}")
    return int(n)


def check_verbose(verbose: Any) -> None:
    """A boolean, an integer, or None for nothing to show."""
    if not isinstance(verbose, (bool, np.bool_, type(None))) and not is_integer(verbose):
        raise TypeError(f"verbose must be a boolean or an integer, found {verbose!r}")


def check_generator(random_state: Any) -> Any:
    """A generator of random numbers: NumPy's new one as it is, or what scikit-learn makes of it."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def check_word(name: str, value: Any) -> str:
    """A string; the compiled module checks which one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, found {value!r}")
    return value


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of several words; the message is that of the compiled module."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {words}, found {value!r}")
    return value


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means in scikit-learn."""
    if n_jobs is not None and not is_integer(n_jobs):
        raise TypeError(f"n_jobs must be None or an integer, found {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; expected None, a number of threads, or -1 for all")
    # Results do not depend on the number of threads, and more than processors only cost time.
    return min(int(effective_n_jobs(n_jobs)), max(_MAX_THREADS, os.cpu_count() or 1))


def draw_seed(random_state: Any) -> int:
    """The model's seed. An integer is the seed itself, so that Rust and Python grow equal trees."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return int.from_bytes(random_state.bytes(8), "little")
    if not is_integer(random_state):
        raise TypeError(
            "random_state must be None, an integer, a RandomState or a Generator, "
            f"found {random_state!r}"
        )
    if not 0 <= int(random_state) <= _MAX_U64:
        raise ValueError(f"random_state must be from 0 to 2**64 - 1, found {random_state}")
    return int(random_state)
