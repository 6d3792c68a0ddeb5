"""Section 4.5's outlook and Linero (2018): which features matter, by BART."""

from __future__ import annotations

import numpy as np
from benches._common import Array
from benches.papers._data import cpu_seconds, friedman
from benches.papers._report import Effort, Section, averaged, spread

from boscage import BARTRegressor

TITLE = "Variable selection by BART"
RELEVANT = 5
SETTINGS = {
    "data": "Friedman's function of five features, 250 rows, noise of standard deviation 1"
    " (a function that Linero 2018 uses, too)",
    "BART": "50 trees, 2 chains",
    "selected": "features that more than half of the draws split on (of `cut_counts_`)",
    "methods": "equal split probabilities with each kernel, and `sparse=True` (Linero's "
    "Dirichlet prior)",
}
#: To burn, and as many to keep: full and quick.
SWEEPS = (500, 200)
METHODS: dict[str, dict[str, object]] = {
    "PG": {"kernels": "pg"},
    "GrowPrune": {"kernels": "growprune"},
    "auto": {"kernels": "auto"},
    "auto, sparse": {"kernels": "auto", "sparse": True},
}


def select(
    options: dict[str, object], d: int, seed: int, effort: Effort
) -> dict[str, float | Array]:
    """Fit, and judge the selection and the estimate of the function."""
    x, y, _ = friedman(250, d, 1000 + seed)
    x_test, _, f_test = friedman(1000, d, 5000 + seed)
    sweeps = effort.of(*SWEEPS)
    model = BARTRegressor(
        50,
        n_chains=2,
        n_burn=sweeps,
        n_draws=sweeps,
        random_state=seed,
        **options,  # type: ignore[arg-type]
    )
    took = cpu_seconds(lambda: model.fit(x, y))
    chosen = np.mean(model.cut_counts_ > 0, axis=0) > 0.5
    right = int(chosen[:RELEVANT].sum())
    proportions = model.inclusion_proportions_
    halves = [part.mean(axis=0) for part in np.split(proportions, 2)]
    return {
        "recall": right / RELEVANT,
        "precision": right / max(int(chosen.sum()), 1),
        "share": float(model.feature_importances_[:RELEVANT].sum()),
        "chains": float(np.abs(halves[0] - halves[1]).sum() / 2.0),
        "rmse": float(np.sqrt(np.mean((model.predict(x_test) - f_test) ** 2))),
        "s": took,
    }


def run(section: Section, effort: Effort) -> None:
    """Select features among 20, 100 and 500."""
    sizes = effort.of([20, 100, 500], [20, 100])
    section.settings["sweeps"] = f"{effort.of(*SWEEPS)} to burn, and as many draws"
    seeds = effort.seed_list(5)
    found = {
        (d, name): [select(options, d, seed, effort) for seed in seeds]
        for d in sizes
        for name, options in METHODS.items()
    }
    shown = ["recall", "precision", "share", "chains", "rmse", "s"]
    section.table(
        f"Selection among D features, five of which matter; {averaged(seeds, 'data set')}",
        [
            "D",
            "method",
            "recall",
            "precision",
            "share of splits on the five",
            "distance between chains",
            "RMSE of f",
            "s",
        ],
        [
            [*key, *(spread([float(one[what]) for one in own], 2) for what in shown)]
            for key, own in found.items()
        ],
    )

    def mean(d: int, name: str, what: str) -> float:
        return float(np.mean([one[what] for one in found[d, name]]))

    most = sizes[-1]
    section.claim(
        "(Linero 2018) with a sparse prior BART finds the relevant features among many, and "
        "predicts better",
        f"D = {most}: precision {mean(most, 'auto, sparse', 'precision'):.2f} against "
        f"{mean(most, 'auto', 'precision'):.2f}, recall "
        f"{mean(most, 'auto, sparse', 'recall'):.2f} against {mean(most, 'auto', 'recall'):.2f}, "
        "RMSE "
        f"{mean(most, 'auto, sparse', 'rmse'):.2f} against {mean(most, 'auto', 'rmse'):.2f}",
        mean(most, "auto, sparse", "precision") >= mean(most, "auto", "precision")
        and mean(most, "auto, sparse", "rmse") < mean(most, "auto", "rmse"),
        "the equal prior is as good",
    )
    section.claim(
        "(outlook of section 4.5) better mixing by PG leads to more reliable variable importance",
        "distance between the inclusion proportions of two chains: "
        + "; ".join(
            f"D = {d}: " + ", ".join(f"{n} {mean(d, n, 'chains'):.2f}" for n in METHODS)
            for d in sizes
        ),
        all(mean(d, "PG", "chains") < mean(d, "GrowPrune", "chains") for d in sizes),
        "where its chains are farther apart",
    )
