"""Dask collections as lists of partitions, and what is checked of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from sklearn.base import clone

from boscage._bases.sampler import PosteriorSampler
from boscage._input.columns import dense, is_text
from boscage._input.ids import row_numbers
from boscage._types import AnyArray, FloatArray, Ids, IntArray
from boscage.mondrian._forest.base import MondrianForest

Part: TypeAlias = tuple[Any, AnyArray, Ids | None, FloatArray | None]
"""Features as they came, targets, ids and weights of some rows."""


@dataclass(frozen=True)
class Layout:
    """What all partitions of a collection have in common."""

    columns: tuple[Any, ...] | None
    """The names of the columns of a data frame; None for an array."""
    dtypes: tuple[str, ...]
    """The types of the columns, or the type of an array."""
    n_features: int

    def check(self, part: Any) -> None:
        """Refuse a partition that does not look as the collection says."""
        found = layout_of(part)
        if found.columns != self.columns:
            raise ValueError(
                f"found the columns {_listed(found.columns)}, expected {_listed(self.columns)}"
            )
        if found.n_features != self.n_features:
            raise ValueError(f"found {found.n_features} features, expected {self.n_features}")
        if found.dtypes != self.dtypes:
            names = self.columns or ("X",)
            for name, own, expected in zip(names, found.dtypes, self.dtypes, strict=True):
                if own != expected and not (_may_be_text(own) and _may_be_text(expected)):
                    raise TypeError(f"{name} is of type {own}, expected {expected}")


def _may_be_text(kind: str) -> bool:
    """Whether a column of this type may be text: Dask and pandas convert between these types."""
    return kind == "object" or is_text(kind)


def _listed(columns: tuple[Any, ...] | None) -> str:
    return "of an array" if columns is None else str(list(columns))


def layout_of(X: Any) -> Layout:
    """The layout of an array, a data frame or a collection of either."""
    if hasattr(X, "columns"):
        return Layout(tuple(X.columns), tuple(map(str, X.dtypes)), len(X.columns))
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, found {X.ndim}")
    return Layout(None, (str(X.dtype),), X.shape[1])


def partitions(X: Any, name: str) -> tuple[list[Any], list[float]]:
    """The partitions of a collection as delayed values, and their lengths, or NaN."""
    if isinstance(X, da.Array):
        if X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel()), [float(n) for n in X.chunks[0]]
    if hasattr(X, "to_delayed") and hasattr(X, "npartitions"):
        parts = list(X.to_delayed())
        return parts, [float("nan")] * len(parts)
    raise TypeError(
        f"{name} must be a Dask array or a Dask data frame, found {type(X).__name__}; make one by "
        "dask.array.from_array or dask.dataframe.from_pandas"
    )


def same_partitions(
    X: Any, others: dict[str, Any]
) -> tuple[list[Any], dict[str, list[Any] | None]]:
    """The partitions of the features, and those of other collections, which hold the same rows."""
    parts, lengths = partitions(X, "X")
    found: dict[str, list[Any] | None] = {}
    for name, other in others.items():
        if other is None:
            found[name] = None
            continue
        is_array = isinstance(other, da.Array)
        if is_array and not np.isnan([*lengths, *other.chunks[0]]).any():
            if sum(lengths) != other.shape[0]:
                raise ValueError(
                    f"{name} has {other.shape[0]} entries for {sum(lengths):.0f} rows of X"
                )
            other = other.rechunk({0: tuple(map(int, lengths))})
        own, _ = partitions(other, name)
        if len(own) != len(parts):
            raise ValueError(
                f"{name} has {len(own)} partitions and X has {len(parts)}; expected as many"
            )
        found[name] = own
    return parts, found


@contextmanager
def naming_partition(number: int) -> Iterator[None]:
    """Make errors name the partition, in which they count rows from 0."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number}: {error}") from error


def check_part(
    estimator: MondrianForest | PosteriorSampler,
    layout: Layout,
    X: Any,
    y: Any,
    others: tuple[Any, Any],
    number: int,
) -> Part:
    """A partition, after its rows, targets, ids and weights were checked.

    The features stay as they are; only sparse ones are made dense.
    """
    with naming_partition(number):
        layout.check(X)
        X = dense(X)
        ids, weights = others
        is_empty = not any(own is not None and len(own) for own in (y, ids, weights))
        if not len(X) and is_empty:  # as filters leave behind
            none = None if ids is None else np.empty(0, np.uint64)
            return X, np.empty(0), none, None if weights is None else np.empty(0)
        target = np.asarray(y)
        if target.ndim == 2 and target.shape[1] == 1:
            target = target.ravel()
        if len(target) != len(X):
            raise ValueError(f"y has {len(target)} entries for {len(X)} rows of X")
        # Of a copy, since checks set the names of features.
        checker = clone(estimator)
        rows, _ = checker._read(X, reset=True)
        checker._check_target(target, len(rows))
        own = None if weights is None else _checked_weights(checker, weights, len(rows))
        if ids is None:
            return X, target, None, own
        names = np.asarray(ids).ravel()
        if len(names) != len(rows):
            raise ValueError(f"ids has {len(names)} entries for {len(rows)} rows of X")
        return X, target, row_numbers(names), own


def _checked_weights(
    estimator: MondrianForest | PosteriorSampler, weights: Any, n_rows: int
) -> FloatArray:
    """The weights of a partition, which may all be 0."""
    own: FloatArray = np.asarray(weights, dtype=np.float64)
    if own.shape != (n_rows,) or own.any():
        estimator._check_weights(own, n_rows)
    return own


def assemble(parts: Sequence[Part]) -> Part:
    """All partitions as one table, in their order and in the types in which they came."""
    held = [(number, part) for number, part in enumerate(parts) if len(part[0])]
    if not held:
        raise ValueError("X has no rows: all partitions are empty")
    require_one_type({number: target.dtype for number, (_, target, *_) in held})
    tables, targets, *_ = zip(*(part for _, part in held), strict=True)
    X = _frame(tables) if hasattr(tables[0], "columns") else np.concatenate(tables)
    ids = [own for _, _, own, _ in parts if own is not None]
    weights = [own for *_, own in parts if own is not None]
    return (
        X,
        np.concatenate(targets),
        _joined(ids) if ids else None,
        np.concatenate(weights) if weights else None,
    )


def require_one_type(dtypes: dict[int, np.dtype[Any]]) -> None:
    """Refuse partitions, given by number, whose targets are of several types."""
    first = next(iter(dtypes))
    for number, dtype in dtypes.items():
        if dtype.kind != dtypes[first].kind:
            raise TypeError(
                f"partition {number}: y is of type {dtype}, and of type {dtypes[first]} in "
                f"partition {first}"
            )


def _frame(tables: Sequence[Any]) -> Any:
    """Data frames as one. Columns of categories stay such where partitions have others."""
    import pandas as pd

    X = pd.concat(tables, ignore_index=True)
    for column, kind in enumerate(tables[0].dtypes):
        if str(kind) == "category" and X.dtypes.iloc[column] != kind:
            # As objects, since integers beside missing values would become floats.
            parts = [table.iloc[:, column].astype(object) for table in tables]
            X.isetitem(column, pd.concat(parts, ignore_index=True).astype("category"))
    return X


def _joined(ids: Sequence[Ids]) -> Ids:
    """The ids of all partitions, which must differ."""
    if places := same_id([(own, np.arange(len(own))) for own in ids]):
        raise duplicate_id_error(places)
    return np.concatenate(ids)


def same_id(parts: Sequence[tuple[Ids, IntArray]]) -> list[tuple[int, int, int]]:
    """The first id that occurs twice, the number of the part and the row that has it, both times.

    Nothing if all differ. Parts are ids and the rows that have them.
    """
    ids = np.concatenate([own for own, _ in parts])
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    starts = np.cumsum([0, *(len(own) for own, _ in parts)])
    places = []
    for at in order[[same[0], same[0] + 1]] if same.size else ():
        number = int(np.searchsorted(starts, at, side="right")) - 1
        places.append((int(ids[at]), number, int(parts[number][1][at - starts[number]])))
    return places


def duplicate_id_error(places: Sequence[tuple[int, int, int]]) -> ValueError:
    """The error for an id that occurs twice in partitions; see `same_id`."""
    (same, number, row), (_, other, other_row) = places
    return ValueError(
        f"ids must differ from each other, found {same} in row {row} of partition {number} and in "
        f"row {other_row} of partition {other}"
    )
