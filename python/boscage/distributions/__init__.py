"""Predictive distributions: what the regressors' ``predict_dist`` returns.

All share the interface of `PredictiveDistribution`, which every metric and plot takes.
"""

from boscage.distributions._base import PredictiveDistribution
from boscage.distributions.gaussian import GaussianMixture
from boscage.distributions.student import StudentMixture

__all__ = ["GaussianMixture", "PredictiveDistribution", "StudentMixture"]
