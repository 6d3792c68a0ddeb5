"""A binary tree as arrays: the base of the trees of all models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from boscage._types import AnyArray, FloatArray, IntArray, Label
from boscage._validation import stored_values
from boscage.trees._names import Names


@dataclass(frozen=True, eq=False, repr=False)
class ArrayTree:
    """Base of the tree classes. Nodes are numbered in preorder; the root is node 0."""

    children_left: NDArray[np.int32]
    children_right: NDArray[np.int32]
    parent: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: FloatArray
    missing_go_to_left: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    has_missing: bool = field(default=False, kw_only=True)
    right_categories: list[list[int]] | None = field(default=None, kw_only=True)
    category_names: Sequence[Sequence[Label] | None] | None = field(default=None, kw_only=True)
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
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, with features in the order of the training data; of categories the codes, which
            are positions in the estimator's ``categories_``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node numbers.

        Raises
        ------
        ValueError
            If `X` holds NaN, and the tree does not say to which side missing values go. A Mondrian
            forest's ``substitutes_`` say what stands for them.
        """
        rows, column = self._used_columns(X)
        sides = self.missing_go_to_left
        given = stored_values(X) if issparse(X) else rows
        has_missing = given.dtype.kind == "f" and bool(np.isnan(given).any())
        if has_missing and sides is None:
            raise ValueError("X contains NaN; expected rows without missing values")
        at = np.zeros(len(rows), dtype=np.int64)
        going = np.flatnonzero(~self.is_leaf[at])
        while going.size:
            node = at[going]
            values = rows[going, column[node]]
            left = values <= self.threshold[node]
            if self.right_categories is not None:
                left |= self._is_left_category(node, values)
            if has_missing and sides is not None:
                left |= np.isnan(values) & sides[node]
            at[going] = np.where(left, self.children_left[node], self.children_right[node])
            going = going[~self.is_leaf[at[going]]]
        return at

    def _used_columns(self, X: Any) -> tuple[AnyArray, NDArray[np.signedinteger]]:
        """Rows, without unused features if they are sparse, and the column of each node."""
        if not issparse(X):
            return np.asarray(X), self.feature
        used, column = np.unique(np.maximum(self.feature, 0), return_inverse=True)
        return X.tocsr()[:, used].toarray(), column

    def condition(self, node: int, *, name: str, shown: str, signs: tuple[str, str]) -> str:
        """Describe which rows come to a node from its parent.

        Parameters
        ----------
        node : int
            Node number, not 0.
        name, shown : str
            The feature of the parent's split, and its threshold as text.
        signs : tuple of two str
            The signs for the left and for the right child.

        Returns
        -------
        str
            For example ``"x0 <= 1.5"``, ``"x0 <= 1.5 or missing"`` or ``"x0 is missing"``.
        """
        parent = self.parent[node]
        is_left = self.children_left[parent] == node
        if self._has_categories(parent):
            return self._categories_of(node, name=name, is_left=is_left)
        text = f"{name} {signs[0] if is_left else signs[1]} {shown}"
        if self.missing_go_to_left is None or not self.has_missing:
            return text
        has_missing = is_left == self.missing_go_to_left[parent]
        if np.isinf(self.threshold[parent]):
            return f"{name} is {'missing' if has_missing else 'present'}"
        return f"{text} or missing" if has_missing else text

    def _has_categories(self, node: int) -> bool:
        """Whether a split is one of categories."""
        return self.category_names is not None and (
            self.category_names[self.feature[node]] is not None
        )

    def _is_left_category(self, node: IntArray, values: AnyArray) -> NDArray[np.bool_]:
        """Whether values are codes of categories on the left of some nodes."""
        assert self.right_categories is not None
        left = np.zeros(len(node), dtype=np.bool_)
        for split in np.unique(node):
            right = self.right_categories[split]
            if np.isnan(self.threshold[split]):
                here = node == split
                left[here] = ~np.isin(values[here], right) & ~np.isnan(values[here])
        return left

    def _categories_of(self, node: int, *, name: str, is_left: bool) -> str:
        """Describe which categories come to a node from its parent."""
        assert self.category_names is not None
        assert self.right_categories is not None
        assert self.missing_go_to_left is not None
        parent = self.parent[node]
        right = self.right_categories[parent]
        names = self.category_names[self.feature[parent]] or []
        own = [str(each) for code, each in enumerate(names) if (code in right) != is_left]
        others = [str(each) for code, each in enumerate(names) if (code in right) == is_left]
        has_missing = is_left == self.missing_go_to_left[parent]
        if not own:
            return f"{name} is missing"
        if len(own) == 1:
            text = f"{name} is {own[0]}"
        elif len(others) == 1 and len(own) > 3:
            text = f"{name} not in {{{others[0]}}}"
        else:
            text = f"{name} in {{{', '.join(own)}}}"
        return f"{text} or missing" if has_missing else text

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that each row passes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, with features in the order of the training data; of categories the codes, which
            are positions in the estimator's ``categories_``.

        Returns
        -------
        sparse matrix of shape (n_samples, n_nodes), in CSR format
            1 where the row passes the node.

        Raises
        ------
        ValueError
            If `X` holds NaN, as in `apply`.
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
