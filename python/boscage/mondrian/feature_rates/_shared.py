"""What learning rates from classes and from numbers have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boscage import _core
from boscage._types import AnyArray, FloatArray, IntArray, Maps, Rows

LEARNING_ROWS = 3000
"""The greatest number of rows from which rates, or substitutes for missing values, are learned."""
MOST_FEATURES = 1024
"""The greatest number of features for which rates are learned. With half as many, forests are as
good where some hundred features matter, and worse where all of a thousand do."""
SCREENING_ROWS = 10000
"""The greatest number of rows by which these are chosen among more features."""
N_EXTRA_TREES = 30
"""Number of extremely randomised trees from which rates are learned."""

# What learns and judges must not share random numbers with the forest's own trees and calibration.
ORDER_STREAM = 0xBF58476D1CE4E5B9
EXTRA_TREES_STREAM = 0x9E3779B97F4A7C15
TRIAL_STREAM = 0xD1B54A32D192ED03
SCREENING_STREAM = 0x94D049BB133111EB


@dataclass(frozen=True)
class LearnedRates:
    """Learned feature rates and feature maps."""

    importances: FloatArray
    """Importance of each feature; they sum to one."""
    power: float
    """The power to which the chosen candidate was raised."""
    weights: FloatArray
    """The rates; they sum to the number of features for which they are learned, before those of
    features that new rows do not show are set to 0."""
    maps: Maps | None = None
    """How each feature's rate is distributed along its range; None means evenly."""


@dataclass(frozen=True)
class Stage:
    """A trial of some candidates."""

    rows: int
    """The greatest number of rows."""
    held_out: int
    """The greatest number of those that judge."""
    trees: int


@dataclass(frozen=True)
class TrialResult:
    """How well a forest predicts rows that are left out."""

    score: float
    by_row: FloatArray
    """Each row's part in the score, to first order; a difference's spread is its error."""

    def certain_gain(self, other: TrialResult, standard_errors: float) -> float:
        """How much better it is than another one, less what chance may explain."""
        difference = self.by_row - other.by_row
        error = np.std(difference, ddof=1) / np.sqrt(len(difference))
        return float(self.score - other.score - standard_errors * error)


def rows_to_learn_from(n_features: int) -> int:
    """How many rows at most a sample has of a table with so many features."""
    return SCREENING_ROWS if n_features > MOST_FEATURES else LEARNING_ROWS


def first_by_contents(
    X: Rows, y: AnyArray, n: int, seed: int, sample_weight: FloatArray | None = None
) -> IntArray:
    """The first ``n`` rows in an order that only the rows' contents and the seed determine.

    They are a simple random sample in random order, whatever the order of arrival. So what is
    learned from them is a function of the set of rows. Targets only order rows with equal features:
    shifted and scaled targets choose the same rows. Weights order what is left.
    """
    targets = np.ascontiguousarray(y, dtype=np.float64)
    first = _core.first_by_contents(X, targets, n, seed ^ ORDER_STREAM, sample_weight)
    return np.asarray(first, dtype=np.intp)


def sharpen(rates: FloatArray, power: float) -> FloatArray:
    """Rates to a power, scaled to a mean of one."""
    # Relative to the greatest, so that not all underflow.
    raised = (rates / rates.max()) ** power
    return np.asarray(raised * (len(raised) / raised.sum()))
