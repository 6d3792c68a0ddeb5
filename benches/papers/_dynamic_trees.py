"""Dynamic trees by particle learning (Taddy, Gramacy and Polson 2011), for comparison.

Each particle is a tree with class counts in its leaves. A new row weights the particles by the
probability that they gave its label; after resampling, each particle stays as it is, grows at the
row's leaf, or is pruned above it, with the probabilities of the posterior of these three. Trees are
immutable, so that copies are free.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from benches._common import Array
from scipy.special import gammaln


class Leaf(NamedTuple):
    """Rows that came to a leaf, their classes, and the log likelihood of these."""

    rows: Array
    counts: Array
    log_likelihood: float


class Split(NamedTuple):
    """A cut; `log_weight` is the log prior and likelihood of the whole subtree."""

    feature: int
    threshold: float
    left: Tree
    right: Tree
    log_weight: float


Tree: TypeAlias = Leaf | Split


class DynamicTrees:
    """Learn rows one by one."""

    def __init__(
        self,
        n_classes: int,
        *,
        n_particles: int = 100,
        alpha: float = 0.95,
        beta: float = 2.0,
        seed: int = 0,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._prior = 1.0 / n_classes
        self._splits = alpha / (1.0 + np.arange(200)) ** beta
        # Log likelihood of a leaf: a table of log gamma functions of counts.
        self._log_gamma = gammaln(np.arange(100_000) + self._prior)
        self._log_gamma_total = gammaln(np.arange(100_000) + 1.0)
        empty = Leaf(np.zeros(0, dtype=np.int64), np.zeros(n_classes, dtype=np.int64), 0.0)
        self._trees: list[Tree] = [empty] * n_particles
        self._X, self._y = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)

    def partial_fit(self, X: Array, y: Array) -> DynamicTrees:
        """Learn rows in turn; labels are 0, 1, ..."""
        first = len(self._y)
        self._X = np.concatenate([self._X.reshape(first, X.shape[1]), X])
        self._y = np.concatenate([self._y, np.asarray(y, dtype=np.int64)])
        for row in range(first, len(self._y)):
            x = self._X[row]
            self._resample(x, int(self._y[row]))
            self._trees = [self._learned(tree, x, row, 0) for tree in self._trees]
        return self

    def predict_proba(self, X: Array) -> Array:
        """Average over particles."""
        total = np.zeros((len(X), round(1.0 / self._prior)))
        # Resampled particles are often the same tree.
        each = {id(tree): tree for tree in self._trees}
        times: dict[int, int] = {}
        for tree in self._trees:
            times[id(tree)] = times.get(id(tree), 0) + 1
        for key, tree in each.items():
            stack: list[tuple[Tree, Array]] = [(tree, np.arange(len(X)))]
            while stack:
                node, rows = stack.pop()
                if isinstance(node, Split):
                    right = X[rows, node.feature] > node.threshold
                    stack += [(node.left, rows[~right]), (node.right, rows[right])]
                else:
                    total[rows] += times[key] * self._proba(node)
        return total / len(self._trees)

    def _proba(self, leaf: Leaf) -> Array:
        proba: Array = (leaf.counts + self._prior) / (len(leaf.rows) + 1.0)
        return proba

    def _resample(self, x: Array, label: int) -> None:
        known: dict[int, float] = {}
        for tree in self._trees:
            if id(tree) not in known:
                known[id(tree)] = float(self._proba(_leaf(tree, x))[label])
        weights = np.cumsum([known[id(tree)] for tree in self._trees])
        n = len(self._trees)
        places = (self._rng.uniform() + np.arange(n)) / n * weights[-1]
        self._trees = [self._trees[i] for i in np.searchsorted(weights, places)]

    def _learned(self, tree: Tree, x: Array, row: int, depth: int) -> Tree:
        """The tree with the row, and a change at its leaf; a parent of the leaf decides with it."""
        if isinstance(tree, Leaf):
            # The root is a leaf: there is nothing to prune.
            stay = self._with_row(tree, row)
            return self._choose([stay, self._grown(stay, depth)], depth)
        side = int(x[tree.feature] > tree.threshold)
        child = (tree.left, tree.right)[side]
        if isinstance(child, Split):
            return self._with_child(tree, side, self._learned(child, x, row, depth + 1), depth)
        stay = self._with_row(child, row)
        options: list[Tree | None] = [self._with_child(tree, side, stay, depth)]
        grown = self._grown(stay, depth + 1)
        options.append(None if grown is None else self._with_child(tree, side, grown, depth))
        options.append(self._leaf(np.append(_rows(tree), row)))
        return self._choose(options, depth)

    def _choose(self, options: list[Tree | None], depth: int) -> Tree:
        possible = [option for option in options if option is not None]
        logs = np.array([self._log_weight(option, depth) for option in possible])
        weights = np.cumsum(np.exp(logs - logs.max()))
        return possible[int(np.searchsorted(weights, self._rng.uniform() * weights[-1]))]

    def _grown(self, leaf: Leaf, depth: int) -> Tree | None:
        if len(leaf.rows) < 2:
            return None
        feature = int(self._rng.integers(self._X.shape[1]))
        values = self._X[leaf.rows, feature]
        low, high = float(values.min()), float(values.max())
        if low == high:
            return None
        threshold = float(self._rng.uniform(low, high))
        is_right = values > threshold
        left, right = leaf.rows[~is_right], leaf.rows[is_right]
        if not len(left) or not len(right):
            return None
        return self._split(feature, threshold, self._leaf(left), self._leaf(right), depth)

    def _with_child(self, tree: Split, side: int, child: Tree, depth: int) -> Split:
        left, right = (child, tree.right) if side == 0 else (tree.left, child)
        return self._split(tree.feature, tree.threshold, left, right, depth)

    def _split(self, feature: int, threshold: float, left: Tree, right: Tree, depth: int) -> Split:
        below = self._log_weight(left, depth + 1) + self._log_weight(right, depth + 1)
        return Split(feature, threshold, left, right, math.log(self._splits[depth]) + below)

    def _log_weight(self, tree: Tree, depth: int) -> float:
        if isinstance(tree, Split):
            return tree.log_weight
        return math.log1p(-self._splits[depth]) + tree.log_likelihood

    def _with_row(self, leaf: Leaf, row: int) -> Leaf:
        counts = leaf.counts.copy()
        counts[self._y[row]] += 1
        return self._of_counts(np.append(leaf.rows, row), counts)

    def _leaf(self, rows: Array) -> Leaf:
        return self._of_counts(rows, np.bincount(self._y[rows], minlength=round(1.0 / self._prior)))

    def _of_counts(self, rows: Array, counts: Array) -> Leaf:
        likelihood = self._log_gamma[counts].sum() - len(counts) * self._log_gamma[0]
        return Leaf(rows, counts, float(likelihood - self._log_gamma_total[len(rows)]))


def _leaf(tree: Tree, x: Array) -> Leaf:
    while isinstance(tree, Split):
        tree = tree.right if x[tree.feature] > tree.threshold else tree.left
    return tree


def _rows(tree: Tree) -> Array:
    if isinstance(tree, Leaf):
        return tree.rows
    return np.concatenate([_rows(tree.left), _rows(tree.right)])
