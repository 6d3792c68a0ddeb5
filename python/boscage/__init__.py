"""Boscage: probabilistic decision trees and forests.

Mondrian forests for classification and regression that learn online exactly as in batch, forget
rows on request, merge, and predict whole distributions; posteriors over single decision trees,
with the marginal likelihood of the data, and over sums of trees (BART).
"""

from boscage import metrics
from boscage._boscage import __version__
from boscage.bart.classifier import BARTClassifier
from boscage.bart.regressor import BARTRegressor
from boscage.bayes.classifier import BayesianTreeClassifier
from boscage.bayes.regressor import BayesianTreeRegressor
from boscage.distributions.gaussian import GaussianMixture
from boscage.distributions.student import StudentMixture
from boscage.mondrian.classifier import MondrianForestClassifier
from boscage.mondrian.regressor import MondrianForestRegressor
from boscage.persistence import load
from boscage.trees.drawn import DrawnTree
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

__all__ = [
    "BARTClassifier",
    "BARTRegressor",
    "BayesianTreeClassifier",
    "BayesianTreeRegressor",
    "DrawnTree",
    "GaussianMixture",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianTree",
    "PosteriorTree",
    "StudentMixture",
    "__version__",
    "load",
    "metrics",
]
