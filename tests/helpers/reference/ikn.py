"""The hierarchy of normalised stable processes by interpolated Kneser-Ney, as printed.

Algorithms 5.3 and 5.7 (counts), 5.4 (the posterior means) and 5.8 (prediction), on exported trees.
``gamma`` is the thesis' own, that is discount times the number of dimensions.
"""

from __future__ import annotations

from math import exp, expm1, inf

import numpy as np

from .arrays import Array, Tree, is_leaf, leaves, parent_time, path, root
from .mondrian_boxes import branch_rate, extend_at_random


def initialize_posterior_counts(
    tree: Tree, points: Array, codes: Array, n_classes: int, weights: Array | None = None
) -> Array:
    """Algorithm 5.3 at every leaf: customers c_jk; tables are min(c_jk, 1).

    A row of weight w is w customers.
    """
    if weights is None:
        weights = np.ones(len(codes), dtype=np.int64)
    c = np.zeros((len(tree["parent"]), n_classes), dtype=weights.dtype)
    for x, code, weight in zip(np.asarray(points, dtype=np.float64), codes, weights, strict=True):
        c[path(tree, x)[-1], code] += weight
    for leaf in leaves(tree):
        j = leaf
        while True:
            if not is_leaf(tree, j):
                left, right = tree["children_left"][j], tree["children_right"][j]
                c[j] = np.minimum(c[left], 1) + np.minimum(c[right], 1)
            if tree["parent"][j] < 0:
                break
            j = int(tree["parent"][j])
    return c


def update_posterior_counts(
    tree: Tree, c: Array, leaf: int, code: int, *, as_printed: bool = False
) -> None:
    """Algorithm 5.7: one more row of class ``code`` at ``leaf``; changes ``c``.

    As printed, the climb stops at a node that has a table already *before* its customers are
    recounted, and so misses the customer that a child's new table has just added (c is 1,
    not 2). Here the customers are counted first, then the climb stops; ``as_printed=True`` is the
    other order.
    """
    tab = np.minimum(c, 1)
    c[leaf, code] += 1
    j = leaf
    while True:
        stop = tab[j, code] == 1
        if stop and as_printed:
            return
        if not is_leaf(tree, j):
            left, right = tree["children_left"][j], tree["children_right"][j]
            c[j, code] = tab[left, code] + tab[right, code]
        tab[j, code] = min(c[j, code], 1)
        if stop or tree["parent"][j] < 0:
            return
        j = int(tree["parent"][j])


def discount(tree: Tree, node: int, gamma: float) -> float:
    return exp(-gamma * (tree["time"][node] - parent_time(tree, node)))


def smooth(c: Array, tab: Array, d: float, above: Array) -> Array:
    """Equation (5.5)."""
    if c.sum() == 0:
        return above
    return np.asarray((c - d * tab + d * tab.sum() * above) / c.sum())


def posterior_means(tree: Tree, c: Array, gamma: float) -> Array:
    """Algorithm 5.4: the posterior mean of G_j at every node, top down from a uniform H."""
    means = np.full(c.shape, np.nan)
    uniform = np.full(c.shape[1], 1.0 / c.shape[1])
    queue = [root(tree)]
    while queue:
        j = queue.pop(0)
        parent = int(tree["parent"][j])
        above = uniform if parent < 0 else means[parent]
        means[j] = smooth(c[j], np.minimum(c[j], 1), discount(tree, j, gamma), above)
        if not is_leaf(tree, j):
            queue += [int(tree["children_left"][j]), int(tree["children_right"][j])]
    return means


def expected_discount(gamma: float, rate: float, width: float) -> float:
    """E[exp(-gamma Delta)], Delta a truncated exponential of that rate on [0, width]."""
    if width == inf:
        return rate / (rate + gamma)
    return rate / (rate + gamma) * expm1(-(rate + gamma) * width) / expm1(-rate * width)


def predict(
    tree: Tree, c: Array, x: Array, gamma: float, rates: Array, posterior: Array | None = None
) -> Array:
    """Algorithm 5.8: the averaged prediction of one tree."""
    means = posterior_means(tree, c, gamma) if posterior is None else posterior
    uniform = np.full(c.shape[1], 1.0 / c.shape[1])
    s = np.zeros(c.shape[1])
    not_separated_yet = 1.0
    for j in path(tree, x):
        width = float(tree["time"][j]) - parent_time(tree, j)
        rate = branch_rate(tree, j, x, rates)
        p_stay = 1.0 if rate == 0.0 else exp(-width * rate)
        p_branch = 0.0 if rate == 0.0 else -expm1(-width * rate)
        if p_branch > 0.0:
            tables = np.minimum(c[j], 1)
            parent = int(tree["parent"][j])
            above = uniform if parent < 0 else means[parent]
            d = expected_discount(gamma, rate, width)
            s += not_separated_yet * p_branch * smooth(tables, tables, d, above)
        if is_leaf(tree, j):
            s += not_separated_yet * p_stay * means[j]
        not_separated_yet *= p_stay
    return s


def predict_realised_leaf(
    tree: Tree, points: Array, codes: Array, n_classes: int, leaf: int, gamma: float
) -> Array:
    """Compute the posterior mean at one leaf of an extended tree, with all counts recomputed."""
    c = np.zeros((len(tree["parent"]), n_classes), dtype=np.int64)
    for where, code in zip(points, codes, strict=True):
        c[where, code] += 1
    for bottom in leaves(tree):
        j = int(tree["parent"][bottom])
        while j >= 0:
            left, right = tree["children_left"][j], tree["children_right"][j]
            c[j] = np.minimum(c[left], 1) + np.minimum(c[right], 1)
            j = int(tree["parent"][j])
    return np.asarray(posterior_means(tree, c, gamma)[leaf])


def predict_by_extension(
    rng: np.random.Generator,
    tree: Tree,
    leaf_of_row: Array,
    codes: Array,
    n_classes: int,
    x: Array,
    gamma: float,
    rates: Array,
    lifetime: float = inf,
) -> Array:
    """Add ``x`` to the tree by MTx at random and predict at its own leaf.

    ``leaf_of_row`` holds each training row's leaf; an extension by a point that has no label moves
    no row to another leaf.
    """
    extended, leaf, _ = extend_at_random(rng, tree, x, rates, lifetime)
    return predict_realised_leaf(extended, leaf_of_row, codes, n_classes, leaf, gamma)
