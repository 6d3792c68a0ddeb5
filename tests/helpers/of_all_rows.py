"""How much of a classifier's average over trees has nothing to do with where a row lies."""

from __future__ import annotations

import numpy as np

from boscage import MondrianForestClassifier
from reference.arrays import Array


def weight_of_all(model: MondrianForestClassifier, rows: Array) -> Array:
    """Return, as a column, the weight of what trees say of all their rows."""
    return _last(model, model._model.add_votes(rows))


def weight_of_all_left_out(model: MondrianForestClassifier, ids: Array) -> Array:
    """Return the same for rows of the forest, each left out."""
    votes = model._model.add_left_out_votes(ids.astype(np.uint64), [model.discount_])
    return _last(model, votes)


def _last(model: MondrianForestClassifier, votes: Array) -> Array:
    by_row = votes.reshape(-1, model.n_classes_ + 2)
    return np.asarray(by_row[:, -1:] / model.n_estimators)
