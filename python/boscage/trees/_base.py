"""A binary tree as arrays: what trees of all models have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage._types import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class ArrayTree:
    """Base of the trees that users see. Nodes are numbered in preorder, the root is node 0."""

    children_left: NDArray[np.int32]
    children_right: NDArray[np.int32]
    parent: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: FloatArray

    @property
    def n_nodes(self) -> int:
        """Inner nodes and leaves."""
        return len(self.feature)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes have no children."""
        return self.children_left < 0

    @property
    def n_leaves(self) -> int:
        """Leaves alone."""
        return int(np.count_nonzero(self.is_leaf))

    @property
    def depth(self) -> IntArray:
        """The number of cuts above each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        # Preorder: a parent comes before its children.
        for node in range(1, self.n_nodes):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def apply(self, X: Any) -> IntArray:
        """The leaf that each row comes to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = np.asarray(X)
        at = np.zeros(len(rows), dtype=np.int64)
        going = np.flatnonzero(~self.is_leaf[at])
        while going.size:
            node = at[going]
            left = rows[going, self.feature[node]] <= self.threshold[node]
            at[going] = np.where(left, self.children_left[node], self.children_right[node])
            going = going[~self.is_leaf[at[going]]]
        return at


def feature_name(names: Sequence[object] | AnyArray | None, feature: int) -> str:
    """The name of a feature, as ``x3`` where there are none."""
    return f"x{feature}" if names is None else _named("feature_names", names, feature)


def class_name(names: Sequence[object] | AnyArray | None, number: int) -> str:
    """The name of a class, its number where there are none."""
    return str(number) if names is None else _named("class_names", names, number)


def _named(what: str, names: Sequence[object] | AnyArray, number: int) -> str:
    if number >= len(names):
        raise ValueError(f"{what} has {len(names)} names, and none for number {number}")
    return str(names[number])
