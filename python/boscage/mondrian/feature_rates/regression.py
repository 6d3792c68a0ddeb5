"""Feature rates and feature maps learned from numbers.

The compiled module proposes candidates: rates and maps from trees whose cuts depend on the targets,
and a metric in which rows with similar targets are close. Each is tried with several
powers, and so are equal rates. The trial forests predict rows that no candidate was learned from.
"""

from __future__ import annotations

import numpy as np

from boscage import _core
from boscage._types import FloatArray, IntArray, Maps, Rows
from boscage.distributions import GaussianMixture
from boscage.mondrian.feature_rates._shared import (
    EXTRA_TREES_STREAM,
    N_EXTRA_TREES,
    TRIAL_ROWS,
    TRIAL_STREAM,
    TRIAL_TREES,
    LearnedRates,
    sharpen,
)

HELD_OUT = 600
"""The greatest number of rows, at most half of all, that judge the candidates."""
LEARN_AGAIN = 4000
"""With fewer rows than this, the chosen candidate is learned again from all rows."""
CANDIDATES = (
    *((kind, power) for kind in ("importances", "extra_tree_cuts") for power in (0.5, 1.0, 1.5)),
    ("best_split_cuts", 1.0),
    *(("metric", power) for power in (0.7, 1.0, 1.4)),
)
"""Which of the compiled module's proposals, and its power."""

__all__: list[str] = []


def learn_rates_and_maps(
    X: Rows,
    y: FloatArray,
    *,
    min_samples_split: int,
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> LearnedRates:
    """Rates and maps of the features of ``X``."""
    if low is None or high is None:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    rng = np.random.Generator(np.random.PCG64(seed ^ TRIAL_STREAM))
    order = rng.permutation(len(X))
    n_held = min(HELD_OUT, len(X) // 2)

    def proposals(rows: IntArray) -> dict[str, tuple[FloatArray, Maps]]:
        return _core.candidate_rates(
            X[rows],
            y[rows],
            low,
            high,
            n_estimators=N_EXTRA_TREES,
            seed=seed ^ EXTRA_TREES_STREAM,
            n_threads=n_threads,
        )

    found = proposals(order[n_held:])
    kind, power, best = "", 0.0, -np.inf
    # With one row, or with equal importances, there is nothing to choose.
    hopeless = n_held == 0 or np.ptp(found["importances"][0]) == 0.0
    for other, exponent in () if hopeless else (("", 0.0), *CANDIDATES):
        weights, maps = found[other] if other else (np.ones(X.shape[1]), None)
        score = _trial(
            X[order[:TRIAL_ROWS]],
            y[order[:TRIAL_ROWS]],
            n_held,
            min_samples_split=min_samples_split,
            low=low,
            high=high,
            weights=sharpen(weights, exponent),
            maps=maps,
            seed=seed ^ TRIAL_STREAM,
            n_threads=n_threads,
        )
        if score > best:
            kind, power, best = other, exponent, score
    if len(X) < LEARN_AGAIN and not hopeless:
        found = proposals(order)
    importances = found["importances"][0]
    if not kind:
        return LearnedRates(importances, power, np.ones(X.shape[1]))
    weights, maps = found[kind]
    return LearnedRates(importances, power, sharpen(weights, power), maps)


def _trial(
    X: Rows,
    y: FloatArray,
    n_held: int,
    *,
    min_samples_split: int,
    low: FloatArray,
    high: FloatArray,
    weights: FloatArray,
    maps: Maps | None,
    seed: int,
    n_threads: int,
) -> float:
    """The leave-one-out score of a small forest on its first `n_held` rows.

    It is the mean log predictive density minus the logarithm of the root mean squared error. The
    density alone has several modes, some of them with far worse means. The noise is global, as that
    of leave-one-out predictions always is.
    """
    forest = _core.MondrianRegressor(
        n_estimators=TRIAL_TREES,
        min_samples_split=min_samples_split,
        posterior="exact",
        noise="global",
        seed=seed,
    )
    forest.fit(X, y, low=low, high=high, weights=weights, maps=maps, n_threads=n_threads)
    held = np.arange(n_held, dtype=np.uint64)
    mixture = GaussianMixture(*forest.loo_dist(held, n_threads=n_threads))
    error = np.sqrt(np.mean((mixture.mean - y[:n_held]) ** 2))
    tiny = np.finfo(np.float64).tiny
    return float(np.mean(mixture.logpdf(y[:n_held])) - np.log(max(error, tiny)))
