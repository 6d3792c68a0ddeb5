"""Predictive distributions: one distribution for each predicted row."""

from boscage.distributions.gaussian import GaussianMixture
from boscage.distributions.student import StudentMixture

__all__ = ["GaussianMixture", "StudentMixture"]
