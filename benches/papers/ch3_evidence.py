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
    met = all(abs(difference) < error for difference, error in pairs.values())
    section.claim(
        "the two proposals converge to the same value",
        "with the most particles, less the prior's (and two standard errors): "
        + "; ".join(
            f"{name}, {other} {difference:+.0f} ({error:.0f})"
            for (name, other), (difference, error) in pairs.items()
        ),
        None if len(seeds) == 1 else met,
        "one seed does not show how far estimates are apart by chance"
        if len(seeds) == 1
        else "all three estimates are unbiased, so those that differ are still too low",
    )
