"""How averages over trees become class probabilities: what the compiled calibration found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from scipy.sparse import issparse

from boscage._types import AnyArray, FloatArray

FARTHEST = 1e6
"""A row that is farther away, in units of a feature's range, counts as being so far away."""


@dataclass(frozen=True, eq=False)
class ClassTrend:
    """A linear function of the features for each class, which fades away from the rows."""

    weight: float
    features: list[int]
    """Those that have slopes."""
    low: FloatArray
    width: FloatArray
    means: FloatArray
    """Where the function is 0, in units of the widths and counted from `low`."""
    slopes: FloatArray
    """Along whole ranges, of shape (n_features of the trend, n_classes)."""
    factor: FloatArray
    """The lower triangle of the Cholesky factor of the regression's matrix."""
    variances: tuple[float, float]
    """One over the number of rows, and the variance of the regression up to which it counts."""

    def by_feature(self, X: AnyArray) -> FloatArray:
        """What each feature adds to the weighted values; no value of `X` is missing.

        Of shape (n_rows, n_features of the trend, n_classes). At the mean of the rows to which the
        trend is fitted it is 0. Of the product of a linear function and what is left of it away
        from the rows, a change in one factor counts with the mean of the other before and after.
        """
        own: Any = X[:, self.features]
        own = own.toarray() if issparse(own) else own
        with np.errstate(over="ignore"):
            places = (np.asarray(own, dtype=np.float64) - self.low) / self.width
        z = np.clip(places, -FARTHEST, FARTHEST) - self.means
        values = z[:, :, np.newaxis] * (self.weight * self.slopes)
        squares = z * cho_solve((self.factor, True), z.T).T
        square = np.maximum(squares.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        left = np.minimum(self.variances[1] / (self.variances[0] + square), 1.0) ** 2
        of_left = (left - 1.0) * squares / square
        whole = values.sum(axis=1)[:, np.newaxis]
        found: FloatArray = 0.5 * (1.0 + left[:, :, np.newaxis]) * values
        found += 0.5 * of_left[:, :, np.newaxis] * whole
        return found


@dataclass(frozen=True, eq=False)
class Link:
    """``softmax(power * log p + weight * f + (1 - r)**4 * (s + g))``, mixed with noise.

    ``p`` is the average over trees, ``r`` the weight in it of what trees say of all their rows,
    ``f`` what all trees explain together, ``s`` what draws to the shares of the classes, and ``g``
    the trend.
    """

    power: float = 1.0
    noise: float = 0.0
    weight: float = 0.0
    class_shares: list[float] = field(default_factory=list)
    """None unless the power is below 1."""
    trend: ClassTrend | None = None

    @classmethod
    def of(cls, numbers: tuple[Any, ...]) -> Link:
        """The link with the numbers of the compiled one."""
        power, noise, weight, shares, trend = numbers
        if trend is None:
            return cls(power, noise, weight, shares)
        of_trend, features, arrays, slopes, factor, variances = trend
        n, (low, width, means) = len(features), (np.array(array) for array in arrays)
        by_class, lower = np.array(slopes).reshape(n, -1), np.array(factor).reshape(n, n)
        found = ClassTrend(of_trend, features, low, width, means, by_class, lower, variances)
        return cls(power, noise, weight, shares, found)

    @property
    def changes_nothing(self) -> bool:
        """Whether probabilities are the average over trees."""
        return (self.power, self.noise, self.weight) == (1.0, 0.0, 0.0) and not self.has_of_all

    @property
    def has_of_all(self) -> bool:
        """Whether ``r`` counts."""
        return bool(self.class_shares) or self.trend is not None

    @property
    def to_shares(self) -> FloatArray | float:
        """What draws to the shares of the classes where ``r`` is 0."""
        if not self.class_shares:
            return 0.0
        return np.asarray((1.0 - self.power) * np.log(self.class_shares))
