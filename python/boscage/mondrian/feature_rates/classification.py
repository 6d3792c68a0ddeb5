"""Feature rates and feature maps learned from classes.

Maps bring features to their ranks, wholly or half, so that heavy tails take up no more room than
their rows do. Extremely randomised trees, whose cuts depend on the labels, give two candidates for
the rates: the importance of each feature, and the rates under which a Mondrian process would most
probably have made the cuts of these trees. Automatic relevance determination gives a third
(`class_kernel_rates`). Each is tried with several powers. Small forests with the settings of the
forest itself predict rows that no candidate was learned from; where the joint posterior is that of
the forest's own trees, or where candidates are many, each tree predicts alone. Equal rates without
maps are kept unless the best candidate predicts these rows better by more than chance explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from boscage import _core
from boscage._types import AnyArray, FloatArray, Label, Maps
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import (
    EXTRA_TREES_STREAM,
    N_EXTRA_TREES,
    TRIAL_STREAM,
    LearnedRates,
    Stage,
    TrialResult,
    sharpen,
)
from boscage.mondrian.feature_rates.class_kernel_rates import MAX_ROWS as KERNEL_ROWS
from boscage.mondrian.feature_rates.class_kernel_rates import class_kernel_rates
from boscage.mondrian.feature_rates.rank_maps import in_units, rank_maps

HELD_OUT = 800
"""The greatest number of rows, at most half of all, that judge the candidates."""
MIN_ROWS = 10
"""With fewer rows than this, rates are equal."""
FIRST_STAGE = Stage(900, 300, 10)
"""Most candidates are ruled out by few trees on few rows, each of which predicts alone."""
LAST_STAGE = Stage(1600, HELD_OUT, 15)
N_LAST = 3
"""The number of candidates in the last stage, beside equal rates."""
STANDARD_ERRORS = 1.0
"""By how many standard errors of the difference a candidate must be better than equal rates."""
LEAST_GAIN = 0.005
"""And by how much more, in natural logarithms."""
DOUBT = 0.01
"""The share of even probabilities in the predictions that are judged. A single row that a small
forest is too certain of would decide otherwise, and without calibration some are quite certain."""


@dataclass(frozen=True)
class Candidate:
    """Which rates, to which power, with which maps."""

    kind: str
    power: float
    ranks: float
    """The part of the maps that brings features to their ranks; 0 is without maps."""


EQUAL = Candidate("equal", 0.0, 0.0)
CANDIDATES = tuple(
    Candidate(kind, power, 0.0)
    for kind, powers in (
        ("importances", (0.5, 1.0, 1.5, 2.0, 3.0)),
        ("extra_tree_cuts", (0.5, 1.0, 1.5, 2.0, 3.0)),
        ("kernel", (0.7, 1.0)),
    )
    for power in powers
)
FOR_MAPS = tuple(
    Candidate(kind, power, ranks)
    for kind, power in (("equal", 0.0), ("importances", 1.0))
    for ranks in (0.0, 0.5, 1.0)
)
"""These are tried with all maps; the others only with the maps of the best of these."""
BETWEEN = 0.5
"""The part of ranks in the units in which the extremely randomised trees draw cuts."""

__all__: list[str] = []


def learn_rates_and_maps(
    sample: Sample,
    *,
    settings: Mapping[str, Any],
    low: FloatArray,
    high: FloatArray,
    seed: int,
    n_threads: int,
) -> LearnedRates:
    """Rates and maps of features for a forest with these settings.

    Weights count where candidates are judged, and not in what they are.
    """
    # Classes without rows here would take time, and say nothing.
    some, codes = sample.X, np.unique(sample.y, return_inverse=True)[1]
    n_held = min(HELD_OUT, len(some) // 2)
    learn: dict[str, Any] = {"low": low, "high": high, "seed": seed, "n_threads": n_threads}
    proposals = _Proposals(some[n_held:], codes[n_held:], **learn)
    # With few rows, or where no feature tells classes apart, there is nothing to choose.
    if len(some) < MIN_ROWS or np.ptp(proposals.importances) == 0.0:
        return LearnedRates(proposals.importances, 0.0, np.ones(some.shape[1]))
    options = {"low": low, "high": high, "n_threads": n_threads}
    settings = {**settings, "seed": seed ^ TRIAL_STREAM}
    is_limit = _core.MondrianClassifier(**settings).takes_limit(sample.n_rows)
    rows = sample.with_new(n_held)
    trial = _Trial(rows, codes, n_held, settings, options, sample.weights, is_limit)
    chosen = _choose(proposals, trial)
    # Learned again from all rows, unless it is of so few rows that others would say no more.
    if chosen.kind != "kernel" or len(some) - n_held < KERNEL_ROWS:
        proposals = _Proposals(some, codes, **learn)
    return LearnedRates(proposals.importances, chosen.power, *proposals.rates(chosen))


def _choose(proposals: _Proposals, trial: _Trial) -> Candidate:
    """The candidate that is better than `EQUAL` most certainly, or `EQUAL` if none is."""

    def judge(candidate: Candidate, stage: Stage) -> TrialResult:
        return trial.run(*proposals.rates(candidate), stage)

    scores = {one: judge(one, FIRST_STAGE).score for one in FOR_MAPS}
    best = max(scores, key=lambda one: scores[one]).ranks
    for one in CANDIDATES:
        mapped = replace(one, ranks=best)
        if mapped not in scores:
            scores[mapped] = judge(mapped, FIRST_STAGE).score
    first = sorted(scores, key=lambda one: -scores[one])[:N_LAST]
    equal = judge(EQUAL, LAST_STAGE)
    gains = {EQUAL: 0.0} | {
        one: judge(one, LAST_STAGE).certain_gain(equal, STANDARD_ERRORS) - LEAST_GAIN
        for one in first
        if one != EQUAL
    }
    return max(gains, key=lambda one: gains[one])


class _Proposals:
    """Rates and maps that are learned from some rows, on demand."""

    def __init__(
        self,
        X: FloatArray,
        codes: AnyArray,
        *,
        low: FloatArray,
        high: FloatArray,
        seed: int,
        n_threads: int,
    ) -> None:
        self._X, self._low, self._high = X, low, high
        self._maps: dict[float, Maps] = {}
        self._kernel: dict[float, FloatArray] = {}
        self._codes = np.ascontiguousarray(codes, dtype=np.float64)
        self._options = {"seed": seed ^ EXTRA_TREES_STREAM, "n_threads": n_threads}

    def rates(self, candidate: Candidate) -> tuple[FloatArray, Maps | None]:
        """Weights and maps of a candidate."""
        maps = self._with_ranks(candidate.ranks) if candidate.ranks > 0.0 else None
        if candidate.kind == "equal":
            return np.ones(self._X.shape[1]), maps
        if candidate.kind == "kernel":
            rates = self._with_kernel(candidate.ranks, maps)
        else:
            rates = self._extra_trees[candidate.kind]
        return sharpen(rates, candidate.power), maps

    @property
    def importances(self) -> FloatArray:
        """Importances of the features for extremely randomised trees; they sum to one."""
        return self._extra_trees["importances"]

    @cached_property
    def _extra_trees(self) -> dict[str, FloatArray]:
        """What extremely randomised trees say of the features."""
        units = in_units(self._X, self._low, self._high, self._with_ranks(BETWEEN))
        importances, cuts = _core.extra_trees_rates(
            units,
            self._codes,
            classification=True,
            n_estimators=N_EXTRA_TREES,
            **self._options,
        )
        return {"importances": importances, "extra_tree_cuts": cuts}

    def _with_kernel(self, ranks: float, maps: Maps | None) -> FloatArray:
        if ranks not in self._kernel:
            units = in_units(self._X[:KERNEL_ROWS], self._low, self._high, maps)
            self._kernel[ranks] = class_kernel_rates(units, self._codes, self.importances)
        return self._kernel[ranks]

    def _with_ranks(self, ranks: float) -> Maps:
        if ranks not in self._maps:
            self._maps[ranks] = rank_maps(self._X, self._low, self._high, ranks)
        return self._maps[ranks]


class _Trial:
    """Small forests with the settings of the forest itself, whose predictions judge rates."""

    def __init__(
        self,
        X: FloatArray,
        codes: AnyArray,
        n_held: int,
        settings: Mapping[str, Any],
        options: Mapping[str, Any],
        row_weights: FloatArray | None = None,
        is_limit: bool = False,
    ) -> None:
        self._X, self._codes, self._n_held = X, codes, n_held
        self._row_weights = row_weights
        self._settings, self._options = settings, options
        self._is_limit = is_limit

    def run(self, weights: FloatArray, maps: Maps | None, stage: Stage) -> TrialResult:
        """The leave-one-out log probability of rows that no candidate was learned from."""
        n_held = min(stage.held_out, self._n_held)
        n_others = min(stage.rows - n_held, len(self._X) - self._n_held)
        rows = np.r_[:n_held, self._n_held : self._n_held + n_others]
        n_trees = min(stage.trees, self._settings["n_estimators"])
        settings = {**self._settings, "n_estimators": n_trees}
        # The joint posterior of infinitely many trees is best with other rates than trees that
        # predict alone: less extreme ones. For that of the forest's own trees, which takes long
        # where rows are left out, they are much the same.
        if not self._is_limit or stage is FIRST_STAGE:
            settings["posterior"] = "kneser-ney"
        return score_of_left_out(
            by_power_alone(settings),
            (self._X[rows], self._codes[rows]),
            n_held,
            DOUBT,
            row_weights=None if self._row_weights is None else self._row_weights[rows],
            weights=weights,
            maps=maps,
            **self._options,
        )


def by_power_alone(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of forests that judge features.

    Probabilities are not drawn to the shares of the classes, beside which features that tell little
    would look too good, and have no trend.
    """
    calibration = None if settings["calibration"] is None else "loo-power"
    return {**settings, "calibration": calibration, "trend": False}


def score_of_left_out(
    settings: Mapping[str, Any],
    rows: tuple[FloatArray, AnyArray],
    n_held: int,
    doubt: float,
    *,
    n_threads: int,
    row_weights: FloatArray | None = None,
    **options: Any,
) -> TrialResult:
    """The log probabilities of the classes of the first rows, each left out of a forest of all.

    `doubt` is the share of even probabilities in those that are judged.
    """
    X, y = rows
    forest = _core.MondrianClassifier(**settings)
    classes, codes = np.unique(y, return_inverse=True)
    labels: list[Label] = [int(value) for value in classes]
    # Classes are declared, so that one keeps its column while its only row is left out.
    forest.fit(
        X,
        codes.astype(np.uint32),
        labels,
        sample_weight=row_weights,
        declared=labels,
        n_threads=n_threads,
        **options,
    )
    left_out, calibration = np.arange(n_held, dtype=np.uint64), settings["calibration"]
    proba = forest.loo_proba(left_out, None, calibration=calibration, n_threads=n_threads)[0]
    chosen = proba[np.arange(n_held), codes[:n_held]]
    by_row = np.log((1.0 - doubt) * chosen + doubt / len(labels))
    if row_weights is not None:
        own = row_weights[:n_held]
        by_row *= own / own.mean()
    return TrialResult(float(np.mean(by_row)), by_row)
