"""The warm-up of a forest in a stream: what it learns from its first rows, until it is final."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from boscage import _validation
from boscage._bases.lock import reading
from boscage.mondrian._categories import read_back
from boscage.mondrian._forest.growth import GrowingForest, NewRows, rows_of

Self = TypeVar("Self", bound="WarmingForest")

GROWTH = 2
"""During the warm-up, what is learned from the first rows is learned again each time the number of
rows has grown by this factor."""


@dataclass(frozen=True)
class WarmUp:
    """How far a forest's warm-up has come."""

    n_rows: int
    """Number of rows that came so far."""
    n_learned: int
    """Number of rows that had come when ranges, rates and settings were last learned."""


class WarmingForest(GrowingForest):
    """A forest that learns ranges, rates and settings anew while its first rows come."""

    # None once what is learned from the first rows is final.
    _warming: WarmUp | None

    warm_up: int

    @abstractmethod
    def _stored(self, model: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The targets of a model's rows, as `_encode` returns them for a new model."""

    @property
    @reading
    def warm_up_left_(self) -> int:
        """The number of rows until what is learned from the first rows is final; 0 once it is."""
        self._require_model()
        return 0 if self._warming is None else max(self._warm_up() - self._warming.n_rows, 1)

    def _learns(self) -> bool:
        """Whether anything is learned from the first rows, and then kept."""
        learns_tables = bool(self._tables) and self.categories is None
        return self.feature_range is None or self._learns_rates() or learns_tables

    def _warm_up(self) -> int:
        return _validation.check_count("warm_up", self.warm_up, 0)

    def _learn_again(self, n_rows: int, warm_up: int) -> None:
        """Grow the forest anew from its rows, after `n_rows` came in all."""
        before = self._model
        self._grow(
            self._stored_rows(),
            settings=self._settings_of(before) | self._kept(before),
            seed=before.seed,
            n_threads=self._n_threads(),
        )
        self._model.set_annotation(before.annotation)
        self._warming = self._new_warm_up(n_rows, warm_up)

    def _stored_rows(self) -> NewRows:
        """The rows of the model, as those of a new one."""
        rows = rows_of(self._model)
        columns = read_back(rows, self._tables)
        model = self._model
        return NewRows(rows, columns, *self._stored(model), model.ids, model.sample_weight())

    def _new_warm_up(self, n_rows: int, warm_up: int) -> WarmUp | None:
        """How far the warm-up has come when all is learned from `n_rows`."""
        return WarmUp(n_rows, n_rows) if n_rows < warm_up and self._learns() else None

    def _is_to_learn_again(self, warm_up: int) -> bool:
        warming = self._warming
        return warming is not None and warming.n_rows >= min(warm_up, GROWTH * warming.n_learned)


def same_value(before: Any, now: Any) -> bool:
    """Whether two values of a parameter, possibly arrays, are equal."""
    if before is now:
        return True
    if isinstance(before, (str, type(None))) or isinstance(now, (str, type(None))):
        return bool(type(before) is type(now) and before == now)
    try:
        return bool(np.array_equal(np.asarray(before), np.asarray(now)))
    except ValueError:  # ragged, such as (0.0, [1.0, 2.0])
        if not (isinstance(before, Sequence) and isinstance(now, Sequence)):
            return False
        return bool(
            len(before) == len(now)
            and all(same_value(a, b) for a, b in zip(before, now, strict=True))
        )


def warming_from(metadata: dict[str, Any]) -> WarmUp | None:
    """How far the warm-up had come, from a file's metadata, which is not to be trusted."""
    found = metadata.get("warming")
    if (
        isinstance(found, list)
        and len(found) == 2
        and all(isinstance(n, int) for n in found)
        and 1 <= found[1] <= found[0]
    ):
        return WarmUp(*found)
    return None
