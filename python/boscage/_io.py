"""Reading a model file without knowing what it holds."""

from __future__ import annotations

import os
from typing import BinaryIO, TypeAlias

from boscage import _boscage
from boscage._bart_classifier import BARTClassifier
from boscage._bart_regressor import BARTRegressor
from boscage._bayes_classifier import BayesianTreeClassifier
from boscage._bayes_regressor import BayesianTreeRegressor
from boscage._classifier import MondrianForestClassifier
from boscage._regressor import MondrianForestRegressor

_AnyModel: TypeAlias = (
    MondrianForestClassifier
    | MondrianForestRegressor
    | BayesianTreeClassifier
    | BayesianTreeRegressor
    | BARTClassifier
    | BARTRegressor
)
_CLASSES: dict[str, type[_AnyModel]] = {
    "mondrian_classifier": MondrianForestClassifier,
    "mondrian_regressor": MondrianForestRegressor,
    "bayesian_tree_classifier": BayesianTreeClassifier,
    "bayesian_tree_regressor": BayesianTreeRegressor,
    "bart_classifier": BARTClassifier,
    "bart_regressor": BARTRegressor,
}


def load(file: str | os.PathLike[str] | BinaryIO, *, n_jobs: int | None = None) -> _AnyModel:
    """Read whichever model a file holds; a forest goes on learning as if it had never been saved.

    Parameters
    ----------
    file : path-like or binary file
        What was written by ``save``, from Python or from Rust. Reading one never runs code.
    n_jobs : int, default=None
        Threads to load with; the model's ``n_jobs``.

    Returns
    -------
    estimator
        Of the class that was saved: a Mondrian forest, a Bayesian decision tree, or BART.

    Raises
    ------
    ValueError
        If the file is damaged, or no model file.
    OSError
        If it cannot be read.
    """
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            data = opened.read()
    else:
        data = file.read()
    return _CLASSES[_boscage.model_kind(data)]._from_bytes(data, n_jobs)
