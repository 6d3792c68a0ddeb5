"""What forests know of a study: objective, constraints, and where trials fail.

Each trial is a row, with the trial's number as its row number. Forests are functions of their rows,
so it does not matter in which order or grouping trials were told, and a value that is believed for
a while and then forgotten leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from boscage._types import FloatArray, IntArray
from boscage.distributions import GaussianMixture
from boscage.mondrian import MondrianForestClassifier, MondrianForestRegressor
from boscage.mondrian._trend_features import has_names, numbers_of_trend
from boscage.optimize import _acquisition
from boscage.optimize.space import Space

# Settings of the forest that tells where trials fail.
_FAILURE_TREES = 30


@dataclass(frozen=True)
class Result:
    """What came of a trial.

    Attributes
    ----------
    row : ndarray of shape (n_features,)
        Its row.
    target : float or None
        Value of the objective, to be minimised; None if the trial failed.
    limits : tuple of float
        Values of constraints.
    """

    row: FloatArray
    target: float | None
    limits: tuple[float, ...]


def default_forest() -> MondrianForestRegressor:
    """The forest of studies that name none."""
    # Realised predictions take a sixth of the time of averaged ones, and found as good places.
    # Optima lie inside the space, so no mean has to go on beyond it.
    return MondrianForestRegressor(
        50, hyperparameters="ml", noise="global", trend=None, predictive="realised"
    )


class Surrogate:
    """Forests over a space, which learn online.

    Parameters
    ----------
    space : Space
        The space.
    forest : MondrianForestRegressor
        Its settings are those of the forests for objective and constraints.
    seed : int
        Seed of the objective's forest; those of the others follow from it.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    objective : MondrianForestRegressor
        The forest of the objective, which is minimised.
    constraints : list of MondrianForestRegressor
        A forest for each constraint.
    failures : MondrianForestClassifier or None
        Whether a trial succeeds, if one has failed.
    """

    def __init__(
        self, space: Space, forest: MondrianForestRegressor, seed: int, n_jobs: int | None
    ) -> None:
        self._forest, self._seed, self._n_jobs = forest, seed, n_jobs
        self._metric: dict[str, Any] = {
            "feature_range": space.feature_range,
            "feature_weights": space.feature_weights,
        }
        self.objective = self._regressor(0)
        # Wrong settings are refused before anything is evaluated.
        slopes = self.objective._settings().get("trend_features", [])
        if has_names(forest.trend):
            numbers_of_trend(list(forest.trend), None)  # rows have no names of columns: refused
        n_features = len(space.feature_weights)
        if not set(slopes) <= set(range(n_features)):
            raise ValueError(
                f"trend={forest.trend!r} of the forest names a feature that rows of the space, "
                f"which have {n_features}, do not have"
            )
        self.constraints: list[MondrianForestRegressor] = []
        self.failures: MondrianForestClassifier | None = None
        # Numbers of trials whose results are believed.
        self._believed: set[int] = set()

    def _random_state(self, purpose: int) -> int:
        if purpose == 0:
            return self._seed
        sequence = np.random.SeedSequence([self._seed, purpose])
        return int(sequence.generate_state(1, np.uint64)[0])

    def _regressor(self, purpose: int) -> MondrianForestRegressor:
        forest: MondrianForestRegressor = clone(self._forest)
        forest.set_params(
            **self._metric,
            feature_maps=None,
            categorical_features=None,
            categories=None,
            substitutes=None,
            window_size=None,
            random_state=self._random_state(purpose),
            n_jobs=self._n_jobs,
        )
        return forest

    # -- learning ---------------------------------------------------------------------------------

    def hold(self, results: Mapping[int, Result]) -> None:
        """Learn what is not known yet of some trials, and forget all others.

        Parameters
        ----------
        results : dict of int to Result
            What came of each trial, by number.
        """
        self._forget_beliefs()  # that an interrupt has left
        targets = {n: result.target for n, result in results.items() if result.target is not None}
        _hold(self.objective, targets, results)
        limits = {n: result.limits for n, result in results.items() if result.limits}
        if limits and not self.constraints:
            n_constraints = len(next(iter(limits.values())))
            self.constraints = [self._regressor(2 + place) for place in range(n_constraints)]
        for place, forest in enumerate(self.constraints):
            _hold(forest, {n: limit[place] for n, limit in limits.items()}, results)
        self._hold_failures(results)

    def _hold_failures(self, results: Mapping[int, Result]) -> None:
        """The same for the forest that tells where trials fail, if one has failed."""
        succeeds = {n: int(result.target is not None) for n, result in results.items()}
        if all(succeeds.values()):
            self.failures = None
            return
        if self.failures is None:
            self.failures = MondrianForestClassifier(
                _FAILURE_TREES,
                **self._metric,
                random_state=self._random_state(1),
                n_jobs=self._n_jobs,
            )
        _hold(self.failures, succeeds, results, classes=[0, 1])

    @contextmanager
    def believing(self, numbers: list[int], rows: FloatArray) -> Iterator[None]:
        """Take it for granted that pending trials end as predicted, while the block runs.

        Parameters
        ----------
        numbers : list of int
            Numbers of the trials.
        rows : ndarray of shape (n, n_features)
            Their rows.
        """
        forests = [
            forest
            for forest in (self.objective, *self.constraints)
            if numbers and getattr(forest, "n_rows_", 0) > 0
        ]
        believed = [forest.predict(rows) for forest in forests]
        self._believed = set(numbers)
        try:
            for forest, values in zip(forests, believed, strict=True):
                forest.partial_fit(rows, values, ids=numbers)
            yield
        finally:
            self._forget_beliefs()

    def _forget_beliefs(self) -> None:
        """Forget what was believed; after an interrupt some forests may have believed nothing."""
        if self._believed:
            for forest in (self.objective, *self.constraints):
                if gone := sorted(_held(forest) & self._believed):
                    forest.forget(gone)
            self._believed = set()

    # -- what it says -----------------------------------------------------------------------------

    def log_feasibility(self, rows: FloatArray) -> FloatArray:
        """The logarithm of the probability that trials succeed and meet all constraints.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        total = np.zeros(len(rows))
        for forest in self.constraints:
            total += _acquisition.log_probability_below(forest.predict_dist(rows), 0.0)
        if self.failures is not None:
            success = self.failures.predict_proba(rows)[:, 1]
            total += np.log(np.maximum(success, np.finfo(float).tiny))
        return total

    def moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predicted means and standard deviations of the objective.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Rows.

        Returns
        -------
        mean, std : ndarray of shape (n,)
            `std` is positive, also if all targets are equal.
        """
        mean, std = self.objective.predict(rows, return_std=True)
        return mean, np.maximum(std, np.finfo(float).tiny)

    def mixture(self, rows: FloatArray) -> GaussianMixture:
        """Predicted distributions of the objective.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Rows.

        Returns
        -------
        GaussianMixture
        """
        return self.objective.predict_dist(rows)

    def draws(self, rows: FloatArray, seeds: IntArray) -> FloatArray:
        """Functions drawn from realised trees of the objective, at some rows.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Rows.
        seeds : ndarray of shape (n_draws,)
            Each determines a function: the same one for all rows.

        Returns
        -------
        ndarray of shape (n_draws, n)
        """
        mixture, n_trees = self.mixture(rows), self.objective.n_estimators
        return np.array([_acquisition.tree_draw(mixture, n_trees, int(seed)) for seed in seeds])


def _held(forest: MondrianForestRegressor | MondrianForestClassifier) -> set[int]:
    """Numbers of the trials that a forest has learned."""
    return set(forest.ids_.tolist()) if hasattr(forest, "n_rows_") else set()


def _hold(
    forest: MondrianForestRegressor | MondrianForestClassifier,
    targets: Mapping[int, float],
    results: Mapping[int, Result],
    **given: Any,
) -> None:
    """Learn the targets, by number of their trials, that a forest lacks; forget all others."""
    held = _held(forest)
    if gone := sorted(held - targets.keys()):
        forest.forget(gone)
    if new := [number for number in targets if number not in held]:
        rows = np.array([results[number].row for number in new])
        forest.partial_fit(rows, [targets[number] for number in new], ids=new, **given)
