"""Rows of a Parquet file, or of all files of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        'Parquet files need pyarrow, which is not installed: pip install "boscage[cli]"'
    ) from error

from boscage._input.parquet_files import parquet_files, read_footers
from boscage._types import AnyArray
from boscage.disk._rows import Block, file_stamps

_BUFFER = 1 << 20
"""Bytes of a column that are read at a time."""


class ParquetRows:
    """Rows of a Parquet file, or of all files of a folder by their names."""

    def __init__(self, path: Path, target: str) -> None:
        self._files = parquet_files(str(path)) if path.is_dir() else [str(path)]
        footers = read_footers(self._files)
        schema = footers.schema
        if target not in schema.names:
            raise ValueError(
                f"{path}: there is no column {target!r} to predict; its columns are "
                f"{', '.join(schema.names)}"
            )
        self._target = target
        self.n_bytes_to_read = footers.n_bytes_to_read
        self.feature_names = [name for name in schema.names if name != target]
        self.n_features = len(self.feature_names)
        types = [schema.field(name).type for name in self.feature_names]
        for name, kind in zip(self.feature_names, types, strict=True):
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.bool_()):
                raise ValueError(
                    f"{path}: column {name!r} is of type {kind}, expected numbers: categories are "
                    "not offered for rows on disk"
                )
        self._dtype = np.float32 if {*types} <= {pa.float32(), pa.float16()} else np.float64

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """All rows, in blocks of at most so many."""
        for path in self._files:
            start = 0
            with pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
                for batch in file.iter_batches(n_rows, use_threads=False):
                    end = start + batch.num_rows
                    if batch.num_rows:
                        yield self._block(f"{path}, rows {start} to {end - 1}", batch)
                    start = end
            pa.default_memory_pool().release_unused()

    def stamp(self) -> Any:
        """Sizes and times of the files."""
        return file_stamps(self._files)

    def _block(self, name: str, batch: Any) -> Block:
        X = np.empty((batch.num_rows, self.n_features), self._dtype)
        for number, column in enumerate(self.feature_names):
            X[:, number] = _values(batch.column(column))
        return Block(name, X, _values(batch.column(self._target)))


def _values(column: Any) -> AnyArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values
