"""The rows from which a forest learns rates, also where no process holds all rows.

They are the first rows in a random order that a seed and their contents determine. Where rows are
in parts, they are found in two looks at each part. The first one counts the rows of each key, which
is one for each distinct row of features; from all counts follow the places in the order that are
taken. The second one collects the rows of their keys, among which targets and weights decide. The
rows that calibrate a forest are found in the same way, in the order of another seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import AnyArray, FloatArray, Ids, IntArray, Rows
from boscage.mondrian.feature_rates._shared import (
    LEARNING_ROWS,
    ORDER_STREAM,
    first_by_contents,
    rows_to_learn_from,
)


@dataclass(frozen=True)
class Sample:
    """Some of a forest's rows in random order."""

    X: FloatArray
    y: AnyArray
    """Targets; classes as numbers of those that all rows have."""
    weights: FloatArray | None
    """As how many rows each row counts; None if all count as one."""
    n_rows: int
    """The number of all rows."""
    in_forest: FloatArray | None = None
    """The rows as the forest holds them, if they would lie elsewhere if they were new, as in `X`.

    So it is with a category of one row alone, which is unknown before the row comes."""

    def first(self, n: int) -> Sample:
        """The first so many of the rows, or all."""
        return self.taken(slice(n))

    def taken(self, rows: IntArray | slice) -> Sample:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        in_forest = None if self.in_forest is None else self.in_forest[rows]
        return Sample(self.X[rows], self.y[rows], weights, self.n_rows, in_forest)

    def without_repetitions(self) -> Sample:
        """Each row once, if some were repeated, target and all."""
        distinct = _core.distinct_rows(self.X, self.y, self.weights)
        return self if distinct is None else self.taken(distinct.astype(np.intp))

    def with_new(self, n: int) -> FloatArray:
        """Rows of which the first so many are new to a forest of the others."""
        if self.in_forest is None:
            return self.X
        return np.concatenate([self.X[:n], self.in_forest[n:]])

    @classmethod
    def of(cls, X: Rows, y: AnyArray, weights: FloatArray | None, seed: int) -> Sample:
        """The sample of rows in one place."""
        first = first_by_contents(X, y, rows_to_learn_from(X.shape[1]), seed, weights)
        own = None if weights is None else weights[first]
        return cls(X[first].astype(np.float64), y[first], own, X.shape[0])


def learning_order(seed: int) -> int:
    """The seed of the order whose first rows teach rates to a forest with a seed."""
    return seed ^ ORDER_STREAM


@dataclass(frozen=True)
class KeyCounts:
    """How many rows there are of each key."""

    keys: Ids
    n_rows: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Rows, order: int, features: IntArray | None = None) -> KeyCounts:
        """Those of some rows in the order of a seed, by some features or all."""
        return cls(*_counted(_keys(X, order, features), None))

    @classmethod
    def sum(cls, parts: Sequence[KeyCounts]) -> KeyCounts:
        """Those of the rows of all parts."""
        keys = np.concatenate([part.keys for part in parts])
        return cls(*_counted(keys, np.concatenate([part.n_rows for part in parts])))

    def in_group(self, group: int, n_groups: int) -> KeyCounts:
        """Those of some of the keys: each is in one of so many groups."""
        own = self.keys % np.uint64(n_groups) == group
        return KeyCounts(self.keys[own], self.n_rows[own])

    def first_places(self, n: int = LEARNING_ROWS) -> Places:
        """The places of the first so many of these rows, or of all."""
        return Places(*_core.first_of_keys(self.keys, self.n_rows, n))


@dataclass(frozen=True)
class Places:
    """Places in the order of rows."""

    ranks: Ids
    keys: Ids
    numbers: Ids
    """The number of a place's row among those of its key."""

    @classmethod
    def first(cls, groups: Sequence[Places], n: int = LEARNING_ROWS) -> Places:
        """The first so many places, given those of groups of keys."""
        columns = [
            np.concatenate([getattr(group, name) for group in groups])
            for name in ("ranks", "keys", "numbers")
        ]
        order = np.lexsort(columns[::-1])[:n]
        return cls(*(column[order] for column in columns))

    def sample(self, parts: Sequence[DistinctRows], n_rows: int, *, is_weighted: bool) -> Sample:
        """The sample, given the rows of its keys."""
        found = DistinctRows.join(parts)
        rows = self.among(found)
        weights = found.weights[rows] if is_weighted else None
        return Sample(
            np.ascontiguousarray(found.X[rows], np.float64), found.y[rows], weights, n_rows
        )

    def among(self, found: DistinctRows) -> IntArray:
        """The numbers of the places' rows among all rows of their keys."""
        order = np.lexsort([found.weights, found.y, found.keys])
        ends = np.cumsum(found.n_equal[order])
        first = np.searchsorted(found.keys[order], self.keys)
        number = (ends - found.n_equal[order])[first] + self.numbers.astype(np.int64)
        rows: IntArray = order[np.searchsorted(ends, number, side="right")]
        return rows


@dataclass(frozen=True)
class DistinctRows:
    """The rows of some keys, equal ones once."""

    keys: Ids
    X: Rows
    y: AnyArray
    weights: FloatArray
    n_equal: NDArray[np.int64]
    """How many rows are equal to each row."""
    numbers: IntArray
    """The number of one of them among the rows that were looked at."""

    @classmethod
    def of(
        cls,
        places: Places,
        X: Rows,
        y: AnyArray,
        weights: FloatArray | None,
        order: int,
        features: IntArray | None = None,
    ) -> DistinctRows:
        """Those of some rows, which have the keys of places in the order of a seed.

        The keys are of some features or of all; rows that differ in others count as equal.
        """
        keys = _keys(X, order, features)
        rows = np.flatnonzero(np.isin(keys, places.keys))
        each = np.ones(len(X)) if weights is None else weights
        rows = rows[np.lexsort([each[rows], y[rows], keys[rows]])]
        starts, n_equal = equal_runs(keys[rows], y[rows], each[rows])
        own = rows[starts]
        return cls(keys[own], X[own], y[own], each[own], n_equal, own)

    @classmethod
    def join(cls, parts: Sequence[DistinctRows]) -> DistinctRows:
        """Those of all parts."""
        names = (field.name for field in fields(cls))
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def equal_runs(*columns: AnyArray) -> tuple[IntArray, IntArray]:
    """Where runs of equal entries of sorted columns start, and how long they are."""
    n = len(columns[0])
    is_new = np.ones(n, bool)
    is_new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    starts = np.flatnonzero(is_new)
    return starts, np.diff(np.append(starts, n))


def _keys(X: Rows, order: int, features: IntArray | None) -> Ids:
    """The keys of rows in the order of a seed."""
    if features is None:
        return _core.keys_of_contents(X, order)
    some: Any = np.ascontiguousarray(X[:, features])
    keys = _core.keys_of_contents(some, order)
    missing = np.isnan(some).any(axis=1)
    if missing.any():  # what stands for the value may depend on any feature
        keys[missing] = _core.keys_of_contents(X[missing], order)
    return keys


def _counted(keys: Ids, n_rows: NDArray[np.uint64] | None) -> tuple[Ids, NDArray[np.uint64]]:
    """The distinct keys, and the number of rows of each."""
    order = np.argsort(keys)
    keys = keys[order]
    starts, n_equal = equal_runs(keys)
    if n_rows is None:
        return keys[starts], n_equal.astype(np.uint64)
    return keys[starts], np.add.reduceat(n_rows[order], starts) if len(keys) else n_rows
