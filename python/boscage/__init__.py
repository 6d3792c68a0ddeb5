"""Boscage: probabilistic decision trees and forests.

Mondrian forests for classification and regression, which learn online exactly as in batch, forget
rows on request, merge, and predict whole distributions; posteriors over single decision trees, with
the marginal likelihood of the data; and posteriors over sums of trees (BART).
"""

from boscage import diagnostics, disk, metrics, plots
from boscage._core import __version__
from boscage._input.ids import row_numbers
from boscage.bart import BARTClassifier, BARTRegressor, Kernels
from boscage.bayes import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor, evidence
from boscage.distributions import GaussianMixture, PredictiveDistribution, StudentMixture
from boscage.mondrian import MondrianForestClassifier, MondrianForestRegressor, Uncertainty
from boscage.persistence import load
from boscage.trees import DrawnTree, MondrianTree, PosteriorTree

__all__ = [
    "MCMC",
    "SMC",
    "BARTClassifier",
    "BARTRegressor",
    "BayesianTreeClassifier",
    "BayesianTreeRegressor",
    "DrawnTree",
    "GaussianMixture",
    "Kernels",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianTree",
    "PosteriorTree",
    "PredictiveDistribution",
    "StudentMixture",
    "Uncertainty",
    "__version__",
    "diagnostics",
    "disk",
    "evidence",
    "load",
    "metrics",
    "plots",
    "row_numbers",
]
