"""Feature rates learned from classes.

Extremely randomised trees, whose cuts depend on the labels, give two candidates: the importance of
each feature, and the rates under which a Mondrian process would most probably have made the cuts of
these trees. Each is tried with several powers, and so are equal rates.
"""

from __future__ import annotations

import numpy as np

from boscage import _core
from boscage._types import AnyArray, FloatArray, Label, Rows
from boscage.mondrian.feature_rates._shared import (
    EXTRA_TREES_STREAM,
    N_EXTRA_TREES,
    TRIAL_ROWS,
    TRIAL_STREAM,
    TRIAL_TREES,
    LearnedRates,
    sharpen,
)

SCORED_ROWS = 1000
"""The greatest number of rows left out, one at a time."""
POWERS = (0.5, 1.0, 1.5, 2.0, 3.0)
"""Powers of the candidates."""

__all__: list[str] = []


def learn_rates(
    X: Rows,
    y: AnyArray,
    *,
    min_samples_split: int,
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> LearnedRates:
    """Rates of the features of ``X``; ``y`` holds class codes."""
    importances, rates = _core.extra_trees_rates(
        X,
        np.ascontiguousarray(y, dtype=np.float64),
        classification=True,
        n_estimators=N_EXTRA_TREES,
        seed=seed ^ EXTRA_TREES_STREAM,
        n_threads=n_threads,
    )
    rng = np.random.Generator(np.random.PCG64(seed ^ TRIAL_STREAM))
    some = np.sort(rng.permutation(len(X))[:TRIAL_ROWS])
    rows, targets = X[some], y[some]
    left_out = np.sort(rng.permutation(len(rows))[:SCORED_ROWS]).astype(np.uint64)

    best, best_power, best_score = np.ones(X.shape[1]), 0.0, -np.inf
    candidates = [(best, 0.0)]
    # With one row, or with equal importances, there is nothing to choose.
    if len(rows) > 1 and np.ptp(importances) > 0.0:
        candidates += [
            (sharpen(base, power), power) for base in (importances, rates) for power in POWERS
        ]
    else:
        return LearnedRates(importances, best_power, best)
    for weights, power in candidates:
        score = _trial(
            rows,
            targets,
            left_out,
            weights,
            min_samples_split=min_samples_split,
            low=low,
            high=high,
            seed=seed ^ TRIAL_STREAM,
            n_threads=n_threads,
        )
        if score > best_score:
            best, best_power, best_score = weights, power, score
    return LearnedRates(importances, best_power, best)


def _trial(
    X: Rows,
    y: AnyArray,
    left_out: AnyArray,
    weights: FloatArray,
    *,
    min_samples_split: int,
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> float:
    """The leave-one-out score of a small forest with these rates.

    It is the mean log predictive probability plus the accuracy. The probability alone depends on
    the discount as much as on the rates, and favours rates too unequal for the best accuracy.
    """
    classes, codes = np.unique(y, return_inverse=True)
    labels: list[Label] = [int(value) for value in classes]
    forest = _core.MondrianClassifier(
        n_estimators=TRIAL_TREES, min_samples_split=min_samples_split, seed=seed
    )
    # Classes are declared, so that one keeps its column while its only row is left out.
    forest.fit(
        X,
        codes.astype(np.uint32),
        labels,
        declared=labels,
        low=low,
        high=high,
        weights=weights,
        n_threads=n_threads,
    )
    proba = forest.loo_proba(left_out, None, n_threads=n_threads)[0]
    own = codes[left_out.astype(np.intp)]
    chosen = proba[np.arange(len(left_out)), own]
    hits = proba.argmax(axis=1) == own
    return float(np.mean(np.log(np.maximum(chosen, np.finfo(np.float64).tiny)) + hits))
