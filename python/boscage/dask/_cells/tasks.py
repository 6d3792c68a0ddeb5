"""What runs on workers where cells are apart: routing rows, growing what is below cells, votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._input.columns import dense
from boscage._types import FloatArray, Rows
from boscage.dask import _shares
from boscage.dask._cells.rows import Labels, Piece, coded, joined_pieces
from boscage.dask._cells.shares import CellShare, Growth
from boscage.dask._partitions import naming_partition
from boscage.dask._shares import aligned, new_forest
from boscage.mondrian._categories import Singles, Tables
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.cell_plans import Counts, learned_apart
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian._missing import Substitutes, fill, has_missing, substitutes_of
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import LEARNING_ROWS


def given(value: Any) -> Any:
    """A value as a task's result, which travels to each worker once."""
    return value


def pick(found: Sequence[Any] | None, number: int) -> Any:
    """A part of what a task found."""
    return None if found is None else found[number]


def learned(
    template: MondrianForest,
    ends: FloatArray,
    sample: Sample | None,
    substitutes: Substitutes | None,
    tables: Tables,
    singles: Singles,
    seed: int,
) -> GrowthPlan:
    """What a forest learns before the first cut."""
    forest = new_forest(template)
    n_threads = forest._n_threads()
    low, high = ends
    learned = substitutes, tables, singles
    return learned_apart(forest, low, high, seed, sample, n_threads, *learned)


def substitutes(sample: Sample) -> Substitutes:
    """What stands for missing values, learned from rows that may lack some."""
    some = sample.first(LEARNING_ROWS)
    return substitutes_of(some.X, some.y)


def extent(plan: _core.CellPlan, own: Piece) -> tuple[int, bool]:
    """What a plan must know of the rows of a piece."""
    with naming_partition(own.partition):
        return plan.extent_of(aligned(own.rows))


def count(plan: _core.CellPlan, own: Piece, labels: Labels) -> Counts:
    """The counts of all cells for the rows of a partition."""
    return plan.count(aligned(own.rows), coded(own, labels).astype(np.float64))


def route(plan: _core.CellPlan, own: Piece, growth: Growth, n_owners: int) -> list[Piece]:
    """The rows of a piece that each owner is sent: those of its cells, and those left out."""
    moved = replace(own, target=coded(own, growth.labels))
    by_owner = plan.rows_by_owner(aligned(own.rows), n_owners)
    for arrivals in growth.left_out_of_all():
        left_out = np.flatnonzero(np.isin(own.arrivals, arrivals)).astype(np.uint32)
        by_owner = [np.union1d(rows, left_out) for rows in by_owner]
    of_trend = np.flatnonzero(np.isin(own.arrivals, growth.of_trend)).astype(np.uint32)
    by_owner[0] = np.union1d(by_owner[0], of_trend)
    return [moved.of(rows) for rows in by_owner]


def hold(growth: Growth, plan: _core.CellPlan, owner: int, pieces: list[Piece]) -> CellShare:
    """The rows of an owner, in place of the pieces that came."""
    _shares.check_version(growth.version)
    return growth.share(growth, plan, owner, joined_pieces(pieces, growth.is_weighted, owner))


def digest(share: CellShare, plan: _core.CellPlan, of_owners: list[tuple[bytes, bytes]]) -> str:
    """The digest of the whole forest."""
    cells = np.zeros((plan.n_cells, 16), np.uint8)
    for owner, (own, _) in enumerate(of_owners):
        cells[plan.owners == owner] = np.frombuffer(own, np.uint8).reshape(-1, 16)
    rows = b"".join(rows for _, rows in of_owners)
    return str(share.core.digest(rows, plan.tree_hashes(cells.tobytes())))


# -- prediction -----------------------------------------------------------------------------------


def route_queries(
    reader: MondrianForest,
    plan: _core.CellPlan,
    learned: GrowthPlan,
    sample: Sample | None,
    X: Any,
    number: int,
    n_owners: int,
) -> tuple[Rows, list[Rows]]:
    """The rows of a partition, and those that each owner is asked about.

    There is a sample of the forest's rows if none of them lacks a value: substitutes for those that
    rows of the partition lack are learned from it, and not kept.
    """
    X = dense(X)
    if not len(X):
        return np.empty((0, reader.n_features_in_)), []
    with naming_partition(number):
        rows = reader._check_rows(X)
        if sample is not None and has_missing(rows):
            rows = fill(rows, substitutes(sample), learned.low, learned.high)
        return rows, [rows[own] for own in plan.rows_by_owner(rows, n_owners)]


def lists(share: CellShare, routed: tuple[Rows, list[Rows]], owner: int) -> NDArray[np.uint64]:
    """What an owner's trees say of the rows of a partition."""
    _, of_owners = routed
    if not of_owners or not len(of_owners[owner]):
        return np.empty(0, np.uint64)
    return share.lists(aligned(of_owners[owner]))


def finished(
    share: CellShare,
    routed: tuple[Rows, list[Rows]],
    of_owners: list[NDArray[np.uint64]],
    link: Any,
    n_outputs: int,
) -> FloatArray:
    """The predictions of a partition, given the lists of all owners, and what calibrates."""
    rows, _ = routed
    if not len(rows):
        return np.empty((0, n_outputs))
    return share.finished(aligned(rows), [aligned(own) for own in of_owners], link)
