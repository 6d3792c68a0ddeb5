"""Section 6.5.3: optimisers compared, on ten standard functions and the four grids."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from benches._common import Array
from benches.papers._functions import CHOSEN_BY, FUNCTIONS, grids
from benches.papers._optimizers import OPTIMISERS, SLOW, installed, milliseconds
from benches.papers._optimizers import run as optimise
from benches.papers._report import Effort, Section

TITLE = "Section 6.5.3: optimisers compared"
CHECKPOINTS = (50, 100, 200)
SETTINGS = {
    "boscage": "MondrianOptimizer with its defaults; EI: expected improvement",
    "others": "defaults of Optuna 5, SMAC3 (hyperparameter optimisation, ten trials of its initial "
    "design) and scikit-optimize",
    "tuned on": f"defaults of boscage were chosen by 70 trials of {', '.join(CHOSEN_BY)}",
    "slow": f"{', '.join(SLOW)}: fewer seeds and trials, since a trial takes a third of a second",
}


def run(section: Section, effort: Effort) -> None:
    """Run all optimisers that are installed on all tasks."""
    tasks = effort.of(
        [*FUNCTIONS, *grids()],
        [task for task in FUNCTIONS if task.name in ("branin", "hartmann6")],
    )
    names = installed(effort.of(list(OPTIMISERS), ["random search", "boscage", "optuna TPE"]))
    seeds = {name: effort.seed_list(3 if name in SLOW else 10) for name in names}
    trials = {name: effort.of(100 if name in SLOW else 200, 50) for name in names}
    section.settings["seeds and trials"] = (
        f"{len(seeds[names[0]])} and {trials[names[0]]}"
        + "".join(
            f"; slow: {len(seeds[name])} and {trials[name]}" for name in names if name in SLOW[:1]
        )
    )
    # One process for each core; what a trial takes is measured in its own.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        jobs = {
            (task.name, name, seed): pool.submit(one_run, task.name, name, seed, trials[name])
            for name in names
            for task in tasks
            for seed in seeds[name]
        }
        runs = {job: future.result() for job, future in jobs.items()}
    curves: dict[str, dict[str, Array]] = {
        task.name: {
            name: np.array([runs[task.name, name, seed][0] for seed in seeds[name]])
            for name in names
        }
        for task in tasks
    }
    spent = {
        name: [1e3 * took for key, (_, took) in runs.items() if key[1] == name] for name in names
    }
    checkpoints = [k for k in CHECKPOINTS if k <= max(trials.values())]
    for k in checkpoints:
        known = [name for name in names if trials[name] >= k]
        section.table(
            f"Distance to the least value after {k} trials, medians over seeds",
            ["function", *known],
            [[task, *(median(own[name], k) for name in known)] for task, own in curves.items()],
        )
    section.table(
        f"Mean rank over {len(tasks)} functions (1 is best), and milliseconds of a trial",
        [
            "optimiser",
            *(f"rank after {k}" for k in checkpoints),
            "ms a trial, mean of all runs",
            f"ms a trial after {effort.of(500, 60)}",
        ],
        [
            [
                name,
                *(rank(curves.values(), names, name, k, trials) for k in checkpoints),
                float(np.mean(spent[name])),
                float("nan")
                if name in SLOW
                else milliseconds(OPTIMISERS[name], effort.of(500, 60)),
            ]
            for name in names
        ],
    )
    draw(section, curves, names)


def one_run(task: str, name: str, seed: int, n_trials: int) -> tuple[Array, float]:
    """Run an optimiser on a task, both given by their names."""
    known = {task.name: task for task in FUNCTIONS}
    chosen = known[task] if task in known else next(one for one in grids() if one.name == task)
    return optimise(OPTIMISERS[name], chosen, seed, n_trials)


def median(best: Array, k: int) -> float:
    """Return the median over runs of the best value after `k` trials."""
    return float(np.median(best[:, k - 1]))


def rank(
    curves: Iterable[dict[str, Array]], names: list[str], name: str, k: int, trials: dict[str, int]
) -> float:
    """Return an optimiser's mean rank among those that made so many trials."""
    if trials[name] < k:
        return float("nan")
    ranks = []
    for own in curves:
        ends = np.array([median(own[other], k) for other in names if trials[other] >= k])
        mine = median(own[name], k)
        ranks.append((ends < mine).sum() + 0.5 * ((ends == mine).sum() - 1) + 1.0)
    return float(np.mean(ranks))


def draw(section: Section, curves: dict[str, dict[str, Array]], names: list[str]) -> None:
    """Draw the median of each function's runs."""
    columns = min(5, len(curves))
    rows = -(-len(curves) // columns)
    with section.figure(
        "curves",
        "Distance to the least value against trials, medians over seeds.",
        rows=rows,
        columns=columns,
        figsize=(3.0 * columns, 2.6 * rows),
    ) as axes:
        flat = axes.ravel()
        for ax, (task, own) in zip(flat, curves.items(), strict=False):
            for name in names:
                line = np.maximum(np.median(own[name], axis=0), 1e-4)
                ax.plot(np.arange(1, len(line) + 1), line, label=name)
            ax.set(yscale="log", title=task)
        for ax in flat[len(curves) :]:
            ax.axis("off")
        flat[0].legend(fontsize=6)
