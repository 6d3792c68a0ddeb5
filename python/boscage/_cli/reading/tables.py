"""Rows of a table: columns as numbers, labels or ids, with errors by file, row and column.

Rows are counted from 1, the first row after a CSV file's header. CSV columns are read as bytes and
converted here, not by the reader. So errors give the place of a value that is not valid text or not
a number, in a stream as well as in a file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage import row_numbers
from boscage._cli.errors import UserError

MISSING = ["", "na", "n/a", "nan", "null", "none", "?"]
"""What stands for a missing number in a table of text, in small letters."""

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?inf(inity)?$"
"""What numbers look like in a table of text, in small letters."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table."""

    name: str
    first_row: int
    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def rows(self) -> str:
        """Which rows these are, for messages."""
        return f"{self.name}: rows {self.first_row} to {self.first_row + len(self) - 1}"

    def refuse(self, index: int, column: str, found: str, expected: str) -> NoReturn:
        """Raise the error that names a cell."""
        place = f"{self.name}: row {self.first_row + index}, column {column!r}"
        raise UserError(f"{place}: found {found}, expected {expected}")

    def column(self, name: str) -> pa.Array:
        """A column as one array; text without the spaces around it, dictionaries decoded."""
        values = self.table.column(name)
        values = pa.concat_arrays(values.chunks) if values.num_chunks != 1 else values.chunk(0)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_binary(values.type):
            values = self._cast(name, values, pa.string(), "UTF-8 text")
        return pc.utf8_trim_whitespace(values) if is_text(values.type) else values

    def refuse_missing(self, name: str, values: pa.Array, expected: str) -> None:
        """Raise an error if a value is null or empty."""
        missing = pc.is_null(values)
        if is_text(values.type):
            missing = pc.or_(missing, pc.fill_null(pc.equal(values, ""), True))
        if (index := pc.index(missing, True).as_py()) >= 0:
            self.refuse(index, name, "no value", expected)

    def refuse_missing_target(self, name: str, known: Sequence[Any] = ()) -> None:
        """Raise an error if a target is missing, unless it is a class that a model knows."""
        values = self.column(name)
        missing = pc.is_null(_with_nulls(values))
        if is_text(values.type):
            words = pa.array([each for each in known if isinstance(each, str)], values.type)
            missing = pc.and_(missing, pc.invert(pc.is_in(values, words)))
        if (index := pc.index(missing, True).as_py()) < 0:
            return
        if not (found := values[index].as_py()):
            self.refuse(index, name, "no value", "a target")
        expected = "a target (leave such rows out; a class needs another name)"
        self.refuse(index, name, f"{found!r}, which stands for a missing value", expected)

    def convert(self, name: str, to: pa.DataType, expected: str) -> pa.Array:
        """Cast a column, none of whose values may be missing."""
        values = self.column(name)
        self.refuse_missing(name, values, expected)
        return self._cast(name, values, to, expected)

    def _cast(self, name: str, values: pa.Array, to: pa.DataType, expected: str) -> pa.Array:
        if values.type == to:
            return values
        try:
            return pc.cast(values, to)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            for index, value in enumerate(values):
                try:
                    pc.cast(value, to)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    self.refuse(index, name, shown(value), expected)
            raise  # each value can be cast, but not all of them: a bug

    def numbers(self, name: str, *, missing: bool = False) -> pa.Array:
        """A column of finite numbers; truth values count as 0 and 1.

        With `missing`, values may be missing: they are null then.
        """
        values, expected = self.column(name), "a number"
        if missing:
            values = _with_nulls(values)
        else:
            self.refuse_missing(name, values, expected)
        if pa.types.is_boolean(values.type):
            values = pc.cast(values, pa.int8())
        try:
            values = pc.cast(values, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = self._cast(name, _in_digits(values), pa.float64(), expected)
        if missing:
            values = pc.if_else(pc.is_nan(values), None, values)
        finite = pc.is_finite(values)
        if (index := pc.index(finite, False).as_py()) >= 0:
            self.refuse(index, name, str(values[index].as_py()), "a finite number")
        return values

    def integers(self, name: str, expected: str) -> pa.Array:
        """A column of whole numbers, which may be written as ``+1``, ``1.0`` or ``1e0``."""
        values = self.column(name)
        try:
            return pc.cast(values, pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            numbers = self._cast(name, values, pa.float64(), expected)
        if (index := pc.index(_are_whole(numbers), False).as_py()) >= 0:
            self.refuse(index, name, shown(values[index]), expected)
        return pc.cast(numbers, pa.int64())

    def words(self, name: str) -> pa.Array:
        """A column of categories as text; null where the value is missing."""
        values = self._cast(name, self.column(name), pa.string(), "a category")
        return _with_nulls(values)

    def features(self, names: Sequence[str], *, categorical: Collection[str] = ()) -> pa.Table:
        """Columns of finite numbers, null where they are missing, in the given order.

        Those that are `categorical` are text.
        """
        columns = [
            self.words(name) if name in categorical else self.numbers(name, missing=True)
            for name in names
        ]
        return pa.table(columns, names=list(names))

    def ids(self, name: str) -> NDArray[np.uint64]:
        """A column of ids as row numbers."""
        values, expected = self.column(name), "a whole number or text"
        self.refuse_missing(name, values, expected)
        if not (is_text(values.type) or pa.types.is_integer(values.type)):
            self.refuse(0, name, shown(values[0]), expected)
        ids = row_numbers(values.to_numpy(zero_copy_only=False))
        first = np.unique(ids, return_index=True)[1]
        if again := np.setdiff1d(np.arange(len(ids)), first).tolist():
            self.refuse(again[0], name, f"{values[again[0]]} again", "another id for each row")
        return ids

    def weights(self, name: str) -> NDArray[np.float64]:
        """A column of weights, all of them above 0."""
        weights = self.numbers(name).to_numpy(zero_copy_only=False)
        if index := np.flatnonzero(weights <= 0.0).tolist():
            self.refuse(index[0], name, str(weights[index[0]]), "a number above 0")
        return np.asarray(weights, dtype=np.float64)

    def refuse_held(self, name: str, ids: NDArray[np.uint64], held: NDArray[np.uint64]) -> None:
        """Raise an error if a row's id is that of a row which a model holds."""
        if index := np.flatnonzero(np.isin(ids, held)).tolist():
            found = str(self.column(name)[index[0]])
            self.refuse(index[0], name, found, "an id that no row of the model has")


def shown(value: pa.Scalar) -> str:
    """A value as messages show it: text in quotes, dates and the like as they are written."""
    found = value.as_py()
    return repr(found) if isinstance(found, (str, bytes)) else str(found)


def _with_nulls(values: pa.Array) -> pa.Array:
    """Text with null instead of words for a missing number; other values as they are."""
    if is_text(values.type):
        says_missing = pc.is_in(pc.ascii_lower(values), pa.array(MISSING, values.type))
        values = pc.if_else(says_missing, None, values)
    return values


def holds_integers(values: pa.Array) -> bool:
    """Whether `Chunk.integers` reads all of these numbers."""
    try:
        pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        return bool(pc.all(_are_whole(pc.cast(values, pa.float64()))).as_py())
    return True


def _are_whole(numbers: pa.Array) -> pa.Array:
    """Which numbers are whole and not so large that others have been rounded to them."""
    is_small = pc.less(pc.abs(numbers), 2.0**53)  # NaN is not
    return pc.and_(is_small, pc.equal(numbers, pc.round(numbers)))


def _in_digits(values: pa.Array) -> pa.Array:
    """Text with truth values as 1 and 0 instead of words; other values as they are."""
    if is_text(values.type):
        for word, digit in (("true", "1"), ("false", "0")):
            is_word = pc.equal(pc.ascii_lower(values), word)
            values = pc.if_else(is_word, digit, values)
    return values


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
