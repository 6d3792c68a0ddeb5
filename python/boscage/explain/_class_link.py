"""How averages over trees become class probabilities: what the compiled calibration found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from boscage._types import AnyArray, FloatArray


@dataclass(frozen=True)
class ClassTrend:
    """A linear function of the features for each class, which fades beyond their ranges.

    Where ``e`` is how far a row lies beyond each feature's reference range, in units of it, the
    function of the nearest row within the ranges is multiplied by ``exp(-rates @ e)``.
    """

    weight: float
    features: list[int]
    """Those on which it depends."""
    rates: FloatArray
    low: FloatArray
    width: FloatArray
    means: FloatArray
    """Where the function is 0, as places within the ranges."""
    slopes: FloatArray
    """Along whole ranges, of shape (n_features of the trend, n_classes)."""

    def parts(self, X: AnyArray) -> tuple[FloatArray, FloatArray]:
        """What each feature adds to weighted values, and to the exponent with which they fade.

        No value of `X` is missing. The first is of shape (n_rows, n_features of the trend,
        n_classes), the second of shape (n_rows, n_features of the trend).
        """
        own: Any = X[:, self.features]
        own = own.toarray() if issparse(own) else own
        places = (np.asarray(own, dtype=np.float64) - self.low) / self.width
        within = np.clip(places, 0.0, 1.0)
        values = (within - self.means)[:, :, np.newaxis] * (self.weight * self.slopes)
        return values, -self.rates * np.abs(places - within)


@dataclass(frozen=True)
class Link:
    """``softmax(power * log p + weight * f + (1 - h) * s + g)``, mixed with noise.

    ``p`` is the average over trees, ``h`` the weight of the base measure in it, ``f`` what all
    trees explain together, ``s`` what draws to the shares of the classes, and ``g`` the trend.
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
        of_trend, features, *arrays, slopes = trend
        rates, low, width, means = (np.array(array) for array in arrays)
        by_feature = np.array(slopes).reshape(len(features), -1)
        found = ClassTrend(of_trend, features, rates, low, width, means, by_feature)
        return cls(power, noise, weight, shares, found)

    @property
    def to_shares(self) -> FloatArray:
        """What is added for each class where ``h`` is 0; there are shares."""
        return np.asarray((1.0 - self.power) * np.log(self.class_shares))
