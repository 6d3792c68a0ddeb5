"""How the gallery runs its examples: their order, their style, and warnings as errors."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

STYLE = Path(__file__).parents[1] / "_static" / "figures.mplstyle"
FILTERS: list[Any] = []
ORDER = [
    "plot_batch_and_stream",
    "plot_deletion",
    "plot_drift",
    "plot_near_and_far",
    "plot_calibration",
    "plot_inside_a_tree",
    "plot_bayesian_trees",
    "plot_bart_effects",
    "plot_variable_selection",
    "plot_mixing",
]


class Order:
    """Sort the examples as a reader would take them; new ones come last."""

    def __init__(self, src_dir: str) -> None:
        pass

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return what to sort a script by."""
        stem = Path(filename).stem
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)


def reset(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Give every example the same style, and let it fail where it warns."""
    if when == "before":
        plt.rcdefaults()
        plt.style.use(STYLE)
        FILTERS[:] = warnings.filters
        warnings.simplefilter("error")
    else:
        warnings.filters[:] = FILTERS
