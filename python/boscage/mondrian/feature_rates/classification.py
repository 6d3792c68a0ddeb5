"""Feature rates learned from classes.

Extremely randomised trees, whose cuts depend on the labels, give two candidates: the importance of
each feature, and the rates under which a Mondrian process would most probably have made the cuts of
these trees. Each is tried with several powers. Small forests with the settings of the forest itself
predict rows that the trees have not seen. Equal rates are kept unless the best candidate predicts
these rows better by more than chance explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boscage import _core
from boscage._types import AnyArray, FloatArray, Label, Rows
from boscage.mondrian.feature_rates._shared import (
    EXTRA_TREES_STREAM,
    LEARN_AGAIN,
    LEARNING_ROWS,
    N_EXTRA_TREES,
    TRIAL_STREAM,
    LearnedRates,
    Stage,
    TrialResult,
    first_by_contents,
    sharpen,
)

HELD_OUT = 800
"""The greatest number of rows, at most half of all, that judge the candidates."""
MIN_ROWS = 10
"""With fewer rows than this, rates are equal."""
FIRST_STAGE = Stage(900, 300, 10)
"""Most candidates are ruled out by few trees on few rows."""
LAST_STAGE = Stage(1600, HELD_OUT, 15)
N_LAST = 3
"""The number of candidates in the last stage."""
STANDARD_ERRORS = 2.0
"""By how many standard errors of the difference a candidate must be better than equal rates. The
best of several is better by more than one on noise alone."""
LEAST_GAIN = 0.01
"""And by how much more, in natural logarithms."""
DOUBT = 0.01
"""The share of even probabilities in the predictions that are judged. A single row that a small
forest is too certain of would decide otherwise."""


@dataclass(frozen=True)
class Candidate:
    """Which of the extremely randomised trees' rates, to which power."""

    kind: str
    power: float


EQUAL = Candidate("equal", 0.0)
CANDIDATES = tuple(
    Candidate(kind, power)
    for kind in ("importances", "extra_tree_cuts")
    for power in (0.5, 1.0, 1.5, 2.0, 3.0)
)

__all__: list[str] = []


def learn_rates(
    X: Rows,
    y: AnyArray,
    *,
    settings: Mapping[str, Any],
    low: FloatArray | None,
    high: FloatArray | None,
    seed: int,
    n_threads: int,
) -> LearnedRates:
    """Rates of the features of ``X`` for a forest with these settings; ``y`` holds class codes."""
    if low is None or high is None:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    _, codes = np.unique(y, return_inverse=True)
    rows = first_by_contents(X, codes, LEARNING_ROWS, seed)
    some, codes = X[rows].astype(np.float64), codes[rows]
    n_held = min(HELD_OUT, len(some) // 2)
    found = _extra_trees(some[n_held:], codes[n_held:], seed, n_threads)
    # With few rows, or with equal importances, there is nothing to choose.
    if len(some) < MIN_ROWS or np.ptp(found["importances"]) == 0.0:
        return LearnedRates(found["importances"], 0.0, np.ones(X.shape[1]))
    options = {"low": low, "high": high, "n_threads": n_threads}
    trial = _Trial(some, codes, n_held, {**settings, "seed": seed ^ TRIAL_STREAM}, options)

    def judge(one: Candidate, stage: Stage) -> TrialResult:
        return trial.run(_weights(found, one), stage)

    first = sorted(CANDIDATES, key=lambda one: -judge(one, FIRST_STAGE).score)
    equal = judge(EQUAL, LAST_STAGE)
    gains = {EQUAL: 0.0} | {
        one: judge(one, LAST_STAGE).certain_gain(equal, STANDARD_ERRORS) - LEAST_GAIN
        for one in first[:N_LAST]
    }
    chosen = max(gains, key=lambda one: gains[one])
    if len(some) < LEARN_AGAIN:
        found = _extra_trees(some, codes, seed, n_threads)
    return LearnedRates(found["importances"], chosen.power, _weights(found, chosen))


def _extra_trees(
    X: FloatArray, codes: AnyArray, seed: int, n_threads: int
) -> dict[str, FloatArray]:
    """What extremely randomised trees say of the features."""
    importances, cuts = _core.extra_trees_rates(
        X,
        np.ascontiguousarray(codes, dtype=np.float64),
        classification=True,
        n_estimators=N_EXTRA_TREES,
        seed=seed ^ EXTRA_TREES_STREAM,
        n_threads=n_threads,
    )
    return {"importances": importances, "extra_tree_cuts": cuts}


def _weights(found: Mapping[str, FloatArray], candidate: Candidate) -> FloatArray:
    if candidate == EQUAL:
        return np.ones_like(found["importances"])
    return sharpen(found[candidate.kind], candidate.power)


class _Trial:
    """Small forests with the settings of the forest itself, whose predictions judge rates."""

    def __init__(
        self,
        X: FloatArray,
        codes: AnyArray,
        n_held: int,
        settings: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self._X, self._codes, self._n_held = X, codes, n_held
        self._settings, self._options = settings, options

    def run(self, weights: FloatArray, stage: Stage) -> TrialResult:
        """The leave-one-out log probability of rows that no candidate was learned from."""
        n_held = min(stage.held_out, self._n_held)
        n_others = min(stage.rows - n_held, len(self._X) - self._n_held)
        rows = np.r_[:n_held, self._n_held : self._n_held + n_others]
        n_trees = min(stage.trees, self._settings["n_estimators"])
        # The joint posterior, whose rows are dear to leave out, wants much the same rates.
        settings = {**self._settings, "n_estimators": n_trees, "posterior": "kneser-ney"}
        forest = _core.MondrianClassifier(**settings)
        classes, codes = np.unique(self._codes[rows], return_inverse=True)
        labels: list[Label] = [int(value) for value in classes]
        # Classes are declared, so that one keeps its column while its only row is left out.
        forest.fit(
            self._X[rows],
            codes.astype(np.uint32),
            labels,
            declared=labels,
            weights=weights,
            **self._options,
        )
        left_out = np.arange(n_held, dtype=np.uint64)
        proba = forest.loo_proba(
            left_out,
            None,
            calibration=self._settings["calibration"],
            n_threads=self._options["n_threads"],
        )[0]
        chosen = proba[np.arange(n_held), codes[:n_held]]
        by_row = np.log((1.0 - DOUBT) * chosen + DOUBT / len(labels))
        return TrialResult(float(np.mean(by_row)), by_row)
