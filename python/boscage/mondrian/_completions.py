"""Averages over completed rows, where predictions are put together in Python.

The prediction of a row that lacks values is the average of those of its completions, which the
compiled model chooses. It averages its own predictions; sums over parts of the trees and
contributions are averaged here, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from boscage._types import FloatArray, IntArray, Rows

__all__: list[str] = []


@dataclass(frozen=True)
class Completions:
    """Complete rows, with one or more for each row to predict."""

    rows: Rows
    offsets: IntArray | None
    """Where those of each row begin, and where all end; None if there is one for each."""

    @classmethod
    def of(cls, model: Any, rows: Rows, n_threads: int) -> Completions:
        """Those of checked rows."""
        found = model.completions(rows, n_threads=n_threads)
        return cls(rows, None) if found is None else cls(*found)

    def mean(self, found: FloatArray) -> FloatArray:
        """The mean over each row's completions of what was found for them."""
        if self.offsets is None:
            return found
        starts, counts = self.offsets[:-1], np.diff(self.offsets)
        total = np.zeros((len(starts), *found.shape[1:]))
        for k in range(counts.max(initial=0)):
            has = counts > k
            total[has] += found[starts[has] + k]
        mean: FloatArray = total / counts.reshape((-1,) + (1,) * (found.ndim - 1))
        return mean

    def mixed(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the mixture of the completions' distributions, given theirs."""
        if self.offsets is None:
            return mean, variance
        mixed = self.mean(mean)
        apart = mean - np.repeat(mixed, np.diff(self.offsets))
        return mixed, self.mean(variance + apart**2)
