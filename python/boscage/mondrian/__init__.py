"""Mondrian forests: chapters 5 and 6 of the thesis.

A tree is the restriction of a Mondrian process, drawn from a keyed generator, to the training rows.
A forest is therefore a function of its set of rows, whatever the order and grouping of updates.
"""

from boscage.mondrian._forest.uncertainty import Uncertainty
from boscage.mondrian.classifier import MondrianForestClassifier
from boscage.mondrian.regressor import MondrianForestRegressor

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor", "Uncertainty"]
