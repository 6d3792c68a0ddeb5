"""Mondrian forests: chapters 5 and 6 of the thesis."""

from boscage.mondrian.classifier import MondrianForestClassifier
from boscage.mondrian.regressor import MondrianForestRegressor

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor"]
