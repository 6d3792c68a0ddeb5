"""Mondrian forests for classification on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import ArrayLike

import boscage.mondrian
from boscage._input.class_weights import require_a_class, reweighted, weights_of
from boscage._types import AnyArray
from boscage.dask._base import DaskForest
from boscage.dask._cells.classifier_share import ClassifierCellShare
from boscage.dask._cluster import Fitted, TreeForest
from boscage.dask._shares import ClassifierShare
from boscage.mondrian._discount import DISCOUNTS
from boscage.mondrian._forest.base import Given


class MondrianForestClassifier(DaskForest):
    """A Mondrian forest for classification on a Dask cluster.

    It is the forest of `boscage.MondrianForestClassifier`, bit for bit, for any number of workers
    and any partitions: predictions, digest and later updates are the same. Each worker holds all
    rows and grows its share of the trees, or, with ``partition="cells"``, the rows of its cells.

    Parameters
    ----------
    n_estimators, ...
        All parameters of `boscage.MondrianForestClassifier`, with the same defaults. ``n_jobs``
        is the number of threads for each share; None means all threads of the worker. With
        ``posterior="joint"``, whose solution needs sums over all trees, one worker has all of them.
    partition : {"trees", "cells"}, default="trees"
        What is shared out. With "trees" each worker needs room for all rows and its trees. With
        "cells" the rows go to the owners of their cells, and each worker holds about its share of
        all pairs of a row and a tree. This needs ``posterior="kneser-ney"``.
    client : distributed.Client, default=None
        The cluster; None takes the default client.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    discount_ : float
        The discount in use.
    min_samples_split_ : int
        The least number of rows of a split.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `X` was a data frame.
    feature_weights_, feature_importances_ : ndarray of shape (n_features_in_,)
        As of the one-machine forest.
    categories_ : list of dict or None
        As of the one-machine forest.
    n_rows_ : int
        Number of training rows.
    workers_ : list of str
        The addresses of the workers that were given a share of the trees.

    See Also
    --------
    boscage.MondrianForestClassifier : The same on one machine.
    """

    _one_machine = boscage.mondrian.MondrianForestClassifier
    _share = ClassifierShare
    _cell_share = ClassifierCellShare

    class_weight: Any

    # -- learning ---------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
    ) -> MondrianForestClassifier:
        """Add rows to the forest; the first call grows it.

        Each call copies the shares, or grows the trees again if their cells are apart, so that many
        rows at once cost less than a few at a time.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            New rows.
        y : dask.array.Array, dask.dataframe.Series or DataFrame of shape (n_samples,)
            Labels; new classes may appear at any call.
        classes : array-like, default=None
            Labels known in advance, at the first call.
        sample_weight : dask.array.Array or dask.dataframe.Series, default=None
            As how many rows each row counts, of shape (n_samples,).
        ids : the same as `y`, default=None
            Names of rows. None continues after the greatest number so far.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError, RuntimeError
            As `fit`; if a row number is in use, or a parameter changed that needs a new `fit`. The
            forest is then as it was.
        """
        self._partial_fit(Given(X, y, ids, sample_weight, classes))
        return self

    def _check_whole(self, fitted: Fitted) -> None:
        require_a_class(self.class_weight, fitted.facts["classes"])

    def _with_common(self, fitted: TreeForest, *, is_new: bool) -> TreeForest:
        if is_new and fitted.facts["selects_discount"]:
            fitted = self._with_discount(fitted)
        ids = fitted.ask(0, ClassifierShare.calibrating)
        votes = fitted.chained(ClassifierShare.add_left_out, ids, None)
        return replace(fitted, common=fitted.ask(-1, ClassifierShare.link, votes))

    def _with_discount(self, fitted: TreeForest) -> TreeForest:
        """The forest with the discount that its left-out predictions choose."""
        votes = [
            fitted.chained(ClassifierShare.add_left_out, fitted.ask(0, rows), list(DISCOUNTS))
            for rows in (ClassifierShare.calibrating, ClassifierShare.judging)
        ]
        chosen = fitted.ask(-1, ClassifierShare.choose_discount, *votes)
        shares = fitted.each(ClassifierShare.with_discount, chosen)
        return replace(fitted, shares=tuple(shares))

    # -- prediction -------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> da.Array:
        """Predict the probability of each class, lazily.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        dask.array.Array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``; one chunk for each partition. It is of the
            forest and of ``class_weight`` as they are now, whatever changes before it is computed.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        RuntimeError
            If the client is closed.
        TypeError
            If `X` is not a Dask collection.
        ValueError
            If ``class_weight`` is zero for all of several classes. When it is computed, if a
            partition is refused; the message names partition and row.
        """
        facts, classes = self._require_fitted().facts, self.classes_
        proba = self._by_partition(X, len(classes))
        weights = weights_of(self.class_weight, classes, lambda: facts["class_counts"])
        if weights is None:
            return proba
        return proba.map_blocks(reweighted, weights, dtype=proba.dtype, meta=proba._meta)

    def predict(self, X: Any) -> da.Array:
        """Predict the most probable class, lazily; the first if several are equally probable.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        dask.array.Array of shape (n_samples,)
            Labels.

        Raises
        ------
        sklearn.exceptions.NotFittedError, RuntimeError, TypeError, ValueError
            As `predict_proba`.
        """
        classes = self.classes_
        return self.predict_proba(X).map_blocks(
            _most_probable, classes, drop_axis=1, dtype=classes.dtype, meta=classes[:0]
        )

    # -- what was learned -------------------------------------------------------------------------

    @property
    def classes_(self) -> AnyArray:
        """The class labels, declared or present in the training rows, sorted."""
        classes: AnyArray = self._require_fitted().facts["classes"]
        return classes

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @property
    def discount_(self) -> float:
        """The discount in use."""
        return float(self._ask_share(ClassifierShare.ask, "discount_"))


def _most_probable(proba: AnyArray, classes: AnyArray) -> AnyArray:
    labels: AnyArray = classes[np.argmax(proba, axis=1)]
    return labels
