"""Scorers for scikit-learn's tools of model selection: scores with the sign turned."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from boscage.distributions import PredictiveDistribution
from boscage.metrics._regression import crps, nlpd


def neg_crps_scorer(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Score what an estimator predicts by its CRPS with the sign turned; greater is better.

    It serves as ``scoring`` wherever scikit-learn takes one, for example in ``cross_val_score`` and
    ``GridSearchCV``, for whole distributions as "neg_mean_absolute_error" does for numbers.

    Parameters
    ----------
    estimator : estimator with ``predict_dist``
        A fitted regressor of this package, a ``Pipeline`` that ends with one, or a search whose
        ``best_estimator_`` is one.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Rows to predict.
    y : array-like of shape (n_samples,)
        What was observed.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the average; None for equal ones.

    Returns
    -------
    float
        In units of the targets; at most 0.

    Raises
    ------
    TypeError
        If `estimator` has no ``predict_dist``.
    ValueError
        If `X` is refused by the estimator, or `y` or `sample_weight` by `crps`.
    sklearn.exceptions.NotFittedError
        If `estimator` is not fitted.

    See Also
    --------
    crps : The score itself, of any prediction.
    neg_nlpd_scorer : The same for the log density.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from boscage import MondrianForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = MondrianForestRegressor(10, feature_weights=None, random_state=0)
    >>> scores = cross_val_score(forest, X, y, cv=3, scoring=neg_crps_scorer)
    >>> bool((-50.0 < scores).all() and (scores < -25.0).all())
    True
    """
    dist = _predict_dist("neg_crps_scorer", estimator, X)
    return -crps(y, dist, sample_weight=sample_weight)


def neg_nlpd_scorer(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Score what an estimator predicts by the mean log predictive density; greater is better.

    It serves as ``scoring`` wherever scikit-learn takes one, for example in ``cross_val_score`` and
    ``GridSearchCV``, for distributions of numbers as "neg_log_loss" does for classes.

    Parameters
    ----------
    estimator : estimator with ``predict_dist``
        A fitted regressor of this package, a ``Pipeline`` that ends with one, or a search whose
        ``best_estimator_`` is one.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Rows to predict.
    y : array-like of shape (n_samples,)
        What was observed.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the average; None for equal ones.

    Returns
    -------
    float
        In natural logarithms.

    Raises
    ------
    TypeError
        If `estimator` has no ``predict_dist``.
    ValueError
        If `X` is refused by the estimator, or `y` or `sample_weight` by `nlpd`.
    sklearn.exceptions.NotFittedError
        If `estimator` is not fitted.

    See Also
    --------
    nlpd : The score itself, of any prediction.
    neg_crps_scorer : The same for the CRPS, which a few bad rows change less.
    """
    dist = _predict_dist("neg_nlpd_scorer", estimator, X)
    return -nlpd(y, dist, sample_weight=sample_weight)


def _predict_dist(scorer: str, estimator: Any, X: Any) -> PredictiveDistribution:
    """What an estimator predicts, in place of which there may be a pipeline or a search of it."""
    if hasattr(estimator, "best_estimator_"):
        return _predict_dist(scorer, estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        before = estimator[:-1]
        return _predict_dist(scorer, estimator[-1], before.transform(X) if len(before) else X)
    if not hasattr(estimator, "predict_dist"):
        raise TypeError(
            f"{scorer} needs a regressor with predict_dist, such as MondrianForestRegressor, or a "
            f"pipeline that ends with one; found {type(estimator).__name__} (for classes there is "
            "scoring='neg_log_loss')"
        )
    dist: PredictiveDistribution = estimator.predict_dist(X)
    return dist
