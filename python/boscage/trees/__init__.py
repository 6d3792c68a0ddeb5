"""Fitted trees as NumPy arrays, to be checked, plotted or converted."""

from boscage.trees.drawn import DrawnSums, DrawnTree
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

__all__ = ["DrawnSums", "DrawnTree", "MondrianTree", "PosteriorTree"]
