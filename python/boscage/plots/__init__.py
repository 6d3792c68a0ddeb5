"""Plots of trees, partitions, calibration, uncertainty and effects.

They need Matplotlib (``pip install "boscage[plot]"``), which is imported when a plot is drawn. Each
function takes ``ax=`` and returns the axes that it drew on.
"""

from boscage.plots.bart import plot_effect
from boscage.plots.calibration import plot_calibration, plot_reliability
from boscage.plots.forests import plot_partition
from boscage.plots.posterior import plot_disagreement
from boscage.plots.trees import plot_posterior_tree, plot_tree
from boscage.plots.uncertainty import plot_uncertainty

__all__ = [
    "plot_calibration",
    "plot_disagreement",
    "plot_effect",
    "plot_partition",
    "plot_posterior_tree",
    "plot_reliability",
    "plot_tree",
    "plot_uncertainty",
]
