"""Figures 3.8 to 3.11: the comparison of Figure 3.6 under other hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from benches.papers import ch3_smc_mcmc
from benches.papers._bayes import PRIOR, Fit, mean, sets, values
from benches.papers._report import Effort, Section, averaged, show, spread

TITLE = "Figures 3.8 to 3.11: other hyperparameters"
SETTINGS = {name: value for name, value in ch3_smc_mcmc.SETTINGS.items() if name != "CART"}
SETTINGS["prior"] = "as in the first column"
FIGURES: dict[str, Any] = {
    "3.6": {},
    "3.8": {"alpha_s": 0.8},
    "3.9": {"beta_s": 0.2},
    "3.10": {"alpha_s": 0.8, "beta_s": 0.2},
    "3.11": {"alpha": 1.0},
}
SIZES = {"prior": [100, 500, 2000], "optimal": [5, 50], "MCMC": [20_000, 100_000]}
QUICK = {"prior": [100, 500], "optimal": [5], "MCMC": [10_000]}


def run(section: Section, effort: Effort) -> None:
    """Repeat the comparison for each figure."""
    data = sets()
    sizes = effort.of(SIZES, QUICK)
    seeds = effort.seed_list(10)
    rows, faster, found_of = [], {}, {}
    # By number of optimal particles: where some number of the prior's is no slower and no worse.
    cheaper: dict[int, list[str]] = {n: [] for n in sizes["optimal"]}
    for number, changes in FIGURES.items():
        found = found_of[number] = ch3_smc_mcmc.fit_all(seeds, data, sizes, PRIOR | changes)
        label = f"{number}: " + (
            ", ".join(f"{k} = {v}" for k, v in changes.items()) or "as in section 3.4.1"
        )
        for name in data:
            for method, numbers in sizes.items():
                for n in numbers:
                    fits = found[name, method, n]
                    rows.append(
                        [
                            label,
                            name,
                            f"{method}, {n}",
                            mean(fits, "seconds"),
                            *(spread(values(fits, what)) for what in ("log_p", "accuracy")),
                        ]
                    )
            times = [ch3_smc_mcmc.speedups(found, [name], m)[name] for m in ("prior", "optimal")]
            faster[number, name] = max(times)
            for n, cases in cheaper.items():
                if any(
                    no_worse(found[name, "prior", other], found[name, "optimal", n])
                    for other in sizes["prior"]
                ):
                    cases.append(f"{number} {name}")
    section.table(
        averaged(seeds).capitalize(),
        ["figure", "data", "method, particles or steps", "s", "log p(y|x)", "accuracy"],
        rows,
    )
    section.claim(
        "SMC consistently offers a better trade of log p against time than MCMC",
        "times faster to the log p of the longest chain (the better proposal): "
        + ", ".join(f"{n} {name} {show(t)}" for (n, name), t in faster.items()),
        min(faster.values()) > 1.0,
        "not on every set (0: the chain's log p was not reached)",
    )
    n_cases = len(faster)
    section.claim(
        "the prior's proposal offers a better trade than the optimal one",
        "a number of its particles takes no longer and has no lower log p than "
        + ", ".join(
            f"{n} of the optimal in {len(cases)} of {n_cases} cases" for n, cases in cheaper.items()
        ),
        all(len(cases) == n_cases for cases in cheaper.values()),
        "not for "
        + " and ".join(
            f"{n} of the optimal" + (f" (but in {', '.join(cases)})" if cases else "")
            for n, cases in cheaper.items()
            if len(cases) < n_cases
        )
        + ". Our particles share the nodes that they have in common, and with them the scan over "
        "all cuts, so that one of the optimal proposal costs less than in the thesis",
    )
    gaps = [
        abs(mean(found_of["3.11"][key], "accuracy") - mean(fits, "accuracy"))
        for key, fits in found_of["3.6"].items()
        if key[2] == sizes[key[1]][-1]
    ]
    section.claim(
        "alpha = 1 leads to similar test accuracies as alpha = 5",
        f"differences of at most {max(gaps):.3f}, {np.mean(gaps):.3f} on average",
        max(gaps) < 0.03,
        "a difference of more than .03",
    )


def no_worse(one: list[Fit], other: list[Fit]) -> bool:
    """Whether the first fits take no longer, and predict no worse."""
    return mean(one, "seconds") <= mean(other, "seconds") and mean(one, "log_p") >= mean(
        other, "log_p"
    )
