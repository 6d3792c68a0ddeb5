"""Rows that lie in files, block by block."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from boscage._types import AnyArray


@dataclass(frozen=True)
class Block:
    """Consecutive rows, as they are in the file."""

    name: str
    """How messages call them."""
    X: AnyArray
    y: AnyArray


class RowSource(Protocol):
    """Rows that can be read again and again, in the same order."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, if they have any."""

    @property
    def n_bytes_to_read(self) -> int:
        """Bytes that reading takes beside the blocks."""

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """All rows, in blocks of at most so many."""

    def stamp(self) -> Any:
        """What is another if the rows have changed since it was asked for last."""


class ArrayRows:
    """Rows of arrays, which may be maps of files."""

    feature_names = None
    n_bytes_to_read = 0

    def __init__(self, X: AnyArray, y: AnyArray) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, found the shape {X.shape}")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must be of numbers, found the type {X.dtype}")
        if y.ndim != 1:
            raise ValueError(f"y must be one-dimensional, found the shape {y.shape}")
        if len(y) != len(X):
            raise ValueError(f"X has {len(X)} rows, and y has {len(y)}; expected as many")
        self._X, self._y = X, y
        self.n_features = X.shape[1]

    def blocks(self, n_rows: int) -> Iterator[Block]:
        """All rows, in blocks of at most so many."""
        for start in range(0, len(self._X), n_rows):
            end = min(start + n_rows, len(self._X))
            X, y = np.array(self._X[start:end]), np.array(self._y[start:end])
            _release(self._X)
            _release(self._y)
            yield Block(f"rows {start} to {end - 1}", X, y)

    def stamp(self) -> Any:
        """Sizes and times of the files that are mapped."""
        names = [getattr(array, "filename", None) for array in (self._X, self._y)]
        return file_stamps([name for name in names if name is not None])


def _release(array: AnyArray) -> None:
    """Give up the pages of a file that were read, which else count as this process' memory."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def file_stamps(paths: list[Any]) -> list[tuple[str, int, int]]:
    """Sizes and times of change of files."""
    found = [(str(path), os.stat(path)) for path in paths]
    return [(name, of.st_size, of.st_mtime_ns) for name, of in found]
