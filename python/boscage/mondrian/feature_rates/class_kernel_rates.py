"""Feature rates of classes by automatic relevance determination.

The joint posterior of classes explains their *codes*: the code of class ``k`` is 1 for its rows and
0 for others, less the class's share of the rows. The covariance is the part of an exponential clock
that two rows have in common. They are separated after an exponential time, whose rate is their
distance ``d``. So with many trees the covariance becomes ``1 / (1 + d)``, if rates are in units of
the clock's, and the codes are Gaussian processes with

    ``v * (1 / (1 + d) + NOISE)``,

where the noise is a row's own. Codes sum to 0 over the classes, so that those of ``K`` classes are
``K - 1`` independent processes. The rates maximise their marginal likelihood times a prior, as in
`kernel_rates`, and with them the variance ``v``: the mean square of the codes in the metric of the
covariance.
"""

from __future__ import annotations

import numpy as np

from boscage._types import AnyArray, FloatArray
from boscage.mondrian.feature_rates.kernel_rates import inverted, rates_by

MAX_ROWS = 400
"""The greatest number of rows whose likelihood is maximised; the time is cubic in it."""
MAX_STEPS = 25
NOISE = 0.1
"""Variance of the noise in units of the processes', as in the joint posterior."""
CLOCK_RATE = 0.05
"""The rate of the joint posterior's clock in units of the sum of the feature weights."""
PRIOR_STD = 1.5
"""Standard deviation of the prior of a rate's logarithm, which is centred at the importances."""

__all__: list[str] = []


def class_kernel_rates(Z: FloatArray, codes: AnyArray, importances: FloatArray) -> FloatArray:
    """Rates of the features of ``Z``, whose rows are in units of the reference ranges.

    Uses the first rows. ``codes`` are the numbers of their classes. ``importances`` say which
    features are worth learning, and are the centre of the prior.
    """
    _, classes = np.unique(codes[:MAX_ROWS], return_inverse=True)
    members = np.eye(classes.max() + 1)[classes]
    if members.shape[1] < 2:
        return np.ones(Z.shape[1])
    centred = members - members.mean(axis=0)

    def maximise(Z: FloatArray, start: FloatArray) -> FloatArray:
        return _maximise(Z, centred, start / CLOCK_RATE)

    return rates_by(maximise, Z[:MAX_ROWS], importances)


def _maximise(Z: FloatArray, Y: FloatArray, start: FloatArray) -> FloatArray:
    """Maximise the marginal likelihood of codes ``Y`` times the prior of the rates."""
    # Imported here, since most users of the package never need them.
    from scipy.optimize import minimize

    first, second = np.triu_indices(len(Z), 1)
    distances = np.abs(Z[first] - Z[second]).T.copy()
    centre = np.log(start)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        """The negative logarithm and its gradient in the logarithms of the rates."""
        rates = np.exp(theta)
        covariances = 1.0 / (1.0 + rates @ distances)
        value, by_covariance = surprise_of(covariances, Y, first, second)
        surprise = (theta - centre) / PRIOR_STD
        gradient = -rates * (distances @ (by_covariance * covariances**2))
        return value + 0.5 * float(surprise @ surprise), gradient + surprise / PRIOR_STD

    bounds = [(-14.0, 7.0)] * len(start)
    options = {"maxiter": MAX_STEPS}
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(np.exp(found.x))


def surprise_of(
    covariances: FloatArray, Y: FloatArray, first: AnyArray, second: AnyArray
) -> tuple[float, FloatArray]:
    """The negative log marginal likelihood of codes, but for a constant, and its gradient.

    ``covariances`` are those of the pairs of rows ``first < second``, for ``v = 1``.
    """
    from scipy.spatial.distance import squareform

    pairs, diagonal, log_root = inverted(covariances, 1.0 + NOISE, first, second)
    solved = squareform(pairs, checks=False) @ Y + diagonal[:, np.newaxis] * Y
    n_processes = Y.shape[1] - 1
    n_numbers = len(Y) * n_processes
    squares = float(np.sum(Y * solved))
    value = 0.5 * n_numbers * np.log(squares) + n_processes * log_root
    # Twice half the derivative by an entry, since the covariance is symmetric.
    of_squares = np.sum(solved[first] * solved[second], axis=1)
    return float(value), n_processes * pairs - n_numbers / squares * of_squares
