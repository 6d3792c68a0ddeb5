"""What an owner of cells holds of a classifier, and what it says of rows that are left out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import FloatArray, Ids, IntArray, Rows
from boscage.dask._cells.rows import Piece
from boscage.dask._cells.shares import CellShare, Growth
from boscage.dask._shares import Link, aligned
from boscage.mondrian._discount import best_discount

Links: TypeAlias = list[Link]
"""What calibrates, by discount."""
Discounts: TypeAlias = list[float] | None
"""Some discounts; None means that of the forest."""


class ClassifierCellShare(CellShare):
    """Subtrees whose nodes count classes."""

    core: _core.ClassifierCells

    def __init__(self, growth: Growth, plan: _core.CellPlan, owner: int, rows: Piece) -> None:
        self._discount: float = growth.settings["discount"]
        super().__init__(growth, plan, owner, rows)

    def _learned(self) -> float:
        return self._discount

    def _learn(self, learned: float) -> None:
        self.set_discount(learned)

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
            trend=self._growth.settings["trend"],
            declared=self._growth.declared,
            sample_weight=rows.weights,
        )

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]], link: Any) -> FloatArray:
        return self.core.proba_of_votes(rows, of_owners, link)

    def left_out_votes(self, arrivals: Ids, discounts: Discounts) -> NDArray[np.uint64]:
        """What this owner's trees say of some rows, without each."""
        places, n_threads = self._places(aligned(arrivals)), self.n_threads()
        return self.core.left_out_votes(places, self._or_own(discounts), n_threads=n_threads)

    def links(self, discounts: Discounts, of_owners: list[NDArray[np.uint64]]) -> Links:
        """What calibrates, given the votes of all owners for the rows that do.

        This and what `judged` says is asked of the first owner, which has the rows of a trend.
        """
        left_out, discounts = self._growth.left_out, self._or_own(discounts)
        places, of_trend = self._places(left_out.arrivals), self._places(self._growth.of_trend)
        of_owners = [aligned(own) for own in of_owners]
        return self.core.links_of_votes(places, left_out.copies, of_trend, discounts, of_owners)

    def judged(
        self, arrivals: Ids, discounts: Discounts, links: Links, of_owners: list[NDArray[np.uint64]]
    ) -> FloatArray:
        """The probabilities of all classes of left-out rows by discount."""
        places, discounts = self._places(aligned(arrivals)), self._or_own(discounts)
        of_owners = [aligned(own) for own in of_owners]
        proba: FloatArray
        proba = self.core.proba_of_left_out_votes(
            places, self._places(self._growth.of_trend), discounts, of_owners, links
        )
        return proba

    def choose_discount(self, proba: list[FloatArray]) -> float:
        """The best discount, given the probabilities of all rows that judge."""
        return best_discount(np.concatenate(proba, axis=1), *self._judging())

    def _judging(self) -> tuple[IntArray, FloatArray | None]:
        """The classes of the rows that judge discounts, and their weights."""
        places, weights = self._places(self._growth.judging), self.core.sample_weight()
        if weights is None and self._growth.is_weighted:
            weights = np.ones(self.core.n_rows)
        columns = self.core.targets()[places].astype(np.int64)
        return columns, None if weights is None else weights[places]

    def set_discount(self, discount: float) -> ClassifierCellShare:
        """Take the discount that was chosen."""
        with self._lock:
            self.core.set_discount(discount)
            self._discount = discount
        return self

    def _places(self, arrivals: Ids) -> NDArray[np.uint32]:
        """The places of some rows among those that are here."""
        order = np.argsort(self._arrivals)
        places = order[np.searchsorted(self._arrivals, arrivals, sorter=order)]
        return places.astype(np.uint32)

    def _or_own(self, discounts: Discounts) -> list[float]:
        return [self._discount] if discounts is None else discounts
