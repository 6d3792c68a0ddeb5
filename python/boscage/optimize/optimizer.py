"""Bayesian optimisation with Mondrian forests: section 6.5.3 of the thesis, as ask and tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from boscage import _validation
from boscage._bases.lock import OwnLock, writing
from boscage._bases.plain import plain
from boscage._types import FloatArray
from boscage.mondrian import MondrianForestRegressor
from boscage.optimize import _candidates
from boscage.optimize._blocks import block_size, block_start
from boscage.optimize._parameters import Categorical, Integer, Real
from boscage.optimize._search import Search
from boscage.optimize._study_file import StudyFile
from boscage.optimize._surrogate import Result, Surrogate, default_forest
from boscage.optimize.space import Space
from boscage.optimize.trial import Trial

Self = TypeVar("Self", bound="MondrianOptimizer")

GREATEST = 1e100
"""Absolute values that are greater, or less than one over it, count as the nearest number that is
not."""


def _bounded(value: float) -> float:
    """A number whose square neither overflows nor vanishes, or 0."""
    return 0.0 if abs(value) < 1.0 / GREATEST else min(max(value, -GREATEST), GREATEST)


class MondrianOptimizer(StudyFile):
    """Minimise or maximise a function that is expensive to evaluate, by a Mondrian forest.

    `ask` suggests a trial, and `tell` says what came of it. A forest predicts the objective from
    the trials so far, and the next trial is where these predictions promise most (section 6.5.3 of
    the thesis). The forest learns online, and is at any time, bit for bit, the one that is fitted
    at once to all trials. So is the whole study: with the same seed, the next suggestion is a
    function of the trials so far, also after `save` and `load`.

    One search for the best places suggests a single trial at first, and several from trial 128 on:
    6 after 200 trials, 24 after 500, and at most a tenth of `n_candidates`. Trials of such a block
    know the results of all blocks before, and not of each other. With "ucb" each has a `kappa` of
    its own, so that some explore and some refine. The time of a trial therefore hardly grows.

    Parameters
    ----------
    space : dict of str to Real, Integer or Categorical, or Space
        The parameters.
    direction : {"minimize", "maximize"}, default="minimize"
        What to do with the objective.
    acquisition : {"ucb", "ei", "thompson"}, default="ucb"
        What a good place is: "ucb" the one whose confidence bound is best, `kappa` standard
        deviations on the better side of the mean (the thesis' choice; the upper bound, if the
        objective is maximised); "ei" the one with the greatest expected improvement over the best
        trial so far, in closed form for the mixture that the forest predicts; "thompson" the one
        that is best for a function drawn from one realised tree.
    kappa : float, default=2.0
        For "ucb" only. The thesis takes 1. Where a search suggests several trials, it is that of
        the first, and the mean of the others', which are drawn from an exponential distribution.
    n_initial : int, default=10
        Number of trials with a value before the forest is asked. Until then suggestions fill the
        space evenly.
    n_candidates : int, default=500
        Number of places that each search compares.
    forest : MondrianForestRegressor, default=None
        An unfitted forest, whose settings are those of the forests for objective and constraints.
        Its feature_range, feature_weights, feature_maps, categorical_features, categories,
        substitutes, window_size, random_state and n_jobs are replaced, and for "thompson"
        predictive and trend (which must be None or "auto"). None takes one that does well and is
        fast.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything.
    n_jobs : int, default=None
        Number of threads; see `MondrianForestRegressor`. Suggestions do not depend on it.

    Attributes
    ----------
    space : Space
        The search space.
    trials : list of Trial
        All trials by number.
    seed : int
        The seed in use.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    TypeError
        If a parameter is of a wrong type.

    See Also
    --------
    boscage.integration.MondrianSampler : The same for Optuna's studies.

    Examples
    --------
    >>> from boscage.optimize import MondrianOptimizer, Real
    >>> optimizer = MondrianOptimizer({"x": Real(-5, 10), "y": Real(0, 15)}, random_state=0)
    >>> for _ in range(20):
    ...     trial = optimizer.ask()
    ...     value = (trial.params["x"] - 1) ** 2 + (trial.params["y"] - 2) ** 2
    ...     trial = optimizer.tell(trial, value)
    >>> optimizer.best_trial.value < 5
    True
    """

    _lock = OwnLock()

    def __init__(
        self,
        space: Space | Mapping[str, Real | Integer | Categorical],
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        acquisition: Literal["ucb", "ei", "thompson"] = "ucb",
        kappa: float = 2.0,
        n_initial: int = 10,
        n_candidates: int = 500,
        forest: MondrianForestRegressor | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.space = space if isinstance(space, Space) else Space(space)
        self.direction = _validation.check_choice("direction", direction, ("minimize", "maximize"))
        self.acquisition = _validation.check_choice(
            "acquisition", acquisition, ("ucb", "ei", "thompson")
        )
        self.kappa = _validation.check_positive("kappa", kappa, zero=True)
        self.n_initial = _validation.check_count("n_initial", n_initial, 1)
        self.n_candidates = _validation.check_count("n_candidates", n_candidates, 1)
        if forest is not None and not isinstance(forest, MondrianForestRegressor):
            raise TypeError(f"forest must be a MondrianForestRegressor, found {forest!r}")
        self.forest = default_forest() if forest is None else clone(forest)
        self.seed = _validation.draw_seed(random_state)
        self.n_jobs = n_jobs
        _validation.n_threads(n_jobs)
        self.trials: list[Trial] = []
        # By number of the trial; an interrupt may leave one for a trial that does not exist.
        self._positions: dict[int, FloatArray] = {}
        # Of finished trials, which do not change, as soon as forests need them.
        self._results: dict[int, Result] = {}
        # What the search for the last block found, after what it depends on.
        self._planned: tuple[tuple[Any, ...], FloatArray] | None = None
        if self.acquisition == "thompson":
            if not (self.forest.trend is None or _validation.is_word(self.forest.trend, "auto")):
                raise ValueError(
                    "acquisition='thompson' draws functions of trees, which know no trend; "
                    f"expected trend=None, found {self.forest.trend!r}"
                )
            # Only trees that are cut can be drawn.
            self.forest.set_params(predictive="realised", trend=None)
        self._surrogate = Surrogate(self.space, self.forest, self.seed, n_jobs)

    def __repr__(self) -> str:
        return (
            f"MondrianOptimizer({self.space!r}, direction={self.direction!r}, "
            f"acquisition={self.acquisition!r}, random_state={self.seed}): "
            f"{len(self.trials)} trials"
        )

    # -- ask and tell -----------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    @writing
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Suggest one or more trials.

        Trials may be asked for while others are pending: the forest then believes that these end as
        it predicts, until they are told, and so looks elsewhere. It forgets such beliefs exactly.
        A trial does not repeat others of its own block, and otherwise ignores them.

        Parameters
        ----------
        n : int, default=None
            Number of trials, to be evaluated at the same time. None suggests a single one.

        Returns
        -------
        Trial or list of Trial
            ``params`` says what to evaluate; `tell` the result.

        Raises
        ------
        ValueError
            If `n` is less than 1.
        """
        if n is None:
            return self._new_trial(self.suggest()).copy()
        count = _validation.check_count("n", n, 1)
        return [self._new_trial(self.suggest()).copy() for _ in range(count)]

    @writing
    def suggest(
        self,
        *,
        pending: Sequence[Mapping[str, Any]] = (),
        tried: Sequence[Mapping[str, Any]] = (),
        number: int | None = None,
    ) -> dict[str, Any]:
        """Suggest values without starting a trial, for studies that are kept elsewhere.

        Parameters
        ----------
        pending : sequence of dict, default=()
            Values of parameters that are being evaluated, besides the pending trials.
        tried : sequence of dict, default=()
            Values that are not to be suggested again, besides those of trials and of `pending`.
        number : int, default=None
            Number of the trial in a study that is kept elsewhere, where all that was told came
            before the trial's block. None takes the number of the next trial.

        Returns
        -------
        dict
            A value for each active parameter.

        Raises
        ------
        ValueError
            If pending or tried values are not in the space, or `number` is negative.
        """
        others = self._stack([self.space.positions(params) for params in pending])
        beside = self._stack([self.space.positions(params) for params in tried])
        count = len(self.trials)
        known = np.concatenate([self._known(count), others, beside])
        is_next = number is None
        number = _validation.check_count("number", count + len(others) if is_next else number, 0)
        start = block_start(number, self.n_candidates)
        if is_next:
            count = min(count, start)
        n_complete = sum(trial.state == "complete" for trial in self.trials[:count])
        if n_complete < self.n_initial:
            points = _candidates.design_point(self.space, number, self.n_initial, self.seed)
        else:
            # Each trial has a place of its own in its block, so that several may ask at once.
            points = np.roll(self._plan(start, count, others), start - number, axis=0)
        fresh = _candidates.without(points, known)
        if not len(fresh):
            rng = np.random.default_rng([self.seed, number])
            fresh = self._search().candidates(known, [], rng)
        return self.space.params(fresh[0])

    def _plan(self, start: int, count: int, others: FloatArray) -> FloatArray:
        """The positions that are suggested to the block of trials from `start` on, best first.

        They are found by one search, which knows the first `count` trials, and those that are
        pending at `others`; it serves as long as it would be the same.
        """
        before = self.trials[:count]
        waiting = [trial.number for trial in before if trial.state == "pending"]
        key = (start, count, tuple(waiting), others.tobytes())
        if self._planned is not None and self._planned[0] == key:
            return self._planned[1]
        waiting += range(count, count + len(others))
        known = np.concatenate([self._known(count), others])
        complete = [trial for trial in before if trial.state == "complete"]
        self._surrogate.hold(self._results_of(before))
        with self._surrogate.believing(waiting, self.space.rows(known[waiting])):
            points = self._search().best_candidates(
                known,
                {trial.number: self._target(trial) for trial in complete},
                {trial.number for trial in complete if trial.is_feasible},
                block_size(start, self.n_candidates),
                np.random.default_rng([self.seed, start]),
            )
        # Of the values that are suggested, as trials will have them.
        found = self._stack([self.space.positions(self.space.params(point)) for point in points])
        self._planned = key, found
        return found

    def _search(self) -> Search:
        return Search(self.space, self._surrogate, self.acquisition, self.kappa, self.n_candidates)

    def _known(self, count: int) -> FloatArray:
        """The positions of the first trials."""
        return self._stack([self._positions[number] for number in range(count)])

    def _results_of(self, trials: list[Trial]) -> dict[int, Result]:
        """What forests are to know of some trials, by number."""
        finished = [trial for trial in trials if trial.state != "pending"]
        for trial in finished:
            if trial.number not in self._results:
                row = self.space.rows(self._positions[trial.number][None])[0]
                target = None if trial.value is None else self._target(trial)
                limits = tuple(_bounded(limit) for limit in trial.constraints)
                self._results[trial.number] = Result(row, target, limits)
        return {trial.number: self._results[trial.number] for trial in finished}

    def _stack(self, positions: list[FloatArray]) -> FloatArray:
        return np.array(positions).reshape(-1, len(self.space.names))

    @writing
    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: float | None,
        *,
        constraints: ArrayLike | None = None,
    ) -> Trial:
        """Say what came of a trial.

        Parameters
        ----------
        trial : Trial, int or dict
            A trial from `ask`, or its number; or the values of parameters of a trial that was not
            asked for.
        value : float or None
            The value of the objective. None, NaN or an infinite number if the trial failed: the
            optimizer then learns where trials fail, and avoids such places. To the forest, values
            beyond 1e100 by magnitude are that number, and those within 1e-100 are 0.
        constraints : sequence of float, default=None
            A number for each constraint, which is met if its number is at most zero. All trials
            have the same constraints; one that failed needs none.

        Returns
        -------
        Trial
            The finished trial.

        Raises
        ------
        ValueError
            If the trial is finished already or unknown, values of parameters are not in the space,
            the number of constraints is another one than before, or a number is too large for a
            float. Nothing changes then.
        TypeError
            If an argument is of a wrong type.
        """
        pending = self._find(trial)
        finished = pending.told(value, constraints)
        self._check_constraints(finished)
        return self._put(finished).copy()

    def optimize(
        self,
        objective: Callable[[dict[str, Any]], float | None],
        n_trials: int,
        *,
        catch: type[Exception] | Sequence[type[Exception]] = (),
    ) -> Trial:
        """Ask, evaluate and tell, several times.

        Parameters
        ----------
        objective : callable
            The function to optimise, of a dict of values by name. What it returns is told.
        n_trials : int
            Number of trials.
        catch : exception type or sequence of these, default=()
            Exceptions that make a trial a failed one. Any other one ends the study; that trial has
            failed as well, or stays pending if it was interrupted.

        Returns
        -------
        Trial
            The best trial.

        Raises
        ------
        ValueError
            If `n_trials` is less than 1, or no trial is feasible.
        TypeError
            If the objective returns neither a number nor None.
        """
        caught = (catch,) if isinstance(catch, type) else tuple(catch)
        for _ in range(_validation.check_count("n_trials", n_trials, 1)):
            trial = self.ask()
            try:
                value = objective(dict(trial.params))
            except Exception as error:
                self.tell(trial.number, None)
                if not isinstance(error, caught):
                    raise
                continue
            try:
                self.tell(trial.number, value)
            except TypeError:  # no number
                self.tell(trial.number, None)
                raise
        return self.best_trial

    def _new_trial(self, params: dict[str, Any]) -> Trial:
        return self._put(Trial(len(self.trials), params))

    def _put(self, trial: Trial) -> Trial:
        """Make a trial the one of its number, the next one or one that there is."""
        # From the values, not from what was suggested: what is learned depends on these alone.
        self._positions[trial.number] = self.space.positions(trial.params)
        self.trials[trial.number : trial.number + 1] = [trial]
        return trial

    def _find(self, trial: Trial | int | Mapping[str, Any]) -> Trial:
        """The pending trial that is meant; a new one for values of parameters."""
        if isinstance(trial, Mapping):
            active = self.space.params(self.space.positions(trial))
            return Trial(len(self.trials), {name: plain(trial[name]) for name in active})
        number = trial.number if isinstance(trial, Trial) else trial
        number = _validation.check_count("trial", number, 0)
        if number >= len(self.trials):
            raise ValueError(f"there is no trial {number}: {len(self.trials)} were asked for")
        found = self.trials[number]
        if isinstance(trial, Trial) and trial.params != found.params:
            raise ValueError(f"trial {number} is not from this optimizer: its parameters differ")
        if found.state != "pending":
            raise ValueError(f"trial {number} was told already: {found.state}")
        return found

    def _check_constraints(self, finished: Trial) -> None:
        if finished.state != "complete" and not finished.constraints:
            return
        for other in self.trials:
            if other.state == "complete" or other.constraints:
                before, now = len(other.constraints), len(finished.constraints)
                if before != now:
                    raise ValueError(
                        f"expected {before} constraints, as for trial {other.number}, found {now}"
                    )
                return

    # -- what is known ----------------------------------------------------------------------------

    @property
    @writing
    def best_trial(self) -> Trial:
        """The best trial that is complete and meets all constraints.

        Raises
        ------
        ValueError
            If there is none yet.
        """
        feasible = [trial for trial in self.trials if trial.is_feasible]
        if not feasible:
            raise ValueError("no trial is complete and meets all constraints")
        sign = 1.0 if self.direction == "minimize" else -1.0
        return min(feasible, key=lambda trial: sign * (trial.value or 0.0)).copy()

    def _target(self, trial: Trial) -> float:
        """The value of a trial as the forest sees it: to be minimised, with a square."""
        assert trial.value is not None
        return _bounded(trial.value if self.direction == "minimize" else -trial.value)

    @property
    @writing
    def surrogate(self) -> MondrianForestRegressor:
        """The forest that predicts the objective: all complete trials, and nothing else.

        Its rows are ``space.rows(space.positions(params)[None])``, its targets the values, with the
        sign changed if they are maximised, and its row numbers those of trials. Searches change it,
        so read it anew after each.
        """
        self._surrogate.hold(self._results_of(self.trials))
        return self._surrogate.objective

    @writing
    def predict(self, params: Mapping[str, Any]) -> tuple[float, float]:
        """Predict the objective.

        Parameters
        ----------
        params : dict
            A value for each active parameter.

        Returns
        -------
        mean, std : float
            Mean and standard deviation, in units of the objective.

        Raises
        ------
        ValueError
            If values are missing or not in the space.
        sklearn.exceptions.NotFittedError
            If no trial is complete.
        """
        row = self.space.rows(self.space.positions(params)[None])
        if not any(trial.state == "complete" for trial in self.trials):
            raise NotFittedError("no trial is complete, so there is nothing to predict from")
        mean, std = self.surrogate.predict(row, return_std=True)
        return float(mean[0] if self.direction == "minimize" else -mean[0]), float(std[0])
