"""BART of other packages, if installed, with the same numbers of trees and draws as ours.

dbarts is an R package and cannot be run from here; its seconds were measured once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from _common import Array

# Read when bartz first loads JAX.
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    + os.environ.get("XLA_FLAGS", "")
)

#: Seconds of 1000 sweeps of 200 trees of dbarts on Friedman's function, by rows and features, on
#: one core of a machine with two.
DBARTS = {(1000, 10): 1.1, (10_000, 10): 10.8, (100_000, 10): 125.0, (10_000, 1000): 93.0}


class Draws(NamedTuple):
    """The draws of a fit: sigma, and a function that returns the sum of trees at rows, by draw."""

    sigma: Array
    sums: Callable[[Array], Array]


class Run(NamedTuple):
    """The settings of a fit."""

    X: Array
    y: Array
    n_trees: int
    n_burn: int
    n_draws: int
    seed: int = 0


Fit = Callable[[Run], Draws]


def _bartz(run: Run) -> Draws:
    import bartz

    def rows(X: Array) -> Array:
        return np.asarray(X, dtype=np.float32).T

    model = bartz.Bart(
        rows(run.X),
        np.asarray(run.y, dtype=np.float32),
        num_trees=run.n_trees,
        n_burn=run.n_burn,
        n_save=run.n_draws,
        num_chains=1,
        seed=run.seed,
        pbar=False,
        printevery=None,
    )
    # JAX computes asynchronously, until a result is read.
    sigma = np.asarray(model.get_error_sdev())

    def sums(X: Array) -> Array:
        return np.asarray(model.predict(rows(X), kind="latent_samples"))

    return Draws(sigma, sums)


def _stochtree(run: Run, **prior: object) -> Draws:
    import stochtree

    model = stochtree.BARTModel()
    model.sample(
        X_train=run.X,
        y_train=run.y,
        num_gfr=0,
        num_burnin=run.n_burn,
        num_mcmc=run.n_draws,
        general_params={"random_seed": run.seed, "num_threads": 1},
        mean_forest_params={"num_trees": run.n_trees, **prior},
    )
    sigma = np.sqrt(model.global_var_samples)

    def sums(X: Array) -> Array:
        return np.asarray(model.predict(X, terms="y_hat")).T

    return Draws(sigma, sums)


def _stochtree_alike(run: Run) -> Draws:
    # A leaf's standard deviation of a quarter of the targets' range over the root of the number
    # of trees (k = 2), in units of their own, and leaves of any size.
    scale = np.ptp(run.y) / (4.0 * np.std(run.y)) / np.sqrt(run.n_trees)
    prior = {"sigma2_leaf_init": scale**2, "sample_sigma2_leaf": False, "min_samples_leaf": 1}
    return _stochtree(run, **prior)


def _installed(fits: dict[str, Fit]) -> dict[str, Fit]:
    return {name: fit for name, fit in fits.items() if find_spec(name.split(",")[0]) is not None}


#: The installed peers.
PEERS = _installed({"bartz": _bartz, "stochtree": _stochtree})
#: With our prior of a given k: by itself stochtree keeps five rows in each leaf and draws the scale
#: of their values. (bartz has the same k, but cuts between 256 quantiles, so that leaves have more
#: rows.)
ALIKE = _installed({"stochtree, our prior": _stochtree_alike})
