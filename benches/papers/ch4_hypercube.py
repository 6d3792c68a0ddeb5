"""Figures 4.2 to 4.4, Tables 4.1 and 4.2: how well samplers explore the posterior of one tree.

Starts are dispersed: the first chain starts from a stump, the others from draws of the prior. An
effective sample size counts only if chains agree with each other (rank R-hat) and with the best
plateau that any sampler found on the same data. "exact" and "true" count the data sets whose first
chain reached such a tree at some sweep (`first_sweeps`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from benches._common import BETA_S, Array, hypercube
from benches.papers._data import cpu_seconds
from benches.papers._report import Effort, Section, averaged, show, spread

from boscage import BARTRegressor, Kernels
from boscage.diagnostics import effective_size, r_hat, spectral_size

TITLE = "Figures 4.2 to 4.4, Tables 4.1 and 4.2: hypercubes"
SAMPLERS: dict[str, Any] = {"CGM": "cgm", "GrowPrune": "growprune", "PG": "pg", "ours": "auto"}
SWEEPS = 2000
CHAINS = 4
#: The chain that starts from a stump.
FIRST = slice(1)
SETTINGS = {
    "model": "one tree, alpha_s = .95, beta_s = 1, .5, .4, .3, .25 for D = 2, 3, 4, 5, 7, else "
    "defaults",
    "PG": "10 particles, the prior's proposal",
    "chains": f"{CHAINS}, the first half left out; the first starts from a stump as in the thesis, "
    "the others from the prior",
    "ESS": "of the log-likelihood, as R's package coda computes it "
    "(`diagnostics.spectral_size`), mean over chains",
    "ours": '`kernels="auto"`',
}
#: Tables 4.1 and 4.2: effective sample size, and the same for each second.
ESS = {
    2: (751.66, 473.57, 259.11),
    3: (762.96, 285.2, 666.71),
    4: (14.01, 11.76, 686.79),
    5: (2.92, 1.35, 667.27),
    7: (1.16, 1.78, 422.96),
}
ESS_SECOND = {
    2: (157.67, 114.81, 7.69),
    3: (93.01, 26.94, 11.025),
    4: (0.961, 0.569, 5.394),
    5: (0.130, 0.071, 1.673),
    7: (0.027, 0.039, 0.273),
}
# Chains that are further from the best plateau (in standard deviations of the log-likelihood there)
# have not found it.
NEAR = 2.0


class Run(NamedTuple):
    """The chains of a sampler on a data set."""

    seconds: float
    log_likelihood: Array
    n_leaves: Array
    mse: Array
    test_mse: Array
    first: dict[str, int]

    def half(self, traces: Array) -> Array:
        """Return the second half."""
        return traces[:, traces.shape[1] // 2 :]


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


def sample(kernel: Any, d: int, seed: int, sweeps: int) -> Run:
    """Run four chains, without burn-in."""
    x, y, which = hypercube(d, seed, rows=20)
    train = np.arange(len(y)) % 2 == 0
    model = BARTRegressor(
        1,
        kernels=Kernels(kernel, n_particles=10),
        beta_s=BETA_S[d],
        n_chains=CHAINS,
        n_burn=0,
        n_draws=sweeps,
        random_state=seed,
    )
    took = cpu_seconds(lambda: model.fit(x[train], y[train]))
    # All rows in one call; every tenth sweep's error is enough for a curve.
    sums = model.predict_draws(x).reshape(CHAINS, sweeps, len(y))
    mse = np.mean((sums[:, ::10, train] - y[train]) ** 2, axis=2)
    test_mse = np.mean((sums[:, ::10, ~train] - y[~train]) ** 2, axis=2)
    first = first_sweeps(sums[0][:, train], y[train], which[train])
    trace = model.trace_
    return Run(took, trace["log_likelihood"], trace["n_leaves"], mse, test_mse, first)


def plateau(run: Run) -> tuple[float, float]:
    """Return mean and standard deviation of the best chain's second half."""
    halves = run.half(run.log_likelihood)
    best = halves[halves.mean(axis=1).argmax()]
    return float(best.mean()), float(best.std())


def coda(run: Run, chains: slice = slice(None)) -> float:
    """Mean effective size of a chain, as the thesis computes it."""
    traces = run.half(run.log_likelihood)[chains]
    return spectral_size(traces) / len(traces)


def median(values: list[float], digits: int) -> str:
    """Show a median and the range."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    low, middle, high = (f"{value:.{digits}f}" for value in np.percentile(values, [0, 50, 100]))
    return f"{middle} ({low} to {high})"


def agrees(run: Run, best: tuple[float, float]) -> bool:
    """Whether all chains are on the best plateau, and agree."""
    own = run.half(run.log_likelihood)
    near = (np.abs(own.mean(axis=1) - best[0]) < NEAR * best[1]).all()
    return bool(near and r_hat(own) < 1.1)


def run(section: Section, effort: Effort) -> None:
    """Run all samplers on all cubes."""
    seeds = effort.seed_list(5)
    dimensions = effort.of([2, 3, 4, 5, 7], [2, 3, 4])
    sweeps = effort.of(SWEEPS, 1000)
    section.settings["sweeps"] = f"{sweeps}"
    runs = {
        (d, name): [sample(kernel, d, seed, sweeps) for seed in seeds]
        for d in dimensions
        for name, kernel in SAMPLERS.items()
    }
    best = {
        d: [max(plateau(runs[d, name][seed]) for name in SAMPLERS) for seed in seeds]
        for d in dimensions
    }
    each = {key: [coda(one) for one in own] for key, own in runs.items()}
    ess = {key: float(np.mean(sizes)) for key, sizes in each.items()}
    from_stump = {key: [coda(one, FIRST) for one in own] for key, own in runs.items()}
    took = {key: float(np.mean([one.seconds for one in own])) / CHAINS for key, own in runs.items()}
    of_thesis = ["CGM", "GrowPrune", "PG"]
    columns = ["D", *(f"{n}, thesis" for n in of_thesis), *(f"{n}, here" for n in SAMPLERS)]
    section.table(
        f"Table 4.1: ESS by coda of one chain, {averaged(seeds, 'data set')}",
        columns,
        [[d, *ESS[d], *(spread(each[d, n], 0) for n in SAMPLERS)] for d in dimensions],
    )
    section.table(
        "The same of the chain that starts from a stump, as the thesis' does",
        columns,
        [[d, *ESS[d], *(spread(from_stump[d, n], 0) for n in SAMPLERS)] for d in dimensions],
    )
    section.table(
        "Table 4.2: ESS for each second",
        columns,
        [[d, *ESS_SECOND[d], *(ess[d, n] / took[d, n] for n in SAMPLERS)] for d in dimensions],
    )
    rows = []
    for (d, name), own in runs.items():
        ok = [agrees(one, top) for one, top in zip(own, best[d], strict=True)]
        sizes = [effective_size(one.half(one.log_likelihood)) / CHAINS for one in own]
        rows.append(
            [
                d,
                name,
                median([one.half(one.log_likelihood).mean() for one in own], 1),
                float(np.median([top[0] for top in best[d]])),
                float(np.median([r_hat(one.half(one.log_likelihood)) for one in own])),
                f"{sum(ok)}/{len(ok)}",
                float(np.median(sizes)),
                float(np.median([one.half(one.n_leaves).mean() for one in own])),
                median([one.half(one.test_mse).mean() for one in own], 3),
                *(
                    f"{sum(one.first[key] > 0 for one in own)}/{len(own)}"
                    for key in ("exact", "true")
                ),
            ]
        )
    section.text(
        "An effective size says how well a chain explores the place where it is, not whether "
        "this place is the posterior: "
        "in a poor mode it means nothing. So the next table also has the log-likelihood "
        "that the chains reached, the "
        "best that any sampler reached on the same data, and whether the four chains agree with "
        "it and with each other "
        f"(R-hat below 1.1 and within {NEAR:g} standard deviations of the best plateau)."
    )
    section.table(
        "Where the chains are: medians over data sets, and (least to greatest)",
        [
            "D",
            "sampler",
            "log-likelihood",
            "the best",
            "R-hat",
            "agree",
            "rank ESS for each chain",
            "leaves",
            "test MSE",
            "exact",
            "true",
        ],
        rows,
    )
    for d in dimensions[:3]:
        draw(section, d, {name: runs[d, name][0] for name in SAMPLERS})
    check(section, dimensions, runs, best, ess, took)


def draw(section: Section, d: int, runs: dict[str, Run]) -> None:
    """Draw the traces of one data set, as figures 4.2 to 4.4."""
    with section.figure(
        f"d{d}",
        f"Figure 4.{d}: hypercube-{d}, four chains of each sampler (seed 0): leaves, training "
        "and test MSE, log-likelihood.",
        rows=4,
        columns=len(runs),
        figsize=(2.6 * len(runs), 6.4),
        sharex=True,
        sharey="row",
    ) as axes:
        for column, (name, own) in zip(axes.T, runs.items(), strict=True):
            column[0].set_title(name)
            sweeps = np.arange(0, own.n_leaves.shape[1], 10)
            traces = (own.n_leaves[:, ::10], own.mse, own.test_mse, own.log_likelihood[:, ::10])
            for ax, trace in zip(column, traces, strict=True):
                ax.plot(sweeps, trace.T, linewidth=0.7)
            column[0].axhline(2**d, color="0.5", linestyle=":")
            column[1].set_yscale("log")
            column[2].set_yscale("log")
            column[3].set_xlabel("sweep")
        for ax, label in zip(
            axes[:, 0], ("leaves", "training MSE", "test MSE", "log-likelihood"), strict=True
        ):
            ax.set_ylabel(label)


def only(dimensions: list[int]) -> str:
    """Say for which cubes something holds."""
    return f"only for D = {' and '.join(map(str, dimensions))}" if dimensions else "for no D"


def check(
    section: Section,
    dimensions: list[int],
    runs: dict[tuple[int, str], list[Run]],
    best: dict[int, list[tuple[float, float]]],
    ess: dict[tuple[int, str], float],
    took: dict[tuple[int, str], float],
) -> None:
    """Check the claims of section 4.4.2."""

    def listed(values: dict[tuple[int, str], float], ds: list[int], *names: str) -> str:
        return "; ".join(
            f"D={d}: " + ", ".join(f"{n} {show(float(values[d, n]))}" for n in names) for d in ds
        )

    few, many = [d for d in dimensions if d < 4], [d for d in dimensions if d >= 4]
    section.claim(
        "for D = 2 and 3 CGM mixes well (by ESS)",
        listed(ess, few, "CGM"),
        all(ess[d, "CGM"] > 200 for d in few),
        "some of our four chains, which start from dispersed trees, stay where they are, and the "
        "mean over chains counts them; "
        "the thesis has one chain from a stump",
    )
    if many:
        speed = {key: ess[key] / took[key] for key in ess}
        higher, faster = (
            [d for d in many if of[d, "PG"] > 3 * max(of[d, "CGM"], of[d, "GrowPrune"])]
            for of in (ess, speed)
        )
        section.claim(
            "for D = 4 and more PG has a much higher ESS than CGM and GrowPrune",
            listed(ess, many, "CGM", "GrowPrune", "PG"),
            higher == many,
            f"{only(higher)}, and an ESS of chains in different places compares nothing (see the "
            "table above)",
        )
        section.claim(
            "and a much higher ESS per second",
            listed(speed, many, "CGM", "GrowPrune", "PG"),
            faster == many,
            f"{only(faster)}; a sweep of PG takes "
            + ", ".join(
                f"{took[d, 'PG'] / took[d, 'CGM']:.1f} (D={d}: CGM) and "
                f"{took[d, 'PG'] / took[d, 'GrowPrune']:.0f} (GrowPrune)"
                for d in many
            )
            + " times as long",
        )
        ok = {
            (d, n): sum(agrees(one, top) for one, top in zip(runs[d, n], best[d], strict=True))
            for d in many
            for n in SAMPLERS
        }
        section.claim(
            "PG converges much faster to the posterior and explores it",
            f"data sets (of {len(best[many[0]])}) on which all chains reached the best plateau "
            "and agree: "
            + "; ".join(f"D={d}: " + ", ".join(f"{n} {ok[d, n]}" for n in SAMPLERS) for d in many),
            all(ok[d, "PG"] > max(ok[d, "CGM"], ok[d, "GrowPrune"]) for d in many),
            "PG's high ESS is that of a chain in a poor mode: with the prior's proposal ten "
            "particles rarely draw a whole tree "
            "of 16 leaves or more that explains the data better than a small one",
        )
    shown = [d for d in dimensions if d <= 4]
    leaves = {
        (d, n): float(np.mean([one.half(one.n_leaves).mean() for one in runs[d, n]]))
        for d in shown
        for n in SAMPLERS
    }
    section.claim(
        "GrowPrune tends to overestimate the number of leaves (Figures 4.2 to 4.4)",
        listed(leaves, shown, *SAMPLERS),
        all(leaves[d, "GrowPrune"] > max(leaves[d, "CGM"], 2**d) for d in shown),
        "not on each of these cubes",
    )
