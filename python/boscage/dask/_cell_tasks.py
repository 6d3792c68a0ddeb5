"""What runs on workers where cells are apart: routing rows, growing what is below cells, votes."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core, _validation
from boscage._input.columns import dense
from boscage._input.row_weights import check_row_weight
from boscage._types import AnyArray, FloatArray, Rows
from boscage.dask import _shares
from boscage.dask._partitions import Part, naming_partition
from boscage.dask._shares import aligned, new_forest
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.cell_plans import Counts
from boscage.mondrian.classifier import MondrianForestClassifier

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
    positions: NDArray[np.uint32]
    """The numbers of the rows, in their partition, or over all partitions in their order."""

    def of(self, rows: NDArray[np.uint32]) -> Piece:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Piece(self.rows[rows], self.target[rows], weights, self.positions[rows])


@dataclass(frozen=True)
class Facts:
    """What the client must know of a partition."""

    n_rows: int
    labels: AnyArray
    """The sorted labels; none of a regressor's."""
    n_rows_of: AnyArray
    """The number of rows of each label."""
    low: FloatArray
    high: FloatArray
    names: AnyArray | None
    kind: str
    """The kind of the targets' type."""
    is_weighted: bool


def checked(template: MondrianForest, part: Part, number: int) -> tuple[Piece, Facts] | None:
    """The rows of a partition that count, and facts about them; None if there are no rows."""
    X, y, _, weights = part
    if not len(X) or (weights is not None and not weights.any()):
        return None
    with naming_partition(number):
        forest = new_forest(template)
        rows, columns = forest._read(X, reset=True)
        if columns:
            raise ValueError(
                f"feature {min(columns)} is a category, which partition='cells' does not take; "
                "choose partition='trees'"
            )
        _require_present(rows)
        target = forest._check_target(y, len(rows))
        kept, weights = check_row_weight(weights, len(rows))
    if kept is not None:
        rows, target = rows[kept], target[kept]
    of_classes = target if isinstance(forest, MondrianForestClassifier) else target[:0]
    labels, n_rows_of = np.unique(of_classes, return_counts=True)
    facts = Facts(
        len(rows),
        labels,
        n_rows_of,
        rows.min(axis=0).astype(float),
        rows.max(axis=0).astype(float),
        getattr(forest, "feature_names_in_", None),
        target.dtype.kind,
        weights is not None,
    )
    return Piece(rows, target, weights, np.arange(len(rows), dtype=np.uint32)), facts


def _require_present(rows: Rows) -> None:
    missing = np.isnan(rows)
    if missing.any():
        row, feature = np.argwhere(missing)[0]
        raise ValueError(
            f"row {row}, feature {feature} of X is missing (NaN), which partition='cells' does "
            "not take; fill it, or choose partition='trees'"
        )


def given(value: Any) -> Any:
    """A value as a task's result, which travels to each worker once."""
    return value


def pick(found: Sequence[Any] | None, number: int) -> Any:
    """A part of what a task found."""
    return None if found is None else found[number]


def extent(plan: _core.CellPlan, own: Piece, number: int) -> tuple[int, bool]:
    """What a plan must know of the rows of a partition."""
    with naming_partition(number):
        return plan.extent_of(aligned(own.rows))


def count(plan: _core.CellPlan, own: Piece, labels: Labels) -> Counts:
    """The counts of all cells for the rows of a partition."""
    return plan.count(aligned(own.rows), coded(own, labels).astype(np.float64))


def coded(own: Piece, labels: Labels) -> AnyArray:
    """The targets; those of a classifier as numbers of sorted labels."""
    if labels is None:
        return own.target
    codes: AnyArray = np.searchsorted(labels, own.target).astype(np.uint32)
    return codes


def route(
    plan: _core.CellPlan, own: Piece, labels: Labels, before: int, n_owners: int
) -> list[Piece]:
    """The rows of a partition that each owner is sent; so many come before the partition's."""
    positions = own.positions + np.uint32(before)
    moved = Piece(own.rows, coded(own, labels), own.weights, positions)
    return [moved.of(rows) for rows in plan.rows_by_owner(aligned(own.rows), n_owners)]


@dataclass(frozen=True)
class Growth:
    """What all owners must know to grow the subtrees of their cells."""

    share: type[CellShare]
    template: MondrianForest
    settings: dict[str, Any]
    """The checked settings of the one-machine model."""
    names: list[Any] | None
    """The sorted labels of a classifier as Python values; None for a regressor."""
    n_rows_of: list[int]
    """The number of rows of each label, of all owners."""
    is_weighted: bool
    version: str

    def encoded(self, rows: Piece) -> tuple[Any, ...]:
        """Targets as the compiled model takes them."""
        return (rows.target,) if self.names is None else (rows.target, self.names)


class CellShare:
    """What an owner of cells holds: first rows, then subtrees, and then the tops of all trees.

    Each step is made in place, since a copy would double the memory. That is safe: what may be read
    before a step does not change by it, and no step is made twice.
    """

    core: Any

    def __init__(self, growth: Growth, plan: _core.CellPlan, owner: int, rows: Piece) -> None:
        self._growth, self._plan, self._owner = growth, plan, owner
        self._positions = rows.positions
        self._summaries: list[NDArray[np.uint64]] = []
        # Of steps: Dask may run a task again whose result was lost.
        self._lock = threading.Lock()
        self.core = self._of_rows(rows)

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _of_rows(self, rows: Piece) -> Any:
        """The compiled share of some rows."""

    @abstractmethod
    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]]) -> FloatArray:
        """Predictions, given the lists of all owners."""

    # -- what all have in common ------------------------------------------------------------------

    def n_threads(self) -> int:
        """The threads of this worker, or those that were asked for."""
        return new_forest(self._growth.template)._n_threads()

    def grow(self) -> None:
        """Draw the subtrees, unless that is done."""
        with self._lock:
            if not self.core.is_grown:
                self.core.grow(n_threads=self.n_threads())

    def summaries(self) -> NDArray[np.uint64]:
        """What other owners need of this share."""
        with self._lock:
            words: NDArray[np.uint64] = self.core.summaries()
        return words

    def join(self, summaries: list[NDArray[np.uint64]]) -> None:
        """Make the tops of all trees, unless that is done."""
        with self._lock:
            if not self.core.is_joined:
                self.core.join(summaries, n_threads=self.n_threads())
                self._summaries = summaries

    def held(self) -> Piece:
        """The rows that are here."""
        weights = self.core.sample_weight()
        return Piece(self.core.rows(), self.core.targets(), weights, self._positions)

    def lists(self, rows: Rows) -> NDArray[np.uint64]:
        """What this owner's trees say of rows."""
        words: NDArray[np.uint64] = self.core.lists(rows, n_threads=self.n_threads())
        return words

    def __sizeof__(self) -> int:
        return int(self.core.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        own = (self._growth, self._plan, self._owner, self.held())
        return {"own": own, "is_grown": self.core.is_grown, "summaries": self._summaries}

    def __setstate__(self, state: dict[str, Any]) -> None:
        growth, plan, owner, held = state["own"]
        self.__init__(growth, plan, owner, received(held))  # type: ignore[misc]
        if state["is_grown"]:
            self.grow()
        if state["summaries"]:
            self.join([aligned(words) for words in state["summaries"]])


class ClassifierCellShare(CellShare):
    """Subtrees whose nodes count classes."""

    core: _core.ClassifierCells

    def _of_rows(self, rows: Piece) -> _core.ClassifierCells:
        of_rows, labels = self._growth.encoded(rows)
        return _core.ClassifierCells(
            self._plan,
            self._owner,
            rows.rows,
            of_rows,
            labels,
            self._growth.n_rows_of,
            discount=self._growth.settings["discount"],
            sample_weight=rows.weights,
        )

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]]) -> FloatArray:
        return self.core.proba_of_votes(rows, of_owners)


class RegressorCellShare(CellShare):
    """Subtrees whose nodes have Gaussian means."""

    core: _core.RegressorCells

    def _of_rows(self, rows: Piece) -> _core.RegressorCells:
        return _core.RegressorCells(
            self._plan,
            self._owner,
            rows.rows,
            rows.target,
            **hyperparameters(self._growth.settings),
            sample_weight=rows.weights,
        )

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]]) -> FloatArray:
        mean, variance = self.core.moments_of_components(rows, of_owners)
        return np.column_stack([mean, np.sqrt(variance)])


def hyperparameters(settings: dict[str, Any]) -> dict[str, Any]:
    """The given hyperparameters of a regressor, also those that have a default; none of others."""
    if "mu" not in settings:
        return {}
    needed = {name: settings[name] for name in ("mu", "gamma1", "gamma2", "noise_variance")}
    prior = {"delay": 0.0, "coarse_variance": 0.0, "coarse_rate": 1.0}
    return needed | {name: settings.get(name, value) for name, value in prior.items()}


def received(rows: Piece) -> Piece:
    """Rows that came from another worker."""
    weights, target = aligned(rows.weights), aligned(rows.target)
    return Piece(aligned(rows.rows), target, weights, aligned(rows.positions))


def joined_pieces(pieces: Sequence[Piece], is_weighted: bool) -> Piece:
    """All rows of some pieces."""
    weights = None
    if is_weighted:
        each = [np.ones(len(own.rows)) if own.weights is None else own.weights for own in pieces]
        weights = np.concatenate(each)
    return Piece(
        np.concatenate([own.rows for own in pieces]),
        np.concatenate([own.target for own in pieces]),
        weights,
        np.concatenate([own.positions for own in pieces]),
    )


def hold(growth: Growth, plan: _core.CellPlan, owner: int, pieces: list[Piece]) -> CellShare:
    """The rows of an owner, in place of the pieces that came."""
    _shares.check_version(growth.version)
    return growth.share(growth, plan, owner, joined_pieces(pieces, growth.is_weighted))


def grown(share: CellShare) -> CellShare:
    """The share with its subtrees."""
    share.grow()
    return share


def summaries(share: CellShare) -> NDArray[np.uint64]:
    """What other owners need of a share."""
    return share.summaries()


def joined(share: CellShare, words: list[NDArray[np.uint64]]) -> CellShare:
    """The share with the tops of all trees."""
    share.join([aligned(own) for own in words])
    return share


def held(share: CellShare) -> tuple[int, int]:
    """Numbers of rows, and of pairs of a row and a tree, that an owner holds."""
    return share.core.n_rows, share.core.n_pairs


def hashes(share: CellShare) -> tuple[bytes, bytes]:
    """The hashes of an owner's subtrees, and of its rows of the first tree."""
    found: tuple[bytes, bytes] = share.core.hashes()
    return found


def digest(share: CellShare, plan: _core.CellPlan, of_owners: list[tuple[bytes, bytes]]) -> str:
    """The digest of the whole forest."""
    cells = np.zeros((plan.n_cells, 16), np.uint8)
    for owner, (own, _) in enumerate(of_owners):
        cells[plan.owners == owner] = np.frombuffer(own, np.uint8).reshape(-1, 16)
    rows = b"".join(rows for _, rows in of_owners)
    return str(share.core.digest(rows, plan.tree_hashes(cells.tobytes())))


def first(share: CellShare) -> Piece:
    """The rows of an owner's cells of the first tree: of all owners all rows, each once."""
    return share.held().of(share.core.first_rows())


# -- prediction -----------------------------------------------------------------------------------


def route_queries(
    reader: MondrianForest, plan: _core.CellPlan, X: Any, number: int, n_owners: int
) -> tuple[Rows, list[Rows]]:
    """The rows of a partition, and those that each owner is asked about."""
    X = dense(X)
    if not len(X):
        return np.empty((0, reader.n_features_in_)), []
    with naming_partition(number):
        rows = _validation.check_rows(reader, X, reset=False)
        _require_present(rows)
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
    n_outputs: int,
) -> FloatArray:
    """The predictions of a partition, given the lists of all owners."""
    rows, _ = routed
    if not len(rows):
        return np.empty((0, n_outputs))
    return share.finished(aligned(rows), [aligned(own) for own in of_owners])
