"""The discount that left-out rows choose: its candidates, the rows that judge, and the best one."""

from __future__ import annotations

import numpy as np

from boscage import _core
from boscage._types import FloatArray, Ids, IntArray

DISCOUNTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The candidates of ``discount="loo"``."""
_MAX_LEFT_OUT = 1000
"""The greatest number of rows that ``discount="loo"`` leaves out, one at a time."""


def judging_rows(model: _core.MondrianClassifier) -> tuple[Ids, IntArray]:
    """The ids of the rows that judge discounts, and their classes."""
    ids = model.ids
    rng = np.random.Generator(np.random.PCG64(0))
    rows = np.sort(rng.permutation(len(ids))[:_MAX_LEFT_OUT])
    return ids[rows], model.targets()[rows].astype(np.int64)


def best_discount(proba: FloatArray, columns: IntArray) -> float:
    """The candidate with the least log loss of left-out rows, given their probabilities."""
    chosen = proba[:, np.arange(len(columns)), columns]
    score = np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean(axis=1)
    return DISCOUNTS[int(np.argmax(score))]
