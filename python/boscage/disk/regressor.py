"""Mondrian forests for regression from rows on disk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from boscage import _core, persistence
from boscage._bases.prediction import DistributionalRegressor
from boscage._types import FloatArray, Maps
from boscage.disk._base import DiskForest
from boscage.distributions import GaussianMixture
from boscage.mondrian.regressor import MondrianForestRegressor as OneMachine

_OF_RULES = ("hyperparameters", "noise_variance", "prior_scale")
"""The parameters of the rules for hyperparameters."""


@persistence.register(_core.FrozenRegressor)
class MondrianForestRegressor(DistributionalRegressor, DiskForest):
    """A Mondrian forest for regression, grown from rows on disk within a bound on memory.

    It predicts what `boscage.MondrianForestRegressor` with ``predictive="realised"``,
    ``posterior="exact"``, ``noise="global"`` and the same parameters does, bit for bit, whatever
    the bound is. It keeps no rows: of each leaf it has mean and sum of squares of the targets and
    the least box around the rows. So it learns no more, and forgets nothing.

    Parameters
    ----------
    memory_limit : int or str
        The most memory that `fit` takes beside what the process held before, in bytes or as a text
        such as "2GB" (10^9 bytes each) or "500MiB". The trees must fit. A smaller bound takes more
        passes over the files.
    hyperparameters : {"loo", "ml", "heuristic"} or dict, default="loo"
        How to choose the scales of the hierarchy, as the forest with rows does; or the scales
        themselves: ``mu``, ``gamma1``, ``gamma2`` and ``noise_variance``, and perhaps ``delay``,
        ``coarse_variance`` and ``coarse_rate``. A rule looks at 20,000 rows at most, and "loo"
        needs about 210 MB of the memory for that, or less with a greater `min_samples_split`.
    noise_variance : float, default=None
        The variance of the noise, if it is known; a rule then chooses the other scales.
    prior_scale : float or None, default=1
        The standard deviation far away from all rows, in units of the targets'; at least 1. None
        leaves it to the rule.
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        No cut comes at this time or later.
    min_samples_split : int, default=2
        A node of fewer rows is not split. Trees with large leaves take little memory.
    feature_range : pair of array-like, default=None
        The reference ranges, low and high, of all features. None takes the rows' own.
    feature_weights : array-like of shape (n_features,), "learned" or None, default="learned"
        The rates of the features relative to each other. "learned" learns them from a sample of
        the rows, as the forest with rows does, which must fit in ``memory_limit``. None means equal
        rates in units of the ranges.
    feature_maps : list of (knots, shares), default=None
        How the rate of each feature is distributed along its range; see the forest with rows.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same forest each time, for any ``n_jobs`` and ``memory_limit``.
    n_jobs : int, default=None
        Number of threads; see the forest with rows.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    hyperparameters_ : dict
        The scales of the hierarchy in use.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the rows came from Parquet.
    feature_range_ : tuple of two ndarray of shape (n_features_in_,)
        The reference ranges in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The rates of cuts in use.
    feature_maps_ : list of (knots, shares) or None
        How each feature's rate is distributed along its range; None means evenly.
    n_rows_ : int
        Number of training rows.
    nbytes_ : int
        Memory of the trees in bytes.

    See Also
    --------
    boscage.MondrianForestRegressor : The forest with rows, which goes on to learn.
    boscage.dask.MondrianForestRegressor : The same on several machines.

    Examples
    --------
    >>> import numpy as np
    >>> from boscage.disk import MondrianForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> forest = MondrianForestRegressor("64MB", n_estimators=10)
    >>> mean, std = forest.fit(X, X[:, 0]).predict([[1.0, 0.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.3)
    True
    """

    def __init__(
        self,
        memory_limit: int | str,
        *,
        hyperparameters: Literal["loo", "ml", "heuristic"] | Mapping[str, float] = "loo",
        noise_variance: float | None = None,
        prior_scale: float | None = 1.0,
        n_estimators: int = 100,
        lifetime: float = math.inf,
        min_samples_split: int = 2,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        feature_weights: ArrayLike | Literal["learned"] | None = "learned",
        feature_maps: Maps | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.memory_limit = memory_limit
        self.hyperparameters = hyperparameters
        self.noise_variance = noise_variance
        self.prior_scale = prior_scale
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.feature_range = feature_range
        self.feature_weights = feature_weights
        self.feature_maps = feature_maps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _template(self) -> OneMachine:
        same = {name: getattr(self, name) for name in (*self._SAME, *_OF_RULES)}
        return OneMachine(
            predictive="realised", posterior="exact", noise="global", trend=None, **same
        )

    @classmethod
    def _own_params(cls, model: Any) -> dict[str, Any]:
        return {"hyperparameters": model.hyperparameters()}

    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = super()._metadata()
        if isinstance(self.hyperparameters, Mapping):
            return metadata
        numbers = {"noise_variance": self.noise_variance, "prior_scale": self.prior_scale}
        own = {name: None if value is None else float(value) for name, value in numbers.items()}
        return metadata | {"hyperparameters": self.hyperparameters, **own}

    @classmethod
    def _from_model(
        cls, model: Any, metadata: dict[str, Any], n_jobs: int | None
    ) -> MondrianForestRegressor:
        forest = super()._from_model(model, metadata, n_jobs)
        if not isinstance(metadata.get("hyperparameters"), str):
            return forest
        # As everything in a file, not to be trusted.
        found = clone(forest).set_params(**{name: metadata.get(name) for name in _OF_RULES})
        try:
            found._template()._settings()
        except (TypeError, ValueError):
            return forest
        forest.set_params(**{name: getattr(found, name) for name in _OF_RULES})
        return forest

    def _predict_mean(self, X: Any) -> FloatArray:
        return self._predict_mean_and_std(X)[0]

    def _predict_mean_and_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        model, rows, n_threads = self._query(X)
        mean, variance = model.predict(rows, n_threads=n_threads)
        return mean, np.sqrt(variance)

    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predict the whole distribution of the target: a mixture over the trees (equation 6.5).

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        GaussianMixture
            One mixture per row; see the forest with rows.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        model, rows, n_threads = self._query(X)
        return GaussianMixture(*model.predict_dist(rows, n_threads=n_threads))

    @property
    def hyperparameters_(self) -> dict[str, float]:
        """The scales of the hierarchy in use."""
        return dict(self._require_model().hyperparameters())
