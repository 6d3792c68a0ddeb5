"""Feature rates by automatic relevance determination.

Two rows are still together at time ``t`` with probability ``exp(-t * d)``, where ``d`` is their
distance: the sum over features of rate times difference, in units of the reference ranges. So with
many trees the joint posterior becomes that of a Gaussian process, whose covariance is the integral
of ``exp(-t * d)`` over the prior variance that is spent at time ``t``, a logistic function of it
(section 6.2). The rates that maximise the marginal likelihood of this process determine the
relevance of the features (MacKay 1994; Rasmussen and Williams 2006, section 5.1). The gradient has
one entry for each feature and costs about as much as the likelihood.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from boscage._types import AnyArray, FloatArray

MAX_ROWS = 300
"""The greatest number of rows whose likelihood is maximised; the time is cubic in it."""
MAX_FEATURES = 40
"""With more features than this, only the most important ones have rates of their own."""
MAX_STEPS = 30
LEAST_RATE = 1e-4
"""The smallest rate, relative to the greatest: no feature is ignored altogether."""
PRIOR_STD = 3.0
"""Standard deviation of the prior of a rate's logarithm."""

# The covariance at distance d is the integral over u from 0 to 1 of ((1 - u) / (1 + u))^d, here by
# Gauss-Legendre: a sum of exponentials in d, and so a covariance function, too.
_NODES, _SHARES = np.polynomial.legendre.leggauss(4)
_DECAYS = -np.log((1.0 - _NODES) / (3.0 + _NODES))
_SHARES = 0.5 * _SHARES

_LIMITED = threading.Lock()

__all__: list[str] = []


@cache
def _blas() -> ThreadpoolController:
    """What limits the threads of numpy's and scipy's linear algebra."""
    import scipy.linalg  # noqa: F401  (it must be loaded to be found)

    return ThreadpoolController()


def kernel_rates(Z: FloatArray, y: FloatArray, importances: FloatArray) -> FloatArray:
    """Rates of the features of ``Z``, whose rows are in units of the reference ranges.

    Uses the first rows. ``importances`` say which features are worth learning, and are where the
    search starts.
    """
    y = y[:MAX_ROWS]
    y = y / max(np.abs(y).max(), np.finfo(np.float64).tiny)
    y = y - y.mean()
    if y.std() == 0.0:
        return np.ones(Z.shape[1])
    y = y / y.std()
    return rates_by(lambda Z, start: _maximise(Z, y, 2.0 * start), Z[:MAX_ROWS], importances)


def rates_by(
    maximise: Callable[[FloatArray, FloatArray], FloatArray],
    Z: FloatArray,
    importances: FloatArray,
) -> FloatArray:
    """What ``maximise`` makes of the most important features of ``Z`` and rates to start from.

    A rate is rounded to a power of ``2 ** 0.25``: linear algebra differs in the last bits between
    machines, rates should not.
    """
    # Rows far outside the reference ranges say nothing about distances inside.
    Z = np.clip(Z, -1.0, 2.0)
    rates = np.full(Z.shape[1], LEAST_RATE)
    order = np.argsort(-importances, kind="stable")[:MAX_FEATURES]
    features = order[np.ptp(Z[:, order], axis=0) > 0.0]
    if not importances[features].any():
        return np.ones_like(rates)
    start = np.maximum(importances[features] / importances[features].max(), 1e-3)
    # Threads are slower than one at this size, since they wait for each other in busy loops, and
    # `n_jobs` limits them. What one call has set, another must not take for the user's limit.
    with _LIMITED, _blas().limit(limits=1, user_api="blas"):
        found = maximise(Z[:, features], start / start.sum())
    found = np.maximum(found / found.max(), LEAST_RATE)
    rates[features] = 2.0 ** (np.round(4.0 * np.log2(found)) / 4.0)
    return rates


def _maximise(Z: FloatArray, y: FloatArray, start: FloatArray) -> FloatArray:
    """Maximise the marginal likelihood times a wide prior of the rates."""
    # Imported here, since most users of the package never need them.
    from scipy.optimize import minimize
    from scipy.spatial.distance import squareform

    n, d = Z.shape
    first, second = np.triu_indices(n, 1)
    distances = np.abs(Z[first] - Z[second]).T.copy()
    centre = -np.log(d)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        """The negative logarithm and its gradient in the logarithms of rates and variances."""
        rates, (variance, noise) = np.exp(theta[:d]), np.exp(theta[d:])
        terms = np.exp(-np.outer(_DECAYS, rates @ distances))
        terms *= variance * _SHARES[:, np.newaxis]
        pairs, diagonal, log_root = inverted(terms.sum(axis=0), variance + noise, first, second)
        solved = squareform(pairs, checks=False) @ y + diagonal * y
        surprise = (theta[:d] - centre) / PRIOR_STD
        value = 0.5 * y @ solved + log_root + 0.5 * surprise @ surprise
        # Half the trace of (inverse - solved solved^T) times the covariance's derivative.
        pull = pairs - solved[first] * solved[second]
        own = 0.5 * (diagonal - solved**2).sum()
        by_rate = -rates * (distances @ (pull * (_DECAYS @ terms)))
        by_variance = pull @ terms.sum(axis=0) + own * variance
        gradient = np.r_[by_rate + surprise / PRIOR_STD, by_variance, own * noise]
        return float(value), gradient

    bounds = [(-14.0, 7.0)] * d + [(-5.0, 5.0), (-9.0, 3.0)]
    theta = np.r_[np.log(start), 0.0, np.log(0.1)]
    options = {"maxiter": MAX_STEPS}
    found = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(np.exp(found.x[:d]))


def inverted(
    covariances: FloatArray, variance: float, first: AnyArray, second: AnyArray
) -> tuple[FloatArray, FloatArray, float]:
    """The inverse of a covariance matrix, and the logarithm of the root of its determinant.

    ``covariances`` are those of the pairs of rows ``first < second``, and ``variance`` is that of
    each row. So is the inverse: its entries for the pairs, and its diagonal.
    """
    from scipy.linalg import lapack
    from scipy.spatial.distance import squareform

    covariance = squareform(covariances, checks=False)
    np.fill_diagonal(covariance, variance)
    factor, _ = lapack.dpotrf(covariance, lower=1, clean=0)
    inverse, _ = lapack.dpotri(factor, lower=1)
    # Only the lower triangle is computed.
    return inverse[second, first], np.diag(inverse), np.log(np.diag(factor)).sum()
