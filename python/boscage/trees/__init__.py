"""Fitted trees as NumPy arrays, which anybody can check, plot or convert."""

from boscage.trees.drawn import DrawnTree
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

__all__ = ["DrawnTree", "MondrianTree", "PosteriorTree"]
