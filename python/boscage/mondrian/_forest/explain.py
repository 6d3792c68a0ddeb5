"""What a Mondrian forest says of its predictions: contributions, leaves, paths and its kernel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boscage import _validation
from boscage._bases.lock import reading
from boscage._input.columns import Column, dense
from boscage._types import AnyArray, FloatArray, IntArray, Rows
from boscage.explain.contributions import Contributions, of_parts
from boscage.mondrian._categories import Tables, put
from boscage.mondrian._completions import Completions
from boscage.mondrian._missing import has_missing
from boscage.trees import MondrianTree
from boscage.trees._together import decision_paths, same_leaf

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class ForestExplanations:
    """Mixin of the Mondrian forests. Not for direct use."""

    if TYPE_CHECKING:  # methods of the forest that this is a part of

        def _structures(self) -> list[MondrianTree]: ...

        _tables: Tables

        def _read(self, X: Any, *, reset: bool) -> tuple[Rows, dict[int, Column]]: ...
        def _require_rows(self) -> Any: ...
        def _prepare(self, model: Any, rows: Rows) -> None: ...
        def _n_threads(self) -> int: ...
        def _query(self, X: Any) -> tuple[Any, Rows, int]: ...
        def _names(self) -> AnyArray | None: ...
        def _progress(self, what: str) -> Any: ...

    def _as_sum(self, model: Any) -> Any:
        """The model, or that of the same forest whose predictions follow from sums over trees."""
        return model

    @abstractmethod
    def _finish_contributions(self, model: Any, found: Contributions) -> Contributions:
        """Contributions to what the forest predicts, given those to what trees add up."""

    @reading
    def contributions(
        self, X: Any, *, method: Literal["shapley", "path"] = "shapley"
    ) -> Contributions:
        """Compute how much each feature adds to each prediction.

        Contributions are those to the mean of a regressor, or to the probabilities of a classifier.
        Base and contributions of a row add up to its prediction.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.
        method : {"shapley", "path"}, default="shapley"
            "shapley" computes Shapley values: the mean, over all orders in which features may
            become known, of what each one adds then. Where a tree splits on a feature that is not
            known, it goes both ways, in proportion to its training rows (the path-dependent
            game of Lundberg et al. 2020). A row outside the box of its leaf's rows has a cell
            of its own, for which all features (of positive weight) must be known in which it lies
            outside. The base is the mean of the trees' leaves, the same for all rows. "path" gives
            what a split adds to the prediction to the feature of the split. The base is the
            prediction at the roots. It is much faster for large forests, but favours features that
            are split early.

        Returns
        -------
        Contributions

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.

        Notes
        -----
        Probabilities that are calibrated, those of ``posterior="joint"`` and those that
        ``class_weight`` changes are no sum over trees, but a function of sums. Contributions to
        these sums are carried through the function by logarithmic means, which leaves no rest; they
        are no Shapley values of the probabilities.

        Those of a row that lacks values are averages, as its prediction is, over values that it may
        have.
        """
        _validation.check_choice("method", method, ("shapley", "path"))
        model, n_threads = self._require_rows(), self._n_threads()
        read, columns = self._read(X, reset=False)
        rows = put(read, columns, self._tables)
        self._prepare(model, rows)
        completions = Completions.of(model, rows, n_threads)
        model = self._as_sum(model)
        if method == "path":
            parts = model.path_contributions(completions.rows, n_threads=n_threads)
        else:
            with self._progress("explaining") as progress:
                parts = model.shapley(completions.rows, n_threads=n_threads, progress=progress)
        found = of_parts(parts, completions.rows, self._names())
        found = self._finish_contributions(model, found)
        return replace(
            found,
            values=completions.mean(found.values),
            base_values=completions.mean(found.base_values),
            data=_as_given(read, columns),
        )

    def explain(self, X: Any, *, method: Literal["shapley", "path"] = "shapley") -> Any:
        """Explain predictions for the plots of the package shap.

        Needs the package ``shap`` (``pip install "boscage[shap]"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.
        method : {"shapley", "path"}, default="shapley"
            See `contributions`, which returns the same as plain arrays.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        ImportError
            If shap is not installed.
        ValueError
            If `X` is refused; see `predict`.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        """
        return self.contributions(X, method=method).to_shap()

    @reading
    def apply(self, X: Any) -> IntArray:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Node numbers in ``trees_``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused; see `predict`.
        """
        rows = self._complete(X)
        return np.stack([tree.apply(rows) for tree in self._structures()], axis=1)

    @reading
    def decision_path(self, X: Any) -> tuple[csr_matrix, IntArray]:
        """Return the nodes that each row passes in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes of all trees), in CSR format
            1 where the row passes the node.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            The columns from ``n_nodes_ptr[i]`` to ``n_nodes_ptr[i + 1]`` are the nodes of tree i.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused; see `predict`.
        """
        return decision_paths(self._structures(), self._complete(X))

    @reading
    def kernel(self, X: Any, Y: Any = None, *, lifetime: float | None = None) -> FloatArray:
        """Compute the forest's kernel: how often two rows are in the same cell.

        The kernel is the share of trees in which no split before `lifetime` separates the two rows:
        a Mondrian kernel (Balog et al. 2016) of this forest's trees. Over many trees of one
        range and equal rates it tends to ``exp(-lifetime * distance)`` for the sum of distances.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples_X, n_features)
            Rows.
        Y : array-like, sparse matrix or table of shape (n_samples_Y, n_features), default=None
            Other rows; None takes `X`.
        lifetime : float, default=None
            Splits at later times are left out. None takes all: then rows are in the same cell if
            they reach the same leaf, as other forests' proximities have it. A tree that was
            grown in full has each training row in a leaf of its own, however.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Numbers from 0 to 1.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` or `Y` is refused (see `predict`), or `lifetime` is not positive.
        """
        if lifetime is not None:
            lifetime = _validation.check_positive("lifetime", lifetime, finite=False)
        trees = self._structures()
        both = [self._complete(rows) for rows in ([X] if Y is None else [X, Y])]
        cells = [
            np.stack([tree.cell(tree.apply(rows), lifetime) for tree in trees], axis=1)
            for rows in both
        ]
        return same_leaf(cells[0], cells[-1], np.ones(len(trees))) / len(trees)

    def _complete(self, X: Any) -> Rows:
        """Checked rows in which substitutes stand for missing values."""
        model, rows, _ = self._query(X)
        if not has_missing(rows):
            return rows
        filled: FloatArray = model.filled(rows)
        return filled


def _as_given(rows: Rows, columns: dict[int, Column]) -> AnyArray:
    """Rows as a matrix that has categories by name and missing values missing."""
    if not columns:
        return np.asarray(dense(rows))
    given: AnyArray = rows.astype(object)
    for feature, column in columns.items():
        given[:, feature] = column.named()
    return given
