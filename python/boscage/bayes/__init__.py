"""Bayesian decision trees: the posterior over single trees, chapter 3 of the thesis.

A prior over trees (equations 3.3 and 3.4) and a conjugate model of the targets in a leaf give the
posterior. `SMC` and `MCMC` sample it. `boscage.bayes.evidence` compares models by the marginal
likelihood, in which trees and leaves are integrated out.
"""

from boscage.bayes import evidence
from boscage.bayes.classifier import BayesianTreeClassifier
from boscage.bayes.regressor import BayesianTreeRegressor
from boscage.bayes.samplers import MCMC, SMC

__all__ = ["MCMC", "SMC", "BayesianTreeClassifier", "BayesianTreeRegressor", "evidence"]
