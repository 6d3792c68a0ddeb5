"""Figure 3.5: islands, 2000 particles in all."""

from __future__ import annotations

from benches.papers._bayes import SHARED, mean, sets, smc, values
from benches.papers._report import Effort, Section, averaged, spread

TITLE = "Figure 3.5: the number of islands"
TOTAL = 2000
SETTINGS = {**SHARED, "proposal": "prior, node by node", "particles": f"{TOTAL} in all"}
ISLANDS = [1, 5, 10, 20, 50, 100, 200]


def run(section: Section, effort: Effort) -> None:
    """Vary the number of islands."""
    seeds = effort.seed_list(10)
    islands = effort.of(ISLANDS, [1, 5, 20, 200])
    data = sets()
    found = {
        (name, n): [smc(rows, seed, TOTAL // n, "prior", n_islands=n) for seed in seeds]
        for name, rows in data.items()
        for n in islands
    }
    section.table(
        averaged(seeds).capitalize(),
        ["data", "islands", "particles each", "s", "log p(y|x)", "accuracy"],
        [
            [
                name,
                n,
                TOTAL // n,
                mean(fits, "seconds"),
                spread(values(fits, "log_p")),
                spread(values(fits, "accuracy")),
            ]
            for (name, n), fits in found.items()
        ],
    )
    with section.figure(
        "curves", "Test log p(y|x) and accuracy against the number of islands."
    ) as axes:
        for name in data:
            for ax, what in zip(axes[0], ("log_p", "accuracy"), strict=True):
                ax.plot(islands, [mean(found[name, n], what) for n in islands], "o-", label=name)
                ax.set(xscale="log", xlabel="islands", ylabel=what)
        axes[0, 0].legend()
    large, small = (
        [n for n in islands if (TOTAL // n >= 100) == enough] for enough in (True, False)
    )
    some = [n for n in large if n > 1]
    best = {name: max(mean(found[name, n], "log_p") for n in large) for name in data}
    section.claim(
        "performance drops sharply with fewer than 100 particles on an island",
        "; ".join(
            f"{name}: log p {best[name]:.3f} at best with 100 or more, "
            + ", ".join(f"{mean(found[name, n], 'log_p'):.3f} with {TOTAL // n}" for n in small)
            for name in data
        ),
        all(mean(found[name, n], "log_p") < best[name] - 0.01 for name in data for n in small)
        and all(mean(found[name, small[-1]], "log_p") < best[name] - 0.1 for name in data),
        "log p falls by less than .01 somewhere, or by less than .1 with the fewest particles",
    )
    section.claim(
        "with at least 100 particles each, 5 islands or more outperform one",
        "; ".join(
            f"{name}: 1 {mean(found[name, 1], 'log_p'):.3f}, "
            + ", ".join(f"{n} {mean(found[name, n], 'log_p'):.3f}" for n in some)
            for name in data
        ),
        all(
            mean(found[name, n], "log_p") > mean(found[name, 1], "log_p")
            for name in data
            for n in some
        ),
        "one island is as good somewhere",
    )
