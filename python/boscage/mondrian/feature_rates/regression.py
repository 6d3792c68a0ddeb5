"""Feature rates and maps learned from numbers: ``feature_weights="learned"`` in regression.

A Mondrian process cuts without looking at labels, but how often it cuts in each feature, and where
along it, is free to choose: any measure on each axis will do. What to try comes from the core: the
rates of pilots whose cuts do look at labels, and a metric in which near rows have near labels. Of
these, to some power, the one is taken under which a small trial forest best predicts rows that it
leaves out, and of which pilots and metric have seen nothing. It is then frozen.
"""

from __future__ import annotations

import numpy as np

from boscage import _boscage
from boscage._types import FloatArray, IntArray, Maps, Rows
from boscage.distributions.gaussian import GaussianMixture
from boscage.mondrian.feature_rates.classification import (
    PILOT_STREAM,
    PILOT_TREES,
    TRIAL_ROWS,
    TRIAL_STREAM,
    TRIAL_TREES,
    LearnedWeights,
    sharpen,
)

HELD_OUT = 600
"""Rows (at most, and no more than half of all) by which the candidates are judged."""
LEARN_AGAIN = 4000
"""With fewer rows, those held out are learned from too once the choice is made."""
CANDIDATES = (
    *((kind, power) for kind in ("importances", "rates") for power in (0.5, 1.0, 1.5)),
    ("likeliest", 1.0),
    *(("metric", power) for power in (0.7, 1.0, 1.4)),
)
"""Which of the core's suggestions, and its power; beside equal rates without maps."""


def learn_axes(
    X: Rows,
    y: FloatArray,
    *,
    min_samples_split: int,
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> LearnedWeights:
    """Rates and maps for the features of ``X``."""
    if low is None or high is None:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    rng = np.random.Generator(np.random.PCG64(seed ^ TRIAL_STREAM))
    order = rng.permutation(len(X))
    n_held = min(HELD_OUT, len(X) // 2)

    def suggestions(rows: IntArray) -> dict[str, tuple[FloatArray, Maps]]:
        return _boscage.learn_axes(
            X[rows],
            y[rows],
            low,
            high,
            n_estimators=PILOT_TREES,
            seed=seed ^ PILOT_STREAM,
            n_threads=n_threads,
        )

    found = suggestions(order[n_held:])
    kind, power, best = "", 0.0, -np.inf
    # With one row, or with equal importances, there is nothing to choose between.
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
        found = suggestions(order)
    importances = found["importances"][0]
    if not kind:
        return LearnedWeights(importances, power, np.ones(X.shape[1]))
    weights, maps = found[kind]
    return LearnedWeights(importances, power, sharpen(weights, power), maps)


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
    """How well a small forest predicts its first `n_held` rows, each left out.

    The mean log predictive density less the logarithm of the error: the density alone has several
    modes, some of them with far worse means. With global noise, as rows that are left out have it.
    """
    forest = _boscage.MondrianRegressor(
        n_estimators=TRIAL_TREES, min_samples_split=min_samples_split, seed=seed
    )
    forest.fit(X, y, low=low, high=high, weights=weights, maps=maps, n_threads=n_threads)
    held = np.arange(n_held, dtype=np.uint64)
    mixture = GaussianMixture(*forest.loo_dist(held, n_threads=n_threads))
    error = np.sqrt(np.mean((mixture.mean - y[:n_held]) ** 2))
    tiny = np.finfo(np.float64).tiny
    return float(np.mean(mixture.logpdf(y[:n_held])) - np.log(max(error, tiny)))
