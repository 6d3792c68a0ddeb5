"""Fitted trees as NumPy arrays, one class for each room of the package."""

from boscage.trees.drawn import DrawnTree
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

__all__ = ["DrawnTree", "MondrianTree", "PosteriorTree"]
