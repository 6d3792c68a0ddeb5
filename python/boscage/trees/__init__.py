"""Fitted trees as NumPy arrays, which anybody can check, plot or convert."""

from boscage.trees.drawn import DrawnSums, DrawnTree
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

__all__ = ["DrawnSums", "DrawnTree", "MondrianTree", "PosteriorTree"]
