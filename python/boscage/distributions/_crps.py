r"""The continuous ranked probability score of any distribution, by numerical integration.

.. math:: CRPS(F, y) = \int_{-\infty}^y F(x)^2 dx + \int_y^\infty (1 - F(x))^2 dx

The substitution x = y ± s t / (1 - t), where s is a scale of the distribution, maps [0, 1) to each
half-line. Panels of [0, 1) are integrated by Gauss-Lobatto quadrature and halved until a panel and
its two halves agree. Panels of all rows are evaluated together. The quadrature includes the ends of
a panel and F is monotone, so F differs at two nodes if it has a step between them, however narrow.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from boscage._types import FloatArray, IntArray

Self = TypeVar("Self", bound="_Distribution")


class _Distribution(Protocol):
    """What a score needs of a distribution for each of several rows."""

    def __len__(self) -> int: ...
    def __getitem__(self: Self, rows: Any, /) -> Self: ...
    def cdf(self, y: FloatArray, /) -> FloatArray: ...
    def quantile(self, q: FloatArray, /) -> FloatArray: ...


# Gauss-Lobatto: the ends of [-1, 1] and the extrema of a Legendre polynomial.
_LEGENDRE = np.polynomial.Legendre.basis(8)
_NODES = np.concatenate(([-1.0], np.sort(_LEGENDRE.deriv().roots().real), [1.0]))
_WEIGHTS = 2.0 / (8 * 9 * _LEGENDRE(_NODES) ** 2)
# A panel is good if it differs from its halves by at most this share of the scale.
_TOLERANCE = 1e-8
_MAX_HALVINGS = 50
# Panels evaluated at a time, which bounds the memory for the components of mixtures.
_PANELS = 512


def integrated_crps(dist: _Distribution, y: FloatArray) -> FloatArray:
    """CRPS of each row; that of an infinite value is infinite."""
    finite = np.isfinite(y)
    out = np.abs(y)
    if finite.any():
        out[finite] = _crps_of_finite(dist if finite.all() else dist[finite], y[finite])
    return out


def _crps_of_finite(dist: _Distribution, y: FloatArray) -> FloatArray:
    n = len(dist)
    low, middle, high = dist.quantile(np.array([0.1, 0.5, 0.9]))
    scale = np.maximum(high - low + np.abs(y - middle), np.finfo(np.float64).tiny)

    row = np.tile(np.arange(n), 2)
    side = np.repeat([-1.0, 1.0], n)
    begin, end = np.zeros(2 * n), np.ones(2 * n)

    def integrate(begin: FloatArray, end: FloatArray) -> FloatArray:
        parts = [
            _panels(dist, y, scale, row[at], side[at], begin[at], end[at])
            for at in (slice(i, i + _PANELS) for i in range(0, len(row), _PANELS))
        ]
        return np.concatenate(parts)

    total = np.zeros(n)
    coarse = integrate(begin, end)
    for halvings in range(_MAX_HALVINGS):
        middle = 0.5 * (begin + end)
        first, second = integrate(begin, middle), integrate(middle, end)
        good = np.abs(first + second - coarse) <= _TOLERANCE * scale[row]
        # Agreement of the first panel with its halves may be chance.
        good &= halvings >= 1
        # Halves of what is not finite are not finite either.
        good |= ~np.isfinite(first + second)
        if halvings == _MAX_HALVINGS - 1:
            good[:] = True
        total += np.bincount(row[good], (first + second)[good], n)
        rest = ~good
        if not rest.any():
            break
        row, side = np.tile(row[rest], 2), np.tile(side[rest], 2)
        begin, end = (
            np.concatenate((begin[rest], middle[rest])),
            np.concatenate((middle[rest], end[rest])),
        )
        coarse = np.concatenate((first[rest], second[rest]))
    return total


def _panels(
    dist: _Distribution,
    y: FloatArray,
    scale: FloatArray,
    row: IntArray,
    side: FloatArray,
    begin: FloatArray,
    end: FloatArray,
) -> FloatArray:
    """The integral over some panels."""
    half = 0.5 * (end - begin)
    t = begin + half * (_NODES[:, None] + 1.0)
    # At t = 1, where x is infinite, the integrand is zero.
    rest = np.where(t < 1.0, 1.0 - t, 1.0)
    below = dist[row].cdf(y[row] + side * scale[row] * t / rest)
    tail = np.where(side < 0.0, below, 1.0 - below)
    integrand = np.where(t < 1.0, tail / rest, 0.0) ** 2
    integral: FloatArray = half * scale[row] * (_WEIGHTS @ integrand)
    return integral
