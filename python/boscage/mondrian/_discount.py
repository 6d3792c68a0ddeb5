"""The discount that left-out rows choose: its candidates, the rows that judge, and the best one."""

from __future__ import annotations

import numpy as np

from boscage import _core
from boscage._types import FloatArray, Ids, IntArray

DISCOUNTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The candidates of ``discount="loo"``."""
_MAX_LEFT_OUT = 1000
"""The greatest number of rows that ``discount="loo"`` leaves out, one at a time."""


def judging_arrivals(n_rows: int) -> IntArray:
    """Which rows judge discounts, of so many in the order of their arrival."""
    rng = np.random.Generator(np.random.PCG64(0))
    return np.sort(rng.permutation(n_rows)[:_MAX_LEFT_OUT])


def judging_rows(model: _core.MondrianClassifier) -> tuple[Ids, IntArray, FloatArray | None]:
    """The ids of the rows that judge discounts, their classes, and weights unless all are 1."""
    ids = model.ids
    rows = judging_arrivals(len(ids))
    weights = model.sample_weight()
    return (
        ids[rows],
        model.targets()[rows].astype(np.int64),
        None if weights is None else weights[rows],
    )


def best_discount(proba: FloatArray, columns: IntArray, weights: FloatArray | None) -> float:
    """The candidate with the least log loss of left-out rows, given their probabilities."""
    chosen = proba[:, np.arange(len(columns)), columns]
    by_row = np.log(np.maximum(chosen, np.finfo(np.float64).tiny))
    score = np.average(by_row, axis=1, weights=weights)
    return DISCOUNTS[int(np.argmax(score))]
