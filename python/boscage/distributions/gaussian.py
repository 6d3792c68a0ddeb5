"""Gaussian mixtures: what Mondrian forests and BART predict for regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from boscage import _validation
from boscage._types import BoolArray, FloatArray, IntArray
from boscage.distributions._base import PredictiveDistribution
from boscage.distributions._gaussian_crps import mixture_crps
from boscage.distributions._quantiles import solve

# Rows are processed in blocks of about this many components, so that temporary arrays stay in the
# processor's cache and memory does not grow with the number of rows.
_BLOCK = 1 << 17
_LOG_SQRT_TAU = 0.5 * math.log(2.0 * math.pi)


class GaussianMixture(PredictiveDistribution):
    """A Gaussian mixture for each of several rows, each with its own number of components.

    Row ``i`` has the components ``offsets[i]`` to ``offsets[i + 1]`` (exclusive) of the three flat
    arrays. `MondrianForestRegressor.predict_dist` returns such an object, with every component of
    every tree (equation 6.5 of the thesis), and so does `BARTRegressor.predict_dist`, with one
    component per draw.

    Parameters
    ----------
    offsets : array-like of shape (n_rows + 1,)
        Where the components of each row begin. The first entry is 0, the last one the number of
        components; every row has at least one.
    weights : array-like of shape (n_components,)
        Weights; not negative, and those of each row sum to one.
    means : array-like of shape (n_components,)
        Means.
    variances : array-like of shape (n_components,)
        Variances; positive.

    Attributes
    ----------
    offsets, weights, means, variances : ndarray
        As given; read-only.

    See Also
    --------
    PredictiveDistribution : The interface of all predictive distributions.

    Examples
    --------
    >>> from boscage import GaussianMixture
    >>> dist = GaussianMixture([0, 1, 3], [1.0, 0.5, 0.5], [0.0, -1.0, 1.0], [1.0, 0.25, 0.25])
    >>> len(dist)
    2
    >>> dist.mean.tolist(), dist.var.tolist()
    ([0.0, 0.0], [1.0, 1.25])
    """

    offsets: IntArray
    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    def __init__(
        self, offsets: ArrayLike, weights: ArrayLike, means: ArrayLike, variances: ArrayLike
    ) -> None:
        starts = np.asarray(offsets)
        if starts.ndim != 1 or starts.size == 0 or starts.dtype.kind not in "iu":
            raise ValueError("offsets must be a one-dimensional array of n_rows + 1 integers")
        starts = starts.astype(np.int64, copy=False)
        parts = {
            name: np.asarray(value, dtype=np.float64)
            for name, value in (("weights", weights), ("means", means), ("variances", variances))
        }
        for name, part in parts.items():
            if part.shape != (starts[-1],):
                raise ValueError(
                    f"{name} has shape {part.shape}, expected ({starts[-1]},): "
                    "offsets ends with the number of components"
                )
            if not np.isfinite(part).all():
                raise ValueError(f"{name} must be finite")
        if starts[0] != 0 or (np.diff(starts) < 1).any():
            raise ValueError("offsets must begin with 0 and rise by at least one from row to row")
        if (parts["variances"] <= 0.0).any():
            raise ValueError("variances must be positive")
        if (parts["weights"] < 0.0).any():
            raise ValueError("weights must not be negative")
        if len(starts) > 1:
            total = np.add.reduceat(parts["weights"], starts[:-1])
            bad = np.flatnonzero(np.abs(total - 1.0) > 1e-6)
            if bad.size:
                raise ValueError(
                    f"the weights of row {bad[0]} sum to {total[bad[0]]:.9g}, expected 1"
                )
        self._set(starts, **parts)

    def _set(
        self, offsets: IntArray, weights: FloatArray, means: FloatArray, variances: FloatArray
    ) -> None:
        self.offsets = _read_only(offsets)
        self.weights = _read_only(weights)
        self.means = _read_only(means)
        self.variances = _read_only(variances)

    @classmethod
    def from_normal(cls, mean: ArrayLike, std: ArrayLike) -> GaussianMixture:
        """Make a mixture with one Gaussian per row.

        Parameters
        ----------
        mean : array-like of shape (n_rows,)
            Means.
        std : array-like of shape (n_rows,) or float
            Standard deviations; positive. Their squares must be floats, as from 1e-161 to 1e154.

        Returns
        -------
        GaussianMixture

        Raises
        ------
        ValueError
            If `mean` is not one-dimensional, or `std` is not positive, out of that range, or of
            another length.
        """
        centre = np.asarray(mean, dtype=np.float64)
        spread = np.asarray(std, dtype=np.float64)
        if centre.ndim != 1:
            raise ValueError(f"mean must be one-dimensional, found shape {centre.shape}")
        if not (spread > 0.0).all():
            raise ValueError("std must be positive")
        if spread.shape not in ((), (1,), centre.shape):
            raise ValueError(
                f"std has shape {spread.shape}, expected {centre.shape} as mean has, or a number"
            )
        with np.errstate(over="ignore"):
            variances = spread * spread
        bad = spread[(variances == 0.0) | np.isinf(variances)]
        if bad.size:
            raise ValueError(
                f"std must be from 1e-161 to 1e154, so that its square is a float, found {bad[0]:g}"
            )
        variances = np.broadcast_to(variances, centre.shape)
        return cls(np.arange(len(centre) + 1), np.ones(len(centre)), centre, variances)

    # -- the object as a sequence of rows ---------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"GaussianMixture(n_rows={len(self)}, n_components={len(self.weights)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianMixture):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("offsets", "weights", "means", "variances")
        )

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> GaussianMixture:
        """The mixtures of some rows: an integer, a slice, or an array of integers or booleans."""
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        counts = np.diff(self.offsets)[chosen]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        take = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][chosen] - offsets[:-1], counts)
        part = object.__new__(GaussianMixture)
        part._set(offsets, self.weights[take], self.means[take], self.variances[take])
        return part

    def components(self, row: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the components of one row.

        Parameters
        ----------
        row : int
            Row number.

        Returns
        -------
        weights, means, variances : ndarray of shape (n_components_of_row,)

        Raises
        ------
        IndexError
            If there is no such row.
        TypeError
            If `row` is not an integer.
        """
        n_rows = len(self)
        row = _validation.check_integer("row", row)
        if not -n_rows <= row < n_rows:
            raise IndexError(f"row must be below {n_rows}, the number of rows, found {row}")
        row = range(n_rows)[row]
        part = slice(self.offsets[row], self.offsets[row + 1])
        return self.weights[part], self.means[part], self.variances[part]

    # -- moments ----------------------------------------------------------------------------------

    @property
    def mean(self) -> FloatArray:
        """Mean of each row, of shape (n_rows,); equation 6.4 of the thesis."""
        return self._sum(self.weights * self.means)

    @property
    def var(self) -> FloatArray:
        """Variance of each row, of shape (n_rows,); equation 6.4 of the thesis.

        It is the mean squared distance to the mean. The difference of two squares, as printed in
        the thesis, loses all digits if the mean is large compared to the standard deviation.
        """
        away = self.means - np.repeat(self.mean, np.diff(self.offsets))
        return self._sum(self.weights * (self.variances + away * away))

    def _sum(self, values: FloatArray) -> FloatArray:
        if len(self) == 0:
            return np.empty(0)
        return np.add.reduceat(values, self.offsets[:-1])

    # -- functions of y ---------------------------------------------------------------------------

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Evaluate the logarithm of the density at ``y``.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or (..., n_rows), or float
            Values. The last axis is that of rows; a number, or a last axis of length 1, serves all
            rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (..., n_rows)

        Raises
        ------
        ValueError
            If the last axis of `y` has a length other than 1 and the number of rows.
        """
        return self._evaluate(_block_logpdf, y)

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Evaluate the probability that the target is at most ``y``.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or (..., n_rows), or float
            Values; see `logpdf`.

        Returns
        -------
        ndarray of shape (n_rows,) or (..., n_rows)

        Raises
        ------
        ValueError
            If the last axis of `y` has a length other than 1 and the number of rows.
        """
        return self._evaluate(_block_cdf, y)

    def _evaluate(
        self, function: Callable[[FloatArray, _Block], FloatArray], y: ArrayLike
    ) -> FloatArray:
        lines, shape = self._lines(y)
        out = np.empty(lines.shape)
        for block in self._blocks():
            for line, values in zip(out, lines, strict=True):
                line[block.rows] = function(values[block.rows], block)
        return out.reshape(shape)

    def _crps(self, observed: FloatArray) -> FloatArray:
        return mixture_crps(observed, self.offsets, self.weights, self.means, self.variances)

    # -- quantiles and draws ----------------------------------------------------------------------

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Find the value that the target is at most with probability ``q``.

        Parameters
        ----------
        q : float or array-like
            Probabilities in [0, 1].

        Returns
        -------
        ndarray of shape (n_rows,) or (*q.shape, n_rows)
            Exact to a few units in the last place of the inverse distribution function; infinite
            where `q` is 0 or 1.

        Raises
        ------
        ValueError
            If `q` is not in [0, 1].
        """
        wanted = _validation.check_probabilities("q", q)
        out = np.empty((wanted.size, len(self)))
        for block in self._blocks():
            for line, value in zip(out, wanted.ravel(), strict=True):
                line[block.rows] = _block_quantile(float(value), block)
        return out.reshape(*wanted.shape, len(self))

    def sample(
        self,
        n: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw independent values for every row.

        Parameters
        ----------
        n : int, default=1
            Number of draws for each row.
        random_state : int, RandomState, Generator or None, default=None
            Seed or generator.

        Returns
        -------
        ndarray of shape (n, n_rows)

        Raises
        ------
        ValueError
            If `n` is negative or not an integer.
        """
        shape = (_validation.check_draws(n), len(self))
        generator = _validation.check_generator(random_state)
        level = generator.uniform(size=shape)
        away = generator.standard_normal(size=shape)
        out = np.empty(shape)
        for block in self._blocks():
            # One search serves all rows, because the cumulative weights increase from row to row.
            ends = np.cumsum(block.weights)
            last = block.starts + block.counts - 1
            before = np.concatenate(([0.0], ends[last[:-1]]))
            target = before + level[:, block.rows] * (ends[last] - before)
            pick = np.clip(np.searchsorted(ends, target, side="right"), block.starts, last)
            out[:, block.rows] = block.means[pick] + away[:, block.rows] * block.scales[pick]
        return out

    def _blocks(self) -> Iterator[_Block]:
        first = 0
        while first < len(self):
            limit = self.offsets[first] + _BLOCK
            stop = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            stop = min(max(stop, first + 1), len(self))
            yield _Block(self, first, stop)
            first = stop


class _Block:
    """Consecutive rows of a mixture, small enough for temporary arrays of their components."""

    __slots__ = ("counts", "means", "rows", "scales", "starts", "weights")

    def __init__(self, mixture: GaussianMixture, first: int, stop: int) -> None:
        offsets = mixture.offsets[first : stop + 1]
        part = slice(offsets[0], offsets[-1])
        self.rows = slice(first, stop)
        self.starts = offsets[:-1] - offsets[0]
        self.counts = np.diff(offsets)
        self.weights = mixture.weights[part]
        self.means = mixture.means[part]
        self.scales = np.sqrt(mixture.variances[part])

    def spread(self, values: FloatArray) -> FloatArray:
        """Repeat one value per row for each of its components."""
        return np.repeat(values, self.counts)

    def __getitem__(self, rows: BoolArray) -> _Block:
        """Only some of the rows."""
        part = object.__new__(_Block)
        components = np.repeat(rows, self.counts)
        part.rows = self.rows
        part.counts = self.counts[rows]
        part.starts = np.cumsum(part.counts) - part.counts
        part.weights = self.weights[components]
        part.means = self.means[components]
        part.scales = self.scales[components]
        return part

    def newton_step(self, x: FloatArray, q: float) -> tuple[FloatArray, FloatArray]:
        """Compute ``cdf(x) - q``, and the same over the density."""
        z = (self.spread(x) - self.means) / self.scales
        excess = np.add.reduceat(self.weights * ndtr(z), self.starts) - q
        slope = np.add.reduceat(self.weights / self.scales * np.exp(-0.5 * z * z), self.starts)
        return excess, excess * math.sqrt(2.0 * math.pi) / slope


def _block_logpdf(y: FloatArray, block: _Block) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        # With subnormal scales the quotient overflows; the density is then zero, which is right.
        z = (block.spread(y) - block.means) / block.scales
        term = np.log(block.weights) - np.log(block.scales) - 0.5 * z * z
        top = np.maximum.reduceat(term, block.starts)
        shift = np.where(np.isfinite(top), top, 0.0)
        total = np.add.reduceat(np.exp(term - block.spread(shift)), block.starts)
        return np.asarray(shift + np.log(total) - _LOG_SQRT_TAU)


def _block_cdf(y: FloatArray, block: _Block) -> FloatArray:
    with np.errstate(over="ignore"):
        z = (block.spread(y) - block.means) / block.scales
    return np.minimum(np.add.reduceat(block.weights * ndtr(z), block.starts), 1.0)


def _block_quantile(q: float, block: _Block) -> FloatArray:
    if q in (0.0, 1.0):
        return np.full(len(block.counts), math.inf if q else -math.inf)
    each = block.means + ndtri(q) * block.scales
    return solve(block, q, each, block.scales, lambda low, high: low + 0.5 * (high - low))


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
