"""What an owner of cells holds of a regressor: hyperparameters, messages and local noise."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import FloatArray, Rows
from boscage.dask._cells.rows import Piece
from boscage.dask._cells.shares import CellShare, Growth
from boscage.dask._shares import aligned, new_forest
from boscage.mondrian._forest.cell_plans import chosen_apart
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian.feature_rates._samples import Sample

Words: TypeAlias = list[NDArray[np.uint64]]
"""What all owners say, in their order."""
Chosen: TypeAlias = list[float]
"""What a rule chooses; it begins with the hyperparameters."""


class RegressorCellShare(CellShare):
    """Subtrees whose nodes have Gaussian means."""

    core: _core.RegressorCells

    def __init__(self, growth: Growth, plan: _core.CellPlan, owner: int, rows: Piece) -> None:
        self._chosen: Chosen = []
        self._messages: Words = []
        self._sizes: Words = []
        super().__init__(growth, plan, owner, rows)

    def _of_rows(self, rows: Piece) -> _core.RegressorCells:
        model = _core.MondrianRegressor(**self._growth.settings)
        return _core.RegressorCells(
            self._plan, self._owner, model, rows.rows, rows.target, sample_weight=rows.weights
        )

    def choose(self, learned: GrowthPlan, sample: Sample | None) -> Chosen:
        """What the rule chooses from a sample of the forest's rows; without one, what is given."""
        if sample is None:
            given: Chosen = self.core.given()
            return given
        forest = new_forest(self._growth.template)
        X, y, weights = aligned(sample.X), aligned(sample.y), aligned(sample.weights)
        sample, moments = Sample(X, y, weights, sample.n_rows), self.core.target_moments()
        return chosen_apart(forest, learned, sample, moments, forest._n_threads())

    def messages(self, chosen: Chosen) -> NDArray[np.uint64]:
        """What other owners need of this share's messages."""
        with self._lock:
            words: NDArray[np.uint64] = self.core.messages(chosen, n_threads=self.n_threads())
        return words

    def set_messages(self, chosen: Chosen, messages: Words) -> RegressorCellShare:
        """Pass all messages, unless that is done."""
        with self._lock:
            if not self._messages:
                messages = [aligned(words) for words in messages]
                self.core.set_messages(chosen, messages, n_threads=self.n_threads())
                self._chosen, self._messages = chosen, messages
        return self

    def sizes(self) -> NDArray[np.uint64]:
        """What other owners need of this share's errors for local noise."""
        with self._lock:
            words: NDArray[np.uint64] = self.core.sizes(n_threads=self.n_threads())
        return words

    def set_sizes(self, sizes: Words) -> RegressorCellShare:
        """Estimate local noise, unless that is done."""
        with self._lock:
            if not self._sizes:
                sizes = [aligned(words) for words in sizes]
                self.core.set_sizes(self._chosen, sizes, n_threads=self.n_threads())
                self._sizes = sizes
        return self

    def finished(self, rows: Rows, of_owners: list[NDArray[np.uint64]], link: Any) -> FloatArray:
        mean, variance = self.core.moments_of_components(rows, of_owners)
        return np.column_stack([mean, np.sqrt(variance)])

    def _learned(self) -> tuple[Chosen, Words, Words]:
        return self._chosen, self._messages, self._sizes

    def _learn(self, learned: tuple[Chosen, Words, Words]) -> None:
        chosen, messages, sizes = learned
        if messages:
            self.set_messages(chosen, messages)
        if sizes:
            self.set_sizes(sizes)
