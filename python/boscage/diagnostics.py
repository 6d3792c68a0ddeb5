"""Diagnostics of Markov chains: R-hat, effective sample size, and a table of both.

`r_hat` and `effective_size` are the rank-normalised statistics of Vehtari, Gelman, Simpson,
Carpenter and Bürkner (2021). `spectral_size` is the effective size of R's package coda.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from boscage._types import FloatArray

__all__ = ["ChainSummary", "SummaryRow", "effective_size", "r_hat", "spectral_size"]


def r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat: the greater of that of the draws and of their distances.

    Distances are those to the median of all draws.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Draws of one number.

    Returns
    -------
    float
        Near one if the chains agree; infinite if each chain is constant and they differ; NaN for
        fewer than four draws per chain, or if all draws are equal.

    Raises
    ------
    ValueError
        If `draws` has another shape, or is empty.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(r_hat(rng.normal(size=(4, 500))) < 1.01)
    True
    """
    chains = _checked(draws)
    if chains.shape[1] < 4:
        return float("nan")
    halves = _split(chains)
    folded = np.abs(halves - np.median(halves))
    # One of the two may be NaN: distances can be equal although draws are not.
    bulk, tail = (_plain_r_hat(_normal_scores(part)) for part in (halves, folded))
    return float(np.fmax(bulk, tail))


def effective_size(draws: ArrayLike) -> float:
    """Effective sample size of the rank-normalised draws ("bulk" ESS).

    It is the number of independent draws whose mean would be as precise.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Draws of one number.

    Returns
    -------
    float
        NaN for fewer than four draws per chain, or if all draws are equal.

    Raises
    ------
    ValueError
        If `draws` has another shape, or is empty.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(effective_size(rng.normal(size=(4, 500))) > 1000.0)
    True
    """
    chains = _checked(draws)
    if chains.shape[1] < 4:
        return float("nan")
    return _plain_size(_normal_scores(_split(chains)))


def _checked(draws: ArrayLike) -> FloatArray:
    """Draws with a row for each chain."""
    chains = np.asarray(draws, dtype=np.float64)
    if chains.ndim != 2 or not chains.size:
        raise ValueError(
            f"draws has shape {chains.shape}, expected (n_chains, n_draws) with at least one of "
            "each; [draws] makes one chain of a list of draws"
        )
    return chains


def _split(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    from scipy.stats import rankdata  # a fifth of the time of `import boscage`

    ranks = rankdata(draws, method="average").reshape(draws.shape)
    scores: FloatArray = ndtri((ranks - 0.375) / (draws.size + 0.25))
    return scores


def _plain_r_hat(draws: FloatArray) -> float:
    n = draws.shape[1]
    if not np.ptp(draws, axis=1).any():
        # The variance would be that of rounding errors.
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
    # Geyer's initial sequence: sums of neighbours are positive and do not increase.
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


def spectral_size(draws: ArrayLike) -> float:
    """Effective sample size as R's package coda estimates it.

    For each chain it is the number of draws times their variance divided by their spectral density
    at zero, which is that of a fitted autoregressive model (Yule-Walker equations, order chosen by
    AIC). The sizes of the chains are added.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Draws of one number.

    Returns
    -------
    float
        A chain of equal draws, or of draws on a straight line, counts as 0.

    Raises
    ------
    ValueError
        If `draws` has another shape, or is empty.
    """
    return sum(_spectral_size(chain) for chain in _checked(draws))


# Draws whose distance from a straight line, relative to their spread, is at most this lie on it.
_STRAIGHT = 1.5e-8


def _spectral_size(chain: FloatArray) -> float:
    n = len(chain)
    most = min(n - 1, int(10.0 * np.log10(n)))
    covariance = _autocovariance(chain[None])[0, : most + 1]
    # The spectral density of a straight line is infinite at zero.
    line = np.polynomial.Polynomial.fit(np.arange(n), chain, 1)(np.arange(n)) if n > 1 else chain
    if covariance[0] == 0.0 or np.std(chain - line) <= _STRAIGHT * np.std(chain):
        return 0.0
    # Durbin-Levinson: for each order the residual variance and the sum of the coefficients.
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


@dataclass(frozen=True)
class SummaryRow:
    """Summary of one traced statistic.

    Attributes
    ----------
    mean, std : float
        Mean and standard deviation over all draws.
    r_hat : float
        Rank-normalised split R-hat; near one if the chains agree.
    ess : float
        Effective sample size.
    """

    mean: float
    std: float
    r_hat: float
    ess: float


class ChainSummary(dict[str, SummaryRow]):
    """Summaries of traced statistics by name. Prints as a table."""

    def __str__(self) -> str:
        lines = [f"{'':16}{'mean':>12}{'std':>12}{'r_hat':>8}{'ess':>9}"]
        for name, row in self.items():
            numbers = f"{row.mean:12.5g}{row.std:12.4g}{row.r_hat:8.3f}{row.ess:9.1f}"
            lines.append(f"{name:16}{numbers}")
        return "\n".join(lines)
