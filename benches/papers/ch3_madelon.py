"""Figure 3.4: irrelevant features."""

from __future__ import annotations

from benches.papers._bayes import SHARED, Fit, mean, sets, smc, values
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
    # For each number of the prior's particles the most optimal ones that are fewer and no slower.
    rivals = {
        n: max(
            (
                m
                for m, own in optimal.items()
                if m < n and mean(own, "seconds") <= mean(fits, "seconds")
            ),
            default=None,
        )
        for n, fits in prior.items()
    }

    def shown(fits: list[Fit]) -> str:
        return (
            f"{mean(fits, 'log_p'):.3f} and {mean(fits, 'accuracy'):.3f} in "
            f"{mean(fits, 'seconds'):.2f} s"
        )

    section.claim(
        "the optimal proposal outperforms the prior's, in log p and in accuracy, with fewer "
        "particles and for a given time",
        "; ".join(
            f"prior, {n:,} particles: {shown(fits)}; optimal, "
            + (
                "none in that time"
                if (rival := rivals[n]) is None
                else f"{rival}: {shown(optimal[rival])}"
            )
            for n, fits in prior.items()
        ),
        all(
            rival is not None
            and all(mean(optimal[rival], of) > mean(prior[n], of) for of in ("log_p", "accuracy"))
            for n, rival in rivals.items()
        ),
        "not for each number of the prior's particles",
    )
