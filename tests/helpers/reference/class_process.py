"""The Gaussian process on class codes by dense linear algebra: of trees, or of their limit.

Rows share in a tree the clock v(t) = 1 - exp(-rate t) at the time at which the tree separates them,
and the covariance is the mean over trees. A test row branches off where Algorithm 5.8 says, and
what it shares is integrated numerically over that time.
"""

from __future__ import annotations

from math import inf

import numpy as np

from .arrays import Array, Tree, parent_time, path
from .mondrian_boxes import branch_rate

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def clock(time: Array | float, rate: float) -> Array:
    return np.asarray(-np.expm1(-rate * np.asarray(time, dtype=np.float64)))


def covariance(trees: list[Tree], x: Array, rate: float) -> Array:
    """Return K(x_i, x_j) for all rows.

    The clock at the last common node is the sum of its steps from the root down to there.
    """
    total = np.zeros((len(x), len(x)))
    for tree in trees:
        before = np.array([parent_time(tree, node) for node in range(len(tree["time"]))])
        steps = clock(tree["time"], rate) - clock(before, rate)
        passes = np.zeros((len(x), len(steps)))
        for i, row in enumerate(x):
            passes[i, path(tree, row)] = 1.0
        total += (passes * steps) @ passes.T
    return total / len(trees)


def shared(tree: Tree, x: Array, rate: float, rates: Array) -> tuple[list[int], list[float]]:
    """Return a test row's path, and what it is expected to share with the rows of each node.

    E[v(min(T, tau))] is the integral of v' times the probability of not having branched off.
    """
    nodes = path(tree, x)
    values: list[float] = []
    total, hazard = 0.0, 0.0
    for node in nodes:
        start, end = parent_time(tree, node), float(tree["time"][node])
        eta = branch_rate(tree, node, x, rates)
        # A substitution s = exp(-(rate + eta) t) makes the integrand constant; this one does not.
        low, high = np.exp(-rate * start), 0.0 if end == inf else np.exp(-rate * end)
        edges = low * (high / low if high else 1e-16) ** np.linspace(0.0, 1.0, 25)
        middle, half = 0.5 * (edges[:-1] + edges[1:]), 0.5 * (edges[:-1] - edges[1:])
        elapsed = -np.log(middle + half * NODES[:, None]) / rate - start
        survives = np.exp(-hazard - eta * elapsed)
        total += float(WEIGHTS @ survives @ half)
        hazard += eta * (end - start) if eta > 0.0 else 0.0
        values.append(total)
    return nodes, values


def cross_covariance(trees: list[Tree], x: Array, at: Array, rate: float, rates: Array) -> Array:
    """Return K(at_i, x_j) for test rows and rows."""
    total = np.zeros((len(at), len(x)))
    for tree in trees:
        paths = [path(tree, row) for row in x]
        for i, row in enumerate(at):
            nodes, values = shared(tree, row, rate, rates)
            for j, other in enumerate(paths):
                n_common = sum(a == b for a, b in zip(nodes, other, strict=False))
                total[i, j] += values[n_common - 1]
    return total / len(trees)


def codes(y: Array, classes: Array) -> Array:
    """Return 1[the row is of class k] minus the class's share of the rows."""
    one_hot = (np.asarray(y)[:, None] == np.asarray(classes)[None, :]).astype(float)
    return np.asarray(one_hot - one_hot.mean(axis=0))


def function(
    trees: list[Tree], x: Array, y: Array, at: Array, *, rate: float, rates: Array, noise: float
) -> Array:
    """Return f_k(at) for the sorted classes of ``y``."""
    noisy = covariance(trees, x, rate) + noise * np.eye(len(x))
    weights = np.linalg.solve(noisy, codes(y, np.unique(y)))
    return np.asarray(cross_covariance(trees, x, at, rate, rates) @ weights)


class LimitProcess:
    """The process with the covariance of infinitely many trees, of rows with weights.

    The covariance is the integral of the clock's slope times exp(-t d), which is the probability of
    being together at time t, by quadrature.
    """

    rate, noises = 0.2, (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

    def __init__(
        self, x: Array, y: Array, rates: Array, *, weights: Array | None = None, end: float = inf
    ) -> None:
        self.x, self.y, self.rates, self.end = x, np.asarray(y), rates, end
        self.weights = np.ones(len(x)) if weights is None else weights
        self.one_hot = (self.y[:, None] == np.unique(y)).astype(float)
        self.of_rows = self.covariance(x, x)

    def covariance(self, at: Array, x: Array) -> Array:
        g = self.rate * self.rates.sum()
        distances = np.abs(at[:, None] - x) @ self.rates
        ends = np.minimum(self.end, 60.0 / (g + distances))
        times = 0.5 * ends[..., None] * (NODES + 1.0)
        spent = g * np.exp(-(g + distances[..., None]) * times) * WEIGHTS
        return np.asarray(0.5 * ends * spent.sum(axis=-1))

    def function(self, at: Array, noise: float) -> Array:
        """Return f_k(at) for the sorted classes."""
        weights = self._weights(noise, np.arange(len(self.x)))
        return np.asarray(self.covariance(at, self.x) @ weights)

    def left_out(self, row: int, noise: float) -> Array:
        """Return f_k at a row, given the others."""
        rest = np.delete(np.arange(len(self.x)), row)
        return np.asarray(self.of_rows[row, rest] @ self._weights(noise, rest))

    def _weights(self, noise: float, rows: Array) -> Array:
        weights = self.weights[rows]
        centred = self.one_hot[rows] - np.average(self.one_hot[rows], axis=0, weights=weights)
        noisy = self.of_rows[np.ix_(rows, rows)] + np.diag(noise / weights)
        return np.linalg.solve(noisy, centred)

    def left_out_error(self, noise: float) -> float:
        """Return the squared error of codes, each row by a process of the others."""
        total = 0.0
        for row in range(len(self.x)):
            rest = np.delete(np.arange(len(self.x)), row)
            shares = np.average(self.one_hot[rest], axis=0, weights=self.weights[rest])
            lacks = self.one_hot[row] - shares - self.left_out(row, noise)
            total += float(self.weights[row] * (lacks**2).sum())
        return total

    def best_noise(self) -> float:
        return min(self.noises, key=self.left_out_error)
