"""Plots of trees, partitions, calibration and effects."""

from boscage.plots.trees import (
    plot_calibration,
    plot_disagreement,
    plot_effect,
    plot_partition,
    plot_posterior_tree,
    plot_reliability,
    plot_tree,
)

__all__ = [
    "plot_calibration",
    "plot_disagreement",
    "plot_effect",
    "plot_partition",
    "plot_posterior_tree",
    "plot_reliability",
    "plot_tree",
]
