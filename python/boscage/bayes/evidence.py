"""Comparison of hyperparameters, or of sets of features, by the marginal likelihood.

Models fitted with the same integer ``random_state`` share random numbers, so their errors are
correlated. The functions here give each model its own seed, derived from the ``random_state`` of
the given model, unless the grid contains ``random_state``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from boscage import _validation
from boscage._input.columns import (
    as_matrix,
    as_table,
    categorical_features,
    column_names,
    n_columns,
    select,
)
from boscage._types import FloatArray
from boscage.bayes._base import BayesianTree
from boscage.bayes.samplers import SMC, as_sampler

__all__ = ["EvidenceTable", "compare_features", "compare_parameters"]


@dataclass(frozen=True, eq=False)
class EvidenceTable:
    """Models and their marginal likelihoods, the greatest first. Prints as a table.

    Attributes
    ----------
    models : list
        For each model its dictionary of parameters, or the name of its set of features.
    log_evidence : ndarray of shape (n_models,)
        Logarithm of the marginal likelihood.
    error : ndarray of shape (n_models,)
        Its standard error over islands. With few particles it is too small; see
        ``log_marginal_likelihood_error_`` of the estimators.
    log_bayes_factor : ndarray of shape (n_models,)
        Logarithm of the Bayes factor of each model against the first: zero, then negative.
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
        """Standard error of ``log_bayes_factor``; the models' errors are independent."""
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
    *,
    sample_weight: ArrayLike | None = None,
) -> EvidenceTable:
    """Fit a model with every combination of parameters and compare the marginal likelihoods.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        The model to vary; it does not change. Its sampler is `SMC`, with at least two islands to
        estimate the errors.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Targets.
    grid : dict or list of dict
        For each parameter a list of values, as in `sklearn.model_selection.GridSearchCV`. Nested
        parameters such as ``sampler__n_particles`` are possible.
    sample_weight : array-like of shape (n_samples,), default=None
        How many rows each row counts as; see the ``fit`` of the models.

    Returns
    -------
    EvidenceTable

    Raises
    ------
    TypeError
        If `model` is not a Bayesian decision tree.
    ValueError
        If a sampler is not SMC, the grid is empty, or a fit refuses its input.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boscage import SMC, BayesianTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(SMC(n_particles=20), random_state=0)
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
    found = [_fitted(one, X, y, sample_weight) for one in models]
    return _ranked(settings, found)


def compare_features(
    model: BayesianTree,
    X: Any,
    y: ArrayLike,
    subsets: Mapping[str, Sequence[int | str]],
    *,
    sample_weight: ArrayLike | None = None,
) -> EvidenceTable:
    """Fit a model on several sets of features and compare the marginal likelihoods.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        The model to fit; it does not change. Its sampler is `SMC`, with at least two islands to
        estimate the errors.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Training rows with all features.
    y : array-like of shape (n_samples,)
        Targets.
    subsets : dict
        For each set, by its name, a list of features: column numbers, or column names if `X` is a
        table.
    sample_weight : array-like of shape (n_samples,), default=None
        How many rows each row counts as; see the ``fit`` of the models.

    Returns
    -------
    EvidenceTable

    Raises
    ------
    TypeError
        If `model` is not a Bayesian decision tree.
    ValueError
        If the sampler is not SMC, `X` lacks a column, there is no set, or a fit refuses its input.
    """
    _check_sampler(model)
    is_sparse = issparse(X) and not categorical_features(model.categorical_features, X)
    X = X.tocsr() if is_sparse else as_table(X)
    X = X if hasattr(X, "shape") else as_matrix(X)
    categorical = set(categorical_features(model.categorical_features, X))
    # Look up all columns before the first fit, which may take long.
    parts = [_columns(X, name, columns) for name, columns in subsets.items()]
    found = []
    for one, columns in zip(_seeded(model, len(parts)), parts, strict=True):
        own = [place for place, column in enumerate(columns) if column in categorical]
        one.set_params(categorical_features=own)
        # Without categories, columns of any type are numbers.
        part = select(X, columns) if own else _matrix(X)[:, columns]
        found.append(_fitted(one, part, y, sample_weight))
    return _ranked(list(subsets), found)


def _matrix(X: Any) -> Any:
    return X if issparse(X) else np.asarray(X)


def _check_sampler(model: BayesianTree) -> None:
    if not isinstance(model, BayesianTree):
        raise TypeError(f"expected a Bayesian decision tree, found {type(model).__name__}")
    if not isinstance(as_sampler(model.sampler), SMC):
        raise ValueError("only sampler='smc' estimates the marginal likelihood")


def _columns(X: Any, name: str, columns: Sequence[int | str]) -> list[int]:
    """The numbers of columns of a matrix or a table, which are given by number or by name."""
    names = column_names(X)
    own_names = enumerate(() if names is None else names)
    numbers: dict[Any, Any] = {own: i for i, own in own_names if isinstance(own, str)}
    every = np.arange(n_columns(X))
    try:
        found: list[int] = every[[numbers.get(one, one) for one in columns]].tolist()
    except (IndexError, TypeError) as error:
        raise ValueError(f"{name!r}: X has no columns {columns!r}") from error
    return found


def _seeded(model: BayesianTree, n: int) -> list[Any]:
    """Copies of a model, each with its own seed."""
    # Draw from a copy, so that a generator passed as random_state does not change.
    seed = _validation.draw_seed(copy.deepcopy(model.random_state))
    seeds = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    return [clone(model).set_params(random_state=int(own)) for own in seeds]


def _fitted(model: Any, X: Any, y: ArrayLike, sample_weight: Any) -> tuple[float, float]:
    model.fit(X, y, sample_weight)
    return model.log_marginal_likelihood_, model.log_marginal_likelihood_error_


def _ranked(models: list[Any], found: list[tuple[float, float]]) -> EvidenceTable:
    if not models:
        raise ValueError("there is nothing to compare: the grid or the dictionary is empty")
    order = sorted(range(len(models)), key=lambda i: -found[i][0])
    numbers = np.array([found[i] for i in order], dtype=np.float64).reshape(-1, 2)
    return EvidenceTable([models[i] for i in order], numbers[:, 0].copy(), numbers[:, 1].copy())
