"""Trees of a sum, as arrays that anybody can check or plot, and a table of how chains mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from boscage._types import FloatArray
from boscage.trees._base import ArrayTree


@dataclass(frozen=True, eq=False, repr=False)
class DrawnTree(ArrayTree):
    """A tree of a sum. Nodes are numbered in preorder, the root is node 0.

    Attributes
    ----------
    children_left, children_right, parent : ndarray of int32, shape (n_nodes,)
        Numbers of nodes; -1 where there is none.
    feature : ndarray of int32, shape (n_nodes,)
        The feature that a node cuts; -1 at a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go left; NaN at a leaf.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds to the sum; NaN at other nodes.
    """

    value: FloatArray

    def predict(self, X: Any) -> FloatArray:
        """What the tree adds to the sum for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.value[self.apply(X)]

    def __repr__(self) -> str:
        return f"DrawnTree(n_nodes={self.n_nodes})"


class DrawnSums(Sequence[list[DrawnTree]]):
    """``trees[draw][tree]``; a draw's trees are built when they are asked for."""

    def __init__(self, model: Any) -> None:
        self._model = model

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
        return [DrawnTree(**arrays) for arrays in self._model.trees(draw)]

    def __repr__(self) -> str:
        return f"DrawnSums(n_draws={len(self)}, n_trees={self._model.n_trees})"


@dataclass(frozen=True)
class MixingRow:
    """How chains mixed in one number.

    Attributes
    ----------
    mean, std : float
        Over all draws.
    r_hat : float
        Rank-normalised split R-hat; near one where chains agree.
    ess : float
        Effective number of draws.
    """

    mean: float
    std: float
    r_hat: float
    ess: float


class MixingSummary(dict[str, MixingRow]):
    """How chains mixed, by name; prints as a table."""

    def __str__(self) -> str:
        lines = [f"{'':16}{'mean':>12}{'std':>12}{'r_hat':>8}{'ess':>9}"]
        for name, row in self.items():
            numbers = f"{row.mean:12.5g}{row.std:12.4g}{row.r_hat:8.3f}{row.ess:9.1f}"
            lines.append(f"{name:16}{numbers}")
        return "\n".join(lines)
