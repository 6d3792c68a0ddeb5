"""The distinct Student components of rows of a mixture, on which all its functions are computed.

Trees of a posterior share leaves: the thousand components of a row from Markov chains are often
fewer than a hundred distinct ones. Those of a row are next to each other in flat arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln

from boscage._types import BoolArray, FloatArray, IntArray
from boscage.distributions import _student
from boscage.distributions._quantiles import solve

_LARGEST = np.finfo(np.float64).max
# Rows are processed in blocks of about this many components, which bounds temporary arrays.
_BLOCK = 1 << 17
# Odd numbers, by which the bits of df, location and scale are mixed.
_MIXERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


class DistinctStudents:
    """The components of some rows; row ``i`` has ``counts[i]`` of them, from ``starts[i]`` on."""

    __slots__ = ("_constant", "counts", "df", "location", "scale", "starts", "weights")

    def __init__(
        self,
        counts: IntArray,
        weights: FloatArray,
        df: FloatArray,
        location: FloatArray,
        scale: FloatArray,
    ) -> None:
        self.counts = counts
        self.starts = np.cumsum(counts) - counts
        self.weights = weights
        self.df, self.location, self.scale = df, location, scale
        self._constant: FloatArray | None = None

    @classmethod
    def of(
        cls, weights: FloatArray, df: FloatArray, location: FloatArray, scale: FloatArray
    ) -> DistinctStudents:
        """The components of all rows, given matrices with a column for each weight."""
        order = np.argsort(_keys(df, location, scale), axis=1)
        parts = [np.take_along_axis(part, order, axis=1) for part in (df, location, scale)]
        is_new = np.ones(df.shape, dtype=np.bool_)
        # Different components of the same key are apart, and merely may not be merged with all
        # their equals.
        is_new[:, 1:] = np.any([part[:, 1:] != part[:, :-1] for part in parts], axis=0)
        sums = np.add.reduceat(weights[order].ravel(), np.flatnonzero(is_new))
        return cls(is_new.sum(axis=1), sums, *(part[is_new] for part in parts))

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: BoolArray | IntArray) -> DistinctStudents:
        counts, starts = self.counts[rows], self.starts[rows]
        ends = np.cumsum(counts)
        take = np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
        parts = (part[take] for part in (self.weights, self.df, self.location, self.scale))
        some = DistinctStudents(counts, *parts)
        some._constant = None if self._constant is None else self._constant[take]
        return some

    def relative_to(self, y: FloatArray) -> DistinctStudents:
        """The distributions of differences from one value for each row."""
        with np.errstate(over="ignore"):
            location = self.location - self._spread(y)
        shifted = DistinctStudents(self.counts, self.weights, self.df, location, self.scale)
        shifted._constant = self._constant
        return shifted

    # -- functions of y ---------------------------------------------------------------------------

    def logpdf(self, y: FloatArray) -> FloatArray:
        """Logarithm of the density at lines of one value for each row."""
        constant = self._log_normaliser()
        out = np.empty(y.shape)
        for line, values in zip(out, y, strict=True):
            with np.errstate(divide="ignore"):
                logs = np.log(self.weights) + self._log_density(
                    constant, self._standardised(values)
                )
            top = np.maximum.reduceat(logs, self.starts)
            shift = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                line[:] = shift + np.log(self._sum(np.exp(logs - self._spread(shift))))
        return out

    def cdf(self, y: FloatArray) -> FloatArray:
        """Probability of at most ``y``, for lines of one value for each row."""
        out = np.empty(y.shape)
        for line, values in zip(out, y, strict=True):
            below = _student.cdf(self.df, self._standardised(values))
            line[:] = np.minimum(self._sum(self.weights * below), 1.0)
        return out

    def _log_normaliser(self) -> FloatArray:
        """Logarithm of the density of each component at its location; computed once."""
        if self._constant is None:
            df = self.df
            self._constant = (
                gammaln(0.5 * (df + 1.0))
                - gammaln(0.5 * df)
                - 0.5 * np.log(df * np.pi)
                - np.log(self.scale)
            )
        return self._constant

    def _log_density(self, constant: FloatArray, z: FloatArray) -> FloatArray:
        return constant - 0.5 * (self.df + 1.0) * _student.log_growth(self.df, z)

    def _standardised(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return (self._spread(y) - self.location) / self.scale

    def _spread(self, values: FloatArray) -> FloatArray:
        """Repeat one value per row for each of its components."""
        return np.repeat(values, self.counts)

    def _sum(self, values: FloatArray) -> FloatArray:
        return np.add.reduceat(values, self.starts)

    # -- quantiles --------------------------------------------------------------------------------

    def quantile(self, q: FloatArray) -> FloatArray:
        """The values that are not exceeded with probabilities ``q``: a line for each of them."""
        out = np.empty((len(q), len(self)))
        for line, value in zip(out, q, strict=True):
            line[:] = self._one_quantile(float(value))
        return out

    def _one_quantile(self, q: float) -> FloatArray:
        if q in (0.0, 1.0):
            return np.full(len(self), np.inf if q else -np.inf)
        # Quantiles of standard distributions are slow, and there are few degrees of freedom.
        df, which = np.unique(self.df, return_inverse=True)
        # A value too large for a float becomes the largest one, so that brackets are finite.
        with np.errstate(over="ignore"):
            each = self.location + self.scale * _student.quantile(df, q)[which]
        return solve(self, q, np.clip(each, -_LARGEST, _LARGEST), self.scale, _middle)

    def newton_step(self, x: FloatArray, q: float) -> tuple[FloatArray, FloatArray]:
        """Compute ``cdf(x) - q``, and the same over the density."""
        z = self._standardised(x)
        excess = self._sum(self.weights * _student.cdf(self.df, z)) - q
        density = np.exp(self._log_density(self._log_normaliser(), z))
        return excess, excess / self._sum(self.weights * density)


def blocks(
    weights: FloatArray, df: FloatArray, location: FloatArray, scale: FloatArray
) -> Iterator[tuple[slice, DistinctStudents]]:
    """Consecutive rows and their components, few enough for temporary arrays."""
    n = max(1, _BLOCK // max(1, len(weights)))
    for rows in (slice(i, i + n) for i in range(0, len(df), n)):
        yield rows, DistinctStudents.of(weights, df[rows], location[rows], scale[rows])


def _keys(*parts: FloatArray) -> IntArray:
    """Numbers that are equal for equal components, and hardly ever for others."""
    keys: IntArray = np.zeros(parts[0].shape, dtype=np.int64)
    for part, mixer in zip(parts, _MIXERS, strict=True):
        # Zero has two signs.
        bits = np.ascontiguousarray(part + 0.0).view(np.uint64)
        keys ^= (bits * np.uint64(mixer)).view(np.int64)
    return keys


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """Where to halve a bracket: at the geometric mean if its ends differ by orders of magnitude."""
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    is_wide = (np.sign(low) == np.sign(high)) & (small < 1e-3 * large)
    geometric = np.copysign(np.sqrt(small) * np.sqrt(large), low)
    return np.where(is_wide, geometric, 0.5 * low + 0.5 * high)
