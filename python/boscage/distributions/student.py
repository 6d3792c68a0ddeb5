"""Mixtures of Student distributions: what Bayesian regression trees predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boscage import _validation
from boscage._types import FloatArray
from boscage.distributions._base import PredictiveDistribution
from boscage.distributions._crps import integrated_crps
from boscage.distributions._distinct_students import DistinctStudents, blocks


class StudentMixture(PredictiveDistribution):
    """A mixture of Student distributions for each of several rows.

    `BayesianTreeRegressor.predict_dist` returns such an object, with one component per tree.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        Weights of the components, the same for all rows. Positive; they sum to one.
    df, location, scale : array-like of shape (n_rows, n_components)
        Degrees of freedom, location and scale of each component.

    Attributes
    ----------
    weights, df, location, scale : ndarray
        As given.

    See Also
    --------
    PredictiveDistribution : The interface of all predictive distributions.

    Examples
    --------
    >>> from boscage import StudentMixture
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
                "df, location and scale must have shape (n_rows, n_components) with one column for "
                f"each of the {self.weights.size} weights, found {self.df.shape}, "
                f"{self.location.shape} and {self.scale.shape}"
            )
        if not ((self.df > 0.0).all() and (self.scale > 0.0).all()):
            raise ValueError("df and scale must be positive")
        if not (np.isfinite(self.location).all() and np.isfinite(self.scale).all()):
            raise ValueError("location and scale must be finite")
        total = self.weights.sum()
        if not ((self.weights >= 0.0).all() and abs(total - 1.0) <= 1e-6):
            raise ValueError(
                "weights must not be negative and must sum to 1, found a least weight of "
                f"{self.weights.min(initial=0.0):.9g} and a sum of {total:.9g}"
            )

    def __len__(self) -> int:
        return len(self.df)

    def __repr__(self) -> str:
        return f"StudentMixture(n_rows={len(self)}, n_components={len(self.weights)})"

    def __getitem__(self, rows: Any) -> StudentMixture:
        """The mixtures of some rows: an integer, a slice, or an array of integers or booleans."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        return StudentMixture(self.weights, self.df[index], self.location[index], self.scale[index])

    # -- moments ----------------------------------------------------------------------------------

    @property
    def mean(self) -> FloatArray:
        """Mean of each row, of shape (n_rows,)."""
        means: FloatArray = self.location @ self.weights
        return means

    @property
    def var(self) -> FloatArray:
        """Variance of each row, of shape (n_rows,).

        It is infinite where a component has at most two degrees of freedom.
        """
        with np.errstate(divide="ignore"):
            own = np.where(self.df > 2.0, self.df / np.maximum(self.df - 2.0, 0.0), np.inf)
        away = self.location - self.mean[:, None]
        variance: FloatArray = (own * self.scale**2 + away**2) @ self.weights
        return variance

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
        return self._evaluate(DistinctStudents.logpdf, y)

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
        return self._evaluate(DistinctStudents.cdf, y)

    def _evaluate(
        self, function: Callable[[DistinctStudents, FloatArray], FloatArray], y: ArrayLike
    ) -> FloatArray:
        lines, shape = self._lines(y)
        out = np.empty(lines.shape)
        for rows, components in self._blocks():
            out[:, rows] = function(components, lines[:, rows])
        return out.reshape(shape)

    def _blocks(self) -> Iterator[tuple[slice, DistinctStudents]]:
        return blocks(self.weights, self.df, self.location, self.scale)

    def _crps(self, observed: FloatArray) -> FloatArray:
        out = np.empty(len(self))
        for rows, components in self._blocks():
            # Counted from what was observed: far from zero the steps between floats would look like
            # steps of the distribution, into which panels are halved without end.
            finite = np.where(np.isfinite(observed[rows]), observed[rows], 0.0)
            out[rows] = integrated_crps(components.relative_to(finite), observed[rows] - finite)
        return out

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
            Infinite where `q` is 0 or 1, and at most the largest float in size elsewhere.

        Raises
        ------
        ValueError
            If `q` is not in [0, 1].
        """
        wanted = _validation.check_probabilities("q", q)
        out = np.empty((wanted.size, len(self)))
        for rows, components in self._blocks():
            out[:, rows] = components.quantile(wanted.ravel())
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
        n = _validation.check_draws(n)
        generator = _validation.check_generator(random_state)
        rows = np.arange(len(self))
        which = generator.choice(len(self.weights), size=(n, len(self)), p=self.weights)
        away = self.scale[rows, which] * generator.standard_t(self.df[rows, which])
        draws: FloatArray = self.location[rows, which] + away
        return draws
