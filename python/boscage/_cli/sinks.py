"""Writes tables as CSV or Parquet: the whole file or nothing."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from boscage._cli.outputs import replacing
from boscage._cli.reading.sources import STDIN
from boscage._input.parquet_files import SUFFIXES


class Sink:
    """A table that is written in chunks, to standard output or to a file.

    Parameters
    ----------
    path : str, optional
        The file; Parquet if its name ends so, CSV otherwise. Standard output if there is none.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path in (None, STDIN) else path
        self._stack = ExitStack()
        self._append: Callable[[pa.Table], None] | None = None

    def __enter__(self) -> Sink:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        if self._append is None:
            self._append = self._start(table)
        self._append(table)

    def _start(self, table: pa.Table) -> Callable[[pa.Table], None]:
        """Open the output and write what comes before the rows; return what writes rows."""
        if self._path is None:
            return self._csv(sys.stdout, ",", table)
        suffix = Path(self._path).suffix
        file = self._stack.enter_context(replacing(self._path))
        if suffix in SUFFIXES:
            parquet = self._stack.enter_context(pq.ParquetWriter(file, table.schema))
            return parquet.write_table  # type: ignore[no-any-return]
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        self._stack.callback(text.flush)
        return self._csv(text, "\t" if suffix == ".tsv" else ",", table)

    def _csv(self, file: Any, delimiter: str, table: pa.Table) -> Callable[[pa.Table], None]:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(table.column_names)

        def append(rows: pa.Table) -> None:
            # A float is written with all its digits.
            writer.writerows(zip(*(c.to_pylist() for c in rows.columns), strict=True))

        return append
