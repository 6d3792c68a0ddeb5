"""The warm-up of a forest in a stream: what it learns from its first rows, until it is final."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from boscage import _validation
from boscage.mondrian._categories import Tables, extend, put, read_back, to_core
from boscage.mondrian._growth import GrowingForest, NewRows

Self = TypeVar("Self", bound="WarmingForest")

GROWTH = 2
"""During the warm-up, what is learned from the first rows is learned again each time the number of
rows has grown by this factor."""

_LEARNED = (
    "feature_range",
    "feature_weights",
    "feature_maps",
    "trend",
    "substitutes",
    "categories",
)


@dataclass(frozen=True)
class WarmUp:
    """How far a forest's warm-up has come."""

    n_rows: int
    """Number of rows that came so far."""
    n_learned: int
    """Number of rows that had come when ranges, rates and the discount were last learned."""


class WarmingForest(GrowingForest):
    """A forest that learns ranges, rates and the discount anew while its first rows come."""

    # None once what is learned from the first rows is final.
    _warming: WarmUp | None

    warm_up: int

    def _choices_of(self, model: Any) -> dict[str, Any]:
        """The settings of a model that were chosen when its rates were learned."""
        return {}

    @abstractmethod
    def _stored(self, model: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The targets of a model's rows, as `_encode` returns them for a new model."""

    @property
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

    def _merge_warming(self: Self, other: Self, window: int | None) -> None:
        """Merge forests of which one at least is in its warm-up."""
        for name in _LEARNED:
            ours, theirs = (one._grown_with.get(name) for one in (self, other))
            if not same_value(ours, theirs):
                raise ValueError(
                    f"the forests cannot be merged: {name} is {ours!r} in one of them and "
                    f"{theirs!r} in the other"
                )
        final = other if self._warming is not None and other._warming is None else self
        tables = dict(final._tables)
        if self._warming is not None and other._warming is not None and self.categories is None:
            tables = {k: extend(table, list(other._tables[k])) for k, table in tables.items()}
        mine, theirs = (one._as_learned_by(final, tables) for one in (self, other))
        mine.merge(theirs)
        self._model, self._learned, self._tables = mine, final._learned, tables
        self._enforce_window(window)
        if self._warming is None or other._warming is None:
            self._warming = None
        elif mine.n_rows > 0:
            self._learn_again(self._warming.n_rows + other._warming.n_rows, self._warm_up())

    def _as_learned_by(self, other: WarmingForest, tables: Tables) -> Any:
        """A copy of the model with the ranges, rates and discount of another forest.

        `tables` are the other's, or hold more categories.
        """
        own, theirs = self._model, other._model
        if own is theirs:
            model = own.copy()
            model.set_categories(to_core(tables))
            return model
        rows = own.rows()
        rows = put(rows, read_back(rows, self._tables), tables)
        encoded, extra = self._stored(own)
        extra = extra | {"categories": to_core(tables)}
        substitutes = own.substitutes if theirs.substitutes is None else theirs.substitutes
        if substitutes is not None:
            extra = extra | {"substitutes": substitutes}
        model = self._new_model(self._settings() | self._choices_of(theirs), own.seed)
        model.fit(
            rows,
            *encoded,
            **extra,
            ids=own.ids,
            low=theirs.low,
            high=theirs.high,
            weights=theirs.weights,
            maps=theirs.maps,
            n_threads=self._n_threads(),
        )
        if hasattr(theirs, "discount"):
            model.set_discount(theirs.discount)
        model.set_annotation(own.annotation)
        return model

    def _learn_again(self, n_rows: int, warm_up: int) -> None:
        """Grow the forest anew from its rows, after `n_rows` came in all."""
        before = self._model
        self._grow(
            self._stored_rows(),
            settings=self._settings(),
            seed=before.seed,
            n_threads=self._n_threads(),
        )
        self._model.set_annotation(before.annotation)
        self._warming = self._new_warm_up(n_rows, warm_up)

    def _stored_rows(self) -> NewRows:
        """The rows of the model, as those of a new one."""
        rows = self._model.rows()
        columns = read_back(rows, self._tables)
        return NewRows(rows, columns, *self._stored(self._model), self._model.ids)

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
