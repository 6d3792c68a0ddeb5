"""What plans of cells are made from, before any row is given a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import FloatArray
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.growth import GrowthPlan, NewRows
from boscage.mondrian.feature_rates._samples import Sample

Counts: TypeAlias = tuple[NDArray[np.uint64], FloatArray, FloatArray]
"""Numbers of rows, least and greatest targets, by cell."""


def learned_apart(
    template: MondrianForest,
    low: FloatArray,
    high: FloatArray,
    seed: int,
    sample: Sample | None,
    n_threads: int,
) -> GrowthPlan:
    """What is learned, given the least and greatest values of all rows, and a sample of them.

    The sample may lack if rates are not learned.
    """
    ends = NewRows(np.stack([low, high]), {}, (np.zeros(2, np.uint32), [0]), {}, None, None)
    return template._plan(
        ends, settings=template._settings(), seed=seed, n_threads=n_threads, sample=sample
    )


def first_plan(learned: GrowthPlan, extent: tuple[int, bool] = (0, True)) -> _core.CellPlan:
    """A plan without cuts."""
    of_trees = ("n_estimators", "lifetime", "min_samples_split", "predictive")
    return _core.CellPlan(
        **{name: learned.settings[name] for name in of_trees},
        seed=learned.seed,
        low=learned.low,
        high=learned.high,
        weights=learned.weights,
        maps=learned.maps,
        extent=extent,
    )


def summed(counts: Sequence[Counts]) -> Counts:
    """The counts of all rows, given those of parts."""
    n_rows, least, greatest = zip(*counts, strict=True)
    return np.sum(n_rows, axis=0), np.min(least, axis=0), np.max(greatest, axis=0)
