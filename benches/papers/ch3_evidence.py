"""Figure 3.7: the log marginal likelihood against the number of particles."""

from __future__ import annotations

from benches.papers._bayes import SHARED, mean, sets, smc, values
from benches.papers._report import Effort, Section, averaged, spread

TITLE = "Figure 3.7: the marginal likelihood"
SETTINGS = {**SHARED, "islands": "1", "expansion": "node by node"}
PARTICLES = {"prior": [100, 1000, 5000, 20_000], "optimal": [1, 10, 100, 1000]}


def run(section: Section, effort: Effort) -> None:
    """Estimate the evidence by both proposals."""
    seeds = effort.seed_list(10)
    data = sets()
    found = {
        (name, proposal, n): [smc(rows.head(len(rows.X), 100), seed, n, proposal) for seed in seeds]
        for name, rows in data.items()
        for proposal, numbers in PARTICLES.items()
        for n in effort.of(numbers, numbers[:3])
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
            for proposal in PARTICLES:
                fits = {k[2]: v for k, v in found.items() if k[:2] == (name, proposal)}
                ax.plot(
                    list(fits), [mean(v, "evidence") for v in fits.values()], "o-", label=proposal
                )
            ax.set(xscale="log", xlabel="particles", ylabel="log p(Y|X)", title=name)
        axes[0, 0].legend()
    rises = {
        name: [mean(v, "evidence") for k, v in found.items() if k[:2] == (name, "prior")]
        for name in data
    }
    section.claim(
        "the log marginal likelihood increases with the number of particles",
        "; ".join(
            f"{name}, prior: " + ", ".join(f"{value:.0f}" for value in line)
            for name, line in rises.items()
        ),
        all(line == sorted(line) for line in rises.values()),
        "not at every step",
    )
    best = {
        (name, proposal): max(
            mean(v, "evidence") for k, v in found.items() if k[:2] == (name, proposal)
        )
        for name in data
        for proposal in PARTICLES
    }
    first = {name: best[name, "optimal"] - rises[name][0] for name in data}
    last = {name: abs(best[name, "optimal"] - best[name, "prior"]) for name in data}
    section.claim(
        "the two proposals converge to the same value",
        ", ".join(
            f"{n}: {first[n]:.0f} apart with the fewest particles of the prior's, {last[n]:.0f} "
            "with the most"
            for n in data
        ),
        all(last[n] < 0.1 * first[n] for n in data),
        "they approach each other, but in logarithms the mean of an unbiased estimate is too low "
        "as long as it varies by "
        "hundreds between runs",
    )
