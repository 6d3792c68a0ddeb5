"""Bayesian optimisation with Mondrian forests (section 6.5.3 of the thesis).

`MondrianOptimizer` suggests trials of an expensive function and learns from their values, one by
one. `Real`, `Integer` and `Categorical` parameters make up the space that it searches.
"""

from boscage.optimize._parameters import Categorical, Integer, Real
from boscage.optimize.optimizer import MondrianOptimizer
from boscage.optimize.space import Space
from boscage.optimize.trial import Trial

__all__ = ["Categorical", "Integer", "MondrianOptimizer", "Real", "Space", "Trial"]
