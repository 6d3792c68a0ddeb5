"""Figure 3.7: the log marginal likelihood against the number of particles."""

from __future__ import annotations

import numpy as np
from benches.papers._bayes import SHARED, mean, sets, smc, values
from benches.papers._report import Effort, Section, averaged, spread

TITLE = "Figure 3.7: the marginal likelihood"
SETTINGS = {**SHARED, "islands": "1", "expansion": "node by node"}
PARTICLES = {"prior": [100, 1000, 5000, 20_000], "optimal": [1, 10, 100, 1000]}
#: The optimal proposal, with particles that are weighted and never resampled.
WEIGHTED = "optimal, no resampling"


def run(section: Section, effort: Effort) -> None:
    """Estimate the evidence by both proposals."""
    seeds = effort.seed_list(10)
    data = sets()
    sizes = {name: numbers[: effort.of(None, 3)] for name, numbers in PARTICLES.items()}
    methods: dict[str, tuple[str, list[int], dict[str, float]]] = {
        **{name: (name, numbers, {}) for name, numbers in sizes.items()},
        WEIGHTED: ("optimal", sizes["optimal"][1:3], {"ess_threshold": 0.0}),
    }
    found = {
        (name, method, n): [
            smc(rows.head(len(rows.X), 100), seed, n, proposal, **changes) for seed in seeds
        ]
        for name, rows in data.items()
        for method, (proposal, numbers, changes) in methods.items()
        for n in numbers
    }
    section.table(
        f"Mean log marginal likelihood of the training labels, {averaged(seeds)}",
        ["data", "proposal", "particles", "log p(Y|X)", "s"],
        [
            [*key, spread(values(fits, "evidence"), 0), mean(fits, "seconds")]
            for key, fits in found.items()
        ],
    )
    with section.figure(
        "curves", "Mean log marginal likelihood against the number of particles."
    ) as axes:
        for ax, name in zip(axes[0], data, strict=True):
            for method in methods:
                fits = {k[2]: v for k, v in found.items() if k[:2] == (name, method)}
                ax.plot(
                    list(fits), [mean(v, "evidence") for v in fits.values()], "o-", label=method
                )
            ax.set(xscale="log", xlabel="particles", ylabel="log p(Y|X)", title=name)
        axes[0, 0].legend()
    lines = {
        (name, method): [mean(v, "evidence") for k, v in found.items() if k[:2] == (name, method)]
        for name in data
        for method in methods
    }

    def listed(*shown: str) -> str:
        return "; ".join(
            f"{name}, {method}: " + ", ".join(f"{value:.0f}" for value in line)
            for (name, method), line in lines.items()
            if method in shown
        )

    of_thesis = {key: line for key, line in lines.items() if key[1] in PARTICLES}
    section.claim(
        "the log marginal likelihood increases with the number of particles",
        listed(*PARTICLES),
        all(line == sorted(line) for line in of_thesis.values()),
        "it does with the prior's proposal. With the optimal one it falls where resampling "
        "begins, by weights that know a part of the tree only. Without resampling: "
        + listed(WEIGHTED),
    )
    # The largest numbers of particles, and how far estimates are from each other there.
    apart = {name: abs(lines[name, "prior"][-1] - lines[name, "optimal"][-1]) for name in data}
    first = {name: abs(lines[name, "prior"][0] - lines[name, "optimal"][-1]) for name in data}
    deviation = {
        name: max(
            np.std(values(found[name, method, numbers[-1]], "evidence"), ddof=len(seeds) > 1)
            for method, numbers in sizes.items()
        )
        for name in data
    }
    below = {name: lines[name, WEIGHTED][-1] - lines[name, "prior"][-1] for name in data}
    section.claim(
        "the two proposals converge to the same value",
        "with the most particles "
        + ", ".join(
            f"{apart[n]:.0f} apart on {n} (a run's standard deviation is {deviation[n]:.0f}; with "
            f"the fewest of the prior's {first[n]:.0f})"
            for n in data
        ),
        all(apart[n] < deviation[n] and abs(below[n]) < deviation[n] for n in data),
        "they meet within the spread of a run, but both are still too low: the estimate without "
        "resampling, which is unbiased too, is higher than the prior's by "
        + ", ".join(f"{below[n]:.0f} ({n})" for n in data),
    )
