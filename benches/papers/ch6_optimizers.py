"""Section 6.5.3: optimisers compared, on ten standard functions and the four grids."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context

import numpy as np
from benches._common import Array
from benches.papers._data import is_generated, use_generated
from benches.papers._functions import CHOSEN_BY, FUNCTIONS, Task, grids
from benches.papers._optimizers import OPTIMISERS, SLOW, installed, milliseconds
from benches.papers._optimizers import run as optimise
from benches.papers._report import Effort, Section, spread
from benches.papers._studies import Studies, Study
from benches.papers.ch6_optimization import COLUMNS, problems

TITLE = "Section 6.5.3: optimisers compared"
CHECKPOINTS = (50, 100, 200)
#: The functions that defaults were chosen by, and the grid of one of them.
TUNED = [*CHOSEN_BY, "branin grid"]
FORESTS = ["boscage", "boscage, EI", "SMAC3", "skopt ET"]
SETTINGS = {
    "boscage": "MondrianOptimizer with its defaults; EI: expected improvement",
    "others": "defaults of Optuna 5, of SMAC3's facade for hyperparameters (ten trials of its "
    "initial design; it trains its forest anew every eighth trial) and of scikit-optimize",
    "grids": "regular for Branin and Hartmann; distances are to the least value on the whole cube "
    "(the least on Hartmann's grid is 0.181 above it)",
    "tuned on": f"boscage's defaults were chosen by 70 trials of {', '.join(CHOSEN_BY)} and a "
    "sphere",
}


def run(section: Section, effort: Effort) -> None:
    """Run all optimisers that are installed on all tasks."""
    chosen = effort.of(list(tasks()), ["branin", "hartmann6"])
    names = installed(effort.of(list(OPTIMISERS), ["random search", "boscage", "optuna TPE"]))
    if absent := [name for name in OPTIMISERS if name not in names and not effort.quick]:
        section.text(f"Not installed for this run: {', '.join(absent)}.")
    seeds, most = effort.seed_list(10), effort.of(200, 50)
    trials = {name: trials_of(tasks()[name], most) for name in chosen}
    section.settings["seeds and trials"] = (
        f"{len(seeds)} and {most}, at most half of the points of a grid"
    )
    kept = Studies(section.folder / f"{section.name}.studies.jsonl", is_generated())
    studies = [
        (task, name, seed, trials[task]) for seed in seeds for task in chosen for name in names
    ]
    if earlier := [kept.ended[study][1].sum() for study in studies if study in kept.ended]:
        section.settings["of an interrupted run"] = (
            f"{len(earlier)} of {len(studies)} studies; their optimisers took {sum(earlier):.0f} s"
        )
    runs = run_all(studies, kept)
    curves = {
        task: {
            name: np.array([runs[task, name, seed, trials[task]][0] for seed in seeds])
            for name in names
        }
        for task in chosen
    }
    spent = {
        name: 1e3
        * float(np.concatenate([own[1] for study, own in runs.items() if study[1] == name]).mean())
        for name in names
    }
    medians = {
        k: {
            task: {name: float(np.median(best[:, k - 1])) for name, best in own.items()}
            for task, own in curves.items()
            if k <= trials[task]
        }
        for k in CHECKPOINTS
        if k <= most
    }
    for k, table in medians.items():
        section.table(
            f"Distance to the least value after {k} trials, medians over seeds",
            ["function", *next(iter(table.values()))],
            [[task, *own.values()] for task, own in table.items()],
        )
    late = effort.of(500, 60)
    afterwards = {
        name: math.nan if name in SLOW else milliseconds(OPTIMISERS[name], late) for name in names
    }
    table_of_thesis(section, curves, names, effort)
    compare(section, medians, spent, afterwards, late)
    draw(section, curves, names)
    kept.remove()


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks by name."""
    return {task.name: task for task in [*FUNCTIONS, *grids()]}


def trials_of(task: Task, most: int) -> int:
    """Return the number of trials: at most half of the points of a grid."""
    return most if task.levels is None else min(most, math.prod(task.levels) // 2)


def run_all(studies: list[Study], kept: Studies) -> dict[Study, tuple[Array, Array]]:
    """Return the best values and the processor seconds of every study's trials.

    There is one process for each core; what a trial takes is measured in its own.
    """
    with ProcessPoolExecutor(
        mp_context=get_context("spawn"), initializer=use_generated, initargs=(is_generated(),)
    ) as pool:
        jobs = {pool.submit(one_run, *study): study for study in studies if study not in kept.ended}
        for job in as_completed(jobs):
            if job.exception() is None:
                kept.keep(jobs[job], *job.result())
    for job in jobs:
        job.result()
    return {study: kept.ended[study] for study in studies}


def one_run(task: str, name: str, seed: int, n_trials: int) -> tuple[Array, Array]:
    """Run an optimiser on a task, both given by their names."""
    return optimise(OPTIMISERS[name], tasks()[task], seed, n_trials)


def table_of_thesis(
    section: Section, curves: dict[str, dict[str, Array]], names: list[str], effort: Effort
) -> None:
    """Show the best values after the numbers of trials of Table 6.3."""
    rows = []
    for name, problem in problems(effort).items():
        if (own := curves.get(problem.task.name)) is None:
            continue
        values = {
            other: [problem.value(float(best)) for best in own[other][:, problem.n_trials - 1]]
            for other in names
        }
        shown = [spread(found, problem.digits) for found in values.values()]
        rows.append([problem.label(name), *problem.thesis, *shown])
    section.table(
        "Table 6.3 by these optimisers: greatest value found. On Branin and Hartmann they search "
        "the whole cube, so they can find more than the best point of the thesis' grid",
        [*COLUMNS, *names],
        rows,
    )


def compare(
    section: Section,
    medians: dict[int, dict[str, dict[str, float]]],
    spent: dict[str, float],
    afterwards: dict[str, float],
    late: int,
) -> None:
    """Show mean ranks and times."""
    ranks = {
        (k, everything): mean_ranks(
            [own for task, own in table.items() if everything or task not in TUNED]
        )
        for k, table in medians.items()
        for everything in (True, False)
    }
    section.table(
        "Mean rank, 1 is best: on all functions, and on those that no default was chosen by",
        [
            "optimiser",
            *(f"after {k}" + ("" if everything else ", not tuned on") for k, everything in ranks),
            "ms a trial, mean of all runs",
            f"ms a trial after {late}",
        ],
        [
            [
                name,
                *(own[name] for own in ranks.values()),
                spent[name],
                afterwards[name],
            ]
            for name in spent
        ],
    )
    forests = [name for name in FORESTS if name in spent]
    best = [min(forests, key=own.__getitem__) for own in ranks.values()]
    timed = {name: took for name, took in afterwards.items() if not math.isnan(took)}
    del timed["random search"]
    section.text(
        f"Of the optimisers by forests ({'; '.join(forests)}), `boscage` has the least mean rank "
        f"in {best.count('boscage')} of the {len(best)} columns. After {late} trials the fastest "
        f"optimiser with a model is {min(timed, key=timed.__getitem__)}."
        + "".join(
            f" {name} was not timed there; it takes {spent[name]:.0f} ms a trial before."
            for name, took in afterwards.items()
            if math.isnan(took)
        )
    )


def mean_ranks(medians: list[dict[str, float]]) -> dict[str, float]:
    """Return each optimiser's rank, averaged over functions; each of a tie has their mean."""
    ranks: dict[str, list[float]] = {}
    for own in medians:
        ends = np.array(list(own.values()))
        for name, mine in own.items():
            rank = (ends < mine).sum() + 0.5 * ((ends == mine).sum() + 1)
            ranks.setdefault(name, []).append(float(rank))
    return {name: float(np.mean(values)) for name, values in ranks.items()}


def draw(section: Section, curves: dict[str, dict[str, Array]], names: list[str]) -> None:
    """Draw the median of each function's runs."""
    columns = min(5, len(curves))
    rows = -(-len(curves) // columns)
    with section.figure(
        "curves",
        "Distance to the least value (at least 1e-4) against trials, medians over seeds.",
        rows=rows,
        columns=columns,
        figsize=(3.0 * columns, 2.6 * rows),
    ) as axes:
        flat = axes.ravel()
        for ax, (task, own) in zip(flat, curves.items(), strict=False):
            for place, name in enumerate(names):
                line = np.maximum(np.median(own[name], axis=0), 1e-4)
                # There are more optimisers than colours.
                style = "-" if place < 6 else "--"
                ax.plot(np.arange(1, len(line) + 1), line, style, label=name)
            ax.set(yscale="log", title=task)
        for ax in flat[len(curves) :]:
            ax.axis("off")
        flat[0].legend(fontsize=6)
