"""Tables in files: CSV and Parquet, read in chunks of rows, with errors by file, row and column.

Rows are counted from 1, the first row after a CSV file's header. CSV columns are read as bytes and
converted here, not by the reader: so a value that is no text or no number can be named with its
place, in a stream as well as in a file.
"""

from __future__ import annotations

import csv
import io
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from boscage._cli.errors import UserError, require_folder

STDIN = "-"
#: Bytes that the CSV reader takes at a time, which no row may exceed; it reads some thirty ahead.
BLOCK = 1 << 20
#: Bytes within which a CSV file's header must end.
HEADER = 1 << 22
#: The longest that a reader is waited for at its end, in seconds.
LET_GO = 1.0


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
                    self.refuse(index, name, repr(value.as_py()), expected)
            raise  # each value can be cast, but not all of them: a bug

    def numbers(self, name: str) -> pa.Array:
        """A column of finite numbers; truth values count as 0 and 1."""
        values, expected = self.column(name), "a number"
        self.refuse_missing(name, values, expected)
        if pa.types.is_boolean(values.type):
            values = pc.cast(values, pa.int8())
        try:
            values = pc.cast(values, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = self._cast(name, _in_digits(values), pa.float64(), expected)
        finite = pc.is_finite(values)
        if (index := pc.index(finite, False).as_py()) >= 0:
            self.refuse(index, name, str(values[index].as_py()), "a finite number")
        return values

    def features(self, names: Sequence[str]) -> pa.Table:
        """Columns of finite numbers, in the given order."""
        return pa.table([self.numbers(name) for name in names], names=list(names))

    def ids(self, name: str) -> NDArray[np.uint64]:
        """A column of row numbers."""
        values = self.convert(name, pa.uint64(), "a whole number from 0 to 2^64 - 1")
        ids = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.uint64)
        first = np.unique(ids, return_index=True)[1]
        if again := np.setdiff1d(np.arange(len(ids)), first).tolist():
            self.refuse(again[0], name, f"{ids[again[0]]} again", "another number for each row")
        return ids

    def refuse_held(self, name: str, ids: NDArray[np.uint64], held: NDArray[np.uint64]) -> None:
        """Raise an error if a row's number is that of a row which a model holds."""
        if index := np.flatnonzero(np.isin(ids, held)).tolist():
            expected = "a number that no row of the model has"
            self.refuse(index[0], name, str(ids[index[0]]), expected)


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


class Source:
    """A table in a file, or in CSV on standard input.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input. Parquet is told from CSV by its first bytes; a
        compressed CSV file by the end of its name.
    delimiter : str, optional
        What separates a CSV file's columns: a comma, or a tab if the name says ``.tsv``.

    Attributes
    ----------
    name : str
        How messages call it.
    columns : list of str
        The columns' names.
    n_rows : int or None
        Number of rows, where that is known before reading.
    can_reread : bool
        Whether `chunks` can be called more than once.
    """

    def __init__(self, path: str, delimiter: str | None = None) -> None:
        self.path = path
        self.can_reread = path != STDIN
        self.name = path if self.can_reread else "standard input"
        self.n_rows: int | None = None
        self._delimiter = delimiter or ("\t" if ".tsv" in Path(path).suffixes else ",")
        self._rest: IO[bytes] | None = None
        self._is_parquet = False
        if self.can_reread:
            with open(path, "rb") as file:
                self._is_parquet = file.read(4) == b"PAR1"
        self.columns = self._parquet_columns() if self._is_parquet else self._csv_columns()
        if twice := [column for column, n in Counter(self.columns).items() if n > 1]:
            raise UserError(f"{self.name}: two columns are named {twice[0]!r}")

    def _parquet_columns(self) -> list[str]:
        try:
            with pq.ParquetFile(self.path) as file:
                self.n_rows = file.metadata.num_rows
                return list(file.schema_arrow.names)
        except pa.ArrowException as error:
            raise UserError(f"{self.name}: {error}") from error

    def _open_csv(self) -> IO[bytes]:
        if not self.can_reread:
            return sys.stdin.buffer
        try:
            return pa.input_stream(self.path, compression="detect")  # type: ignore[no-any-return]
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.name}: {error}") from error

    def _csv_columns(self) -> list[str]:
        stream = self._open_csv()
        try:
            start = stream.read(HEADER)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.name}: {error}") from error
        if self.can_reread:
            stream.close()
        else:
            self._rest = io.BufferedReader(_Joined(start, stream))
        if not start.strip():
            raise UserError(
                f"{self.name}: the file is empty, expected a header with columns' names"
            )
        # Bytes cut in the middle of a letter are beyond the header.
        text = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
        names = next(csv.reader(text, delimiter=self._delimiter))
        if "\ufffd" in "".join(names):
            raise UserError(f"{self.name}: the header is not UTF-8 text")
        return names

    def require(self, *names: str, why: str) -> None:
        """Refuse a table that lacks one of these columns."""
        for name in names:
            if name not in self.columns:
                shown = ", ".join(self.columns[:20]) + (", ..." if len(self.columns) > 20 else "")
                raise UserError(
                    f"{self.name}: there is no column {name!r} ({why}); its columns are {shown}"
                )

    def chunks(self, columns: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Yield chunks of `n_rows` rows, the last one with what is left, of some columns."""
        first_row, batches, held = 1, list[Any](), 0
        for batch in self._batches(list(columns), n_rows):
            batches.append(batch)
            held += batch.num_rows
            if held < n_rows:
                continue
            table = pa.Table.from_batches(batches)
            whole = held - held % n_rows
            for start in range(0, whole, n_rows):
                yield Chunk(self.name, first_row + start, table.slice(start, n_rows))
            first_row, held = first_row + whole, held - whole
            batches = table.slice(whole).to_batches() if held else []
        if held:
            yield Chunk(self.name, first_row, pa.Table.from_batches(batches))

    def _batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        try:
            if self._is_parquet:
                with pq.ParquetFile(self.path) as file:
                    # A row group is decoded in pieces, so that it need not fit in memory.
                    yield from file.iter_batches(min(n_rows, 1 << 16), columns=columns)
            else:
                yield from self._csv_batches(columns)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.name}: {error}") from error

    def _csv_batches(self, columns: list[str]) -> Iterator[Any]:
        wrong = _WrongRows()
        let_go = threading.Event()
        weakref.finalize(wrong, let_go.set)
        found, reader = wrong.found, None
        stream = self._open_csv() if self.can_reread else self._rest
        try:
            # Reading on one thread makes the reader know rows' numbers.
            with pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=wrong,
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types={name: pa.binary() for name in self.columns},
                    include_columns=columns,
                    strings_can_be_null=False,
                ),
            ) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            if not found:
                raise
            # The reader counts the header.
            raise UserError(
                f"{self.name}: row {found[0].number - 1}: found {found[0].actual_columns} columns,"
                f" expected {found[0].expected_columns}, as in the header"
            ) from error
        finally:
            if self.can_reread and stream is not None:
                stream.close()
            # The reader's own thread lets go of what it calls, and needs Python for it: if the
            # process ended before, it would be aborted.
            del wrong, reader
            let_go.wait(LET_GO)


class _WrongRows:
    """Keeps the rows that have another number of columns than the header; the first one ends it."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def __call__(self, row: Any) -> str:
        self.found.append(row)
        return "error"


class _Joined(io.RawIOBase):
    """Bytes that were read already, then the rest of their stream."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start = memoryview(start)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        wanted = len(buffer)
        piece = self._start[:wanted] if self._start else self._rest.read(wanted)
        self._start = self._start[wanted:]
        buffer[: len(piece)] = piece
        return len(piece)


class Sink:
    """A table that is written in chunks: to standard output, or whole to a file or not at all.

    Parameters
    ----------
    path : str, optional
        The file; Parquet if its name ends so, CSV otherwise. Standard output if there is none.
    """

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path and path != STDIN else None
        self._part = self._path and self._path.with_name(f".{self._path.name}.part")
        self._file: IO[Any] | None = None
        self._parquet: Any = None
        self._csv: Any = None

    def __enter__(self) -> Sink:
        if self._path is not None:
            require_folder(str(self._path))
        if self._path is None or self._part is None:
            self._csv = csv.writer(sys.stdout, lineterminator="\n")
        elif self._path.suffix in {".parquet", ".pq"}:
            self._file = open(self._part, "wb")
        else:
            self._file = open(self._part, "w", encoding="utf-8", newline="")
            delimiter = "\t" if self._path.suffix == ".tsv" else ","
            self._csv = csv.writer(self._file, delimiter=delimiter, lineterminator="\n")
        self._is_new = True
        return self

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        if self._csv is not None:
            if self._is_new:
                self._csv.writerow(table.column_names)
            # A float is written with all its digits.
            self._csv.writerows(zip(*(c.to_pylist() for c in table.columns), strict=True))
        else:
            if self._is_new:
                self._parquet = pq.ParquetWriter(self._file, table.schema)
            self._parquet.write_table(table)
        self._is_new = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._parquet is not None:
            self._parquet.close()
        if self._file is None or self._path is None or self._part is None:
            return
        self._file.close()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink()
