"""Predictive distributions of Bayesian regression trees: one mixture of Student's t per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, stdtr, stdtrit
from sklearn.utils import check_random_state

from boscage import _validation
from boscage._types import FloatArray

_MAX_STEPS = 200


class StudentMixture:
    """A mixture of Student distributions for each of several rows.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        The same for all rows; positive, and they sum to one.
    df, location, scale : array-like of shape (n_rows, n_components)
        Degrees of freedom, location and scale of each component.

    Attributes
    ----------
    weights, df, location, scale : ndarray
        As given.

    Examples
    --------
    >>> dist = StudentMixture([0.5, 0.5], [[5.0, 5.0]], [[-1.0, 1.0]], [[1.0, 1.0]])
    >>> dist.mean.tolist(), dist.cdf([0.0]).round(6).tolist()
    ([0.0], [0.5])
    """

    def __init__(
        self, weights: ArrayLike, df: ArrayLike, location: ArrayLike, scale: ArrayLike
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.df, self.location, self.scale = (
            np.asarray(part, dtype=np.float64) for part in (df, location, scale)
        )
        shapes = {self.df.shape, self.location.shape, self.scale.shape}
        if len(shapes) > 1 or self.df.ndim != 2 or self.df.shape[1:] != self.weights.shape:
            raise ValueError(
                "df, location and scale must have one row for each row and one column for each "
                f"of the {self.weights.size} weights"
            )
        if not ((self.df > 0.0).all() and (self.scale > 0.0).all()):
            raise ValueError("df and scale must be positive")

    def __len__(self) -> int:
        return len(self.df)

    def __repr__(self) -> str:
        return f"StudentMixture(n_rows={len(self)}, n_components={len(self.weights)})"

    def __getitem__(self, rows: Any) -> StudentMixture:
        """The mixtures of some rows."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        return StudentMixture(self.weights, self.df[index], self.location[index], self.scale[index])

    @property
    def mean(self) -> FloatArray:
        """The mean of each row."""
        means: FloatArray = self.location @ self.weights
        return means

    @property
    def var(self) -> FloatArray:
        """The variance of each row; infinite where a component has too few degrees of freedom."""
        with np.errstate(divide="ignore"):
            own = np.where(self.df > 2.0, self.df / np.maximum(self.df - 2.0, 0.0), np.inf)
        away = self.location - self.mean[:, None]
        variance: FloatArray = (own * self.scale**2 + away**2) @ self.weights
        return variance

    @property
    def std(self) -> FloatArray:
        """The standard deviation of each row."""
        return np.sqrt(self.var)

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density at one value a row.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or a number

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        df = self.df
        z = self._standard(y)
        each = (
            gammaln(0.5 * (df + 1.0))
            - gammaln(0.5 * df)
            - 0.5 * np.log(df * np.pi)
            - np.log(self.scale)
            - 0.5 * (df + 1.0) * np.log1p(z * z / df)
        )
        densities: FloatArray = logsumexp(each, axis=1, b=self.weights)
        return densities

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at one value a row.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or a number

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability to be at most one value a row.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or a number

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        below: FloatArray = stdtr(self.df, self._standard(y)) @ self.weights
        return below

    def quantile(self, q: float) -> FloatArray:
        """The value below which a row is with probability `q`.

        Parameters
        ----------
        q : float
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if not 0.0 < _validation.check_real("q", q) < 1.0:
            raise ValueError(f"q must be between 0 and 1, found {q}")
        each = self.location + self.scale * stdtrit(self.df, q)
        # The mixture's quantile lies between those of its components; halve until nothing is left.
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(_MAX_STEPS):
            middle = 0.5 * (low + high)
            if ((middle == low) | (middle == high)).all():
                break
            below = self.cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found: FloatArray = 0.5 * (low + high)
        return found

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """The central interval of some probability.

        Parameters
        ----------
        coverage : float
            Between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_rows,)
        """
        if not 0.0 < _validation.check_real("coverage", coverage) < 1.0:
            raise ValueError(f"coverage must be between 0 and 1, found {coverage}")
        return self.quantile(0.5 * (1.0 - coverage)), self.quantile(0.5 * (1.0 + coverage))

    def sample(self, n: int, *, random_state: Any = None) -> FloatArray:
        """Draw values.

        Parameters
        ----------
        n : int
            How many for each row.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        ndarray of shape (n, n_rows)
        """
        rng = check_random_state(random_state)
        rows = np.arange(len(self))
        which = rng.choice(len(self.weights), size=(n, len(self)), p=self.weights)
        away = self.scale[rows, which] * rng.standard_t(self.df[rows, which])
        draws: FloatArray = self.location[rows, which] + away
        return draws

    def _standard(self, y: ArrayLike) -> FloatArray:
        at = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        return (at[:, None] - self.location) / self.scale
