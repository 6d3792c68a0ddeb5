"""Tables as they are read: CSV and Parquet, in chunks of rows."""

from __future__ import annotations

import csv
import io
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from boscage._cli.errors import UserError
from boscage._cli.tables import Chunk

STDIN = "-"
#: Bytes that the CSV reader takes at a time, which no row may exceed; it reads some thirty ahead.
BLOCK = 1 << 20
#: Bytes within which a CSV file's header must end.
HEADER = 1 << 22
#: The longest that a reader is waited for at its end, in seconds.
LET_GO = 1.0


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
