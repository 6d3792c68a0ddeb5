"""Objects that hold the settings of one algorithm and are passed to an estimator."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class Settings(BaseEstimator):  # type: ignore[misc]
    """Base of settings objects. Not for direct use.

    They have scikit-learn's ``get_params`` and ``set_params``. Therefore nested parameters such as
    ``sampler__n_particles`` work in `sklearn.model_selection.GridSearchCV`, and
    `sklearn.base.clone` copies them. ``fit`` of the estimator checks their values.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]
