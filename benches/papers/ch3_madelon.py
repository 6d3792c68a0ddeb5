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
    prior, optimal = (
        {n: fits for (proposal, n), fits in found.items() if proposal == own} for own in PARTICLES
    )
    beaten = {
        n: [
            m
            for m, better in optimal.items()
            if m < n
            and mean(better, "seconds") <= mean(fits, "seconds")
            and mean(better, "log_p") > mean(fits, "log_p")
        ]
        for n, fits in prior.items()
    }
    section.claim(
        "the optimal proposal outperforms the prior's with fewer particles and for a given time",
        "; ".join(
            f"log p {mean(fits, 'log_p'):.3f} by {n:,} of the prior's in "
            f"{mean(fits, 'seconds'):.2f} s, "
            + (
                f"{mean(optimal[beaten[n][0]], 'log_p'):.3f} by {beaten[n][0]} optimal in "
                f"{mean(optimal[beaten[n][0]], 'seconds'):.2f} s"
                if beaten[n]
                else "no better one by optimal particles in that time"
            )
            for n, fits in prior.items()
        ),
        all(beaten.values()),
        "not for every number of the prior's particles",
    )
