"""What forests know of a study: objective, constraints, and where trials fail.

Each trial is a row, with the trial's number as its row number. Forests are functions of their rows,
so it does not matter in which order or grouping trials were told, and a value that is believed for
a while and then forgotten leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

from boscage._types import FloatArray
from boscage.distributions import GaussianMixture
from boscage.mondrian import MondrianForestClassifier, MondrianForestRegressor
from boscage.optimize import _acquisition
from boscage.optimize.space import Space

# Settings of the forest that tells where trials fail.
_FAILURE_TREES = 30


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
        Whether a trial succeeds, once one has failed.
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
        self.constraints: list[MondrianForestRegressor] = []
        self.failures: MondrianForestClassifier | None = None
        # Rows of trials that succeeded, which a forest for failures will need.
        self._succeeded: list[FloatArray] = []
        self._numbers: list[int] = []

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
            window_size=None,
            random_state=self._random_state(purpose),
            n_jobs=self._n_jobs,
        )
        return forest

    # -- learning ---------------------------------------------------------------------------------

    def add(
        self, number: int, row: FloatArray, target: float | None, limits: tuple[float, ...]
    ) -> None:
        """Learn what came of a trial.

        Parameters
        ----------
        number : int
            Number of the trial.
        row : ndarray of shape (n_features,)
            Its row.
        target : float or None
            Value of the objective, to be minimised; None if the trial failed.
        limits : tuple of float
            Values of constraints.
        """
        if target is not None:
            self.objective.partial_fit(row[None], [target], ids=[number])
        if limits and not self.constraints:
            self.constraints = [self._regressor(2 + place) for place in range(len(limits))]
        for forest, limit in zip(self.constraints, limits, strict=bool(limits)):
            forest.partial_fit(row[None], [limit], ids=[number])
        if self.failures is None and target is None:
            self.failures = MondrianForestClassifier(
                _FAILURE_TREES,
                **self._metric,
                random_state=self._random_state(1),
                n_jobs=self._n_jobs,
            )
            if self._numbers:
                succeeded = np.ones(len(self._numbers), dtype=np.int64)
                self.failures.partial_fit(
                    np.array(self._succeeded), succeeded, classes=[0, 1], ids=self._numbers
                )
        if self.failures is not None:
            label = [int(target is not None)]
            self.failures.partial_fit(row[None], label, classes=[0, 1], ids=[number])
        elif target is not None:
            self._succeeded.append(row)
            self._numbers.append(number)

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
        forests = [forest for forest in (self.objective, *self.constraints) if numbers]
        forests = [forest for forest in forests if getattr(forest, "n_rows_", 0) > 0]
        believed = [forest.predict(rows) for forest in forests]
        try:
            for forest, values in zip(forests, believed, strict=True):
                forest.partial_fit(rows, values, ids=numbers)
            yield
        finally:
            # After an interrupt some forests may have believed nothing.
            for forest in forests:
                held = set(forest.ids_.tolist())
                forest.forget([number for number in numbers if number in held])

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

    def draw(self, rows: FloatArray, seed: int) -> FloatArray:
        """A function drawn from one realised tree of the objective, at some rows.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Rows.
        seed : int
            Determines the function: the same one for all rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        return _acquisition.tree_draw(self.mixture(rows), self.objective.n_estimators, seed)
