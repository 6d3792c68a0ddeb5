"""Rows of a forest whose cells are apart, in pieces that workers hold: checks, numbers, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from boscage._input.columns import Column
from boscage._input.labels import conform
from boscage._input.row_weights import check_row_weight
from boscage._types import AnyArray, FloatArray, Ids, IntArray, Label, Rows
from boscage.dask._partitions import Part, naming_partition
from boscage.dask._shares import aligned
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.cell_plans import RowFacts, facts_of
from boscage.mondrian._missing import Substitutes, fill
from boscage.mondrian.feature_rates._samples import DistinctRows, KeyCounts, Places

Labels: TypeAlias = AnyArray | None
"""The sorted labels of a classifier; None for a regressor."""


@dataclass(frozen=True)
class Piece:
    """Some rows, with their targets."""

    rows: Rows
    target: AnyArray
    """Once rows are sent to owners, classes are numbers of sorted labels."""
    weights: FloatArray | None
    """As how many rows each row counts; None if all count as one."""
    arrivals: Ids
    """How many rows of the forest came before each row; in a new partition, of the partition."""
    ids: Ids | None
    """The numbers of the rows' ids; None if these are their arrivals."""
    partition: int
    """The new partition that the rows are of; of rows that an owner held, the owner."""
    columns: dict[int, Column] = field(default_factory=dict)
    """Features that are categories whose places are not yet in the rows."""

    @property
    def numbers(self) -> Ids:
        """The numbers of the rows' ids."""
        return self.arrivals if self.ids is None else self.ids

    def of(self, rows: AnyArray) -> Piece:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        ids = None if self.ids is None else self.ids[rows]
        arrivals, target = self.arrivals[rows], self.target[rows]
        columns = {feature: column.of(rows) for feature, column in self.columns.items()}
        return Piece(self.rows[rows], target, weights, arrivals, ids, self.partition, columns)


@dataclass(frozen=True)
class LeftOut:
    """Rows that are left out of all trees, each to be predicted by the forest without it."""

    arrivals: Ids
    copies: NDArray[np.uint8]
    """Whether other rows have a row's features: 0 for none, 1 if all have its class, 2 if some have
    another."""

    @classmethod
    def none(cls) -> LeftOut:
        """No rows."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint8))


@dataclass(frozen=True)
class Facts(RowFacts):
    """What the client must know of a piece."""

    weights_of: list[Fraction]
    """The sum of the weights of the rows of each label, exactly."""
    last_id: int
    is_weighted: bool
    arrivals: tuple[int, int]
    """The least and the greatest arrival."""


def label_counts(facts: Sequence[Facts], known: list[Label]) -> dict[Label, int]:
    """The number of rows of each label that rows have; labels take the type of those known."""
    return _sums([(of.labels, of.n_rows_of.tolist()) for of in facts], known)


def label_weights(facts: Sequence[Facts], known: list[Label]) -> dict[Label, Fraction]:
    """The same with weights of rows."""
    return _sums([(of.labels, of.weights_of) for of in facts], known)


def _sums(parts: list[tuple[AnyArray, list[Any]]], known: list[Label]) -> dict[Label, Any]:
    found: dict[Any, Any] = {}
    for labels, numbers in parts:
        for label, number in zip(conform(labels, known, "y"), numbers, strict=True):
            found[label] = found.get(label, 0) + number
    return found


def sorted_labels(facts: Sequence[Facts], known: list[Label]) -> Labels:
    """The labels that rows have; None of a regressor."""
    if not any(len(of.labels) for of in facts):
        return None
    return np.array(sorted(label_counts(facts, known)))


@dataclass(frozen=True)
class Arrived:
    """What the client must know of a new partition before its rows are numbered."""

    n_rows: int
    names: AnyArray | None
    """The names of the features, if there are any."""
    categories: dict[int, list[Label]]
    """The categories that rows have, of each feature that is one."""
    dtype: np.dtype[Any]
    """The type of the targets."""


def checked(
    forest: MondrianForest, part: Part, number: int, is_new: bool
) -> tuple[Piece, Arrived] | None:
    """The rows of a partition that count, and facts about them; None if there are no rows.

    The forest is unfitted; it knows the features unless it is a new one.
    """
    X, y, ids, weights = part
    if not len(X) or (weights is not None and not weights.any()):
        return None
    with naming_partition(number):
        forest = clone(forest) if is_new else forest
        rows, columns = forest._read(X, reset=is_new)
        target = forest._check_target(y, len(rows))
        kept, weights = check_row_weight(weights, len(rows))
    if kept is not None:
        rows, target, ids = rows[kept], target[kept], None if ids is None else ids[kept]
        columns = {feature: column.of(kept) for feature, column in columns.items()}
    names = getattr(forest, "feature_names_in_", None)
    categories = {feature: column.labels for feature, column in columns.items()}
    arrivals = np.arange(len(rows), dtype=np.uint64)
    piece = Piece(rows, target, weights, arrivals, ids, number, columns)
    return piece, Arrived(len(rows), names, categories, target.dtype)


def numbered(found: tuple[Piece, Arrived], before: int, first_id: int | None, oldest: int) -> Piece:
    """The rows of a new partition, before which others came, that are not older than some row.

    Rows without ids are numbered from `first_id`; if this is None, by their arrivals.
    """
    own = found[0]
    ids = own.ids
    if ids is None and first_id is not None:
        ids = own.arrivals + np.uint64(first_id)
    return newest(replace(own, arrivals=own.arrivals + np.uint64(before), ids=ids), oldest)


def facts(own: Piece, has_labels: bool) -> Facts:
    """Facts about the rows of a piece."""
    of_rows = facts_of(own.rows, own.target, has_labels=has_labels)
    weights_of = [Fraction(n) for n in of_rows.n_rows_of.tolist()]
    if own.weights is not None and has_labels:
        codes = coded(own, of_rows.labels)
        weights_of = [_exact_sum(own.weights[codes == code]) for code in range(len(weights_of))]
    has_rows = of_rows.n_rows > 0
    return Facts(
        **vars(of_rows),
        weights_of=weights_of,
        last_id=int(own.numbers.max()) if has_rows else 0,
        is_weighted=own.weights is not None,
        arrivals=(int(own.arrivals.min()), int(own.arrivals.max())) if has_rows else (0, 0),
    )


def _exact_sum(weights: FloatArray) -> Fraction:
    values, n_rows = np.unique(weights, return_counts=True)
    pairs = zip(values.tolist(), n_rows.tolist(), strict=True)
    return sum((Fraction(value) * n for value, n in pairs), Fraction(0))


def ends(facts: Sequence[Facts]) -> FloatArray:
    """The least and the greatest value of each feature; 0 for one without any."""
    found = np.stack(
        [np.min([of.low for of in facts], axis=0), np.max([of.high for of in facts], axis=0)]
    )
    return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True)
class Filler:
    """What stands for missing values, and the reference ranges, which limit it."""

    substitutes: Substitutes
    low: FloatArray
    high: FloatArray

    def of(self, rows: Rows) -> FloatArray:
        """Rows that lack no values."""
        return fill(rows, self.substitutes, self.low, self.high)


def key_counts(
    own: Piece, filler: Filler | None, order: int, features: IntArray | None, n_groups: int
) -> list[KeyCounts]:
    """How many rows of a piece there are of each key, in groups of keys."""
    counts = KeyCounts.of(_filled(own, filler), order, features)
    return [counts.in_group(group, n_groups) for group in range(n_groups)]


def first_places(parts: list[KeyCounts], n: int) -> Places:
    """The places of the first so many rows of all keys of a group."""
    return KeyCounts.sum(parts).first_places(n)


def distinct_rows(
    own: Piece,
    filler: Filler | None,
    labels: Labels,
    places: Places,
    order: int,
    features: IntArray | None,
) -> DistinctRows:
    """The rows of a piece that have the keys of places."""
    targets = coded(own, labels)
    return DistinctRows.of(places, _filled(own, filler), targets, own.weights, order, features)


def _filled(own: Piece, filler: Filler | None) -> Rows:
    rows: Rows = aligned(own.rows)
    return rows if filler is None else filler.of(rows)


def arrivals(own: Piece) -> Ids:
    """How many rows came before each row of a piece."""
    return own.arrivals


def arrivals_of(own: Piece, found: DistinctRows) -> Ids:
    """The same of some rows."""
    return own.arrivals[found.numbers]


def coded(own: Piece, labels: Labels) -> AnyArray:
    """The targets; those of a classifier as numbers of sorted labels."""
    if labels is None:
        return own.target
    codes: AnyArray = np.searchsorted(labels, own.target).astype(np.uint32)
    return codes


def newest(own: Piece, oldest: int) -> Piece:
    """The rows that are not older than a row that came after so many others."""
    kept = own.arrivals >= oldest
    return own if kept.all() else own.of(kept)


def n_newest(own: Piece, oldest: Ids) -> NDArray[np.int64]:
    """How many rows are not older than each of some rows."""
    n_older: NDArray[np.int64] = np.searchsorted(np.sort(own.arrivals), oldest)
    return len(own.arrivals) - n_older


def without(own: Piece, ids: Ids) -> Piece:
    """All rows but some, given by the numbers of their ids."""
    return own.of(~np.isin(own.numbers, ids))


def found(own: Piece, ids: Ids) -> Ids:
    """Those of some ids that rows have."""
    return ids[np.isin(ids, own.numbers)]


def shared_out_ids(own: Any, n: int) -> list[tuple[Ids, IntArray]]:
    """The ids of a partition (`Part`) or piece in `n` groups, and the rows that have them.

    Equal ids of all rows are in groups of the same number.
    """
    ids = aligned(own.numbers if isinstance(own, Piece) else own[2])
    each = (np.flatnonzero(ids % np.uint64(n) == group) for group in range(n))
    return [(ids[rows], rows) for rows in each]


def received(rows: Piece) -> Piece:
    """Rows that came from another worker."""
    return replace(
        rows,
        rows=aligned(rows.rows),
        target=aligned(rows.target),
        weights=aligned(rows.weights),
        arrivals=aligned(rows.arrivals),
        ids=aligned(rows.ids),
    )


def joined_pieces(pieces: Sequence[Piece], is_weighted: bool, owner: int = 0) -> Piece:
    """All rows of some pieces."""
    weights, ids = None, None
    if any(own.ids is not None for own in pieces):
        ids = np.concatenate([own.numbers for own in pieces])
    if is_weighted:
        each = [np.ones(len(own.rows)) if own.weights is None else own.weights for own in pieces]
        weights = np.concatenate(each)
    return Piece(
        np.concatenate([own.rows for own in pieces]),
        np.concatenate([own.target for own in pieces]),
        weights,
        np.concatenate([own.arrivals for own in pieces]),
        ids,
        owner,
    )
