"""Boscage: probabilistic decision trees and forests.

Mondrian forests for classification and regression that learn online exactly as in batch, forget
rows on request, merge, and predict whole distributions; posteriors over single decision trees,
with the marginal likelihood of the data, and over sums of trees (BART).
"""

from boscage import metrics
from boscage._bart_classifier import BARTClassifier
from boscage._bart_regressor import BARTRegressor
from boscage._bayes_classifier import BayesianTreeClassifier
from boscage._bayes_regressor import BayesianTreeRegressor
from boscage._boscage import __version__
from boscage._classifier import MondrianForestClassifier
from boscage._drawn import DrawnTree
from boscage._io import load
from boscage._posterior_tree import PosteriorTree
from boscage._regressor import MondrianForestRegressor
from boscage._student import StudentMixture
from boscage._tree import MondrianTree
from boscage.mixture import GaussianMixture

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
