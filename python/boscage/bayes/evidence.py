"""Comparing hyperparameters, or sets of features, by the marginal likelihood.

Models that are fitted with the same integer as ``random_state`` share their random numbers, so that
their errors are not independent. The functions here give each model a seed of its own, derived from
the ``random_state`` of the one that is given, unless the grid itself has ``random_state``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from boscage import _validation
from boscage._types import AnyArray, FloatArray
from boscage.bayes._base import BayesianTree

__all__ = ["EvidenceTable", "compare_features", "compare_parameters"]


@dataclass(frozen=True, eq=False)
class EvidenceTable:
    """Models side by side, the one of the greatest marginal likelihood first.

    Attributes
    ----------
    models : list
        What each was fitted with: a dictionary of parameters, or the name of a set of features.
    log_evidence : ndarray of shape (n_models,)
        Logarithm of the marginal likelihood.
    error : ndarray of shape (n_models,)
        Its standard error over islands, which from few particles is too small: see
        ``log_marginal_likelihood_error_`` of the models.
    log_bayes_factor : ndarray of shape (n_models,)
        Against the first: zero, then negative.
    bayes_factor_error : ndarray of shape (n_models,)
        Standard error of ``log_bayes_factor``.
    """

    models: list[Any]
    log_evidence: FloatArray
    error: FloatArray

    @property
    def log_bayes_factor(self) -> FloatArray:
        """Logarithm of the Bayes factor of each model against the first."""
        factors: FloatArray = self.log_evidence - self.log_evidence[0]
        return factors

    @property
    def bayes_factor_error(self) -> FloatArray:
        """Standard error of ``log_bayes_factor``, the models' errors being independent."""
        error: FloatArray = np.hypot(self.error, self.error[0])
        error[0] = 0.0
        return error

    def __str__(self) -> str:
        lines = [f"{'log evidence':>22}  {'log Bayes factor':>22}  model"]
        columns = (self.log_evidence, self.error, self.log_bayes_factor, self.bayes_factor_error)
        for model, *numbers in zip(self.models, *columns, strict=True):
            evidence, error, factor, spread = numbers
            left, right = f"{evidence:.2f} ± {error:.2f}", f"{factor:.2f} ± {spread:.2f}"
            lines.append(f"{left:>22}  {right:>22}  {model}")
        return "\n".join(lines)


def compare_parameters(
    model: BayesianTree,
    X: Any,
    y: ArrayLike,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
) -> EvidenceTable:
    """Fit a model with every combination of some parameters, and compare their evidence.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        With ``sampler="smc"`` and at least two islands, which give the errors. It stays as it is.
    X : array-like or table of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    grid : dict or list of dict
        Lists of values by parameter, as in `sklearn.model_selection.GridSearchCV`.

    Returns
    -------
    EvidenceTable

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boscage import BayesianTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(20, random_state=0)
    >>> table = compare_parameters(model, X, y, {"alpha_s": [0.01, 0.95]})
    >>> table.models[0]
    {'alpha_s': 0.95}
    """
    _check_sampler(model)
    settings = list(ParameterGrid(grid))
    models = [
        one.set_params(**setting)
        for one, setting in zip(_seeded(model, len(settings)), settings, strict=True)
    ]
    for one in models:
        _check_sampler(one)
    found = [_fitted(one, X, y) for one in models]
    return _ranked(settings, found)


def compare_features(
    model: BayesianTree, X: Any, y: ArrayLike, subsets: Mapping[str, Sequence[int | str]]
) -> EvidenceTable:
    """Fit a model on several sets of features, and compare their evidence.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        With ``sampler="smc"`` and at least two islands, which give the errors. It stays as it is.
    X : array-like or table of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    subsets : dict
        Columns of X by name of the set: their numbers, or their names where X is a table.

    Returns
    -------
    EvidenceTable
    """
    _check_sampler(model)
    # All columns first: a wrong one should not be found after long fits.
    names, rows = _validation.column_names(X), np.asarray(X)
    parts = [_columns(rows, names, name, columns) for name, columns in subsets.items()]
    found = [
        _fitted(one, part, y) for one, part in zip(_seeded(model, len(parts)), parts, strict=True)
    ]
    return _ranked(list(subsets), found)


def _check_sampler(model: BayesianTree) -> None:
    if not isinstance(model, BayesianTree):
        raise TypeError(f"expected a Bayesian decision tree, found {type(model).__name__}")
    if model.sampler != "smc":
        raise ValueError("only sampler='smc' estimates the marginal likelihood")


def _columns(
    rows: AnyArray, names: Sequence[Any] | None, name: str, columns: Sequence[int | str]
) -> AnyArray:
    """Some columns of a matrix or of a table, by number or by name."""
    own_names = enumerate(() if names is None else names)
    numbers: dict[Any, Any] = {own: i for i, own in own_names if isinstance(own, str)}
    try:
        part: AnyArray = rows[:, [numbers.get(one, one) for one in columns]]
    except (IndexError, TypeError) as error:
        raise ValueError(f"{name!r}: X has no columns {columns!r}") from error
    return part


def _seeded(model: BayesianTree, n: int) -> list[Any]:
    """Copies of a model, each with a seed of its own."""
    # A copy, so that a generator stays as it is.
    seed = _validation.draw_seed(copy.deepcopy(model.random_state))
    seeds = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    return [clone(model).set_params(random_state=int(own)) for own in seeds]


def _fitted(model: Any, X: Any, y: ArrayLike) -> tuple[float, float]:
    model.fit(X, y)
    return model.log_marginal_likelihood_, model.log_marginal_likelihood_error_


def _ranked(models: list[Any], found: list[tuple[float, float]]) -> EvidenceTable:
    if not models:
        raise ValueError("there is nothing to compare")
    order = sorted(range(len(models)), key=lambda i: -found[i][0])
    numbers = np.array([found[i] for i in order], dtype=np.float64).reshape(-1, 2)
    return EvidenceTable([models[i] for i in order], numbers[:, 0].copy(), numbers[:, 1].copy())
