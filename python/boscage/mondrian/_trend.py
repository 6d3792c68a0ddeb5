"""Whether the mean of a regression forest has a linear part: ``trend="auto"``.

Small forests with and without it predict rows that they did not see: some left out at random, and
blocks, which are the upper or the lower third of one of the most important features. A trend is to
help beyond the rows and not to hurt among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import AnyArray, FloatArray, Rows
from boscage.mondrian.feature_rates._shared import (
    LEARNING_ROWS,
    TRIAL_STREAM,
    LearnedRates,
    TrialResult,
    first_by_contents,
)
from boscage.mondrian.feature_rates.regression import log_scale_of_errors

MIN_ROWS = 30
"""With fewer rows than this there is no trend."""
MOST_ROWS = 900
"""The greatest number of rows that are looked at: first those that are left out, then others."""
TREES = 10
FEATURES = 3
"""The number of features whose thirds are left out."""
LEAST_GAIN = 0.05
"""By how much the logarithm of the scale of errors in blocks must fall, on average."""
MOST_LOSS = 0.02
"""By how much that of rows left out at random may grow, beyond what chance explains."""
STANDARD_ERRORS = 1.0

__all__: list[str] = []


def choose_trend(
    X: Rows,
    y: AnyArray,
    learned: LearnedRates,
    *,
    settings: Mapping[str, Any],
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> str | None:
    """The trend, "linear" or None, of a forest with these settings and rates."""
    if low is None or high is None:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    chosen = first_by_contents(X, y, LEARNING_ROWS, seed)[:MOST_ROWS]
    some, targets = X[chosen].astype(np.float64), np.asarray(y[chosen], dtype=np.float64)
    if len(some) < MIN_ROWS or np.ptp(targets) == 0.0:
        return None
    trial = {**settings, "seed": seed ^ TRIAL_STREAM, "noise": "global"}
    trial["n_estimators"] = min(TREES, settings["n_estimators"])
    if trial.get("hyperparameters") == "loo":
        # Much faster; it hardly changes which of the two is better.
        trial["hyperparameters"] = "ml"

    def judge(is_out: NDArray[np.bool_], trend: str | None) -> TrialResult:
        forest = _core.MondrianRegressor(**{**trial, "trend": trend})
        forest.fit(
            some[~is_out],
            targets[~is_out],
            low=low,
            high=high,
            weights=learned.weights,
            maps=learned.maps,
            n_threads=n_threads,
        )
        mean, _ = forest.predict(some[is_out], n_threads=n_threads)
        return log_scale_of_errors(mean, targets[is_out])

    def gain(is_out: NDArray[np.bool_], standard_errors: float) -> float:
        return judge(is_out, "linear").certain_gain(judge(is_out, None), standard_errors)

    gains = [gain(block, STANDARD_ERRORS) for block in _blocks(some, learned.weights)]
    if not gains or np.mean(gains) < LEAST_GAIN:
        return None
    at_random = np.arange(len(some)) < len(some) // 3
    return "linear" if gain(at_random, -STANDARD_ERRORS) > -MOST_LOSS else None


def _blocks(X: FloatArray, weights: FloatArray) -> Iterator[NDArray[np.bool_]]:
    """Which rows are in the lower or the upper third of an important feature, about."""
    important = [d for d in np.argsort(-weights, kind="stable") if weights[d] > 0.0]
    for d in important[:FEATURES]:
        low, high = np.quantile(X[:, d], [1.0 / 3.0, 2.0 / 3.0])
        for block in (X[:, d] < low, X[:, d] > high):
            # Where many rows have the same value, a third may have none, or nearly all.
            if 0.1 < block.mean() < 0.6:
                yield block
