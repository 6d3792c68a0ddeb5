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
#: Fewer runs say nothing about their spread.
LEAST_SEEDS = 5


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

    increasing = lines["pendigits", "prior"]
    section.claim(
        "pendigits: the log marginal likelihood increases with the number of the prior's particles",
        listed("prior"),
        None if len(seeds) == 1 else increasing == sorted(increasing),
        "one seed does not show it" if len(seeds) == 1 else "not from each number to the next",
    )
    section.text(
        f"With the optimal proposal: {listed('optimal')}. Without resampling: {listed(WEIGHTED)}. "
        "The weights by which particles are resampled know only a part of the tree."
    )
    most = {method: numbers[-1] for method, (_, numbers, _) in methods.items()}

    def apart(name: str, one: str, other: str) -> tuple[float, float]:
        """Return a difference with the most particles, and two standard errors of it."""
        each = [
            np.array(values(found[name, method, most[method]], "evidence"))
            for method in (one, other)
        ]
        difference = float(each[1].mean() - each[0].mean())
        if len(seeds) == 1:
            return difference, np.nan
        return difference, 2.0 * float(np.sqrt(sum(v.var(ddof=1) for v in each) / len(seeds)))

    pairs = {
        (name, other): apart(name, "prior", other)
        for name in data
        for other in ("optimal", WEIGHTED)
    }
    shown = "; ".join(
        f"{name}, {other} {difference:+.0f}" + (f" ({error:.0f})" if len(seeds) > 1 else "")
        for (name, other), (difference, error) in pairs.items()
    )
    is_known = len(seeds) >= LEAST_SEEDS
    section.claim(
        "the two proposals converge to the same value",
        f"with the most particles, less the prior's (and two standard errors): {shown}",
        all(abs(d) < error for (_, other), (d, error) in pairs.items() if other == "optimal")
        if is_known
        else None,
        "all three estimate the likelihood without bias, so each mean of logarithms is too low, "
        "and the lowest of them most: there are still too few particles"
        if is_known
        else "so few seeds do not show how far estimates are apart by chance",
    )
