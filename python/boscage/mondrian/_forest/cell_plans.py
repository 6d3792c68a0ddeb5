"""What plans of cells are made from, before any row is given a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boscage import _core
from boscage._types import AnyArray, FloatArray, Rows
from boscage.mondrian._categories import Singles, Tables, to_core
from boscage.mondrian._forest.base import MondrianForest
from boscage.mondrian._forest.growth import GrowthPlan, NewRows
from boscage.mondrian._missing import Substitutes, ends_of, has_missing
from boscage.mondrian.feature_rates._samples import Sample

Counts: TypeAlias = tuple[NDArray[np.uint64], list[FloatArray], list[NDArray[np.uint64]]]
"""By cell the number of rows, the least and the greatest target, and how many rows have each."""

ROUNDS = 12
"""Rows are counted at most so often: those of a cell that hardly differ are never separated."""


@dataclass(frozen=True)
class RowFacts:
    """What must be known of all rows before anything is learned from them; also of a part."""

    n_rows: int
    labels: AnyArray
    """The sorted labels; none of a regressor's."""
    n_rows_of: AnyArray
    """The number of rows of each label."""
    largest: float
    """The largest target by magnitude; 0 for labels."""
    low: FloatArray
    """The least value of each feature; infinity if there is none."""
    high: FloatArray
    """The greatest value of each feature; minus infinity if there is none."""
    has_missing: bool
    """Whether a row lacks a value."""

    def merged(self, other: RowFacts) -> RowFacts:
        """The facts of both sets of rows together."""
        labels, codes = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        n_rows_of = np.zeros(len(labels), np.int64)
        np.add.at(n_rows_of, codes, np.concatenate([self.n_rows_of, other.n_rows_of]))
        return RowFacts(
            self.n_rows + other.n_rows,
            labels,
            n_rows_of,
            max(self.largest, other.largest),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.has_missing or other.has_missing,
        )


def facts_of(X: Rows, y: AnyArray, *, has_labels: bool) -> RowFacts:
    """The facts of some rows and their targets, which are labels or numbers."""
    labels, n_rows_of = np.unique(y[: len(y) * has_labels], return_counts=True)
    largest = 0.0 if has_labels else float(np.abs(y).max(initial=0.0))
    return RowFacts(len(X), labels, n_rows_of, largest, *ends_of(X), has_missing(X))


def learned_apart(
    template: MondrianForest,
    low: FloatArray,
    high: FloatArray,
    seed: int,
    sample: Sample | None,
    n_threads: int,
    substitutes: Substitutes | None = None,
    tables: Tables | None = None,
    singles: Singles | None = None,
) -> GrowthPlan:
    """What is learned, given the least and greatest values of all rows, and a sample of them.

    The sample, which lacks no values, is None if rates are not learned; so are substitutes if no
    row lacks a value, and tables if no feature is a category.
    """
    ends = NewRows(np.stack([low, high]), {}, (np.zeros(2, np.uint32), [0]), {}, None, None)
    return template._plan(
        ends,
        settings=template._settings(),
        seed=seed,
        n_threads=n_threads,
        sample=sample,
        substitutes=substitutes,
        tables=tables,
        singles=singles,
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
        substitutes=learned.substitutes,
        categories=to_core(learned.tables),
        extent=extent,
    )


def summed(counts: Sequence[Counts]) -> Counts:
    """The counts of all rows, given those of parts."""
    n_rows, ends, of_ends = (np.stack(part, axis=-1) for part in zip(*counts, strict=True))
    found = np.stack([ends[0].min(axis=-1), ends[1].max(axis=-1)])
    n_equal = np.where(ends == found[..., None], of_ends, np.uint64(0)).sum(axis=-1)
    return n_rows.sum(axis=-1), list(found), list(n_equal)


def chosen_apart(
    forest: MondrianForest,
    learned: GrowthPlan,
    sample: Sample,
    moments: tuple[float, float, float],
    n_threads: int,
) -> list[float]:
    """What the rule of an unfitted forest chooses.

    `sample` has the first ``_core.RULE_ROWS`` of the forest's rows in the order of its seed, or
    all, and `moments` is of all targets.
    """
    X, y, weights = sample.X, sample.y, sample.weights
    new = NewRows(X, {}, (y,), {}, None, weights)
    share = (0, forest._n_trees_to_choose(learned.settings))
    model = forest._draw(learned, new, n_threads=n_threads, share=share)
    chosen: list[float] = model.choose(moments, n_threads=n_threads)
    return chosen
