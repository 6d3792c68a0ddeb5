"""Mondrian forests for regression, chapter 6 of the thesis."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from boscage import _boscage, _validation
from boscage._types import AnyArray, FloatArray, Maps, Rows
from boscage.distributions.gaussian import GaussianMixture
from boscage.mondrian._base import MondrianForest
from boscage.mondrian.feature_rates.classification import LearnedWeights
from boscage.mondrian.feature_rates.regression import learn_axes


class MondrianForestRegressor(RegressorMixin, MondrianForest):  # type: ignore[misc]
    """A Mondrian forest for regression, in batch and online, that predicts distributions.

    The trees are restrictions of Mondrian processes to the training rows, with a Gaussian
    hierarchy over the means of their nodes (chapter 6 of the thesis). They do not depend on the
    order in which rows come, nor on their grouping into calls: `fit` and any sequence of
    `partial_fit`, `forget` and `merge` that ends with the same rows give the same forest, bit for
    bit, for the same seed, reference ranges and feature weights.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Cuts after this time are not made; smaller means smaller trees.
    min_samples_split : int, default=2
        A node with fewer rows is not split.
    posterior : {"exact", "fast", "joint"}, default="exact"
        "exact" is Gaussian belief propagation in each tree (section 6.3.1); "fast" takes each
        node's empirical mean and variance instead (section 6.3.3). "joint" fits the sum of all
        trees to the targets and takes the trees' spread from "exact": more accurate, above all
        for smooth targets and few rows, but slower to fit.
    hyperparameters : {"loo", "ml", "heuristic"}, default="loo"
        How the scales of the hierarchy are chosen: by how well the forest predicts rows that it
        leaves out, by maximising the trees' marginal likelihood, or by the heuristic of section
        6.3.2. The first judges all trees together, as they predict, and is the most accurate.
    noise : {"global", "local"}, default="global"
        One noise level for all rows, or each node's own, smoothed down the tree as the means are.
        "local" scales all of a node's variance, so that means stay as they are. With
        ``hyperparameters="loo"`` its tails are learned, too: some rows have a wider noise than
        the others, how many and by how much being what makes rows that are left out likeliest.
    noise_variance : float, default=None
        The variance of the noise if it is known.
    predictive : {"averaged", "realised"}, default="averaged"
        "averaged" takes the mean over all the places where a new row might branch off
        (Algorithm 6.5); "realised" follows each tree's own cuts, in much less memory.
    feature_range : (low, high), default=None
        Reference ranges: two numbers, or two arrays with one value a feature. By default those of
        the rows at the first fit. They set the scale of the features; rows outside are welcome.
        Give them where forests are to be merged or deletion is to be provable.
    feature_weights : array-like of shape (n_features,), "learned" or None, default=None
        Rate of cuts in each feature, in units of one over its range; 0 switches a feature off.
        "learned" estimates them from the targets at the first fit, and where along each feature
        to cut (``feature_maps_``), and then keeps them.
    feature_maps : list of (knots, shares), default=None
        Where along each feature to cut, as in ``feature_maps_``, say that of another forest, with
        its ``feature_weights_`` and ``feature_range_``. Not together with "learned".
    window_size : int, default=None
        Keep this many newest rows and forget the others.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same forest each time, here and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Threads; None means 1 unless in a `joblib.parallel_config`, -1 means all processors.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    hyperparameters_ : dict
        ``mu``, ``gamma1``, ``gamma2`` and ``noise_variance`` in use.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they came with names that are all strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        With ``feature_weights="learned"``: how much each feature matters.
    feature_range_ : tuple of two ndarray of shape (n_features_in_,)
        The reference ranges in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The weights in use.
    feature_maps_ : list of (knots, shares) or None
        Where along each feature cuts are frequent, if this was learned or given.
    n_rows_ : int
        Number of rows in the forest.
    ids_ : ndarray of shape (n_rows_,)
        Their numbers, in order of arrival.
    trees_ : list of MondrianTree
        The trees as arrays.

    See Also
    --------
    MondrianForestClassifier : The same for labels.
    GaussianMixture : What `predict_dist` gives.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = MondrianForestRegressor(random_state=0).fit(X[::2], y[::2])
    >>> mean, std = forest.predict(X[1::2], return_std=True)
    >>> lower, upper = forest.predict_dist(X[1::2]).interval(0.9)
    >>> bool(((lower < mean) & (mean < upper)).all())
    True
    """

    _model: _boscage.MondrianRegressor

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        min_samples_split: int = 2,
        posterior: Literal["exact", "fast", "joint"] = "exact",
        hyperparameters: Literal["loo", "ml", "heuristic"] = "loo",
        noise: Literal["global", "local"] = "global",
        noise_variance: float | None = None,
        predictive: Literal["averaged", "realised"] = "averaged",
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        feature_weights: ArrayLike | Literal["learned"] | None = None,
        feature_maps: Maps | None = None,
        window_size: int | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.posterior = posterior
        self.hyperparameters = hyperparameters
        self.noise = noise
        self.noise_variance = noise_variance
        self.predictive = predictive
        self.feature_range = feature_range
        self.feature_weights = feature_weights
        self.feature_maps = feature_maps
        self.window_size = window_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, *, ids: ArrayLike | None = None) -> MondrianForestRegressor:
        """Grow a new forest.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Finite numbers. Row-major float32 and float64 arrays are not copied.
        y : array-like of shape (n_samples,)
            Finite numbers.
        ids : array-like of int of shape (n_samples,), default=None
            Numbers by which rows can be forgotten. By default they are numbered from 0 on.

        Returns
        -------
        self
        """
        with self._unchanged_on_error():
            self._start(X, y, ids)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, *, ids: ArrayLike | None = None
    ) -> MondrianForestRegressor:
        """Add rows to the forest, one or many; the first call grows it.

        The first call fixes the reference ranges from its rows unless ``feature_range`` is given.
        Rows of later calls wait for the next prediction, or whatever else asks for the trees:
        these are the same whenever they take rows in, and many at once cost less. `settle` does it
        when you choose.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        ids : array-like of int of shape (n_samples,), default=None
            Numbers by which rows can be forgotten. By default the count goes on.

        Returns
        -------
        self
        """
        with self._unchanged_on_error():
            if self.__sklearn_is_fitted__():
                self._extend(X, y, ids)
            else:
                self._start(X, y, ids)
        return self

    def _settings(self) -> dict[str, Any]:
        noise_variance = self.noise_variance
        if noise_variance is not None:
            noise_variance = _validation.check_positive("noise_variance", noise_variance)
        return {
            "n_estimators": _validation.check_count("n_estimators", self.n_estimators, 1),
            "lifetime": _validation.check_positive("lifetime", self.lifetime, finite=False),
            "min_samples_split": _validation.check_count(
                "min_samples_split", self.min_samples_split, 2
            ),
            "posterior": _validation.check_choice(
                "posterior", self.posterior, ("exact", "fast", "joint")
            ),
            "hyperparameters": _validation.check_choice(
                "hyperparameters", self.hyperparameters, ("loo", "ml", "heuristic")
            ),
            "noise": _validation.check_choice("noise", self.noise, ("global", "local")),
            "noise_variance": noise_variance,
            "predictive": _validation.check_choice(
                "predictive", self.predictive, ("averaged", "realised")
            ),
        }

    def _new_model(self, settings: dict[str, Any], seed: int) -> _boscage.MondrianRegressor:
        return _boscage.MondrianRegressor(**settings, seed=seed)

    @classmethod
    def _model_class(cls) -> type[_boscage.MondrianRegressor]:
        return _boscage.MondrianRegressor

    @classmethod
    def _params_of(cls, model: _boscage.MondrianRegressor) -> dict[str, Any]:
        return {
            "posterior": model.posterior,
            "hyperparameters": model.rule,
            "noise": model.noise,
            "noise_variance": model.noise_variance,
            "feature_maps": model.maps,
        }

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        return _validation.check_numbers(self, y, n_rows)

    def _encode(
        self, y: AnyArray, classes: Any, model: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if model is not None or self.feature_maps is None:
            return (y,), {}
        if isinstance(self.feature_weights, str):
            raise ValueError(
                "feature_maps goes with given feature_weights: 'learned' finds maps of its own"
            )
        return (y,), {"maps": _validation.check_maps(self.feature_maps, self.n_features_in_)}

    def _learn_weights(self, X: Rows, y: AnyArray, **options: Any) -> LearnedWeights:
        return learn_axes(X, y, **options)

    def _export(self, model: _boscage.MondrianRegressor) -> list[dict[str, Any]]:
        return model.trees(n_threads=self._n_threads())

    # -- prediction -------------------------------------------------------------------------------

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """The predictive mean, and its standard deviation if wanted.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to give the standard deviation of the predictive distribution, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``.
        """
        model, rows = self._query(X)
        mean, variance = model.predict(rows, n_threads=self._n_threads())
        if return_std:
            return mean, np.sqrt(variance)
        return np.asarray(mean)

    def predict_dist(self, X: Any) -> GaussianMixture:
        """The whole predictive distribution, equation (6.5).

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        GaussianMixture
            One mixture for each row, with a component for every place of every tree where the row
            may end up: some thousands of numbers a row. Predict in parts where rows are many.
        """
        model, rows = self._query(X)
        return _mixture(model.predict_dist(rows, n_threads=self._n_threads()))

    def loo_predict_dist(self, ids: ArrayLike | None = None) -> GaussianMixture:
        """Leave-one-out predictions: for each training row by the forest that never saw it.

        They take the place of a validation set. Each costs about as much as a prediction, or with
        ``posterior="joint"`` as much as fitting the trees together; the forest does not change.
        Trees are those of a forest without the row, hyperparameters and learned rates those of all
        rows: `forget` would choose them anew. Noise is the global one, and Gaussian.

        Parameters
        ----------
        ids : array-like of int, default=None
            Numbers of the rows to predict. By default all, in the order of ``ids_``.

        Returns
        -------
        GaussianMixture
        """
        model = self._require_rows()
        rows = None if ids is None else _validation.check_ids(ids)
        with self._progress("leaving out") as progress:
            return _mixture(model.loo_dist(rows, n_threads=self._n_threads(), progress=progress))

    # -- what has been learned --------------------------------------------------------------------

    @property
    def feature_maps_(self) -> Maps | None:
        """Where along the features cuts are frequent, if this was learned or given.

        For each feature the pair (knots, shares): the share of the feature's rate that lies below
        each knot, linear in between. A feature without knots is cut alike all along its range, and
        so are all where this is None.
        """
        maps: Maps | None = self._require_model().maps
        return maps

    @property
    def hyperparameters_(self) -> dict[str, float]:
        """``mu``, ``gamma1``, ``gamma2`` and ``noise_variance`` in use (section 6.3)."""
        model = self._settled()
        chosen: dict[str, float] = model.hyperparameters(n_threads=self._n_threads())
        return chosen

    def log_marginal_likelihood(self) -> float:
        """Logarithm of the marginal likelihood of the targets, averaged over the trees.

        Returns
        -------
        float
        """
        return float(self._settled().log_marginal_likelihood(n_threads=self._n_threads()))


def _mixture(arrays: tuple[AnyArray, FloatArray, FloatArray, FloatArray]) -> GaussianMixture:
    return GaussianMixture(*arrays)
