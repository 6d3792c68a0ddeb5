"""Optimisers to compare: each yields values to try, and receives their loss.

Those of other packages need the package: Optuna's tree-structured Parzen estimator and Gaussian
process (with PyTorch), SMAC3 (random forest), and scikit-optimize's extremely randomised trees.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from benches._common import Array
from benches.papers._functions import FUNCTIONS, Task

from boscage.optimize import Integer, MondrianOptimizer, Real

Optimiser: TypeAlias = Callable[[Task, int], Any]


def random_search(task: Task, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    while True:
        if task.levels is None:
            yield rng.random(task.n_parameters).tolist()
        else:
            yield [int(rng.integers(level)) for level in task.levels]


def mondrian(task: Task, seed: int, **options: Any) -> Any:
    if task.levels is None:
        space: dict[str, Any] = {f"x{i}": Real(0, 1) for i in range(task.n_parameters)}
    else:
        space = {f"x{i}": Integer(0, level - 1) for i, level in enumerate(task.levels)}
    study = MondrianOptimizer(space, random_state=seed, **options)
    while True:
        trial = study.ask()
        value = yield list(trial.params.values())
        study.tell(trial, value)


def optuna_study(task: Task, sampler: Any) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    floats, ints = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
    space = {
        f"x{i}": floats(0, 1) if task.levels is None else ints(0, task.levels[i] - 1)
        for i in range(task.n_parameters)
    }
    while True:
        trial = study.ask(space)
        value = yield [trial.params[name] for name in space]
        study.tell(trial, value)


def tpe(task: Task, seed: int) -> Any:
    import optuna

    return optuna_study(task, optuna.samplers.TPESampler(seed=seed))


def optuna_gp(task: Task, seed: int) -> Any:
    import optuna
    import torch

    torch.set_num_threads(1)
    return optuna_study(task, optuna.samplers.GPSampler(seed=seed))


def skopt(task: Task, seed: int) -> Any:
    from skopt import Optimizer

    warnings.simplefilter("ignore")
    space = (
        [(0.0, 1.0)] * task.n_parameters
        if task.levels is None
        else [(0, level - 1) for level in task.levels]
    )
    optimizer = Optimizer(space, base_estimator="ET", random_state=seed)
    while True:
        values = optimizer.ask()
        value = yield [float(one) if task.levels is None else int(one) for one in values]
        optimizer.tell(values, value)


def smac(task: Task, seed: int) -> Any:
    from ConfigSpace import ConfigurationSpace
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory import TrialInfo, TrialValue

    names = [f"x{i}" for i in range(task.n_parameters)]
    ranges = {
        name: (0.0, 1.0) if task.levels is None else (0, task.levels[i] - 1)
        for i, name in enumerate(names)
    }
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            ConfigurationSpace(ranges, seed=seed),
            deterministic=True,
            n_trials=10_000,
            seed=seed,
            output_directory=folder,
        )
        facade = HyperparameterOptimizationFacade(
            scenario,
            lambda config, seed=0: 0.0,
            overwrite=True,
            logging_level=50,
            initial_design=HyperparameterOptimizationFacade.get_initial_design(
                scenario, n_configs=10
            ),
        )
        while True:
            info: TrialInfo = facade.ask()
            value = yield [info.config[name] for name in names]
            facade.tell(info, TrialValue(cost=value))


OPTIMISERS: dict[str, Optimiser] = {
    "random search": random_search,
    "boscage": mondrian,
    "boscage, EI": lambda task, seed: mondrian(task, seed, acquisition="ei"),
    "optuna TPE": tpe,
    "optuna GP": optuna_gp,
    "SMAC3": smac,
    "skopt ET": skopt,
}
#: A trial takes hundreds of milliseconds.
SLOW = ["optuna GP", "SMAC3", "skopt ET"]


def run(make: Optimiser, task: Task, seed: int, n: int) -> tuple[Array, Array]:
    """The best value after each trial, and the optimiser's processor seconds for each."""
    study = make(task, seed)
    took, found = [], []
    start = time.process_time()
    values = next(study)
    for _ in range(n):
        took.append(time.process_time() - start)
        found.append(task(values))
        start = time.process_time()
        values = study.send(found[-1])
    study.close()
    return np.minimum.accumulate(found), np.array(took)


def installed(names: list[str]) -> list[str]:
    """Those optimisers that can be imported."""
    found = []
    for name in names:
        try:
            next(OPTIMISERS[name](FUNCTIONS[0], 0))
        except ImportError as missing:
            print(f"{name} is left out: {missing}")
        else:
            found.append(name)
    return found


def milliseconds(make: Optimiser, n: int) -> float:
    """Mean processor time of a hundred trials after `n` trials of Hartmann-6."""
    last = 100
    _, took = run(make, FUNCTIONS[4], 0, n + 1 + last)
    return 1e3 * float(took[-last:].mean())
