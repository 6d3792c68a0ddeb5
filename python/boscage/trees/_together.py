"""What several trees say of rows together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from boscage._types import FloatArray, IntArray
from boscage.trees._base import ArrayTree


def decision_paths(trees: Sequence[ArrayTree], X: Any) -> tuple[csr_matrix, IntArray]:
    """The nodes that rows pass, tree after tree, and where each tree's columns begin and end."""
    paths = [tree.decision_path(X) for tree in trees]
    ends = np.cumsum([0, *(tree.n_nodes for tree in trees)])
    return hstack(paths, format="csr"), ends.astype(np.int64)


def same_leaf(left: IntArray, right: IntArray, weights: FloatArray) -> FloatArray:
    """The weight of the trees in which two rows have the same node; both of shape (n, n_trees)."""
    found = np.zeros((len(left), len(right)))
    for a, b, weight in zip(left.T, right.T, weights, strict=True):
        nodes = np.unique(a)
        place = np.searchsorted(nodes, b)
        known = np.flatnonzero(nodes[np.minimum(place, len(nodes) - 1)] == b)
        ones = [
            csr_matrix(
                (np.ones(len(rows)), (rows, columns)), shape=(n_rows, len(nodes)), dtype=np.float64
            )
            for rows, columns, n_rows in (
                (np.arange(len(a)), np.searchsorted(nodes, a), len(a)),
                (known, place[known], len(b)),
            )
        ]
        pairs = (ones[0] @ ones[1].T).tocoo()
        found[pairs.row, pairs.col] += weight
    return found
