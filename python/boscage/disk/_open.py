"""The rows that the arguments of `fit` mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from boscage._types import AnyArray
from boscage.disk._rows import ArrayRows, RowSource


def open_rows(X: Any, y: Any) -> RowSource:
    """The rows that the arguments of `fit` mean."""
    if isinstance(X, np.ndarray):
        return ArrayRows(X, _array(y))
    if not _is_path(X):
        raise TypeError(
            "X must be the path of a Parquet folder, a Parquet file or a .npy file, or an array, "
            f"such as numpy.memmap; found {type(X).__name__}"
        )
    path = Path(X)
    os.stat(path)  # names what is not there
    if path.suffix == ".npy":
        return ArrayRows(_array(path), _array(y))
    if not isinstance(y, str):
        raise TypeError(
            f"y must be the name of the column to predict, since X is the table {path}; found "
            f"{type(y).__name__}"
        )
    from boscage.disk._parquet import ParquetRows

    return ParquetRows(path, y)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _array(given: Any) -> AnyArray:
    """An array, or a map of the one in a file."""
    array: AnyArray = np.load(given, mmap_mode="r") if _is_path(given) else np.asanyarray(given)
    return array
