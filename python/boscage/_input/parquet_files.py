"""Parquet files, one or all of a folder, as one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".pq")
READER = 16 << 20
"""Bytes that a reader takes, without rows."""
_COPIES = 3
"""Copies of a row group: as it is stored, unpacked and as arrays."""


def parquet_files(folder: str) -> list[str]:
    """The Parquet files of a folder by name, in which numbers count by their value.

    Files that begin with a dot or an underscore are notes of the program that wrote the folder.

    Raises
    ------
    ValueError
        If there are none, or folders beside them.
    """
    entries = sorted(path for path in Path(folder).iterdir() if path.name[0] not in "._")
    found = [path for path in entries if path.suffix in SUFFIXES and path.is_file()]
    if found and (inner := next((path for path in entries if path.is_dir()), None)) is not None:
        raise ValueError(
            f"{folder}: found the folder {inner.name!r} beside Parquet files, expected files alone"
        )
    if not found:
        raise ValueError(
            f"{folder}: found a folder without Parquet files (.parquet, .pq), expected a table"
        )
    return [str(path) for path in sorted(found, key=lambda path: _by_value(path.name))]


def _by_value(name: str) -> list[tuple[int, str]]:
    """A name's parts, in which part.10 comes after part.9."""
    return [
        (int(part), part) if part.isdecimal() else (-1, part)
        for part in re.split(r"([0-9]+)", name)
    ]


@dataclass(frozen=True)
class Footers:
    """What the ends of files say of the table that they are together."""

    n_rows: int
    schema: pa.Schema
    n_bytes_to_read: int
    """Memory that reading block by block takes: row groups are unpacked as a whole."""


def read_footers(files: Sequence[str]) -> Footers:
    """What the ends of files say.

    Raises
    ------
    ValueError
        If a file is damaged, or has other columns or types than the first.
    """
    n_rows, first, largest = 0, None, 0
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                n_rows += file.metadata.num_rows
                schema = file.schema_arrow
                groups = map(file.metadata.row_group, range(file.num_row_groups))
                largest = max([largest, *(group.total_byte_size for group in groups)])
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path}: the Parquet file is damaged or cut off ({error})") from error
        first = schema if first is None else first
        if schema.names != first.names:
            raise ValueError(
                f"{path}: found the columns {', '.join(schema.names)}, expected those of "
                f"{files[0]}, which are {', '.join(first.names)}"
            )
        for name, found, expected in zip(schema.names, schema.types, first.types, strict=True):
            if found != expected:
                raise ValueError(
                    f"{path}: column {name!r} is of type {found}, expected {expected} as in "
                    f"{files[0]}"
                )
    return Footers(n_rows, first, READER + _COPIES * largest)
