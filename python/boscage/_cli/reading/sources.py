"""Reads tables, CSV, Parquet or folders of Parquet files, in chunks of rows."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from boscage._cli.errors import UserError, refusing
from boscage._cli.outputs import is_special, naming
from boscage._cli.reading import formats
from boscage._cli.reading.quotes import Quotes
from boscage._cli.reading.tables import Chunk
from boscage._input.parquet_files import READER, parquet_files, read_footers

STDIN = "-"
#: Bytes that the CSV reader takes at a time, which no row may exceed; it reads some thirty ahead.
BLOCK = 1 << 20
#: Bytes within which a CSV file's header must end.
HEADER = 1 << 22


class Source:
    """A table in a file, in a folder of Parquet files, in a pipe, or in CSV on standard input.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input. Parquet and compressed CSV are told by their first bytes.
        The files of a folder follow each other by name.
    delimiter : str, optional
        What separates a CSV file's columns: a comma, or a tab if the name says ``.tsv``.

    Attributes
    ----------
    name : str
        How messages call it.
    columns : list of str
        The columns' names, without the spaces around them.
    n_rows : int or None
        Number of rows, where that is known before reading.
    files : list of str
        The files that hold the table.
    n_bytes_to_read : int
        Memory that reading takes beside the rows.
    can_reread : bool
        Whether `chunks` can be called more than once.
    """

    def __init__(self, path: str, delimiter: str | None = None) -> None:
        self.path = path
        self.name = "standard input" if path == STDIN else path
        is_folder = os.path.isdir(path)
        with refusing():
            self.files = parquet_files(path) if is_folder else [path]
        self.can_reread = is_folder or (path != STDIN and not is_special(path))
        self.n_rows: int | None = None
        self.n_bytes_to_read = READER
        self._delimiter = delimiter or ("\t" if ".tsv" in Path(path).suffixes else ",")
        self._stream: IO[bytes] | None = None
        self._compression: str | None = None
        self._as_written: dict[str, str] = {}  # columns of CSV with the spaces around them
        self._is_parquet = is_folder or self._look_at_start()
        self.columns = self._parquet_columns() if self._is_parquet else self._csv_columns()
        if twice := [column for column, n in Counter(self.columns).items() if n > 1]:
            raise UserError(f"{self.name}: two columns are named {twice[0]!r}")

    def _look_at_start(self) -> bool:
        """Whether the table is Parquet; refuse what is no table."""
        with naming(self.name):
            if self.can_reread:
                with open(self.path, "rb") as file:
                    start = file.read(formats.ENOUGH)
            else:
                # What was read of a stream is put before the rest.
                stream: IO[bytes] = sys.stdin.buffer
                if self.path != STDIN:
                    stream = open(self.path, "rb")  # noqa: SIM115 (read to its end, chunk by chunk)
                start = stream.read(formats.ENOUGH)
                self._stream = io.BufferedReader(_Joined(start, stream))
        self._compression = formats.compression(start)
        if self._compression and not self.can_reread:
            raise UserError(
                f"{self.name}: found {formats.words(start)}, expected plain CSV: decompress it"
                " first, or give the name of the file"
            )
        if self._compression:
            with self._open_csv() as file:
                start = self._read(file, formats.ENOUGH)
        found = formats.not_csv(start)
        if found == formats.PARQUET and self.can_reread and not self._compression:
            return True
        if found is not None:
            inside = f" in a {self._compression}-compressed file" if self._compression else ""
            raise UserError(f"{self.name}: found {found}{inside}, expected {self._expected(found)}")
        return False

    def _expected(self, found: str) -> str:
        if found == formats.PARQUET and self._compression:
            return "it as it is: decompress it first"
        if found == formats.PARQUET:
            return "CSV: give Parquet by the name of its file"
        if found == formats.MODEL:
            return "a table"
        if found == "UTF-16 text":
            return "UTF-8 text: save the table as CSV in UTF-8"
        if found in formats.PACKED:
            return f"a table: unpack it first ({', '.join(formats.COMPRESSED.values())} are read)"
        return "a table in CSV or Parquet: save it as one of these"

    def _read(self, stream: IO[bytes], size: int) -> bytes:
        try:
            return stream.read(size)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> UserError:
        if self._compression:
            return UserError(
                f"{self.name}: the {self._compression}-compressed file is damaged or cut off"
                f" ({error})"
            )
        return UserError(f"{self.name}: {error}")

    def _parquet_columns(self) -> list[str]:
        with refusing():
            footers = read_footers(self.files)
        self.n_rows, self.n_bytes_to_read = footers.n_rows, footers.n_bytes_to_read
        return list(footers.schema.names)

    def _open_csv(self) -> IO[bytes]:
        """The bytes of CSV from the beginning; of a stream, this can be had once."""
        if self._stream is not None:
            return self._stream
        return pa.input_stream(  # type: ignore[no-any-return]
            self.path, compression=self._compression
        )

    def _csv_columns(self) -> list[str]:
        stream = self._open_csv()
        start = self._read(stream, HEADER)
        if self.can_reread:
            stream.close()
        else:
            self._stream = io.BufferedReader(_Joined(start, stream))
        if not start.strip():
            raise UserError(
                f"{self.name}: the file is empty, expected a header with columns' names"
            )
        # Bytes cut in the middle of a letter are beyond the header.
        text = io.StringIO(start.decode("utf-8-sig", errors="replace"), newline="")
        rows = csv.reader(text, delimiter=self._delimiter)
        try:
            names = next(row for row in rows if row)
        except csv.Error as error:  # a value that is longer than any name
            raise self._unclosed(1) from error
        lines = start.splitlines(keepends=True)[: rows.line_num]
        quotes = Quotes(self._delimiter)
        quotes.feed(b"".join(lines))
        quotes.finish()
        if quotes.opened is not None:
            raise self._unclosed(quotes.opened)
        if "\ufffd" in "".join(names):
            raise UserError(f"{self.name}: the header is not UTF-8 text")
        self._as_written = {name.strip(): name for name in names}
        return [name.strip() for name in names]

    def _unclosed(self, line: int) -> UserError:
        return UserError(f'{self.name}: line {line}: a quote (") opens here and is not closed')

    def require(self, *names: str, why: str) -> None:
        """Refuse a table that lacks one of these columns."""
        for name in names:
            if name not in self.columns:
                raise UserError(
                    f"{self.name}: there is no column {name!r} ({why}); {self._what_there_is(name)}"
                )

    def _what_there_is(self, wanted: str) -> str:
        if len(self.columns) == 1 and not self._is_parquet:
            for other in {",", ";", "\t", "|"} - {self._delimiter}:
                if wanted in map(str.strip, next(csv.reader(self.columns, delimiter=other))):
                    shown = repr(other)
                    return f"columns seem to be separated by {shown}: give --delimiter {shown}"
        # Quoted as an option for several columns takes them.
        names = [f'"{name}"' if "," in name else name for name in self.columns[:20]]
        return f"its columns are {', '.join(names + ['...'] * (len(self.columns) > 20))}"

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
                for path in self.files:
                    with pq.ParquetFile(path) as file:
                        # A row group is decoded in pieces, so that it need not fit in memory.
                        for batch in file.iter_batches(min(n_rows, 1 << 16), columns=columns):
                            # Files may differ in what their schemas say besides names and types.
                            names = batch.schema.names
                            yield pa.RecordBatch.from_arrays(batch.columns, names=names)
            else:
                yield from self._csv_batches(columns)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error

    def _csv_batches(self, columns: list[str]) -> Iterator[Any]:
        with closing(self._open_csv()) as stream:
            yield from self._csv_batches_of(stream, columns)

    def _csv_batches_of(self, stream: IO[bytes], columns: list[str]) -> Iterator[Any]:
        wrong, quotes = _WrongRows(), Quotes(self._delimiter)
        watched = _Watched(stream, quotes)
        pa.set_io_thread_count(1)  # see _wait_for_reader
        pa.set_cpu_count(1)
        reader, error = None, None
        try:
            # Reading on one thread makes the reader know rows' numbers.
            with pacsv.open_csv(
                watched,
                read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=wrong,
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types={name: pa.binary() for name in self._as_written.values()},
                    include_columns=[self._as_written[name] for name in columns],
                    strings_can_be_null=False,
                ),
            ) as reader:
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(batch.columns, names=columns)
        except pa.ArrowInvalid as raised:
            error = raised
        finally:
            found = wrong.found
            del wrong, reader, watched
            _wait_for_reader()
        if error is not None:
            raise self._bad_csv(error, found, quotes, stream) from error
        quotes.finish()
        if quotes.opened is not None:
            raise self._unclosed(quotes.opened)

    def _bad_csv(
        self, error: Exception, found: list[Any], quotes: Quotes, rest: IO[bytes]
    ) -> UserError:
        """What the reader's error means; it has stopped somewhere in the file."""
        if not found or "\n" in found[0].text:
            while quotes.opened is not None and (piece := rest.read(BLOCK)):
                quotes.feed(piece)
            quotes.finish()
            if quotes.opened is not None:
                return self._unclosed(quotes.opened)
        if found:
            # The reader counts the header.
            return UserError(
                f"{self.name}: row {found[0].number - 1}: found {found[0].actual_columns} columns,"
                f" expected {found[0].expected_columns}, as in the header"
            )
        if quotes.longest is not None:
            return UserError(
                f'{self.name}: line {quotes.longest}: a quote (") opens here that is not closed'
                f" within {BLOCK >> 20} MB, which no row may exceed"
            )
        return self._unreadable(error)


def _wait_for_reader() -> None:
    """Wait until the CSV reader's own threads have let go of all Python objects.

    They need Python for that: if the process ended before, it would be aborted. There is one thread
    that reads and one that decodes, which take their tasks in order: when they have done another
    table, they are done with those before. It is in Arrow's own memory, as to free bytes of Python
    takes Python, too.
    """
    table = pa.BufferOutputStream()
    table.write(b"a\n1\n")
    options = pacsv.ReadOptions(use_threads=False)
    pacsv.open_csv(pa.BufferReader(table.getvalue()), options).read_all()


class _WrongRows:
    """Keeps the rows that have another number of columns than the header; the first one ends it."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def __call__(self, row: Any) -> str:
        self.found.append(row)
        return "error"


class _Watched:
    """Bytes on their way to the reader, whose quotes are followed."""

    def __init__(self, stream: IO[bytes], quotes: Quotes) -> None:
        self._stream = stream
        self._quotes = quotes
        self.closed = False

    def read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self._quotes.feed(piece)
        return piece

    def close(self) -> None:
        """Take no more; what is left of the stream may still be wanted."""
        self.closed = True


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
