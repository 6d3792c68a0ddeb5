"""Hypercube-D (section 4.4.1): how well each kernel finds and explores the posterior of a tree.

Starts are dispersed: the first chain starts from a stump, the others from draws of the prior. An
effective sample size counts only if chains agree with each other (rank R-hat) and with the best
plateau that any kernel found on the same data. "exact" and "true" count the data sets whose first
chain reached such a tree at some sweep (`first_sweeps`).
"""

from __future__ import annotations

import itertools
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import Array, Table, arguments
from boscage import BARTRegressor
from boscage.diagnostics import effective_size, r_hat

# Of the thesis' footnote 6: about 2^D leaves are expected.
BETA_S = {2: 1.0, 3: 0.5, 4: 0.4, 5: 0.3, 7: 0.25}
KERNELS = ["auto", "edit", "regrow", "local", "growprune", "cgm", "pg"]
# Chains that are further from the best plateau (in standard deviations of the log-likelihood there)
# have not found it.
NEAR = 2.0


class Run(NamedTuple):
    """The result of a kernel on a data set."""

    seconds: float
    log_likelihood: Array
    n_leaves: Array
    mse: Array
    first: dict[str, int]


def hypercube(d: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows about the vertices of a cube, targets, and each row's vertex."""
    rng = np.random.default_rng(seed)
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    which = np.repeat(np.arange(len(vertices)), 10)
    x = vertices[which] + 0.1 * rng.normal(size=(len(which), d))
    f = 3.0 * rng.normal(size=len(vertices))
    return x, f[which] + 0.01 * rng.normal(size=len(which)), which


def first_sweeps(sums: Array, y: Array, which: Array) -> dict[str, int]:
    """Return the sweeps at which a chain first was exact, and first had the true partition (or 0).

    Exact: every row is near the value of its leaf, so only vertices with similar values share a
    leaf. True partition: in addition, no vertex is in two leaves.
    """
    exact = np.abs(sums - y).max(axis=1) < 1.0
    by_vertex = sums.reshape(len(sums), which.max() + 1, -1)
    whole = (np.ptp(by_vertex, axis=2) == 0.0).all(axis=1)
    first = {"exact": exact, "true": exact & whole}
    return {name: int(np.argmax(is_so)) + 1 if is_so.any() else 0 for name, is_so in first.items()}


def sample(kernels: str, d: int, seed: int, sweeps: int) -> Run:
    """Run four chains, without burn-in."""
    x, y, which = hypercube(d, seed)
    model = BARTRegressor(
        1, kernels=kernels, beta_s=BETA_S[d], n_burn=0, n_draws=sweeps, random_state=seed
    )
    start = time.perf_counter()
    model.fit(x, y)
    took = time.perf_counter() - start
    trace = model.trace_
    sums = model.predict_draws(x).reshape(model.n_chains, sweeps, len(y))
    mse = np.mean((sums - y) ** 2, axis=2)
    first = first_sweeps(sums[0], y, which)
    return Run(took, trace["log_likelihood"], trace["n_leaves"], mse, first)


def plateau(run: Run) -> tuple[float, float]:
    """Return mean and standard deviation of the best chain's second half."""
    halves = run.log_likelihood[:, run.log_likelihood.shape[1] // 2 :]
    best = halves[halves.mean(axis=1).argmax()]
    return float(best.mean()), float(best.std())


def report(table: Table, name: str, runs: list[Run], best: list[tuple[float, float]]) -> None:
    """Add a row of medians over data sets."""
    half = runs[0].log_likelihood.shape[1] // 2
    halves = [run.log_likelihood[:, half:] for run in runs]
    near = [
        bool((np.abs(own.mean(axis=1) - mean) < NEAR * std).all())
        for own, (mean, std) in zip(halves, best, strict=True)
    ]
    agree = [ok and r_hat(own) < 1.1 for own, ok in zip(halves, near, strict=True)]
    sizes = [effective_size(own) for own, ok in zip(halves, agree, strict=True) if ok]
    took = float(np.median([run.seconds for run in runs]))
    found = {
        name: [run.first[name] for run in runs if run.first[name]] for name in ("exact", "true")
    }
    table.add(
        name,
        1000.0 * took / runs[0].log_likelihood.size,
        float(np.median([own.mean() for own in halves])),
        float(np.median([run.n_leaves[:, half:].mean() for run in runs])),
        float(np.median([run.mse[:, half:].mean() for run in runs])),
        float(np.median([r_hat(own) for own in halves])),
        f"{sum(agree)}/{len(runs)}",
        float(np.median(sizes)) if sizes else "-",
        float(np.median(sizes)) / took if sizes else "-",
        f"{len(found['exact'])}/{len(runs)}",
        f"{len(found['true'])}/{len(runs)}",
        float(np.median(found["true"])) if found["true"] else "-",
    )


def figure(d: int, runs: dict[str, Run], folder: Path) -> None:
    """Draw the traces of one data set, as figures 4.2 to 4.4."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        3, len(runs), figsize=(3 * len(runs), 7), sharex=True, sharey="row", squeeze=False
    )
    for column, (name, run) in zip(axes.T, runs.items(), strict=True):
        column[0].set_title(name)
        for ax, traces in zip(column, (run.n_leaves, run.mse, run.log_likelihood), strict=True):
            ax.plot(traces.T, linewidth=0.6)
        column[0].axhline(2**d, color="grey", linestyle=":")
        column[1].set_yscale("log")
        column[2].set_xlabel("sweep")
    for ax, label in zip(axes[:, 0], ("leaves", "training MSE", "log-likelihood"), strict=True):
        ax.set_ylabel(label)
    fig.tight_layout()
    fig.savefig(folder / f"hypercube_{d}.png", dpi=110)
    plt.close(fig)


def main() -> None:
    args = arguments(__doc__, seeds=10, sweeps=2000, dimensions="2,3,4,5,7", kernels="all")
    warnings.simplefilter("ignore", ConvergenceWarning)
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    kernels = KERNELS if args.kernels == "all" else args.kernels.split(",")
    seeds, sweeps = (2, 300) if args.quick else (args.seeds, args.sweeps)
    columns = ["kernels", "s/1000", "log lik.", "leaves", "MSE", "R-hat", "agree", "ESS", "ESS/s"]
    for d in map(int, ["2", "3"] if args.quick else args.dimensions.split(",")):
        title = f"hypercube-{d}: medians of {seeds} data sets, 4 chains of {sweeps} sweeps"
        table = Table(title, [*columns, "exact", "true", "at sweep"], 10)
        runs = {name: [sample(name, d, seed, sweeps) for seed in range(seeds)] for name in kernels}
        best = [max(plateau(own[seed]) for own in runs.values()) for seed in range(seeds)]
        for name, own in runs.items():
            report(table, name, own, best)
        figure(d, {name: own[0] for name, own in runs.items()}, folder)


if __name__ == "__main__":
    main()
