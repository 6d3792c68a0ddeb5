"""Feature rates learned from classes: ``feature_weights="learned"`` in classification.

A Mondrian process cuts without looking at labels, so that irrelevant features cost it dearly. Its
rates are free to choose, however. Here a pilot forest, whose cuts do look at labels, says how much
each feature matters, and under which rates a Mondrian process would most likely have cut as the
pilot did. The rates are one or the other to some power, whichever predicts rows best that a small
trial forest leaves out (its leave-one-out predictive, which costs no validation set). They are then
frozen: everything else about the process stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boscage import _boscage
from boscage._types import AnyArray, FloatArray, Label, Maps, Rows

PILOT_TREES = 30
"""Trees of the pilot."""
TRIAL_TREES = 20
"""Trees of the forest that tries a power."""
TRIAL_ROWS = 2000
"""Rows (at most) of the trial forests."""
SCORED_ROWS = 1000
"""Rows (at most) that are left out, one at a time."""
POWERS = (0.5, 1.0, 1.5, 2.0, 3.0)
"""Candidates, beside 0: equal rates for all features."""

# The pilot's and the trials' randomness must not be that of the forest's own trees.
PILOT_STREAM = 0x9E3779B97F4A7C15
TRIAL_STREAM = 0xD1B54A32D192ED03


@dataclass(frozen=True)
class LearnedWeights:
    """What the pilot found and what was made of it."""

    importances: FloatArray
    """How much each feature matters; they sum to one."""
    power: float
    weights: FloatArray
    """Importances or rates, to that power, scaled to sum to the number of features."""
    maps: Maps | None = None


def learn_weights(
    X: Rows,
    y: AnyArray,
    *,
    min_samples_split: int,
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> LearnedWeights:
    """Rates for the features of ``X``; ``y`` holds class codes."""
    importances, rates = _boscage.pilot_rates(
        X,
        np.ascontiguousarray(y, dtype=np.float64),
        classification=True,
        n_estimators=PILOT_TREES,
        seed=seed ^ PILOT_STREAM,
        n_threads=n_threads,
    )
    rng = np.random.Generator(np.random.PCG64(seed ^ TRIAL_STREAM))
    some = np.sort(rng.permutation(len(X))[:TRIAL_ROWS])
    rows, targets = X[some], y[some]
    left_out = np.sort(rng.permutation(len(rows))[:SCORED_ROWS]).astype(np.uint64)

    best, best_power, best_score = np.ones(X.shape[1]), 0.0, -np.inf
    candidates = [(best, 0.0)]
    # With one row, or with equal importances, there is nothing to choose between.
    if len(rows) > 1 and np.ptp(importances) > 0.0:
        candidates += [
            (sharpen(base, power), power) for base in (importances, rates) for power in POWERS
        ]
    else:
        return LearnedWeights(importances, best_power, best)
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
    return LearnedWeights(importances, best_power, best)


def sharpen(importances: FloatArray, power: float) -> FloatArray:
    """Importances or rates to a power, with the mean one that equal rates have."""
    # Relative to the greatest, so that no power underflows them all.
    raised = (importances / importances.max()) ** power
    return np.asarray(raised * (len(raised) / raised.sum()))


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
    """How well a small forest with these rates predicts rows that it leaves out.

    The mean log predictive density and the accuracy: the density alone follows the discount as
    much as the rates, and would sharpen them beyond what accuracy bears.
    """
    classes, codes = np.unique(y, return_inverse=True)
    labels: list[Label] = [int(value) for value in classes]
    forest = _boscage.MondrianClassifier(
        n_estimators=TRIAL_TREES, min_samples_split=min_samples_split, seed=seed
    )
    # Declared, so that a class keeps its column while its only row is left out.
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
