"""The papers' figures on their data: accuracies of Figure 5.3 and average depths of Table 5.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier
from papers import load

pytestmark = pytest.mark.slow
PAPERS: dict[str, Any] = {"feature_weights": None, "calibration": None}


@pytest.mark.parametrize(
    ("name", "least"),
    [("letter", 0.955), ("usps", 0.91), ("satimage", 0.88), ("dna", 0.64), ("pendigits", 0.96)],
)
@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_accuracy_reaches_that_of_figure_5_3(name: str, least: float, predictive: str) -> None:
    """Figure 5.3 (letter 0.96, usps 0.92, satimage 0.89; dna low, for its irrelevant columns).

    A test set of 1,186 to 5,000 rows leaves a standard error of a third to one point and a half.
    """
    x, y, x_test, y_test = load(name)
    forest = MondrianForestClassifier(100, predictive=predictive, random_state=0, **PAPERS).fit(
        x, y
    )
    assert forest.score(x_test, y_test) >= least


@pytest.mark.parametrize(
    ("name", "depth", "deviation"),
    [("letter", 23.2, 1.8), ("usps", 17.9, 1.3), ("satimage", 17.4, 1.6), ("dna", 12.0, 0.3)],
)
def test_average_depth_is_that_of_table_5_1(name: str, depth: float, deviation: float) -> None:
    """Table 5.1, leaves weighted by their rows, within its deviations.

    For usps the paper has 19.1 on a smoothed rendition of the pixels; on this one three other
    implementations find 17.7 to 18.1.
    """
    x, y, _, _ = load(name)
    forest = MondrianForestClassifier(30, predictive="realised", random_state=0, **PAPERS).fit(x, y)
    depths = []
    for tree in forest.trees_:
        levels = np.zeros(len(tree.parent))
        for node in range(1, len(levels)):
            levels[node] = levels[tree.parent[node]] + 1
        leaf = tree.feature < 0
        depths.append(np.average(levels[leaf], weights=tree.n_rows[leaf]))
    assert abs(np.mean(depths) - depth) < deviation
