"""The interface of all predictive distributions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from boscage import _validation
from boscage._types import FloatArray
from boscage.distributions._crps import integrated_crps

Self = TypeVar("Self", bound="PredictiveDistribution")


class PredictiveDistribution(ABC):
    """A distribution of the target for each of several rows.

    This is the interface of what ``predict_dist`` returns, and of what the functions in
    `boscage.metrics` and `boscage.plots` take. To use your own distributions there, subclass it and
    implement ``__len__``, ``__getitem__``, ``mean``, ``var``, ``logpdf``, ``cdf``, ``quantile`` and
    ``sample``; ``std``, ``pdf``, ``interval`` and ``crps`` follow from these, and may be overridden
    by something faster. Rows are the last axis of every array.

    See Also
    --------
    GaussianMixture : Of `MondrianForestRegressor` and `BARTRegressor`.
    StudentMixture : Of `BayesianTreeRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import uniform
    >>> from boscage import PredictiveDistribution, metrics
    >>> class Uniform(PredictiveDistribution):
    ...     def __init__(self, width):
    ...         self.width = np.asarray(width)
    ...         self.own = uniform(0.0, self.width)
    ...     def __len__(self):
    ...         return len(self.width)
    ...     def __getitem__(self, rows):
    ...         return Uniform(np.atleast_1d(self.width[rows]))
    ...     mean = property(lambda self: self.own.mean())
    ...     var = property(lambda self: self.own.var())
    ...     def logpdf(self, y):
    ...         return self.own.logpdf(y)
    ...     def cdf(self, y):
    ...         return self.own.cdf(y)
    ...     def quantile(self, q):
    ...         return self.own.ppf(np.asarray(q)[..., None])
    ...     def sample(self, n=1, random_state=None):
    ...         return self.own.rvs((n, len(self)), random_state)
    >>> dist = Uniform([1.0, 2.0])
    >>> dist.interval(0.5)[1].tolist()
    [0.75, 1.5]
    >>> round(metrics.crps([0.5, 1.0], dist), 6)
    0.125
    """

    # -- the object as a sequence of rows ---------------------------------------------------------

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def __getitem__(self: Self, rows: Any) -> Self:
        """The distributions of some rows.

        `rows` is an integer, a slice, or an array of integers (with repetitions) or booleans. The
        result is a sequence of rows, too, even for an integer.
        """

    # -- moments ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean of each row, of shape (n_rows,)."""

    @property
    @abstractmethod
    def var(self) -> FloatArray:
        """Variance of each row, of shape (n_rows,); may be infinite."""

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each row, of shape (n_rows,)."""
        return np.sqrt(self.var)

    # -- functions of y ---------------------------------------------------------------------------

    @abstractmethod
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

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Evaluate the density at ``y``.

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
        return np.exp(self.logpdf(y))

    @abstractmethod
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

    def crps(self, y: ArrayLike) -> FloatArray:
        r"""Continuous ranked probability score of each row; smaller is better.

        .. math:: CRPS(F, y) = \int (F(x) - 1[x \ge y])^2 \, dx

        Mixtures of Gaussians have the closed form :math:`E|X - y| - \frac12 E|X - X'|` (Grimit et
        al., 2006).

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            What was observed.

        Returns
        -------
        ndarray of shape (n_rows,)
            In units of ``y``.

        Raises
        ------
        ValueError
            If `y` has another shape.
        """
        return self._crps(self._observed(y))

    def _crps(self, observed: FloatArray) -> FloatArray:
        return integrated_crps(self, observed)

    # -- quantiles and draws ----------------------------------------------------------------------

    @abstractmethod
    def quantile(self, q: ArrayLike) -> FloatArray:
        """Find the value that the target is at most with probability ``q``.

        Parameters
        ----------
        q : float or array-like
            Probabilities in [0, 1].

        Returns
        -------
        ndarray of shape (n_rows,) or (*q.shape, n_rows)
            Infinite for unbounded distributions where `q` is 0 or 1.

        Raises
        ------
        ValueError
            If `q` is not in [0, 1].
        """

    def interval(self, coverage: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Find the central interval of a given probability.

        The probabilities below and above the interval are equal.

        Parameters
        ----------
        coverage : float or array-like
            Probability of the interval, in [0, 1].

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,) or (*coverage.shape, n_rows)

        Raises
        ------
        ValueError
            If `coverage` is not in [0, 1].
        """
        inside = _validation.check_probabilities("coverage", coverage)
        return self.quantile(0.5 * (1.0 - inside)), self.quantile(0.5 * (1.0 + inside))

    @abstractmethod
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

    # -- checks -----------------------------------------------------------------------------------

    def _observed(self, y: ArrayLike) -> FloatArray:
        """``y`` with one value per row."""
        observed = np.asarray(y, dtype=np.float64)
        if observed.shape != (len(self),):
            raise ValueError(f"y has shape {observed.shape}, expected ({len(self)},)")
        return observed

    def _lines(self, y: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        """``y`` as a matrix with one column per row of the distribution, and its own shape."""
        at = np.asarray(y, dtype=np.float64)
        if at.ndim and at.shape[-1] not in (1, len(self)):
            raise ValueError(
                f"y has shape {at.shape}; its last axis must have one entry for each of the "
                f"{len(self)} rows, or one for all"
            )
        at = np.broadcast_to(at, (*at.shape[:-1], len(self)))
        return at.reshape(math.prod(at.shape[:-1]), len(self)), at.shape
