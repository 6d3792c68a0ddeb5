"""What learning rates from classes and from numbers have in common."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boscage._types import AnyArray, FloatArray, IntArray, Maps, Rows

LEARNING_ROWS = 3000
"""The greatest number of rows from which rates are learned."""
LEARN_AGAIN = 1000
"""With fewer rows than this, the chosen candidate is learned again from all rows."""
N_EXTRA_TREES = 30
"""Number of extremely randomised trees from which rates are learned."""

# Extremely randomised trees and trials must not share random numbers with the forest's own trees.
EXTRA_TREES_STREAM = 0x9E3779B97F4A7C15
TRIAL_STREAM = 0xD1B54A32D192ED03

_BLOCK = 10_000
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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
    """How well rates predict rows that are left out."""

    score: float
    by_row: FloatArray
    """Each row's part in the score, to first order; a difference's spread is its error."""

    def certain_gain(self, equal: TrialResult, standard_errors: float) -> float:
        """How much better it is than that of equal rates, less what chance may explain."""
        difference = self.by_row - equal.by_row
        error = np.std(difference, ddof=1) / np.sqrt(len(difference))
        return float(self.score - equal.score - standard_errors * error)


def first_by_contents(X: Rows, y: AnyArray, n: int, seed: int) -> IntArray:
    """The first ``n`` rows in an order that only the rows' contents and the seed determine.

    They are a simple random sample in random order, whatever the order of arrival. So what is
    learned from them is a function of the set of rows. Targets only order rows with equal features:
    shifted and scaled targets choose the same rows.
    """
    key = seed.to_bytes(8, "little")
    found: list[int] = []
    for start in range(0, len(X), _BLOCK):
        # Adding 0.0 makes one number of 0.0 and -0.0.
        block = X[start : start + _BLOCK].astype(np.float64) + 0.0
        width, data = block.strides[0], block.tobytes()
        for at in range(0, len(data), width):
            digest = hashlib.blake2b(data[at : at + width], digest_size=8, key=key).digest()
            found.append(int.from_bytes(digest, "little"))
    hashes = np.array(found, dtype=np.uint64)
    # Copies are ranked each for itself, so that the sample has as many as all rows have.
    order = np.lexsort((y, hashes))
    hashes = hashes[order]
    place = np.arange(len(hashes), dtype=np.uint64)
    is_first = np.r_[True, hashes[1:] != hashes[:-1]]
    number = place - np.maximum.accumulate(np.where(is_first, place, np.uint64(0)))
    return order[np.argsort(_mixed(hashes + number * _GOLDEN), kind="stable")[:n]]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's mixing function (Steele et al. 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


def sharpen(rates: FloatArray, power: float) -> FloatArray:
    """Rates to a power, scaled to a mean of one."""
    # Relative to the greatest, so that not all underflow.
    raised = (rates / rates.max()) ** power
    return np.asarray(raised * (len(raised) / raised.sum()))
