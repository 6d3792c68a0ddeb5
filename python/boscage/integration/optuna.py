"""A sampler for Optuna's studies: `boscage.optimize` behind Optuna's interface."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from boscage import _validation
from boscage.mondrian import MondrianForestRegressor
from boscage.optimize import Categorical, Integer, MondrianOptimizer, Real, Space
from boscage.optimize._blocks import block_start
from boscage.optimize.optimizer import GREATEST

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError(
        'MondrianSampler needs Optuna, which is not installed: pip install "boscage[optuna]"'
    ) from error

_logger = optuna.logging.get_logger(__name__)


class MondrianSampler(BaseSampler):
    """A sampler for Optuna that suggests by a Mondrian forest.

    It is `boscage.optimize.MondrianOptimizer` for studies that Optuna keeps. Parameters that all
    trials have in common are suggested together; others, such as those of a branch, come from
    `independent_sampler`. Constraints that are set by ``trial.set_constraint`` are learned by
    forests of their own, and so are the places where trials fail. A pruned trial counts with the
    last value that it reported, and one whose value is infinite has failed. A trial with a value
    outside its range, which may have been enqueued, is left out. As in Optuna, a constraint that a
    trial did not set is met; a trial fails if one is infinite and not met. What is suggested
    depends on the seed, the number of the trial and the trials of the study, so that a sampler of
    the same seed continues a stored study whose start-up trials are complete. From trial 128 on one
    search suggests several, as `MondrianOptimizer` explains.

    Parameters
    ----------
    seed : int, default=None
        Seed of everything; None draws one.
    n_startup_trials : int, default=10
        Number of complete trials, with a finite value, before the forest is asked. Until then
        `independent_sampler` suggests.
    acquisition : {"ucb", "ei", "thompson"}, default="ucb"
        What a good place is; see `MondrianOptimizer`.
    kappa : float, default=2.0
        For "ucb" only; see `MondrianOptimizer`.
    n_candidates : int, default=500
        Number of places that each search compares.
    forest : MondrianForestRegressor, default=None
        An unfitted forest with other settings; see `MondrianOptimizer`.
    independent_sampler : optuna.samplers.BaseSampler, default=None
        Suggests what is not suggested together; None takes a `optuna.samplers.RandomSampler`.
    warn_independent_sampling : bool, default=True
        Whether to log a warning when the forest leaves a parameter to `independent_sampler`.
    n_jobs : int, default=None
        Number of threads for one suggestion.

    Raises
    ------
    ImportError
        If Optuna is not installed (on import of this module).
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import optuna
    >>> from boscage.integration import MondrianSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=20)
    >>> study.best_value < 0.1
    True
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        acquisition: Literal["ucb", "ei", "thompson"] = "ucb",
        kappa: float = 2.0,
        n_candidates: int = 500,
        forest: MondrianForestRegressor | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self._n_startup_trials = _validation.check_count("n_startup_trials", n_startup_trials, 1)
        self._seed = _validation.draw_seed(seed)
        self._options: dict[str, Any] = {
            "acquisition": acquisition,
            "kappa": kappa,
            "n_candidates": n_candidates,
            "forest": forest,
            "n_jobs": n_jobs,
            "n_initial": 1,
        }
        MondrianOptimizer({"x": Real(0, 1)}, **self._options)  # checks them
        of_32_bits = None if seed is None else self._seed % 2**32
        self._independent_sampler = independent_sampler or RandomSampler(seed=of_32_bits)
        self._warn_independent_sampling = warn_independent_sampling
        self._search_space = IntersectionSearchSpace()
        self._forget_study()

    def _forget_study(self) -> None:
        """Drop what was learned of a study. It can be learned again from the study itself."""
        self._key: tuple[Any, ...] = ()
        self._optimizer: MondrianOptimizer | None = None
        self._told: set[int] = set()
        # Optuna's threads share the sampler.
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        learned = ("_key", "_optimizer", "_told", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in learned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_study()

    def reseed_rng(self) -> None:
        """Draw a new seed for `independent_sampler`, as Optuna asks where trials run side by side.

        The forest's seed stays: by it, trials of different numbers get different suggestions.
        """
        self._independent_sampler.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that are suggested together: those that all trials have.

        Parameters
        ----------
        study : optuna.study.Study
            The study.
        trial : optuna.trial.FrozenTrial
            The trial.

        Returns
        -------
        dict
            Distributions by name.
        """
        space = self._search_space.calculate(study)
        return {name: found for name, found in space.items() if not found.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest values for the parameters of a search space.

        Parameters
        ----------
        study : optuna.study.Study
            The study.
        trial : optuna.trial.FrozenTrial
            The trial.
        search_space : dict
            Distributions by name.

        Returns
        -------
        dict
            Values by name; empty if the forest knows too little as yet.

        Raises
        ------
        ValueError
            If the study has several objectives.
        """
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        finished = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
        parameters = _to_parameters(search_space)
        trials = [
            other
            for other in study.get_trials(deepcopy=False, states=finished)
            if other.number != trial.number and _is_in(other, search_space, parameters)
        ]
        n_complete = sum(_is_complete(other) for other in trials)
        if n_complete < self._n_startup_trials:
            return {}
        # One search serves all trials of a block, and knows those before.
        start = block_start(trial.number, self._options["n_candidates"])
        before = [other for other in trials if other.number < start]
        running = [other for other in before if other.state == TrialState.RUNNING]
        later = [other for other in trials if other.number >= start]
        with self._lock:
            params = self._learn(study, search_space, before).suggest(
                pending=[_to_params(other.params, search_space) for other in running],
                tried=[_to_params(other.params, search_space) for other in later],
                number=trial.number,
            )
        return {
            name: found.choices[params[name]]
            if isinstance(found, CategoricalDistribution)
            else params[name]
            for name, found in search_space.items()
        }

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Suggest a value for one parameter, by `independent_sampler`.

        Parameters
        ----------
        study : optuna.study.Study
            The study.
        trial : optuna.trial.FrozenTrial
            The trial.
        param_name : str
            Name of the parameter.
        param_distribution : optuna.distributions.BaseDistribution
            Its distribution.

        Returns
        -------
        object
            The value.

        Raises
        ------
        ValueError
            If the study has several objectives.
        """
        self._raise_error_if_multi_objective(study)
        common = self._search_space.calculate(study).get(param_name)
        is_other = common != param_distribution and not param_distribution.single()
        if self._warn_independent_sampling and is_other:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(complete) >= self._n_startup_trials:
                _logger.warning(
                    f"The parameter {param_name!r} of trial {trial.number} is not one that all "
                    "trials have, with the same distribution: it is sampled by "
                    f"{type(self._independent_sampler).__name__} instead of MondrianSampler. "
                    "warn_independent_sampling=False suppresses this warning."
                )
        return self._independent_sampler.sample_independent(
            study, trial, param_name, param_distribution
        )

    def _learn(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial],
    ) -> MondrianOptimizer:
        """The optimizer, after it was told those of these trials that are finished."""
        limits = sorted({name for other in trials for name in other.constraints})
        key = (study.study_name, study.direction, tuple(search_space.items()), tuple(limits))
        if self._optimizer is None or key != self._key:
            maximize = study.direction == StudyDirection.MAXIMIZE
            self._optimizer = MondrianOptimizer(
                Space(_to_parameters(search_space)),
                direction="maximize" if maximize else "minimize",
                random_state=self._seed,
                **self._options,
            )
            self._key, self._told = key, set()
        for other in trials:
            if other.number in self._told or other.state == TrialState.RUNNING:
                continue
            # Optuna counts a constraint that was not set as met.
            own = [max(other.constraints.get(name, 0.0), -GREATEST) for name in limits]
            value = None if math.inf in own else _value(other)
            self._optimizer.tell(
                _to_params(other.params, search_space),
                value,
                constraints=None if value is None else own,
            )
            self._told.add(other.number)
        return self._optimizer


def _value(trial: FrozenTrial) -> float | None:
    """The value of a finished trial; None if it failed."""
    if trial.state == TrialState.COMPLETE:
        return trial.value
    if trial.state == TrialState.PRUNED:
        step = trial.last_step
        value = math.nan if step is None else trial.intermediate_values[step]
        return value if math.isfinite(value) else None
    return None


def _is_complete(trial: FrozenTrial) -> bool:
    """Whether a trial is complete and the forest takes it so."""
    value = trial.value if trial.state == TrialState.COMPLETE else None
    return value is not None and math.isfinite(value)


def _is_in(
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    parameters: Mapping[str, Real | Integer | Categorical],
) -> bool:
    """Whether a trial has all parameters of a search space, with values that these can take."""
    if any(trial.distributions.get(name) != found for name, found in search_space.items()):
        return False
    try:
        for name, value in _to_params(trial.params, search_space).items():
            parameters[name].position(value)
    except ValueError:
        return False
    return True


def _to_parameters(
    search_space: Mapping[str, BaseDistribution],
) -> dict[str, Real | Integer | Categorical]:
    parameters: dict[str, Real | Integer | Categorical] = {}
    for name, found in search_space.items():
        if isinstance(found, FloatDistribution):
            parameters[name] = Real(found.low, found.high, log=found.log, step=found.step)
        elif isinstance(found, IntDistribution):
            parameters[name] = Integer(found.low, found.high, log=found.log, step=found.step)
        elif isinstance(found, CategoricalDistribution):
            # Choices may be of any type; their numbers stand for them.
            parameters[name] = Categorical(range(len(found.choices)))
        else:
            raise TypeError(f"{name} has an unknown distribution: {found!r}")
    return parameters


def _to_params(
    params: Mapping[str, Any], search_space: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """A trial's values of the parameters of a search space, as the optimizer has them."""
    return {
        name: int(found.to_internal_repr(params[name]))
        if isinstance(found, CategoricalDistribution)
        else params[name]
        for name, found in search_space.items()
    }
