"""One tree of a posterior over decision trees, as arrays that anybody can check or plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boscage import _validation
from boscage._types import AnyArray, FloatArray, IntArray
from boscage.trees._base import ArrayTree, class_name, feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorTree(ArrayTree):
    """A decision tree drawn from a posterior. Nodes are numbered in preorder, the root is node 0.

    Attributes
    ----------
    children_left, children_right, parent : ndarray of int32, shape (n_nodes,)
        Numbers of nodes; -1 where there is none.
    feature : ndarray of int32, shape (n_nodes,)
        The feature that a node cuts; -1 at a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Rows with ``x[feature] <= threshold`` go left; NaN at a leaf.
    n_rows : ndarray of int64, shape (n_nodes,)
        The training rows in the node.
    counts : ndarray of int64, shape (n_nodes, n_classes), or None
        Of a classification tree: training rows by class, in the order of ``classes_``.
    df, location, scale : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: the Student distribution that the node predicts.
    target_mean, target_variance : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: mean and variance of the targets of the node's training rows.
    """

    n_rows: IntArray
    counts: IntArray | None = None
    df: FloatArray | None = None
    location: FloatArray | None = None
    scale: FloatArray | None = None
    target_mean: FloatArray | None = None
    target_variance: FloatArray | None = None

    def rules(
        self,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
        class_names: Sequence[object] | AnyArray | None = None,
        decimals: int | None = None,
    ) -> str:
        """The tree as text: a rule for each leaf, indented by depth.

        Thresholds are written in full, so that the rules send every row where the tree does.

        Parameters
        ----------
        feature_names : sequence of str, default=None
            For example ``model.feature_names_in_``.
        class_names : sequence, default=None
            For example ``model.classes_``.
        decimals : int, default=None
            Round thresholds to so many digits after the point, for the eye: a row near a rounded
            threshold may come to another leaf. None writes them in full.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np
        >>> from boscage import BayesianTreeClassifier
        >>> X = np.arange(20.0)[:, None]
        >>> model = BayesianTreeClassifier(random_state=0).fit(X, X[:, 0] > 9)
        >>> rules = model.best_tree_.rules(feature_names=["size"], class_names=model.classes_)
        >>> rules.splitlines()[1]
        '|   False (10 of 10 rows)'
        """
        if decimals is not None:
            _validation.check_count("decimals", decimals, 0)
        lines = []
        depth = self.depth
        for node in range(self.n_nodes):
            parent = self.parent[node]
            if parent >= 0:
                name = feature_name(feature_names, int(self.feature[parent]))
                sign = "<=" if self.children_left[parent] == node else "> "
                threshold = float(self.threshold[parent])
                shown = repr(threshold) if decimals is None else f"{threshold:.{decimals}f}"
                text = f"{name} {sign} {shown}"
                lines.append("|   " * (depth[node] - 1) + text)
            if self.is_leaf[node]:
                lines.append("|   " * int(depth[node]) + self.describe(node, class_names))
        return "\n".join(lines)

    def describe(self, node: int, class_names: Sequence[object] | AnyArray | None = None) -> str:
        """What a node predicts, in some words.

        Parameters
        ----------
        node : int
        class_names : sequence, default=None

        Returns
        -------
        str
        """
        n = int(self.n_rows[node])
        rows = "row" if n == 1 else "rows"
        if self.counts is not None:
            most = int(self.counts[node].argmax())
            name = class_name(class_names, most)
            return f"{name} ({self.counts[node, most]} of {n} {rows})"
        assert self.location is not None
        assert self.scale is not None
        return f"{self.location[node]:.4g} ± {self.scale[node]:.2g} ({n} {rows})"

    def plot(self, **options: Any) -> Axes:
        """Draw the tree; see `boscage.plots.plot_posterior_tree`.

        Parameters
        ----------
        **options
            Passed on.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from boscage.plots import plot_posterior_tree

        return plot_posterior_tree(self, **options)

    def __repr__(self) -> str:
        return f"PosteriorTree(n_nodes={self.n_nodes}, n_rows={int(self.n_rows[0])})"
