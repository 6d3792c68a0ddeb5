"""The hierarchical Gaussian of section 6.3 by dense linear algebra on exported trees.

mu_j is a random walk down the tree whose variance between times s and t is
gamma_1 (sigma(gamma_2 (t - t_0)) - sigma(gamma_2 (s - t_0))), with a delay t_0 that is 0 in the
thesis, and with a coarse part of the prior beside it 2 B (sigma(delta t) - sigma(delta s)). So
Cov(mu_i, mu_j) is the walk's variance at the time of the lowest common ancestor of i and j, and
all else follows by conditioning a joint normal. No message is ever passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit
from scipy.stats import norm

from .arrays import Array, Tree, ancestors, parent_time, path
from .mondrian_boxes import branch_rate


@dataclass(frozen=True)
class Hyperparameters:
    """mu_H, gamma_1, gamma_2, sigma_y^2, the delay t_0 and the coarse B and delta.

    The noise may also be one number a row.
    """

    mu: float
    gamma1: float
    gamma2: float
    noise: float
    delay: float = 0.0
    coarse_variance: float = 0.0
    coarse_rate: float = 1.0


def walk(time: Array | float, hyper: Hyperparameters) -> Array:
    """Variance of the walk at ``time``, which starts from 0 at time 0."""
    time = np.asarray(time, dtype=np.float64)
    # sigma(a) - 1/2 = tanh(a / 2) / 2, without the cancellation
    rate, delay = 0.5 * hyper.gamma2, hyper.delay
    fine = np.tanh(rate * (time - delay)) + np.tanh(rate * delay)
    coarse = hyper.coarse_variance * np.tanh(0.5 * hyper.coarse_rate * time)
    return np.asarray(hyper.gamma1 * 0.5 * fine + coarse)


def prior_covariance(tree: Tree, hyper: Hyperparameters) -> Array:
    """Cov(mu_i, mu_j) for all nodes: built from the increments, literally mu = mu_H + A phi."""
    n = len(tree["parent"])
    increments = np.zeros((n, n))  # node by increment: 1 for the node and each above it
    for j in range(n):
        increments[j, ancestors(tree, j)] = 1.0
    time = tree["time"]
    above = np.array([parent_time(tree, j) for j in range(n)])
    late, early = hyper.gamma2 * (time - hyper.delay), hyper.gamma2 * (above - hyper.delay)
    phi = hyper.gamma1 * (expit(late) - expit(early))
    delta = hyper.coarse_rate
    phi += 2.0 * hyper.coarse_variance * (expit(delta * time) - expit(delta * above))
    return np.asarray(increments @ (phi[:, None] * increments.T))


def leaf_of_rows(tree: Tree, points: Array) -> Array:
    return np.array([path(tree, x)[-1] for x in np.asarray(points, dtype=np.float64)], dtype=int)


def posterior(
    tree: Tree, points: Array, y: Array, hyper: Hyperparameters
) -> tuple[Array, Array, float]:
    """Posterior mean and covariance of all mu_j, and the log marginal likelihood of ``y``."""
    covariance = prior_covariance(tree, hyper)
    where = leaf_of_rows(tree, points)
    return _condition(covariance, covariance[where], where, y, hyper)


def _condition(
    covariance: Array, cross: Array, where: Array, y: Array, hyper: Hyperparameters
) -> tuple[Array, Array, float]:
    n = len(where)
    k = cross[:, where] + hyper.noise * np.eye(n)
    chol = np.linalg.cholesky(k)
    z = np.linalg.solve(chol, np.asarray(y, dtype=np.float64) - hyper.mu)
    v = np.linalg.solve(chol, cross)
    mean = hyper.mu + v.T @ z
    log_likelihood = -0.5 * z @ z - np.log(np.diag(chol)).sum() - 0.5 * n * np.log(2 * np.pi)
    return mean, covariance - v.T @ v, float(log_likelihood)


class Bridge:
    """The posterior of a test point's own leaf that branches off at a given time.

    Between parent(j) and j a node is put in at time t; the test point's leaf hangs from it and has
    the lifetime for its split time. Its covariance with a row is the walk's variance at the time
    at which their paths part: t for rows below j, the lowest common ancestor's for the others.
    """

    def __init__(
        self,
        tree: Tree,
        points: Array,
        y: Array,
        hyper: Hyperparameters,
        lifetime: float = inf,
    ) -> None:
        self.tree, self.hyper, self.lifetime = tree, hyper, lifetime
        time = tree["time"]
        where = leaf_of_rows(tree, points)
        paths = [set(ancestors(tree, j)) for j in range(len(time))]
        of_rows = [paths[leaf] for leaf in where]
        # where the paths of a node and of a row part, in time; two rows of one leaf share its mu
        self.below = np.array([[j in row for row in of_rows] for j in range(len(time))])
        self.parts = np.array(
            [[max((time[i] for i in path & row), default=0.0) for row in of_rows] for path in paths]
        )
        k = walk(self.parts[where], hyper) + hyper.noise * np.eye(len(where))
        self.chol = np.linalg.cholesky(k)
        self.z = solve_triangular(self.chol, np.asarray(y, dtype=float) - hyper.mu, lower=True)

    def own_leaf(self, node: int, t: Array) -> tuple[Array, Array]:
        """Posterior mean and variance of mu at the test point's leaf, for each branch time t."""
        t = np.atleast_1d(np.asarray(t, dtype=np.float64))
        part = np.where(self.below[node][:, None], t, self.parts[node][:, None])
        v = solve_triangular(self.chol, walk(part, self.hyper), lower=True)
        mean = self.hyper.mu + v.T @ self.z
        variance = walk(self.lifetime, self.hyper) - (v * v).sum(axis=0)
        return np.asarray(mean), np.asarray(variance)

    def at_leaf(self, leaf: int) -> tuple[float, float]:
        """Posterior mean and variance of mu at a leaf of the tree itself."""
        mean, variance = self.own_leaf(leaf, np.array([self.tree["time"][leaf]]))
        return float(mean[0]), float(variance[0])


@dataclass(frozen=True)
class Mixture:
    """A fine discrete mixture of normals: the integral over the branch time, as a sum."""

    weight: Array
    mean: Array
    variance: Array

    def moments(self) -> tuple[float, float]:
        m = float(self.weight @ self.mean)
        return m, float(self.weight @ (self.variance + (self.mean - m) ** 2))

    def cdf(self, at: Array) -> Array:
        z = (np.asarray(at)[:, None] - self.mean) / np.sqrt(self.variance)
        return np.asarray(norm.cdf(z) @ self.weight)

    def pdf(self, at: Array) -> Array:
        s = np.sqrt(self.variance)
        return np.asarray((norm.pdf((np.asarray(at)[:, None] - self.mean) / s) / s) @ self.weight)


def predict(
    tree: Tree,
    points: Array,
    y: Array,
    x: Array,
    hyper: Hyperparameters,
    rates: Array,
    lifetime: float = inf,
    n_nodes: int | None = None,
    bridge: Bridge | None = None,
) -> Mixture:
    """Compute the predictive of y at ``x`` from one tree, integrating over the branch time.

    Tanh-sinh quadrature in the truncated exponential's own distribution function u: the walk's
    variance is a power of 1 - u in an endless leaf, and moves all within a sliver near u = 0 where
    the rate is low. The last component is "never branches off" (footnote 4 of section 6.3.4).
    """
    bridge = Bridge(tree, points, y, hyper, lifetime) if bridge is None else bridge
    if n_nodes is None:
        # A late walk moves within a short time.
        n_nodes = 801 if hyper.delay else 201
    z = np.linspace(-3.6, 3.6, n_nodes)
    u, one_less_u = expit(np.pi * np.sinh(z)), expit(-np.pi * np.sinh(z))
    du = u * one_less_u * np.cosh(z)
    du /= du.sum()
    weights, means, variances = [], [], []
    not_separated_yet = 1.0
    nodes = path(tree, x)
    for j in nodes:
        rate = branch_rate(tree, j, x, rates)
        before, width = parent_time(tree, j), float(tree["time"][j]) - parent_time(tree, j)
        p_branch = 0.0 if rate == 0.0 else -np.expm1(-rate * width)
        if p_branch > 0.0:
            tail = np.exp(-rate * width) + p_branch * one_less_u  # 1 - u p, exact near u = 1
            log_tail = np.where(u < 0.5, np.log1p(-np.minimum(u, 0.5) * p_branch), np.log(tail))
            t = before - log_tail / rate
            mean, variance = bridge.own_leaf(j, t)
            weights.append(not_separated_yet * p_branch * du)
            means.append(mean)
            variances.append(variance + hyper.noise)
        not_separated_yet *= 1.0 - p_branch
    mean_leaf, variance_leaf = bridge.at_leaf(nodes[-1])
    weights.append(np.array([not_separated_yet]))
    means.append(np.array([mean_leaf]))
    variances.append(np.array([variance_leaf + hyper.noise]))
    return Mixture(np.concatenate(weights), np.concatenate(means), np.concatenate(variances))


def equal_mixture(mixtures: list[Mixture]) -> Mixture:
    """Mix the forest's prediction: its trees' mixtures with equal weights, equation (6.5)."""
    return Mixture(
        np.concatenate([m.weight for m in mixtures]) / len(mixtures),
        np.concatenate([m.mean for m in mixtures]),
        np.concatenate([m.variance for m in mixtures]),
    )
