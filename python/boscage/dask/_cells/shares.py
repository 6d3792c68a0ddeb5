"""What an owner of cells holds, whatever the posterior."""

from __future__ import annotations

import threading
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import FloatArray, Ids, Label, Rows
from boscage.dask._cells.rows import Labels, LeftOut, Piece, received
from boscage.dask._shares import aligned, new_forest
from boscage.mondrian._forest.base import MondrianForest

Self = TypeVar("Self", bound="CellShare")


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
    left_out: LeftOut
    """The rows that calibrate, which all owners have; none if nothing is calibrated."""
    of_trend: Ids
    """The arrivals of the rows that a trend is fitted to, which the first owner has."""
    judging: Ids
    """The arrivals of the rows that judge discounts; none if the discount is known."""
    version: str

    def left_out_of_all(self) -> list[Ids]:
        """The arrivals of rows that are left out of all trees."""
        return [rows for rows in (self.left_out.arrivals, self.judging) if len(rows)]

    def encoded(self, rows: Piece) -> tuple[Any, ...]:
        """Targets as the compiled model takes them."""
        return (rows.target,) if self.names is None else (rows.target, self.names)

    @property
    def labels(self) -> Labels:
        """The labels as an array."""
        return None if self.names is None else np.array(self.names)


class CellShare:
    """What an owner of cells holds: first rows, then subtrees, and then the tops of all trees.

    Methods are Dask's tasks. Those that make a step return the share, and make it in place, since a
    copy would double the memory. That is safe: what may be read before a step does not change by
    it, and no step is made twice. Only a chosen discount changes what is read: before, readers say
    which discounts they mean.
    """

    core: Any

    def __init__(self, growth: Growth, plan: _core.CellPlan, owner: int, rows: Piece) -> None:
        self._growth, self._plan, self._owner = growth, plan, owner
        self._arrivals, self._ids = rows.arrivals, rows.ids
        self._summaries: list[NDArray[np.uint64]] = []
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

    @abstractmethod
    def _learned(self) -> Any:
        """All that the share was told after its trees were joined."""

    @abstractmethod
    def _learn(self, learned: Any) -> None:
        """Take what another copy of the share was told."""

    # -- what all have in common ------------------------------------------------------------------

    def n_threads(self) -> int:
        """The threads of this worker, or those that were asked for."""
        return new_forest(self._growth.template)._n_threads()

    def grow(self: Self) -> Self:
        """Draw the subtrees, unless that is done."""
        with self._lock:
            if not self.core.is_grown:
                self.core.grow(n_threads=self.n_threads())
        return self

    def summaries(self) -> NDArray[np.uint64]:
        """What other owners need of this share."""
        with self._lock:
            words: NDArray[np.uint64] = self.core.summaries()
        return words

    def join(self: Self, summaries: list[NDArray[np.uint64]]) -> Self:
        """Make the tops of all trees, unless that is done."""
        with self._lock:
            if not self.core.is_joined:
                summaries = [aligned(words) for words in summaries]
                self.core.join(summaries)
                self._summaries = summaries
        return self

    def held(self) -> Piece:
        """The rows that are here."""
        weights = self.core.sample_weight()
        arrivals, ids, core = self._arrivals, self._ids, self.core
        return Piece(core.rows(), core.targets(), weights, arrivals, ids, self._owner)

    def own_rows(self) -> Piece:
        """The rows of this owner's cells of the first tree, as they came; each is of one owner."""
        own, labels = self.held().of(self.core.first_rows()), self._growth.labels
        return own if labels is None else replace(own, target=labels[own.target])

    def hashes(self) -> tuple[bytes, bytes]:
        """The hashes of this owner's subtrees, and of its rows of the first tree."""
        found: tuple[bytes, bytes] = self.core.hashes()
        return found

    def lists(self, rows: Rows) -> NDArray[np.uint64]:
        """What this owner's trees say of rows."""
        words: NDArray[np.uint64] = self.core.lists(rows, n_threads=self.n_threads())
        return words

    def __sizeof__(self) -> int:
        return int(self.core.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        own = (self._growth, self._plan, self._owner, self.held())
        steps = {"is_grown": self.core.is_grown, "summaries": self._summaries}
        return {"own": own, **steps, "learned": self._learned()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        growth, plan, owner, held = state["own"]
        self.__init__(growth, plan, owner, received(held))  # type: ignore[misc]
        if state["is_grown"]:
            self.grow()
        if state["summaries"]:
            self.join(state["summaries"])
        self._learn(state["learned"])
