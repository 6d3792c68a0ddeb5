"""A binary tree as arrays: the base of the trees of all models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from boscage._names import Names
from boscage._types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class ArrayTree:
    """Base of the tree classes. Nodes are numbered in preorder; the root is node 0."""

    children_left: NDArray[np.int32]
    children_right: NDArray[np.int32]
    parent: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: FloatArray
    feature_names: Names | None = field(default=None, kw_only=True)

    @property
    def n_nodes(self) -> int:
        """The number of nodes: splits and leaves."""
        return len(self.feature)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, of shape (n_nodes,)."""
        return self.children_left < 0

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.is_leaf))

    @property
    def depth(self) -> IntArray:
        """The number of splits above each node, of shape (n_nodes,)."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        # In preorder a parent comes before its children.
        for node in range(1, self.n_nodes):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def apply(self, X: Any) -> IntArray:
        """Return the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with features in the order of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node numbers.

        Raises
        ------
        ValueError
            If `X` holds NaN. A forest's ``substitutes_`` say what stands for missing values.
        """
        rows = np.asarray(X)
        if rows.dtype.kind == "f" and np.isnan(rows).any():
            raise ValueError("X contains NaN; expected rows without missing values")
        at = np.zeros(len(rows), dtype=np.int64)
        going = np.flatnonzero(~self.is_leaf[at])
        while going.size:
            node = at[going]
            left = rows[going, self.feature[node]] <= self.threshold[node]
            at[going] = np.where(left, self.children_left[node], self.children_right[node])
            going = going[~self.is_leaf[at[going]]]
        return at

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that each row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with features in the order of the training data.

        Returns
        -------
        sparse matrix of shape (n_samples, n_nodes), in CSR format
            1 where the row passes the node.

        Raises
        ------
        ValueError
            If `X` holds NaN.
        """
        at = self.apply(X)
        n_rows = len(at)
        rows, nodes = np.arange(n_rows), at.astype(np.int32)
        passed = [(rows, nodes)]
        while rows.size:
            above = self.parent[nodes]
            rows, nodes = rows[above >= 0], above[above >= 0]
            passed.append((rows, nodes))
        places = tuple(np.concatenate(part) for part in zip(*passed, strict=True))
        ones = np.ones(len(places[0]), dtype=np.int64)
        return csr_matrix((ones, places), shape=(n_rows, self.n_nodes))
