"""The online random forest of Saffari et al. (2009), for comparison; plain NumPy.

A leaf draws random tests (a feature and a threshold) and counts, by class, which rows pass them. It
splits by the test of the greatest gain once it has seen enough rows; children start with the
counts that the test left. Each tree takes each row a Poisson(1) number of times. All trees are in
the same arrays and learn a row together.
"""

from __future__ import annotations

import numpy as np
from benches._common import Array


class OnlineForest:
    """Learn rows one by one, in one pass or several."""

    def __init__(
        self,
        low: Array,
        high: Array,
        n_classes: int,
        *,
        n_trees: int = 100,
        n_tests: int = 10,
        split_after: float = 140.0,
        max_depth: int = 10,
        seed: int = 0,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._low, self._high = low.astype(np.float64), high.astype(np.float64)
        self._n_tests, self._split_after, self._max_depth = n_tests, split_after, max_depth
        self._used = np.zeros(n_trees, dtype=np.int64)
        room = 64
        self._feature = np.full((n_trees, room), -1)
        self._threshold = np.zeros((n_trees, room))
        self._right = np.zeros((n_trees, room), dtype=np.int64)  # the left child comes before it
        self._depth = np.zeros((n_trees, room), dtype=np.int64)
        self._counts = np.zeros((n_trees, room, n_classes))
        self._seen = np.zeros((n_trees, room))
        self._test_feature = np.zeros((n_trees, room, n_tests), dtype=np.int64)
        self._test_threshold = np.zeros((n_trees, room, n_tests))
        self._passed = np.zeros((n_trees, room, n_tests, n_classes), dtype=np.float32)
        for tree in range(n_trees):
            self._add_leaf(tree, 0, np.zeros(n_classes))

    def partial_fit(self, X: Array, y: Array) -> OnlineForest:
        """Learn rows in turn; labels are 0, 1, ..."""
        for x, label in zip(np.asarray(X, dtype=np.float64), np.asarray(y), strict=True):
            times = self._rng.poisson(1.0, size=len(self._used)).astype(np.float64)
            trees = np.flatnonzero(times)
            times = times[trees]
            leaves = self._leaves(x[None], trees)[:, 0]
            self._counts[trees, leaves, label] += times
            self._seen[trees, leaves] += times
            passes = x[self._test_feature[trees, leaves]] > self._test_threshold[trees, leaves]
            self._passed[trees, leaves, :, label] += times[:, None] * passes
            full = self._seen[trees, leaves] > self._split_after
            full &= self._depth[trees, leaves] < self._max_depth
            for tree, leaf in zip(trees[full], leaves[full], strict=True):
                self._split(tree, leaf)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Average the trees' class frequencies."""
        trees = np.arange(len(self._used))
        leaves = self._leaves(np.asarray(X, dtype=np.float64), trees)
        total = np.zeros((len(X), self._counts.shape[2]))
        for tree in trees:
            counts = self._counts[tree, leaves[tree]] + 1e-9
            total += counts / counts.sum(axis=1, keepdims=True)
        return total / len(trees)

    def _leaves(self, X: Array, trees: Array) -> Array:
        at = np.zeros((len(trees), len(X)), dtype=np.int64)
        which, rows = trees[:, None], np.arange(len(X))[None]
        while True:
            feature = self._feature[which, at]
            inner = feature >= 0
            if not inner.any():
                return at
            goes_right = X[rows, np.maximum(feature, 0)] > self._threshold[which, at]
            at = np.where(inner, self._right[which, at] - 1 + goes_right, at)

    def _split(self, tree: int, leaf: int) -> None:
        passed = self._passed[tree, leaf].astype(np.float64)
        # A child starts with the counts of its parent, but has tested only rows since its birth.
        best = int(
            np.argmin(
                [
                    _impurity(right) + _impurity(left)
                    for right, left in zip(passed, self._counts[tree, leaf] - passed, strict=True)
                ]
            )
        )
        right = passed[best]
        left = np.maximum(self._counts[tree, leaf] - right, 0.0)
        self._feature[tree, leaf] = self._test_feature[tree, leaf, best]
        self._threshold[tree, leaf] = self._test_threshold[tree, leaf, best]
        depth = self._depth[tree, leaf] + 1
        self._add_leaf(tree, depth, left)
        self._right[tree, leaf] = self._add_leaf(tree, depth, right)

    def _add_leaf(self, tree: int, depth: int, counts: Array) -> int:
        leaf = int(self._used[tree])
        self._used[tree] += 1
        if leaf == self._feature.shape[1]:
            for name in (
                "feature",
                "threshold",
                "right",
                "depth",
                "counts",
                "seen",
                "test_feature",
                "test_threshold",
                "passed",
            ):
                old = getattr(self, f"_{name}")
                setattr(self, f"_{name}", np.concatenate([old, np.zeros_like(old)], axis=1))
        self._feature[tree, leaf] = -1
        self._depth[tree, leaf] = depth
        self._counts[tree, leaf] = counts
        feature = self._rng.integers(len(self._low), size=self._n_tests)
        self._test_feature[tree, leaf] = feature
        self._test_threshold[tree, leaf] = self._rng.uniform(
            self._low[feature], self._high[feature]
        )
        return leaf


def _impurity(counts: Array) -> float:
    """The number of rows times their Gini impurity."""
    total = counts.sum()
    return float(total - (counts @ counts) / total) if total > 0 else 0.0
