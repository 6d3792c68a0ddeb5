"""Trees of a sum of trees as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from boscage._types import FloatArray, Label
from boscage.trees._base import ArrayTree
from boscage.trees._names import Names


@dataclass(frozen=True, eq=False, repr=False)
class DrawnTree(ArrayTree):
    """A tree of a sum of trees (BART). Nodes are numbered in preorder; the root is node 0.

    Attributes
    ----------
    children_left, children_right, parent : ndarray of int32, shape (n_nodes,)
        Numbers of nodes; -1 where there is none.
    feature : ndarray of int32, shape (n_nodes,)
        The feature on which a node splits; -1 at a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go left; NaN at a leaf and at a split of categories.
        Infinite where a split separates missing from present values.
    missing_go_to_left : ndarray of bool, shape (n_nodes,), or None
        Whether rows in which the feature's value is missing go left; False at a leaf. None if the
        model is from a file of an older version, which does not say it.
    has_missing : bool
        Whether numbers were missing in training; only then does `condition` say where they go.
    right_categories : list of lists of int, or None
        The codes of the categories that go right, at a split of categories; else empty. None if no
        feature has categories.
    category_names : list of lists or None
        The categories of each feature that has any, by their codes.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds to the sum; NaN at other nodes.
    feature_names : sequence of str or None
        Names of the features, if the model was fitted on named columns.
    """

    value: FloatArray

    def predict(self, X: Any) -> FloatArray:
        """Return what the tree adds to the sum for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with features in the order of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If `X` holds NaN, and the sides of missing values are not known.
        """
        return self.value[self.apply(X)]

    def __repr__(self) -> str:
        return f"DrawnTree(n_nodes={self.n_nodes})"


class DrawnSums(Sequence[list[DrawnTree]]):
    """The trees of all draws, as ``trees[draw][tree]``. A draw's trees are built when indexed."""

    def __init__(
        self,
        model: Any,
        feature_names: Names | None,
        category_names: Sequence[Sequence[Label] | None] | None = None,
    ) -> None:
        self._model = model
        self._feature_names = feature_names
        self._category_names = category_names

    def __len__(self) -> int:
        return int(self._model.n_draws)

    @overload
    def __getitem__(self, index: int) -> list[DrawnTree]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[DrawnTree]]: ...
    def __getitem__(self, index: int | slice) -> list[DrawnTree] | list[list[DrawnTree]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} draws, and no draw {index}")
        draw = range(len(self))[index]
        return [
            DrawnTree(
                **arrays,
                has_missing=self._model.has_missing,
                feature_names=self._feature_names,
                category_names=self._category_names,
            )
            for arrays in self._model.trees(draw)
        ]

    def __repr__(self) -> str:
        return f"DrawnSums(n_draws={len(self)}, n_trees={self._model.n_trees})"
