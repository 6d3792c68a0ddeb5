"""Table 5.1: the average depth of a training row in the trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from benches.papers._data import load
from benches.papers._report import Effort, Section, spread

from boscage import MondrianForestClassifier
from boscage.trees import MondrianTree

TITLE = "Table 5.1: depth of Mondrian trees"
PAPERS: dict[str, Any] = {"discount": 10.0, "calibration": None, "feature_weights": None}
SETTINGS = {
    "MF": "as in Figure 5.3",
    "depth": "of leaves, weighted by their rows; ± over trees",
}
#: Table 5.1: mean and standard deviation.
TABLE = {"usps": (19.1, 1.3), "satimage": (17.4, 1.6), "letter": (23.2, 1.8), "dna": (12.0, 0.3)}

#: Why a set is not as in the table.
WHY = {
    "usps": "the thesis used a smoothed rendition of these pixels (LIBSVM's), which could not be "
    "had",
}


def depth(tree: MondrianTree) -> float:
    """Return the average depth of a row."""
    depths, rows = tree.depth[tree.is_leaf], tree.n_rows[tree.is_leaf]
    return float(np.average(depths, weights=rows))


def run(section: Section, effort: Effort) -> None:
    """Compare depths with the table."""
    rows, near = [], {}
    trees = effort.of(100, 10)
    section.settings["trees"] = f"{trees}"
    for name, (mean, deviation) in TABLE.items():
        data = load(name)
        forest = MondrianForestClassifier(
            trees, predictive="realised", random_state=0, **PAPERS
        ).fit(data.X, data.y)
        depths = [depth(tree) for tree in forest.trees_]
        # In the thesis 100 trees.
        error = np.hypot(deviation / 10.0, np.std(depths, ddof=1) / np.sqrt(trees))
        near[name] = abs(np.mean(depths) - mean) <= 3.0 * error
        rows.append(
            [
                name,
                len(data.X),
                f"{np.log2(len(data.X)):.1f}",
                f"{mean} ± {deviation}",
                spread(depths, 1),
            ]
        )
    section.table("Average depth", ["data", "rows", "log2 of it", "thesis", "here"], rows)
    section.text(
        f"The deviations are over trees; the standard error of a mean of {trees} is "
        f"{trees**-0.5:.2f} of them. " + " ".join(f"{name}: {why}." for name, why in WHY.items())
    )
    section.claim(
        "average depths as in the table, growing as log N rather than N",
        "the means differ by at most three standard errors on "
        + (", ".join(n for n, ok in near.items() if ok) or "none"),
        all(near.values()),
        "by more than that on " + ", ".join(name for name, ok in near.items() if not ok),
    )
