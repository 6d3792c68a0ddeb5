"""Mondrian forests for regression on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

import dask.array as da

import boscage.mondrian
from boscage.dask._base import DaskForest
from boscage.dask._cells.forest import CellForest
from boscage.dask._cells.regressor_share import RegressorCellShare
from boscage.dask._cluster import TreeForest
from boscage.dask._shares import RegressorShare
from boscage.mondrian._forest.base import Given
from boscage.mondrian._regression import hyperparameters_of


class MondrianForestRegressor(DaskForest):
    """A Mondrian forest for regression on a Dask cluster.

    It is the forest of `boscage.MondrianForestRegressor`, bit for bit, for any number of workers
    and any partitions: predictions, digest and later updates are the same. Each worker holds all
    rows and grows its share of the trees, or, with ``partition="cells"``, the rows of its cells.

    **The default posterior is not shared out.** With ``posterior="joint"`` all trees are fitted
    together, by sums over all trees for each of hundreds of steps, so that one worker has all of
    them. Choose ``posterior="exact"`` to grow trees on all workers.

    Parameters
    ----------
    n_estimators, ...
        All parameters of `boscage.MondrianForestRegressor`, with the same defaults. ``n_jobs``
        is the number of threads for each share; None means all threads of the worker. Where trees
        choose hyperparameters together, one worker has these: all trees with ``posterior="joint"``,
        else the first 32 with ``hyperparameters="loo"``, and the first four with "ml".
    partition : {"trees", "cells"}, default="trees"
        What is shared out. With "trees" each worker needs room for all rows and its trees. With
        "cells" the rows go to the owners of their cells, and each worker holds about its share of
        all pairs of a row and a tree. This needs ``posterior="exact"``.
    client : distributed.Client, default=None
        The cluster; None takes the default client.

    Attributes
    ----------
    hyperparameters_ : dict
        The scales of the hierarchy in use; see the one-machine forest.
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
    boscage.MondrianForestRegressor : The same on one machine.
    """

    _one_machine = boscage.mondrian.MondrianForestRegressor
    _share = RegressorShare
    _cell_share = RegressorCellShare

    # -- learning ---------------------------------------------------------------------------------

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None
    ) -> MondrianForestRegressor:
        """Add rows to the forest; the first call grows it.

        Each call copies the shares, or grows the trees again if their cells are apart, so that many
        rows at once cost less than a few at a time.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            New rows.
        y : dask.array.Array, dask.dataframe.Series or DataFrame of shape (n_samples,)
            Targets; finite numbers.
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
        self._partial_fit(Given(X, y, ids, sample_weight))
        return self

    def _with_common(self, fitted: TreeForest, *, is_new: bool) -> TreeForest:
        return replace(fitted, common=fitted.ask(0, RegressorShare.choose))

    # -- prediction -------------------------------------------------------------------------------

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> da.Array: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[da.Array, da.Array]: ...
    def predict(self, X: Any, return_std: bool = False) -> da.Array | tuple[da.Array, da.Array]:
        """Predict the mean of the target, and optionally its standard deviation, lazily.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Rows to predict.
        return_std : bool, default=False
            Whether to return the standard deviation of the predictive distribution as well.

        Returns
        -------
        mean : dask.array.Array of shape (n_samples,)
            Predictive mean; one chunk for each partition. It is of the forest as it is now,
            whatever is learned before it is computed.
        std : dask.array.Array of shape (n_samples,)
            Predictive standard deviation; only with ``return_std=True``. Compute both together.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        RuntimeError
            If the client is closed.
        TypeError
            If `X` is not a Dask collection.
        ValueError
            When it is computed, if a partition is refused; the message names partition and row.
        """
        moments = self._by_partition(X, 2)
        return (moments[:, 0], moments[:, 1]) if return_std else moments[:, 0]

    # -- what was learned -------------------------------------------------------------------------

    @property
    def hyperparameters_(self) -> dict[str, float]:
        """The scales of the hierarchy in use; see the one-machine forest."""
        fitted = self._require_fitted()
        if isinstance(fitted, CellForest):
            return dict(fitted.facts["hyperparameters"])
        if fitted.common is None:
            own: dict[str, float] = self._ask_share(RegressorShare.hyperparameters)
            return own
        return hyperparameters_of(fitted.common.result())
