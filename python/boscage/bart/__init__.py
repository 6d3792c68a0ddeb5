"""Bayesian additive regression trees (BART): chapter 4 of the thesis.

The target is a sum of many small trees and noise. Markov chains sample the posterior over both: a
sweep changes each tree in turn, given all others, by one of several kernels (Algorithm 4.1).
"""

from boscage.bart.classifier import BARTClassifier
from boscage.bart.kernels import Kernels
from boscage.bart.regressor import BARTRegressor

__all__ = ["BARTClassifier", "BARTRegressor", "Kernels"]
