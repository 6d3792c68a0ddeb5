"""Reading a model file without knowing what it holds."""

from __future__ import annotations

import os
from typing import BinaryIO

from boscage import _boscage, _inputs
from boscage._bart_classifier import BARTClassifier
from boscage._bart_regressor import BARTRegressor
from boscage._bayes_classifier import BayesianTreeClassifier
from boscage._bayes_regressor import BayesianTreeRegressor
from boscage._classifier import MondrianForestClassifier
from boscage._regressor import MondrianForestRegressor


def load(
    file: str | os.PathLike[str] | BinaryIO, *, n_jobs: int | None = None
) -> (
    MondrianForestClassifier
    | MondrianForestRegressor
    | BayesianTreeClassifier
    | BayesianTreeRegressor
    | BARTClassifier
    | BARTRegressor
):
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
    n_threads = _inputs.n_threads(n_jobs)
    kind = _boscage.model_kind(data)
    if kind == "Bayesian tree classifier":
        classes = _boscage.BayesianTreeClassifier.from_bytes(data)
        return BayesianTreeClassifier._from_model(classes, n_jobs)
    if kind == "Bayesian tree regressor":
        trees = _boscage.BayesianTreeRegressor.from_bytes(data)
        return BayesianTreeRegressor._from_model(trees, n_jobs)
    if kind == "BART classifier":
        signs = _boscage.BartClassifier.from_bytes(data)
        return BARTClassifier._from_model(signs, n_jobs)
    if kind == "BART regressor":
        sums = _boscage.BartRegressor.from_bytes(data)
        return BARTRegressor._from_model(sums, n_jobs)
    if kind == "classifier":
        labels = _boscage.MondrianClassifier.from_bytes(data, n_threads=n_threads)
        return MondrianForestClassifier._from_model(labels, n_jobs)
    numbers = _boscage.MondrianRegressor.from_bytes(data, n_threads=n_threads)
    return MondrianForestRegressor._from_model(numbers, n_jobs)
