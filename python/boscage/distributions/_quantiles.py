"""Quantiles of mixtures: where their distribution functions have a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from boscage._types import BoolArray, FloatArray, IntArray

Self = TypeVar("Self", bound="_Mixtures")

_MAX_STEPS = 250


class _Mixtures(Protocol):
    """Mixtures of some rows, whose components are next to each other in flat arrays."""

    #: Where the components of each row begin.
    starts: IntArray
    weights: FloatArray

    def __getitem__(self: Self, rows: BoolArray, /) -> Self: ...

    def newton_step(self, x: FloatArray, q: float, /) -> tuple[FloatArray, FloatArray]:
        """Compute ``cdf(x) - q`` at a value for each row, and the same over the density."""


def solve(
    mixtures: _Mixtures,
    q: float,
    each: FloatArray,
    scales: FloatArray,
    middle: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Solve cdf(x) = q for every row by Newton steps inside a shrinking bracket.

    ``each`` and ``scales`` are the components' quantiles and scales; ``middle`` says where to halve
    a bracket.
    """
    # A mixture's quantile lies between the least and the greatest of its components'.
    low = np.minimum.reduceat(each, mixtures.starts)
    high = np.maximum.reduceat(each, mixtures.starts)
    with np.errstate(over="ignore"):
        x = np.clip(np.add.reduceat(mixtures.weights * each, mixtures.starts), low, high)
        last_step = high - low
    finest = np.minimum.reduceat(scales, mixtures.starts)
    out: FloatArray = x.copy()
    row = np.arange(len(x))  # the rows that have not converged, in the order of x
    for _ in range(_MAX_STEPS):
        with np.errstate(all="ignore"):
            excess, step = mixtures.newton_step(x, q)
            newton = x - step
        low, high = np.where(excess < 0.0, x, low), np.where(excess > 0.0, x, high)
        # Between two modes the density vanishes: where a step leaves the bracket or hardly shrinks,
        # halve the bracket instead.
        use = (newton >= low) & (newton <= high) & (np.abs(step) <= 0.5 * last_step)
        following = np.where(use, newton, middle(low, high))
        following = np.where(excess == 0.0, x, following)
        last_step = np.abs(following - x)
        out[row] = x = following
        # Near 0 the distribution function resolves no more than a narrow component does.
        tolerance = 2.0 * np.finfo(np.float64).eps * np.maximum(np.abs(x), finest)
        going = last_step > tolerance
        if not going.any():
            break
        if not going.all():
            mixtures, row, x, finest = mixtures[going], row[going], x[going], finest[going]
            low, high, last_step = low[going], high[going], last_step[going]
    return out
