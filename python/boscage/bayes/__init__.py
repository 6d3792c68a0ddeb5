"""Bayesian decision trees: chapter 3 of the thesis."""

from boscage.bayes.classifier import BayesianTreeClassifier
from boscage.bayes.regressor import BayesianTreeRegressor

__all__ = ["BayesianTreeClassifier", "BayesianTreeRegressor"]
