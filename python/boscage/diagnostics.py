"""Whether chains agree: rank-normalised split R-hat and effective sample size (Vehtari 2021)."""

from __future__ import annotations

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from boscage._types import FloatArray


def r_hat(draws: FloatArray) -> float:
    """Rank-normalised R-hat of split chains: of draws, and of their distance to the median.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)

    Returns
    -------
    float
        Near one where chains agree, infinite where each stays at a place of its own; NaN for
        fewer than four draws or none that differ.
    """
    if draws.shape[1] < 4:
        return float("nan")
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    # Of the two, one may be NaN: distances can be alike where draws are not.
    bulk, tail = (_plain_r_hat(_normal_scores(part)) for part in (halves, folded))
    return float(np.fmax(bulk, tail))


def effective_size(draws: FloatArray) -> float:
    """The number of independent draws whose mean is as precise, of ranks ("bulk" ESS).

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)

    Returns
    -------
    float
        NaN for fewer than four draws or none that differ.
    """
    if draws.shape[1] < 4:
        return float("nan")
    return _plain_size(_normal_scores(_split(draws)))


def _split(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    ranks = rankdata(draws, method="average").reshape(draws.shape)
    scores: FloatArray = ndtri((ranks - 0.375) / (draws.size + 0.25))
    return scores


def _plain_r_hat(draws: FloatArray) -> float:
    n = draws.shape[1]
    if not np.ptp(draws, axis=1).any():
        # A variance would be that of rounding.
        return float("inf" if np.ptp(draws) else "nan")
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    return float(np.sqrt((between / within + n - 1) / n))


def _plain_size(draws: FloatArray) -> float:
    n_chains, n = draws.shape
    covariance = _autocovariance(draws)
    within = covariance[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + draws.mean(axis=1).var(ddof=1)
    if total == 0.0:
        return float("nan")
    rho = 1.0 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    # Geyer's sequence: sums of neighbours are positive and do not rise.
    most = max((n - 3) // 2, 0)
    pairs = rho[: 2 * most + 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0.0)
    end = int(negative[0]) if negative.size else most
    monotone = np.minimum.accumulate(pairs[:end])
    time = -1.0 + 2.0 * monotone.sum() + max(rho[2 * end], 0.0)
    size = n_chains * n
    return float(size / max(time, 1.0 / np.log10(size)))


def _autocovariance(draws: FloatArray) -> FloatArray:
    n = draws.shape[1]
    away = draws - draws.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * n, real=True)
    spectrum = np.abs(rfft(away, length)) ** 2
    covariance: FloatArray = irfft(spectrum, length)[:, :n] / n
    return covariance


def spectral_size(draws: FloatArray) -> float:
    """The number of independent draws whose mean is as precise, as R-CODA estimates it.

    The variance of the draws over their spectral density at zero, which is that of an
    autoregressive model (Yule-Walker equations, order by AIC); summed over chains.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)

    Returns
    -------
    float
        0 for chains whose draws do not differ, or lie on a straight line.
    """
    return sum(_spectral_size(chain) for chain in draws)


# Draws that are no further from a line, over their spread, are on it.
_STRAIGHT = 1.5e-8


def _spectral_size(chain: FloatArray) -> float:
    n = len(chain)
    most = min(n - 1, int(10.0 * np.log10(n)))
    covariance = _autocovariance(chain[None])[0, : most + 1]
    # A line has no finite density at zero.
    line = np.polynomial.Polynomial.fit(np.arange(n), chain, 1)(np.arange(n)) if n > 1 else chain
    if covariance[0] == 0.0 or np.std(chain - line) <= _STRAIGHT * np.std(chain):
        return 0.0
    # Durbin-Levinson: the variance that each order leaves, and the sum of its coefficients.
    coefficients, left = np.zeros(0), float(covariance[0])
    found = [(n * np.log(left), left, 0.0)]
    for order in range(1, most + 1):
        last = (covariance[order] - coefficients @ covariance[order - 1 : 0 : -1]) / left
        coefficients = np.append(coefficients - last * coefficients[::-1], last)
        left *= 1.0 - last**2
        found.append((n * np.log(left) + 2 * order, left, float(coefficients.sum())))
    order, (_, left, total) = min(enumerate(found), key=lambda item: item[1][0])
    density = left * n / (n - (order + 1)) / (1.0 - total) ** 2
    return float(n * chain.var(ddof=1) / density)
