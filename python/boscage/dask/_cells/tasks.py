"""What runs on workers where cells are apart: routing rows, growing what is below cells, votes."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._input.columns import dense
from boscage._types import FloatArray, Ids, IntArray, Label, Rows
from boscage.dask import _shares
from boscage.dask._cells.rows import (
    Labels,
    LeftOut,
    Piece,
    coded,
    joined_pieces,
    received,
)
from boscage.dask._partitions import naming_partition
from boscage.dask._shares import aligned, new_forest
from boscage.mondrian._categories import Tables
from boscage.mondrian._discount import best_discount
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.cell_plans import Counts, learned_apart
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian._missing import Substitutes, fill, has_missing, substitutes_of
from boscage.mondrian.feature_rates._samples import Sample


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
    seed: int,
) -> GrowthPlan:
    """What a forest learns before the first cut."""
    forest = new_forest(template)
    n_threads = forest._n_threads()
    low, high = ends
    return learned_apart(forest, low, high, seed, sample, n_threads, substitutes, tables)


def substitutes(sample: Sample) -> Substitutes:
    """What stands for missing values, learned from rows that may lack some."""
    return substitutes_of(sample.X, sample.y)


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
    return [moved.of(rows) for rows in by_owner]


Links: TypeAlias = list[tuple[float, float]]
"""Power and noise of the calibration by discount."""
Discounts: TypeAlias = list[float] | None
"""Some discounts; None means that of the forest."""


@dataclass(frozen=True)
class Growth:
    """What all owners must know to grow the subtrees of their cells."""

    share: type[CellShare]
    template: MondrianForest
    settings: dict[str, Any]
    """The checked settings of the one-machine model."""
    names: list[Label] | None
    """The sorted labels of a classifier as Python values; None for a regressor."""
    declared: list[Label] | None
    """Those that are classes also while no row has them."""
    n_rows_of: list[int]
    """The number of rows of each label, of all owners."""
    is_weighted: bool
    left_out: LeftOut | None
    """The rows that calibrate, which all owners have; None if nothing is calibrated."""
    judging: Ids | None
    """The arrivals of the rows that judge discounts; None if the discount is known."""
    version: str

    def left_out_of_all(self) -> list[Ids]:
        """The arrivals of rows that are left out of all trees."""
        calibrating = [] if self.left_out is None else [self.left_out.arrivals]
        return calibrating if self.judging is None else [*calibrating, self.judging]

    def encoded(self, rows: Piece) -> tuple[Any, ...]:
        """Targets as the compiled model takes them."""
        return (rows.target,) if self.names is None else (rows.target, self.names)

    @property
    def labels(self) -> Labels:
        """The labels as an array."""
        return None if self.names is None else np.array(self.names)


class CellShare:
    """What an owner of cells holds: first rows, then subtrees, and then the tops of all trees.

    Each step is made in place, since a copy would double the memory. That is safe: what may be read
    before a step does not change by it, and no step is made twice. Only a chosen discount changes
    what is read: before, readers say which discounts they mean.
    """

    core: Any

    def __init__(self, growth: Growth, plan: _core.CellPlan, owner: int, rows: Piece) -> None:
        self._growth, self._plan, self._owner = growth, plan, owner
        self._arrivals, self._ids = rows.arrivals, rows.ids
        self._summaries: list[NDArray[np.uint64]] = []
        self._sizes: list[NDArray[np.uint64]] = []
        self._discount: Any = growth.settings.get("discount")
        # Of steps: Dask may run a task again whose result was lost.
        self._lock = threading.Lock()
        self.core = self._of_rows(rows)

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _of_rows(self, rows: Piece) -> Any:
        """The compiled share of some rows."""

    @abstractmethod
    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]], link: Any) -> FloatArray:
        """Predictions, given the lists of all owners, and what calibrates them."""

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

    def set_sizes(self, sizes: list[NDArray[np.uint64]]) -> None:
        """Estimate local noise, unless that is done."""
        with self._lock:
            if not self._sizes:
                self.core.set_sizes(sizes, n_threads=self.n_threads())
                self._sizes = sizes

    def held(self) -> Piece:
        """The rows that are here."""
        weights = self.core.sample_weight()
        arrivals, ids, core = self._arrivals, self._ids, self.core
        return Piece(core.rows(), core.targets(), weights, arrivals, ids, self._owner)

    def own_rows(self) -> Piece:
        """The rows of this owner's cells of the first tree, as they came."""
        own, labels = self.held().of(self.core.first_rows()), self._growth.labels
        return own if labels is None else replace(own, target=labels[own.target])

    def lists(self, rows: Rows) -> NDArray[np.uint64]:
        """What this owner's trees say of rows."""
        words: NDArray[np.uint64] = self.core.lists(rows, n_threads=self.n_threads())
        return words

    def __sizeof__(self) -> int:
        return int(self.core.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        own = (self._growth, self._plan, self._owner, self.held())
        told = {"summaries": self._summaries, "sizes": self._sizes, "discount": self._discount}
        return {"own": own, "is_grown": self.core.is_grown, **told}

    def __setstate__(self, state: dict[str, Any]) -> None:
        growth, plan, owner, held = state["own"]
        self.__init__(growth, plan, owner, received(held))  # type: ignore[misc]
        if state["is_grown"]:
            self.grow()
        if state["summaries"]:
            self.join([aligned(words) for words in state["summaries"]])
        if state["sizes"]:
            self.set_sizes([aligned(words) for words in state["sizes"]])
        if state["discount"] is not None:
            self.core.set_discount(state["discount"])
            self._discount = state["discount"]


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
            calibration=self._growth.settings["calibration"],
            declared=self._growth.declared,
            sample_weight=rows.weights,
        )

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]], link: Any) -> FloatArray:
        return self.core.proba_of_votes(rows, of_owners, link)

    def left_out_votes(self, arrivals: Ids, discounts: Discounts) -> NDArray[np.uint64]:
        """What this owner's trees say of some rows, without each."""
        places, n_threads = self._places(arrivals), self.n_threads()
        return self.core.left_out_votes(places, self._or_own(discounts), n_threads=n_threads)

    def links(self, discounts: Discounts, of_owners: list[NDArray[np.uint64]]) -> Links:
        """What calibrates, given the votes of all owners for the rows that do."""
        left_out, discounts = self._growth.left_out, self._or_own(discounts)
        if left_out is None:
            return [(1.0, 0.0)] * len(discounts)
        places = self._places(left_out.arrivals)
        return self.core.links_of_votes(places, left_out.copies, discounts, of_owners)

    def judged(
        self, arrivals: Ids, discounts: Discounts, links: Links, of_owners: list[NDArray[np.uint64]]
    ) -> FloatArray:
        """The probabilities of all classes of left-out rows by discount."""
        places, discounts = self._places(arrivals), self._or_own(discounts)
        proba: FloatArray
        proba = self.core.proba_of_left_out_votes(places, discounts, of_owners, links)
        return proba

    def judging(self) -> tuple[IntArray, FloatArray | None]:
        """The classes of the rows that judge discounts, and their weights."""
        assert self._growth.judging is not None
        places, weights = self._places(self._growth.judging), self.core.sample_weight()
        if weights is None and self._growth.is_weighted:
            weights = np.ones(self.core.n_rows)
        columns = self.core.targets()[places].astype(np.int64)
        return columns, None if weights is None else weights[places]

    def set_discount(self, discount: float) -> None:
        """Take the discount that was chosen."""
        with self._lock:
            self.core.set_discount(discount)
            self._discount = discount

    def _places(self, arrivals: Ids) -> NDArray[np.uint32]:
        """The places of some rows among those that are here."""
        order = np.argsort(self._arrivals)
        places = order[np.searchsorted(self._arrivals, arrivals, sorter=order)]
        return places.astype(np.uint32)

    def _or_own(self, discounts: Discounts) -> list[float]:
        return [self._discount] if discounts is None else discounts


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
            noise=self._growth.settings["noise"],
            sample_weight=rows.weights,
        )

    def sizes(self) -> NDArray[np.uint64]:
        """What other owners need of this share's errors for local noise."""
        with self._lock:
            words: NDArray[np.uint64] = self.core.sizes(n_threads=self.n_threads())
        return words

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]], link: Any) -> FloatArray:
        mean, variance = self.core.moments_of_components(rows, of_owners)
        return np.column_stack([mean, np.sqrt(variance)])


def hyperparameters(settings: dict[str, Any]) -> dict[str, Any]:
    """The given hyperparameters of a regressor, also those that have a default; none of others."""
    if "mu" not in settings:
        return {}
    needed = {name: settings[name] for name in ("mu", "gamma1", "gamma2", "noise_variance")}
    prior = {"delay": 0.0, "coarse_variance": 0.0, "coarse_rate": 1.0}
    return needed | {name: settings.get(name, value) for name, value in prior.items()}


def hold(growth: Growth, plan: _core.CellPlan, owner: int, pieces: list[Piece]) -> CellShare:
    """The rows of an owner, in place of the pieces that came."""
    _shares.check_version(growth.version)
    return growth.share(growth, plan, owner, joined_pieces(pieces, growth.is_weighted, owner))


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


def sizes(share: RegressorCellShare) -> NDArray[np.uint64]:
    """What other owners need of a share's errors for local noise."""
    return share.sizes()


def with_noise(share: RegressorCellShare, sizes: list[NDArray[np.uint64]]) -> RegressorCellShare:
    """The share with local noise."""
    share.set_sizes([aligned(own) for own in sizes])
    return share


def left_out_votes(
    share: ClassifierCellShare, arrivals: Ids, discounts: Discounts
) -> NDArray[np.uint64]:
    """What an owner's trees say of some rows, without each."""
    return share.left_out_votes(aligned(arrivals), discounts)


def links(
    share: ClassifierCellShare, discounts: Discounts, of_owners: list[NDArray[np.uint64]]
) -> Links:
    """What calibrates, given the votes of all owners for the rows that do."""
    return share.links(discounts, [aligned(own) for own in of_owners])


def judged(
    share: ClassifierCellShare,
    arrivals: Ids,
    discounts: Discounts,
    links: Links,
    of_owners: list[NDArray[np.uint64]],
) -> FloatArray:
    """The probabilities of the classes of some left-out rows by discount."""
    return share.judged(aligned(arrivals), discounts, links, [aligned(own) for own in of_owners])


def chosen_discount(share: ClassifierCellShare, proba: list[FloatArray]) -> float:
    """The best discount, given the probabilities of all rows that judge."""
    return best_discount(np.concatenate(proba, axis=1), *share.judging())


def with_discount(share: ClassifierCellShare, discount: float) -> ClassifierCellShare:
    """The share with a discount that was chosen."""
    share.set_discount(discount)
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
    return share.own_rows()


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
