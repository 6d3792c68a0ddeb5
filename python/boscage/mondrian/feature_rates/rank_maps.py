"""Feature maps by rank: heavy tails take up no more of a feature than the rows in them.

With equal rates, a Mondrian process cuts a feature where its range is long, which may be where
hardly any rows are. A map that brings a feature to its ranks cuts it where the rows are. Which of
the two is better differs between data sets, and in between is often better than either.
"""

from __future__ import annotations

import numpy as np

from boscage._types import FloatArray, Maps

N_QUANTILES = 62
"""Quantiles of a feature that are knots; with the ends of its range, the most that a map has."""

__all__: list[str] = []


def rank_maps(X: FloatArray, low: FloatArray, high: FloatArray, share: float) -> Maps:
    """Maps that are linear but for a part, which brings the rows of ``X`` to their ranks.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows.
    low, high : ndarray of shape (n_features,)
        Reference ranges.
    share : float
        The part, greater than 0 and at most 1.

    Returns
    -------
    list of (knots, shares)
        One map for each feature. It has no knots where no row is inside the range.
    """
    ordered = np.sort(X, axis=0)
    return [_map(ordered[:, d], low[d], high[d], share) for d in range(X.shape[1])]


def in_units(X: FloatArray, low: FloatArray, high: FloatArray, maps: Maps | None) -> FloatArray:
    """Rows in units of the reference ranges, as maps stretch these."""
    # Halves, since a range may overflow.
    width = 0.5 * high - 0.5 * low
    units = np.zeros_like(X)
    np.divide(0.5 * X - 0.5 * low, width, out=units, where=width > 0.0)
    for feature, (knots, shares) in enumerate(maps or []):
        if len(knots) > 0:
            values = np.clip(X[:, feature], knots[0], knots[-1])
            above = np.clip(np.searchsorted(knots, values, "right"), 1, len(knots) - 1)
            # Not by `np.interp`, which rounds differently on some machines.
            part = (values - knots[above - 1]) / (knots[above] - knots[above - 1])
            units[:, feature] = shares[above - 1] + np.diff(shares)[above - 1] * part
    return units


def _map(
    ordered: FloatArray, low: np.float64, high: np.float64, share: float
) -> tuple[FloatArray, FloatArray]:
    """The map of a feature whose values are in order."""
    knots = values = np.unique(ordered)
    if len(values) > N_QUANTILES:
        at = np.linspace(0.0, len(ordered) - 1.0, N_QUANTILES).round().astype(np.intp)
        knots, counts = np.unique(ordered[at], return_counts=True)
        # Next to a value that many rows have, ranks jump. Three quantiles leave room for three.
        often = np.searchsorted(values, knots[counts >= 3])
        beside = np.clip(np.r_[often - 1, often + 1], 0, len(values) - 1)
        knots = np.unique(np.r_[knots, values[beside]])
    knots = knots[(knots > low) & (knots < high)]
    if len(knots) == 0:
        return knots, knots
    knots = np.r_[low, knots, high]
    # Of rows with a value, half are below it.
    ranks = np.searchsorted(ordered, knots, "left") + np.searchsorted(ordered, knots, "right")
    by_rank = (ranks - ranks[0]) / (ranks[-1] - ranks[0])
    # Halves, since a range may overflow.
    along = (0.5 * knots - 0.5 * low) / (0.5 * high - 0.5 * low)
    return knots, share * by_rank + (1.0 - share) * along
