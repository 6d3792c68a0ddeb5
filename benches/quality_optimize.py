"""Bayesian optimisation: the best value found after 50, 100 and 200 trials, and the time a trial.

One thread. Ten standard functions, with optima away from the middle of their ranges, and grids as
in Table 6.3 of the thesis: Branin and Hartmann-6 on 250,000 and 262,144 points, the validation
error of a support vector machine and the perplexity of a topic model (these two need the data
sets). Figures are medians over seeds of the distance to the least value. Peers that are not
installed are left out: Optuna's TPE and Gaussian process, SMAC3 (random forest), and
scikit-optimize's extremely randomised trees, random forest and Gaussian process.

Defaults were chosen by 70 trials of Branin, Ackley, Rosenbrock, Styblinski-Tang and a sphere.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from _common import Array, Table, arguments, data_folder
from boscage.optimize import Integer, MondrianOptimizer, Real

Values = list[float]
SHIFT = np.array([0.37, 0.62, 0.28, 0.71, 0.44, 0.55, 0.33, 0.66])
CHOSEN_BY = ["branin", "ackley5", "rosenbrock4", "styblinski5"]


@dataclass(frozen=True)
class Task:
    """A function on the unit cube, or on a grid of the given numbers of levels; least value 0."""

    name: str
    n_parameters: int
    function: Callable[[Array], float]
    levels: tuple[int, ...] | None = None

    def __call__(self, values: Values) -> float:
        return self.function(np.asarray(values, dtype=float))


def branin(u: Array) -> float:
    x, y = 15 * u[0] - 5, 15 * u[1]
    square = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return square + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887


def hartmann6(u: Array) -> float:
    a = np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    )
    p = np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    inner = (a * (u - 1e-4 * p) ** 2).sum(axis=1)
    return 3.32237 - float(np.array([1, 1.2, 3, 3.2]) @ np.exp(-inner))


def ackley(u: Array) -> float:
    x = 40 * (u - SHIFT[: len(u)])
    ripples = np.exp(np.cos(2 * math.pi * x).mean())
    return float(20 + math.e - 20 * np.exp(-0.2 * np.sqrt((x * x).mean())) - ripples)


def rosenbrock(u: Array) -> float:
    x = 4 * u - 2
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def levy(u: Array) -> float:
    w = 1 + (20 * u - 11) / 4
    inner = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum()
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + inner + last)


def styblinski(u: Array) -> float:
    x = 10 * u - 5
    return float(0.5 * (x**4 - 16 * x**2 + 5 * x).sum() + 39.16617 * len(u))


def rastrigin(u: Array) -> float:
    x = 10 * (u - SHIFT[: len(u)])
    return float((x * x - 10 * np.cos(2 * math.pi * x) + 10).sum())


def griewank(u: Array) -> float:
    x = 1200 * (u - SHIFT[: len(u)])
    product = np.prod(np.cos(x / np.sqrt(np.arange(1, len(u) + 1))))
    return float(1 + (x * x).sum() / 4000 - product)


def goldstein_price(u: Array) -> float:
    x, y = 4 * u - 2
    first = 19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y
    second = 18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y
    return (1 + (x + y + 1) ** 2 * first) * (30 + (2 * x - 3 * y) ** 2 * second) - 3


def michalewicz(u: Array) -> float:
    x = math.pi * u
    waves = np.sin(x) * np.sin(np.arange(1, len(u) + 1) * x * x / math.pi) ** 20
    return float(4.687658 - waves.sum())


FUNCTIONS = [
    Task("branin", 2, branin),
    Task("ackley5", 5, ackley),
    Task("rosenbrock4", 4, rosenbrock),
    Task("styblinski5", 5, styblinski),
    Task("hartmann6", 6, hartmann6),
    Task("levy6", 6, levy),
    Task("rastrigin4", 4, rastrigin),
    Task("griewank6", 6, griewank),
    Task("goldstein", 2, goldstein_price),
    Task("michalewicz5", 5, michalewicz),
]


def on_grid(name: str, function: Callable[[Array], float], levels: tuple[int, ...]) -> Task:
    """A function of the unit cube, at the points of a regular grid."""
    scale = np.array(levels) - 1
    return Task(name, len(levels), lambda index: function(index / scale), levels)


def tabulated(name: str) -> Task:
    """One of the two grids of measured values."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
        index, y = data["X_index"].astype(int), data["y"].astype(float)
    table = dict(zip(map(tuple, index.tolist()), y - y.min(), strict=True))
    levels = tuple((index.max(axis=0) + 1).tolist())
    return Task(name, len(levels), lambda values: table[tuple(map(int, values))], levels)


def grids() -> list[Task]:
    tasks = [
        on_grid("branin grid", branin, (500, 500)),
        on_grid("hartmann grid", hartmann6, (8,) * 6),
    ]
    try:
        tasks += [tabulated("svm_grid"), tabulated("lda_grid")]
    except SystemExit as missing:
        print(missing)
    return tasks


# -- optimisers: each yields values to try, and is sent what they give ----------------------------


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


def skopt(kind: str) -> Callable[[Task, int], Any]:
    def study(task: Task, seed: int) -> Any:
        from skopt import Optimizer

        warnings.simplefilter("ignore")
        space = (
            [(0.0, 1.0)] * task.n_parameters
            if task.levels is None
            else [(0, level - 1) for level in task.levels]
        )
        optimizer = Optimizer(space, base_estimator=kind, random_state=seed)
        while True:
            values = optimizer.ask()
            value = yield [float(one) if task.levels is None else int(one) for one in values]
            optimizer.tell(values, value)

    return study


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


OPTIMISERS: dict[str, Callable[[Task, int], Any]] = {
    "random search": random_search,
    "boscage": mondrian,
    "boscage, EI": lambda task, seed: mondrian(task, seed, acquisition="ei"),
    "optuna TPE": tpe,
    "optuna GP": optuna_gp,
    "SMAC3": smac,
    "skopt ET": skopt("ET"),
    "skopt RF": skopt("RF"),
    "skopt GP": skopt("GP"),
}


def run(make: Callable[[Task, int], Any], task: Task, seed: int, n: int) -> tuple[Array, float]:
    """The best value after each trial, and CPU seconds of the optimiser for each."""
    study = make(task, seed)
    spent, found = 0.0, []
    start = time.process_time()
    values = next(study)
    for _ in range(n):
        spent += time.process_time() - start
        found.append(task(values))
        start = time.process_time()
        values = study.send(found[-1])
    study.close()
    return np.minimum.accumulate(found), spent / n


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


def main() -> None:
    options = arguments(
        __doc__,
        seeds=10,
        trials=200,
        only="",
        tasks="",
        scale=500,
    )
    n_seeds, n = (3, 50) if options.quick else (options.seeds, options.trials)
    warnings.simplefilter("ignore")
    chosen = options.only.split(",") if options.only else [*OPTIMISERS]
    names = installed(chosen)
    tasks = [*FUNCTIONS, *grids()]
    if options.tasks:
        tasks = [task for task in tasks if task.name in options.tasks.split(",")]
    elif options.quick:
        tasks = [FUNCTIONS[0], FUNCTIONS[4], *tasks[-2:]]
    checkpoints = [k for k in (50, 100, 200) if k <= n]
    ranks: dict[str, list[Array]] = {name: [] for name in names}
    for task in tasks:
        marked = " (defaults were chosen by it)" if task.name in CHOSEN_BY else ""
        table = Table(
            f"{task.name}, {task.n_parameters} parameters{marked}: distance to the least value",
            ["optimiser", *(f"{k} trials" for k in checkpoints), "quartiles", "ms a trial"],
            width=16,
        )
        curves = {}
        for name in names:
            runs = [run(OPTIMISERS[name], task, seed, n) for seed in range(n_seeds)]
            best = np.array([curve for curve, _ in runs])
            curves[name] = best
            at = [float(np.median(best[:, k - 1])) for k in checkpoints]
            low, high = np.quantile(best[:, -1], [0.25, 0.75])
            spent = 1e3 * float(np.mean([seconds for _, seconds in runs]))
            table.add(name, *at, f"{low:.2g}-{high:.2g}", spent)
        last = np.array(
            [np.median(curves[name][:, [k - 1 for k in checkpoints]], axis=0) for name in names]
        )
        places = (last[:, None] > last[None]).sum(axis=1) + 0.5 * (
            (last[:, None] == last[None]).sum(axis=1) - 1
        )
        for name, place in zip(names, places, strict=True):
            ranks[name].append(1 + place)
    table = Table(
        f"mean rank of the median over {len(tasks)} tasks, {n_seeds} seeds",
        ["optimiser", *(f"{k} trials" for k in checkpoints)],
    )
    for name in names:
        table.add(name, *np.mean(ranks[name], axis=0).tolist())
    scaling(names, 60 if options.quick else options.scale)


def scaling(names: list[str], n: int) -> None:
    """Time of a trial once many are known: Hartmann-6."""
    table = Table(
        f"CPU milliseconds of a trial around trial {n}, hartmann6", ["optimiser", "ms a trial"]
    )
    task, last = FUNCTIONS[4], 10
    for name in names:
        study = OPTIMISERS[name](task, 0)
        values, spent = next(study), 0.0
        for number in range(n):
            value = task(values)
            start = time.process_time()
            values = study.send(value)
            if number >= n - last:
                spent += time.process_time() - start
        study.close()
        table.add(name, 1e3 * spent / last)


if __name__ == "__main__":
    main()
