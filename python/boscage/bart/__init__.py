"""Bayesian additive regression trees (BART): chapter 4 of the thesis."""

from boscage.bart.classifier import BARTClassifier
from boscage.bart.regressor import BARTRegressor

__all__ = ["BARTClassifier", "BARTRegressor"]
