"""One tree of a fitted forest, as arrays that anybody can check or plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boscage._types import FloatArray, IntArray
from boscage.trees._base import ArrayTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class MondrianTree(ArrayTree):
    """A Mondrian tree. Nodes are numbered in preorder, the root is node 0.

    Attributes
    ----------
    children_left, children_right, parent : ndarray of int32, shape (n_nodes,)
        Numbers of nodes; -1 where there is none.
    feature : ndarray of int32, shape (n_nodes,)
        The feature that a node cuts; -1 at a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go left.
    time : ndarray of float64, shape (n_nodes,)
        When the node splits; the forest's lifetime at a leaf.
    lower, upper : ndarray of float64, shape (n_nodes, n_features)
        The smallest box around the node's rows.
    n_rows : ndarray of int64, shape (n_nodes,)
        The training rows in the node.
    counts : ndarray of int64, shape (n_nodes, n_classes), or None
        Of a classification tree: the customers c_jk of Algorithm 5.3, in the order of the
        forest's ``classes_``.
    mean, variance : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: the posterior of the node's mean.
    """

    time: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_rows: IntArray
    counts: IntArray | None = None
    mean: FloatArray | None = None
    variance: FloatArray | None = None

    def plot(self, **options: Any) -> Axes:
        """Draw the tree; see `boscage.plots.plot_tree`.

        Parameters
        ----------
        **options
            Passed on.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from boscage.plots import plot_tree

        return plot_tree(self, **options)

    def __repr__(self) -> str:
        return f"MondrianTree(n_nodes={self.n_nodes}, n_rows={int(self.n_rows[0])})"
