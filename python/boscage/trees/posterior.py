"""A Bayesian decision tree as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boscage import _validation
from boscage._types import FloatArray, IntArray
from boscage.trees._base import ArrayTree
from boscage.trees._names import Names, class_name, feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorTree(ArrayTree):
    """A decision tree from a posterior. Nodes are numbered in preorder; the root is node 0.

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
        Whether numbers were missing in training; only then do `rules` and drawings say where they
        go.
    right_categories : list of lists of int, or None
        The codes of the categories that go right, at a split of categories; else empty. None if no
        feature has categories.
    category_names : list of lists or None
        The categories of each feature that has any, by their codes.
    n_rows : ndarray of int64, shape (n_nodes,)
        Number of training rows in the node.
    counts : ndarray of int64 or float64, shape (n_nodes, n_classes), or None
        Of a classification tree: training rows by class; sums of their weights, if they have any.
    df, location, scale : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: the Student distribution that the node predicts.
    target_mean, target_variance : ndarray of float64, shape (n_nodes,), or None
        Of a regression tree: mean and variance of the targets of the node's training rows, each
        as often as its weight says.
    feature_names : sequence of str or None
        Names of the features, if the model was fitted on named columns.
    class_names : sequence or None
        Of a classification tree: the class labels.
    """

    n_rows: IntArray
    counts: IntArray | FloatArray | None = None
    df: FloatArray | None = None
    location: FloatArray | None = None
    scale: FloatArray | None = None
    target_mean: FloatArray | None = None
    target_variance: FloatArray | None = None
    class_names: Names | None = None

    def rules(
        self,
        *,
        feature_names: Names | None = None,
        class_names: Names | None = None,
        decimals: int | None = None,
    ) -> str:
        """Return the tree as text: the rules that lead to each leaf, indented by depth.

        Thresholds are written in full, so that the rules send every row to the leaf that the tree
        sends it to.

        Parameters
        ----------
        feature_names : sequence of str, default=None
            Names of the features. None takes those of the columns that the model was fitted on, or
            ``x0``, ``x1``, ... if these had no names.
        class_names : sequence, default=None
            Names of the classes. None takes the class labels.
        decimals : int, default=None
            Number of decimals of the thresholds. Rounded thresholds are easier to read, but may
            send a row to another leaf. None writes thresholds in full.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If there are fewer names than features or classes, or `decimals` is negative.

        Examples
        --------
        >>> import numpy as np
        >>> from boscage import BayesianTreeClassifier
        >>> X = np.arange(20.0)[:, None]
        >>> model = BayesianTreeClassifier(random_state=0).fit(X, X[:, 0] > 9)
        >>> rules = model.best_tree_.rules(feature_names=["size"])
        >>> rules.splitlines()[1]
        '|   False (10 of 10 rows)'
        """
        if decimals is not None:
            _validation.check_count("decimals", decimals, 0)
        if feature_names is None:
            feature_names = self.feature_names
        lines = []
        depth = self.depth
        for node in range(self.n_nodes):
            parent = self.parent[node]
            if parent >= 0:
                name = feature_name(feature_names, int(self.feature[parent]))
                threshold = float(self.threshold[parent])
                shown = repr(threshold) if decimals is None else f"{threshold:.{decimals}f}"
                text = self.condition(node, name=name, shown=shown, signs=("<=", "> "))
                lines.append("|   " * (depth[node] - 1) + text)
            if self.is_leaf[node]:
                lines.append("|   " * int(depth[node]) + self.describe(node, class_names))
        return "\n".join(lines)

    def describe(self, node: int, class_names: Names | None = None) -> str:
        """Describe what a node predicts.

        Parameters
        ----------
        node : int
            Node number.
        class_names : sequence, default=None
            Names of the classes. None takes the class labels.

        Returns
        -------
        str
            The most frequent class and its number of rows, or location and scale.
        """
        n = int(self.n_rows[node])
        rows = "row" if n == 1 else "rows"
        if self.counts is not None:
            most = int(self.counts[node].argmax())
            name = class_name(self.class_names if class_names is None else class_names, most)
            if self.counts.dtype.kind == "f":
                share = self.counts[node, most] / self.counts[node].sum()
                return f"{name} ({share:.3g} of the weight of {n} {rows})"
            return f"{name} ({self.counts[node, most]} of {n} {rows})"
        assert self.location is not None
        assert self.scale is not None
        return f"{self.location[node]:.4g} ± {self.scale[node]:.2g} ({n} {rows})"

    def plot(self, **options: Any) -> Axes:
        """Draw the tree with `boscage.plots.plot_posterior_tree`.

        Parameters
        ----------
        **options
            Passed to `boscage.plots.plot_posterior_tree`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from boscage.plots.trees import plot_posterior_tree

        return plot_posterior_tree(self, **options)

    def __repr__(self) -> str:
        return f"PosteriorTree(n_nodes={self.n_nodes}, n_rows={int(self.n_rows[0])})"
