"""Figure 3.4: irrelevant features."""

from __future__ import annotations

from benches.papers._bayes import SHARED, mean, sets, smc, values
from benches.papers._report import Effort, Section, averaged, spread

TITLE = "Figure 3.4: irrelevant features (madelon)"
SETTINGS = {
    **SHARED,
    "data": "madelon: 2000 rows, 600 of the validation part to test; 20 of 500 features matter",
    "islands": "1",
}
PARTICLES = {"prior": [100, 1000, 5000, 20_000], "optimal": [1, 10, 100]}


def run(section: Section, effort: Effort) -> None:
    """Compare the two proposals."""
    seeds = effort.seed_list(10)
    data = sets(["madelon"])["madelon"]
    found = {
        (proposal, n): [smc(data, seed, n, proposal) for seed in seeds]
        for proposal, numbers in PARTICLES.items()
        for n in effort.of(numbers, numbers[:2])
    }
    section.table(
        f"madelon: {averaged(seeds)}",
        ["proposal", "particles", "s", "log p(y|x)", "accuracy"],
        [
            [
                *key,
                mean(fits, "seconds"),
                spread(values(fits, "log_p")),
                spread(values(fits, "accuracy")),
            ]
            for key, fits in found.items()
        ],
    )
    with section.figure(
        "curves", "Log p(y|x) and accuracy on the test rows against seconds."
    ) as axes:
        for ax, what in zip(axes[0], ("log_p", "accuracy"), strict=True):
            for proposal in PARTICLES:
                fits = [v for k, v in found.items() if k[0] == proposal]
                ax.plot(
                    [mean(v, "seconds") for v in fits],
                    [mean(v, what) for v in fits],
                    "o-",
                    label=proposal,
                )
            ax.set(xscale="log", xlabel="seconds", ylabel=what)
        axes[0, 0].legend()
    best = {p: max(mean(v, "log_p") for k, v in found.items() if k[0] == p) for p in PARTICLES}
    first = found["optimal", 1]
    slowest = max(
        (v for k, v in found.items() if k[0] == "prior"), key=lambda v: mean(v, "seconds")
    )
    section.claim(
        "the optimal proposal outperforms the prior's with fewer particles and for a given time",
        f"log p at best {best['optimal']:.3f} (optimal) and {best['prior']:.3f} (prior); one "
        "optimal particle: "
        f"{mean(first, 'log_p'):.3f} in {mean(first, 'seconds'):.2f} s, the most of the prior's: "
        f"{mean(slowest, 'log_p'):.3f} in {mean(slowest, 'seconds'):.2f} s",
        best["optimal"] > best["prior"] and mean(first, "log_p") > mean(slowest, "log_p"),
        "a single optimal particle is not better than the most particles of the prior's",
    )
