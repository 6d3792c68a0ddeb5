"""Boscage: probabilistic decision trees and forests.

Mondrian forests for classification and regression that learn online exactly as in batch, forget
rows on request, merge, and predict whole distributions.
"""

from boscage import metrics
from boscage._boscage import __version__
from boscage._classifier import MondrianForestClassifier
from boscage._io import load
from boscage._regressor import MondrianForestRegressor
from boscage._tree import MondrianTree
from boscage.mixture import GaussianMixture

__all__ = [
    "GaussianMixture",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianTree",
    "__version__",
    "load",
    "metrics",
]
