"""Tables as they are written: CSV and Parquet, whole or not at all."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from boscage._cli.errors import require_folder
from boscage._cli.sources import STDIN


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
