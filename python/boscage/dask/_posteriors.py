"""Bayesian trees and BART on a Dask cluster: each chain or island is a task."""

from __future__ import annotations

import copy
from itertools import cycle
from typing import Any, TypeVar

import dask
import distributed
import numpy as np
from sklearn.base import clone

from boscage import _validation
from boscage._bases.sampler import PosteriorSampler
from boscage.dask import _shares
from boscage.dask._cluster import open_cluster, table_of, wait_for
from boscage.dask._partitions import Part
from boscage.mondrian._forest.base import Given

Posterior = TypeVar("Posterior", bound=PosteriorSampler)


def fit_posterior(
    estimator: Posterior,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    client: distributed.Client | None = None,
) -> Posterior:
    """Fit a Bayesian tree or BART estimator on a Dask cluster, one task for each chain or island.

    Chains and islands have random numbers of their own, so the result is, bit for bit, that of
    ``estimator.fit(X, y)`` on one machine, for any number of workers. All draws come to this
    process, and the estimator is then a fitted one-machine estimator. Each worker needs room for
    all rows. ``warm_start`` continues chains as on one machine. Islands of
    ``SMC(expansion="layer")`` are one task, since their draws depend on each other's order.

    Parameters
    ----------
    estimator : BARTRegressor, BARTClassifier, BayesianTreeRegressor or BayesianTreeClassifier
        The estimator to fit. Its ``n_jobs`` is the number of threads of each task; None means 1,
        and a worker of several threads runs as many tasks at once. ``verbose`` is not used.
    X : dask.array.Array, dask.dataframe.DataFrame, or what ``estimator.fit`` takes
        Training rows, of shape (n_samples, n_features).
    y : a collection of the same kind, of shape (n_samples,)
        Targets; in partitions of the same lengths as those of `X` if that is a Dask collection.
    sample_weight : as `y`, default=None
        Weights of rows, of shape (n_samples,); see ``estimator.fit``.
    client : distributed.Client, default=None
        The cluster; None takes the default client.

    Returns
    -------
    estimator
        The same object, fitted.

    Raises
    ------
    ValueError
        If a parameter, a row, a target or a weight is refused, or there is no client or no worker.
        In a Dask collection, messages name the partition, counted from 0, and the row.
    TypeError
        If the estimator is of another class, or some of `X`, `y` and `sample_weight` are Dask
        collections and others are not.
    RuntimeError
        If a worker has another version of the library, or none, or the client is closed. After any
        error the estimator is as it was before the call.

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from boscage import BARTRegressor
    >>> from boscage.dask import fit_posterior
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, 0.0, 1.0)
    >>> bart = BARTRegressor(5, n_chains=2, n_burn=9, n_draws=9, sigma=0.1, random_state=0)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     mean = fit_posterior(bart, X, y, client=client).predict(X)
    >>> bool(np.array_equal(mean, bart.fit(X, y).predict(X)))
    True
    """
    if not isinstance(estimator, PosteriorSampler):
        raise TypeError(
            "estimator must be a Bayesian tree or BART estimator, found "
            f"{type(estimator).__name__}; Mondrian forests have classes of their own in "
            "boscage.dask"
        )
    seed = _validation.draw_seed(estimator.random_state)
    estimator._compile_settings(seed, 1)  # checks the parameters, before rows are looked at
    client, workers = open_cluster(client)
    # Old draws travel only where chains continue from them.
    unfitted: Posterior = clone(estimator)
    template = estimator if estimator._continues() else unfitted
    if dask.is_dask_collection(X):
        table = table_of(client, unfitted, Given(X, y, None, sample_weight))
    elif dask.is_dask_collection(y) or dask.is_dask_collection(sample_weight):
        raise TypeError(
            f"X is of type {type(X).__name__}, while y or sample_weight is a Dask collection; "
            "expected all three or none to be Dask collections"
        )
    else:
        # A task: Dask makes what a task gave anew when a worker is lost, and scattered rows not.
        # All chains share the rows, so Dask's warning of large graphs would be of the rows.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
            table = client.submit(tuple, (X, y, None, sample_weight), pure=False)
    more = {"version": _shares.VERSION, "pure": False, "allow_other_workers": True}
    # Dealt out: left to itself, Dask may put short chains where the rows are, one after the other.
    parts = [
        client.submit(sample_part, template, seed, part, table, workers=[worker], **more)
        for part, worker in zip(estimator._parts(), cycle(workers), strict=False)
    ]
    wait_for(parts)
    estimator._adopt(client.gather(parts))
    estimator._warn_if_doubtful(stacklevel=3)
    return estimator


def sample_part(
    estimator: Posterior, seed: int, part: int | None, table: Part, *, version: str
) -> Posterior:
    """An estimator that holds one chain or island alone."""
    _shares.check_version(version)
    X, y, _, weights = table
    # A copy, since tasks in one process share the estimator.
    own = copy.copy(estimator)
    own.random_state, own.verbose = seed, 0
    own._fit_part(X, _aligned(y), part, sample_weight=_aligned(weights))
    return own


def _aligned(of_rows: Any) -> Any:
    """Targets or weights whose numbers are where the processor wants them."""
    return _shares.aligned(of_rows) if isinstance(of_rows, np.ndarray) else of_rows
