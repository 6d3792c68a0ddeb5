"""A tree of a Mondrian forest as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boscage._types import FloatArray, IntArray
from boscage.trees._base import ArrayTree
from boscage.trees._names import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class MondrianTree(ArrayTree):
    """A tree of a Mondrian forest. Nodes are numbered in preorder; the root is node 0.

    Attributes
    ----------
    children_left, children_right, parent : ndarray of int32, shape (n_nodes,)
        Numbers of nodes; -1 where there is none.
    feature : ndarray of int32, shape (n_nodes,)
        The feature on which a node splits; -1 at a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go left.
    time : ndarray of float64, shape (n_nodes,)
        The time of the node's split; at a leaf the forest's lifetime.
    lower, upper : ndarray of float64, shape (n_nodes, n_features)
        The bounding box of the node's rows.
    n_rows : ndarray of int64, shape (n_nodes,)
        Number of training rows in the node.
    counts : ndarray of int64 or float64, shape (n_nodes, n_classes), or None
        Of a classification tree: the customers c_jk of Algorithm 5.3, by class; real numbers if
        rows have weights.
    mean, variance : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: the posterior mean and variance of the node's mean.
    feature_names : sequence of str or None
        Names of the features, if the model was fitted on named columns.
    class_names : sequence or None
        Of a classification tree: the class labels.
    """

    time: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_rows: IntArray
    counts: IntArray | FloatArray | None = None
    mean: FloatArray | None = None
    variance: FloatArray | None = None
    class_names: Names | None = None

    def cell(self, nodes: IntArray, lifetime: float | None = None) -> IntArray:
        """Return the cells in which nodes lie if the tree ends earlier.

        Parameters
        ----------
        nodes : ndarray of int, shape (n,)
            Node numbers, such as `apply` returns.
        lifetime : float, default=None
            Splits at later times are left out; None leaves out none.

        Returns
        -------
        ndarray of shape (n,)
            The first node on the way to each that does not split before `lifetime`.
        """
        cells = np.array(nodes, dtype=np.int64)
        while lifetime is not None:
            above = self.parent[cells]
            climbs = (above >= 0) & (self.time[above] > lifetime)
            if not climbs.any():
                break
            cells[climbs] = above[climbs]
        return cells

    def plot(self, **options: Any) -> Axes:
        """Draw the tree with `boscage.plots.plot_tree`.

        Parameters
        ----------
        **options
            Passed to `boscage.plots.plot_tree`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from boscage.plots.trees import plot_tree

        return plot_tree(self, **options)

    def __repr__(self) -> str:
        return f"MondrianTree(n_nodes={self.n_nodes}, n_rows={int(self.n_rows[0])})"
