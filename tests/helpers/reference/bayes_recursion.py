"""The exact posterior over decision trees on small data, by recursion over sets of rows.

Given its rows, what happens on the two sides of a cut is independent. With V the features along
which rows vary, ``Z(rows, depth) = P(stop) l(rows) + P(split) sum_d sum_gap gap / (|V| extent)
Z(left) Z(right)``; only the sets that cuts can make are visited.

Where values of ``d`` are missing (NaN) in some row of the table, a cut also says to which side they
go, each with probability 1/2. Where they are missing in some of the node's rows, the cut parts them
from the present values with probability 1/3, or surely if these are all equal; gaps and extent are
those of the present values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Rows = tuple[int, ...]
# The feature, the lower end of the gap (infinite where missing values are parted from the others),
# whether missing values go left (None if there are none in the table), the probability given a
# split, both sides.
Cut = tuple[int, float, bool | None, float, Rows, Rows]


@dataclass
class Posterior:
    """X and a function from sets of rows to the logarithm of their likelihood."""

    X: NDArray[Any]
    log_likelihood: Callable[[list[int]], float]
    alpha_s: float = 0.95
    beta_s: float = 0.5
    known: dict[tuple[Rows, int], float] = field(default_factory=dict)
    known_leaves: dict[tuple[Rows, int], float] = field(default_factory=dict)

    @property
    def all_rows(self) -> Rows:
        return tuple(range(len(self.X)))

    def cuts(self, rows: Rows) -> Iterator[Cut]:
        """All cuts of some rows."""
        part = self.X[list(rows)]
        missing = np.isnan(part)
        values = [np.unique(part[~missing[:, d], d]) for d in range(part.shape[1])]
        valid = [
            d for d, own in enumerate(values) if len(own) + missing[:, d].any() > 1 and len(own)
        ]
        for d in valid:
            sides = (True, False) if np.isnan(self.X[:, d]).any() else (None,)
            apart = 0.0
            if missing[:, d].any():
                apart = 1.0 / 3.0 if len(values[d]) > 1 else 1.0
            for side in sides:
                share = 1.0 / len(valid) / len(sides)
                if apart:
                    end = -np.inf if side else np.inf
                    yield d, end, side, share * apart, *self.sides(rows, d, end, side)
                for a, b in pairwise(values[d]):
                    gap = (b - a) / (values[d][-1] - values[d][0])
                    p = share * (1.0 - apart) * gap
                    yield d, float(a), side, p, *self.sides(rows, d, a, side)

    def sides(self, rows: Rows, d: int, end: float, side: bool | None) -> tuple[Rows, Rows]:
        is_left = {i: side if np.isnan(self.X[i, d]) else self.X[i, d] <= end for i in rows}
        return tuple(i for i in rows if is_left[i]), tuple(i for i in rows if not is_left[i])

    def split_probability(self, depth: int) -> float:
        return float(self.alpha_s / (1 + depth) ** self.beta_s)

    def log_evidence(self, rows: Rows | None = None, depth: int = 0) -> float:
        """Logarithm of Z(rows, depth)."""
        rows = self.all_rows if rows is None else rows
        if (rows, depth) not in self.known:
            own = self.log_likelihood(list(rows))
            cuts = list(self.cuts(rows))
            terms = [own]
            if cuts:
                p = self.split_probability(depth)
                terms = [np.log1p(-p) + own]
                terms += [np.log(p) + self.log_weight(cut, depth) for cut in cuts]
            self.known[rows, depth] = float(logsumexp(terms))
        return self.known[rows, depth]

    def log_weight(self, cut: Cut, depth: int) -> float:
        _, _, _, probability, left, right = cut
        below = self.log_evidence(left, depth + 1) + self.log_evidence(right, depth + 1)
        return float(np.log(probability) + below)

    def root(self) -> dict[tuple[int, float, bool | None] | None, float]:
        """Posterior probability that the root stops (None), and of each of its gaps."""
        cuts = list(self.cuts(self.all_rows))
        z, p = self.log_evidence(), self.split_probability(0) if cuts else 0.0
        found: dict[tuple[int, float, bool | None] | None, float] = {
            None: float(np.exp(np.log1p(-p) + self.log_likelihood(list(self.all_rows)) - z))
        }
        for cut in cuts:
            found[cut[:3]] = float(np.exp(np.log(p) + self.log_weight(cut, 0) - z))
        return found

    def n_leaves(self, rows: Rows | None = None, depth: int = 0) -> float:
        """The expected number of leaves."""
        rows = self.all_rows if rows is None else rows
        if (rows, depth) not in self.known_leaves:
            cuts = list(self.cuts(rows))
            z, p = self.log_evidence(rows, depth), self.split_probability(depth)
            stop = np.log1p(-p) if cuts else 0.0
            mean = float(np.exp(stop + self.log_likelihood(list(rows)) - z))
            for cut in cuts:
                weight = float(np.exp(np.log(p) + self.log_weight(cut, depth) - z))
                mean += weight * sum(self.n_leaves(side, depth + 1) for side in cut[4:])
            self.known_leaves[rows, depth] = mean
        return self.known_leaves[rows, depth]


def trees(posterior: Posterior, rows: Rows, depth: int = 0) -> Iterator[float]:
    """Prior times likelihood of every tree over some rows, one by one."""
    cuts = list(posterior.cuts(rows))
    p = posterior.split_probability(depth) if cuts else 0.0
    yield (1.0 - p) * float(np.exp(posterior.log_likelihood(list(rows))))
    for _, _, _, probability, left, right in cuts:
        for one in trees(posterior, left, depth + 1):
            for other in trees(posterior, right, depth + 1):
                yield p * probability * one * other


def dirichlet(
    y: NDArray[Any], n_classes: int, alpha: float, weights: Any = None
) -> Callable[[list[int]], float]:
    """Equation (3.2), where a row counts as often as its weight says."""
    share = alpha / n_classes
    weights = np.ones(len(y)) if weights is None else np.asarray(weights)

    def log_likelihood(rows: list[int]) -> float:
        counts = np.bincount(y[rows], weights[rows], minlength=n_classes)
        each = gammaln(counts + share).sum() - n_classes * gammaln(share)
        return float(gammaln(alpha) + each - gammaln(counts.sum() + alpha))

    return log_likelihood


def normal(
    y: NDArray[Any],
    prior_mean: float,
    kappa: float,
    shape: float,
    scale: float,
    weights: Any = None,
) -> Callable[[list[int]], float]:
    """Normal targets of unknown mean and variance under their conjugate prior.

    A row counts as often as its weight says.
    """
    weights = np.ones(len(y)) if weights is None else np.asarray(weights)

    def log_likelihood(rows: list[int]) -> float:
        part = y[rows]
        n, own = weights[rows].sum(), np.average(part, weights=weights[rows])
        kappa_n, shape_n = kappa + n, shape + 0.5 * n
        scale_n = scale + 0.5 * (weights[rows] * (part - own) ** 2).sum()
        scale_n += 0.5 * kappa * n * (own - prior_mean) ** 2 / kappa_n
        return float(
            0.5 * np.log(kappa / kappa_n)
            - 0.5 * n * np.log(2.0 * np.pi)
            + gammaln(shape_n)
            - gammaln(shape)
            + shape * np.log(scale)
            - shape_n * np.log(scale_n)
        )

    return log_likelihood
