"""What learning rates from classes and from numbers have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boscage._types import FloatArray, Maps

N_EXTRA_TREES = 30
"""Number of extremely randomised trees from which rates are learned."""
TRIAL_TREES = 20
"""Number of trees of a trial forest."""
TRIAL_ROWS = 2000
"""The greatest number of rows of a trial forest."""

# Extremely randomised trees and trials must not share random numbers with the forest's own trees.
EXTRA_TREES_STREAM = 0x9E3779B97F4A7C15
TRIAL_STREAM = 0xD1B54A32D192ED03


@dataclass(frozen=True)
class LearnedRates:
    """Learned feature rates, and feature maps in regression."""

    importances: FloatArray
    """Importance of each feature; they sum to one."""
    power: float
    """The power to which the chosen candidate was raised."""
    weights: FloatArray
    """The rates; they sum to the number of features."""
    maps: Maps | None = None
    """How each feature's rate is distributed along its range; None means evenly."""


def sharpen(rates: FloatArray, power: float) -> FloatArray:
    """Rates to a power, scaled to a mean of one."""
    # Relative to the greatest, so that not all underflow.
    raised = (rates / rates.max()) ** power
    return np.asarray(raised * (len(raised) / raised.sum()))
