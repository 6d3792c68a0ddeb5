"""Prediction methods that all classifiers share, and those that all regressors share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from boscage import _validation
from boscage._bases.lock import reading
from boscage._input import class_weights
from boscage._input.labels import as_numbers
from boscage._input.user_warnings import warn_user
from boscage._types import AnyArray, FloatArray
from boscage.distributions import PredictiveDistribution
from boscage.explain._through_link import through_weights
from boscage.explain.contributions import Contributions


class ProbabilisticClassifier(ClassifierMixin):  # type: ignore[misc]
    """Mixin of the classifiers, which predict probabilities. Not for direct use."""

    if TYPE_CHECKING:  # the estimator, which comes later in the order of bases, has it

        def _require_model(self) -> Any: ...

    class_weight: Mapping[Any, float] | str | None

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of shape (n_samples, n_classes), whatever `class_weight` is."""

    @abstractmethod
    def _class_counts(self) -> AnyArray:
        """The number of training rows of each class."""

    # -- prediction -------------------------------------------------------------------------------

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``. Each row sums to one. With ``class_weight``
            they are multiplied by the weights of their classes and normalised again. Labels in it
            that are no classes (now) do not count.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted, or is a forest without rows.
        ValueError
            If `X` has another number of features, other feature names, infinite values, or missing
            ones that the model cannot take; if ``class_weight`` is zero for all of several classes.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        return self._weighted(self._predict_proba(X))

    def _weighted(self, proba: FloatArray) -> FloatArray:
        """Probabilities as `class_weight` changes them."""
        weights = self._class_weights()
        return proba if weights is None else class_weights.reweighted(proba, weights)

    def _class_weights(self) -> FloatArray | None:
        """The weight of each class, if there are any."""
        if self.class_weight is None:
            return None
        return class_weights.weights_of(self.class_weight, self.classes_, self._class_counts)

    def _weighted_contributions(self, found: Contributions, proba: FloatArray) -> Contributions:
        """Contributions as `class_weight` changes them, given those that add up to `proba`."""
        if self.class_weight is None:
            return found
        base, weighted = found.base_values, self._weighted(np.stack([found.base_values, proba]))
        values = through_weights(found.values, base, proba, (weighted[0], weighted[1]))
        return replace(found, values=values, base_values=weighted[0])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Predict the natural logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``. ``-inf`` where the probability is zero.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted, or is a forest without rows.
        ValueError
            If `X` is refused; see `predict_proba`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @reading
    def predict(self, X: Any) -> AnyArray:
        """Predict the most probable class, the first one if several are equally probable.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted, or is a forest without rows.
        ValueError
            If `X` is refused; see `predict_proba`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        proba = self.predict_proba(X)
        labels: AnyArray = self.classes_[proba.argmax(axis=1)]
        return labels

    # -- what was learned -------------------------------------------------------------------------

    @property
    @reading
    def classes_(self) -> AnyArray:
        """The class labels, sorted. A forest has those declared and those of its rows."""
        return np.array(self._require_model().classes())

    @property
    @reading
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self._require_model().classes())

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        class_weights.check_class_weight(self.class_weight)
        return _validation.check_labels(self, y, n_rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose class is predicted (accuracy).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(super().score(X, as_numbers(np.asarray(y)), sample_weight))

    def _check_whole_target(self, target: AnyArray) -> None:
        class_weights.require_a_class(self.class_weight, target)

    # -- files ------------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = super()._metadata()
        return metadata | {"class_weight": class_weights.to_json(self.class_weight)}

    @classmethod
    def _from_model(cls, model: Any, metadata: dict[str, Any], n_jobs: int | None) -> Any:
        estimator = super()._from_model(model, metadata, n_jobs)
        estimator.class_weight = class_weights.from_json(metadata.get("class_weight"))
        return estimator


class DistributionalRegressor(RegressorMixin):  # type: ignore[misc]
    """Mixin of the regressors, which predict distributions. Not for direct use."""

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _predict_mean(self, X: Any) -> FloatArray:
        """Predictive means."""

    @abstractmethod
    def _predict_mean_and_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predictive means and standard deviations."""

    @abstractmethod
    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Predict the whole distribution of the target."""

    # -- prediction -------------------------------------------------------------------------------

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    @reading
    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean of the target, and optionally its standard deviation.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.
        return_std : bool, default=False
            Whether to return the standard deviation of the predictive distribution as well. It
            includes the noise of a new target.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean, in units of the targets.
        std : ndarray of shape (n_samples,)
            Predictive standard deviation; only with ``return_std=True``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted, or is a forest without rows.
        ValueError
            If `X` has another number of features, other feature names, infinite values, or missing
            ones that the model cannot take.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        return self._predict_mean_and_std(X) if return_std else self._predict_mean(X)

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        return _validation.check_numbers(self, y, n_rows)

    def _warn_of_equal_targets(self, target: AnyArray, remedy: str) -> None:
        """Warn that the targets, which are all equal, say nothing about the noise."""
        warn_user(
            f"y has no other value than {target[0]!s}, so nothing is known about the noise and "
            f"intervals have hardly any width; {remedy} if you know it"
        )
