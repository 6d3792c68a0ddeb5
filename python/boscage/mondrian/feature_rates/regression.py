"""Feature rates and feature maps learned from numbers.

Candidates come from several methods: trees whose cuts depend on the targets, a metric in which rows
with similar targets are close, and automatic relevance determination (`kernel_rates`). Each is
tried with maps and without, and the best one with other powers. Small forests with the settings of
the forest itself predict rows that no candidate was learned from. Equal rates are kept unless the
best candidate predicts these rows better by more than chance explains.

A small forest gains more by good rates than a large one, and infinitely many trees gain least. So
where trees are fitted together and predictions averaged, the limit that they go to judges, whether
the forest has it or not: it has no noise of trees, which hides true gains and makes others up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from boscage import _core
from boscage._types import AnyArray, FloatArray, Maps
from boscage.distributions import GaussianMixture
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
from boscage.mondrian.feature_rates.kernel_rates import MAX_ROWS as KERNEL_ROWS
from boscage.mondrian.feature_rates.kernel_rates import kernel_rates
from boscage.mondrian.feature_rates.rank_maps import in_units

Data: TypeAlias = tuple[FloatArray, AnyArray, FloatArray | None]
"""Rows, targets, and as how many rows each row counts (None if all count as one)."""

MIN_ROWS = 10
"""With fewer rows than this, rates are equal."""
LEARN_AGAIN = 1000
"""With fewer rows than this, the chosen candidate is learned again from all rows."""
DEGREES_OF_FREEDOM = 3.0
"""Of the distribution of errors."""
SCALE_STEPS = 50
"""Steps towards the scale of the errors (at most)."""
ACCURACY = 1e-12
"""Of its square."""
SMALLEST = 1e-20
"""The smallest squared scale of errors, relative to the largest squared error."""


@dataclass(frozen=True)
class Candidate:
    """Which proposal, to which power."""

    kind: str
    power: float
    mapped: bool
    """Whether with the proposal's maps, or with its rates alone."""


EQUAL = Candidate("equal", 0.0, False)
CANDIDATES = tuple(
    Candidate(kind, power, mapped)
    for kind, power, ways in (
        ("importances", 0.7, (True, False)),
        ("extra_tree_cuts", 0.7, (True, False)),
        ("best_split_cuts", 1.0, (True,)),
        ("metric", 1.0, (True, False)),
        ("kernel", 1.0, (True, False)),
    )
    for mapped in ways
)
OTHER_POWERS = (0.7, 1.4)
"""Factors of the power with which the best candidate is tried again."""
STAGE = Stage(1600, 600, 15)
"""All candidates are tried alike. Fewer rows, or a faster rule for the hyperparameters, would rule
out some that are the best on all rows. At most a third of all rows judge."""


@dataclass(frozen=True)
class Judge:
    """The forests whose errors judge rates, and by how much the best ones must be better."""

    joint_kernel: str
    trees: int
    standard_errors: float
    """Of the difference to equal rates."""
    nats: float
    """What the log likelihood of all judging rows must gain beyond them."""


BY_TREES = Judge("trees", STAGE.trees, 2.5, 0.0)
"""The best of several candidates is better by two standard errors on noise alone."""
BY_LIMIT = Judge("limit", 5, 1.0, 3.0)
"""In the limit of infinitely many trees noise makes few better, and the mean hardly depends on the
forest's own trees."""

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
    sample = sample.without_repetitions()
    some, y = sample.X, sample.y
    n_held = min(STAGE.held_out, len(some) // 3)
    learn: dict[str, Any] = {"low": low, "high": high, "seed": seed, "n_threads": n_threads}
    proposals = _Proposals(some[n_held:], y[n_held:], **learn)
    # With few rows, or with equal importances, there is nothing to choose.
    if len(some) < MIN_ROWS or np.ptp(proposals.importances) == 0.0:
        return LearnedRates(proposals.importances, 0.0, np.ones(some.shape[1]))
    judge = BY_LIMIT if _has_limit(settings, len(some)) else BY_TREES
    rows = sample.with_new(n_held)
    trial = _Trial(rows, y, n_held, settings, judge, **learn, row_weights=sample.weights)
    chosen = _choose(proposals, trial)
    # Rates of the kernel stay those that were judged: other rows give quite different ones. All
    # others only become more certain with more rows.
    if len(some) < LEARN_AGAIN and chosen.kind != "kernel":
        proposals = _Proposals(some, y, **learn)
    return LearnedRates(proposals.importances, chosen.power, *proposals.rates(chosen))


def _has_limit(settings: Mapping[str, Any], n_rows: int) -> bool:
    """Whether there is a limit of infinitely many trees of a forest with these settings."""
    of_limit = {**settings, "joint_kernel": BY_LIMIT.joint_kernel}
    return bool(_core.MondrianRegressor(**of_limit).takes_limit(n_rows))


def _choose(proposals: _Proposals, trial: _Trial) -> Candidate:
    """The candidate that predicts best, or `EQUAL` if none is certainly better."""
    results = {one: trial.run(*proposals.rates(one)) for one in (EQUAL, *CANDIDATES)}

    def best() -> Candidate:
        return max((one for one in results if one != EQUAL), key=lambda one: results[one].score)

    leader = best()
    for factor in OTHER_POWERS:
        other = replace(leader, power=factor * leader.power)
        results[other] = trial.run(*proposals.rates(other))
    leader = best()
    return leader if trial.is_better(results[leader], results[EQUAL]) else EQUAL


class _Proposals:
    """Rates and maps that are learned from some rows, on demand."""

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        low: FloatArray,
        high: FloatArray,
        seed: int,
        n_threads: int,
    ) -> None:
        # Extremely randomised trees take tiny differences for rounding errors. Powers of two are
        # exact.
        self._y = np.ldexp(y, -np.frexp(np.abs(y).max())[1])
        self._X, self._low, self._high = X, low, high
        self._options = {
            "n_estimators": N_EXTRA_TREES,
            "seed": seed ^ EXTRA_TREES_STREAM,
            "n_threads": n_threads,
        }

    def rates(self, candidate: Candidate) -> tuple[FloatArray, Maps | None]:
        """Weights and maps of a candidate."""
        kind = candidate.kind
        if kind == "equal":
            return np.ones(self._X.shape[1]), None
        if kind == "kernel":
            weights = self._kernel_with_maps if candidate.mapped else self._kernel
            maps = self._with_maps["importances"][1]
        elif kind in self._extra_trees and not candidate.mapped:
            weights, maps = self._extra_trees[kind], None
        else:
            weights, maps = self._with_maps[kind]
        return sharpen(weights, candidate.power), maps if candidate.mapped else None

    @property
    def importances(self) -> FloatArray:
        """Importances of the features for extremely randomised trees; they sum to one."""
        return self._extra_trees["importances"]

    @cached_property
    def _extra_trees(self) -> dict[str, FloatArray]:
        importances, cuts = _core.extra_trees_rates(
            self._X, self._y, classification=False, **self._options
        )
        return {"importances": importances, "extra_tree_cuts": cuts}

    @cached_property
    def _with_maps(self) -> dict[str, tuple[FloatArray, Maps]]:
        return _core.candidate_rates(self._X, self._y, self._low, self._high, **self._options)

    @cached_property
    def _kernel(self) -> FloatArray:
        return kernel_rates(self._units(None), self._y, self.importances)

    @cached_property
    def _kernel_with_maps(self) -> FloatArray:
        importances, maps = self._with_maps["importances"]
        return kernel_rates(self._units(maps), self._y, importances)

    def _units(self, maps: Maps | None) -> FloatArray:
        return in_units(self._X[:KERNEL_ROWS], self._low, self._high, maps)


class _Trial:
    """Small forests with the settings of the forest itself, whose predictions judge rates."""

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        n_held: int,
        settings: Mapping[str, Any],
        judge: Judge,
        *,
        low: FloatArray,
        high: FloatArray,
        seed: int,
        n_threads: int,
        row_weights: FloatArray | None = None,
    ) -> None:
        self._X, self._y, self._n_held = X, y, n_held
        self._row_weights, self._judge = row_weights, judge
        # Local noise does not change means, and leave-one-out predictions have none.
        self._settings = {
            **settings,
            "noise": "global",
            "seed": seed ^ TRIAL_STREAM,
            "joint_kernel": judge.joint_kernel,
            "n_estimators": min(judge.trees, settings["n_estimators"]),
        }
        self._low, self._high, self._n_threads = low, high, n_threads

    def is_better(self, result: TrialResult, equal: TrialResult) -> bool:
        """Whether a result is better than that of equal rates by more than chance explains."""
        gain = result.certain_gain(equal, self._judge.standard_errors)
        return gain > self._judge.nats / self._n_held

    def run(self, weights: FloatArray, maps: Maps | None) -> TrialResult:
        """How well a small forest with these rates predicts the rows that judge."""
        n_held, n = self._n_held, min(STAGE.rows, len(self._X))
        data = self._X, self._y, self._row_weights
        domain = {"low": self._low, "high": self._high, "weights": weights, "maps": maps}
        options = {**domain, "n_threads": self._n_threads}
        if self._settings["posterior"] == "joint":
            held, others = np.arange(n_held), np.arange(n_held, n)
            return score_of_unseen(self._settings, data, others, held, **options)
        forest = _fitted(self._settings, data, np.arange(n), **options)
        parts = forest.loo_dist(np.arange(n_held, dtype=np.uint64), n_threads=self._n_threads)
        own = None if self._row_weights is None else self._row_weights[:n_held]
        return _by_density(GaussianMixture(*parts), self._y[:n_held], own)


def _fitted(
    settings: dict[str, Any], data: Data, rows: AnyArray, **options: Any
) -> _core.MondrianRegressor:
    """A small forest of some rows."""
    X, y, weights = data
    forest = _core.MondrianRegressor(**settings)
    forest.fit(
        X[rows], y[rows], sample_weight=None if weights is None else weights[rows], **options
    )
    return forest


def score_of_unseen(
    settings: dict[str, Any], data: Data, seen: AnyArray, unseen: AnyArray, **options: Any
) -> TrialResult:
    """How well a small forest of the rows that it has seen predicts others."""
    X, y, weights = data
    forest = _fitted(settings, data, seen, **options)
    mean = forest.predict_mean(X[unseen], n_threads=options["n_threads"])
    return score_of_errors(mean, y[unseen], None if weights is None else weights[unseen])


def score_of_errors(
    mean: FloatArray, targets: FloatArray, row_weights: FloatArray | None = None
) -> TrialResult:
    """How likely the errors are: the mean of two log densities, but for a constant.

    They are the greatest mean log densities of the errors as a Gaussian and as Student's t, of any
    scale. The Gaussian one says little where targets have heavy tails, since a few of some hundred
    rows decide it; the other hardly sees these rows.
    """
    shares = _relative(row_weights)
    largest = max(np.abs(mean - targets).max(), np.finfo(np.float64).tiny)
    squares = ((mean - targets) / largest) ** 2
    mean_square = max(float(np.mean(shares * squares)), SMALLEST)
    square = _square_of_scale(squares, shares, mean_square)
    by_row_of_t = np.log1p(squares / (DEGREES_OF_FREEDOM * square))
    by_row = -0.25 * ((DEGREES_OF_FREEDOM + 1.0) * by_row_of_t + squares / mean_square)
    by_row *= shares
    score = np.mean(by_row) - 0.25 * np.log(square * mean_square) - np.log(largest)
    return TrialResult(float(score), by_row)


def _square_of_scale(squares: FloatArray, shares: FloatArray | float, start: float) -> float:
    """The squared scale at which errors with these squares are most likely as Student's t."""
    square = start
    for _ in range(SCALE_STEPS):
        weights = (DEGREES_OF_FREEDOM + 1.0) / (DEGREES_OF_FREEDOM + squares / square)
        before, square = square, max(float(np.mean(shares * weights * squares)), SMALLEST)
        if abs(square - before) <= ACCURACY * before:
            break
    return square


def _relative(row_weights: FloatArray | None) -> FloatArray | float:
    """Weights over their mean."""
    return 1.0 if row_weights is None else row_weights / row_weights.mean()


def _by_density(
    mixture: GaussianMixture, targets: FloatArray, row_weights: FloatArray | None
) -> TrialResult:
    """The mean log predictive density plus the score of the errors.

    The density alone has several modes, some of them with far worse means.
    """
    error = score_of_errors(mixture.mean, targets, row_weights)
    density = _relative(row_weights) * mixture.logpdf(targets)
    return TrialResult(float(np.mean(density)) + error.score, density + error.by_row)
