"""Tables of very many features: only the most important ones get rates.

To learn rates takes time in proportion to the features, and so does a forest's memory. Features
without a rate are never cut, and take no place in its trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boscage import _core
from boscage._input.columns import dense
from boscage._types import FloatArray, IntArray, Rows
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import (
    LEARNING_ROWS,
    MOST_FEATURES,
    SCREENING_STREAM,
    LearnedRates,
)

__all__: list[str] = []


@dataclass(frozen=True)
class SomeFeatures:
    """Some features of a table, by number, in order."""

    numbers: IntArray
    n_features: int
    """The number of all features."""

    @classmethod
    def most_important(
        cls, sample: Sample, settings: Mapping[str, Any], *, seed: int, n_threads: int
    ) -> SomeFeatures:
        """The features for which rates are to be learned, in these settings among them."""
        n_features = sample.X.shape[1]
        if n_features <= MOST_FEATURES:
            return cls(np.arange(n_features), n_features)
        found = _core.most_important_features(
            sample.X,
            sample.y.astype(np.float64),
            MOST_FEATURES,
            classification=sample.y.dtype.kind != "f",
            seed=seed ^ SCREENING_STREAM,
            n_threads=n_threads,
        )
        with_slopes = settings.get("trend_features") or []
        if with_slopes and max(with_slopes) >= n_features:
            raise ValueError(f"trend has feature {max(with_slopes)}, but X has {n_features}")
        return cls(np.union1d(found, with_slopes).astype(np.int64), n_features)

    @property
    def are_all(self) -> bool:
        """Whether they are all features."""
        return len(self.numbers) == self.n_features

    def of(self, values: FloatArray) -> FloatArray:
        """Their entries of a vector."""
        return values if self.are_all else values[self.numbers]

    def of_sample(self, sample: Sample) -> Sample:
        """The rows that teach rates, with these features alone."""
        some = sample.first(LEARNING_ROWS)
        in_forest = None if some.in_forest is None else self._columns(some.in_forest)
        return replace(some, X=self._columns(some.X), in_forest=in_forest)

    def _columns(self, X: Rows) -> FloatArray:
        some: Any = X if self.are_all else X[:, self.numbers]
        return np.ascontiguousarray(dense(some))

    def of_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings of forests of these features alone."""
        chosen = settings.get("trend_features")
        if chosen is None or self.are_all:
            return settings
        return settings | {"trend_features": np.searchsorted(self.numbers, chosen).tolist()}

    def in_all_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings of the forest, given those of forests of these features alone."""
        chosen = settings.get("trend_features")
        if chosen is None or self.are_all:
            return settings
        return settings | {"trend_features": self.numbers[chosen].tolist()}

    def in_all_rates(self, learned: LearnedRates) -> LearnedRates:
        """Rates of all features, given those of these: others have none."""
        if self.are_all:
            return learned
        importances, weights = np.zeros(self.n_features), np.zeros(self.n_features)
        importances[self.numbers], weights[self.numbers] = learned.importances, learned.weights
        maps = learned.maps
        if maps is not None:
            linear = np.zeros(0)
            of_these = dict(zip(self.numbers.tolist(), maps, strict=True))
            maps = [of_these.get(d, (linear, linear)) for d in range(self.n_features)]
        return LearnedRates(importances, learned.power, weights, maps)
