"""BART for regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from boscage import _core, _validation, persistence
from boscage._bases.arviz_data import of_normals
from boscage._bases.prediction import DistributionalRegressor
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bart._base import Bart
from boscage.bart.kernels import KernelName, Kernels
from boscage.distributions import GaussianMixture

Self = TypeVar("Self", bound="BARTRegressor")


@persistence.register(_core.BartRegressor)
class BARTRegressor(DistributionalRegressor, Bart):
    """The posterior over sums of trees for regression, by Markov chains (Algorithm 4.1).

    Targets are the sum of ``n_trees`` small trees plus normal noise. A priori, a node at depth
    ``depth`` splits with probability ``alpha_s / (1 + depth) ** beta_s``, on a feature drawn
    uniformly among those that vary in it (but see ``sparse``), at a threshold drawn uniformly from
    the range of its rows. The prior standard deviation of the sum is such that the range of the
    targets is ``2 k`` of them. The noise has the prior ``sigma ** 2 ~ nu lambda / chi2(nu)``, where
    ``lambda`` is such that ``sigma`` is below an over-estimate with probability ``q``.

    Parameters
    ----------
    n_trees : int, default=200
        Number of trees in the sum.
    kernels : str, dict or Kernels, default="auto"
        How a chain changes a tree given the others: ``"auto"`` for a mixture that suits the number
        of trees; the name of one kernel; a mixture such as ``{"local": 0.9, "pg": 0.1}``; or a
        `Kernels` object, which also holds the settings of the kernels that use particles. `Kernels`
        describes all of them. Nested parameters such as ``kernels__n_particles`` work with
        ``set_params`` and in grid searches.
    n_chains : int, default=4
        Number of independent chains. The first starts from trees without splits, each other one
        from a draw of the prior.
    n_burn : int, default=500
        Number of sweeps of a chain before its first draw.
    n_draws : int, default=500
        Number of draws of each chain.
    thin : int, default=1
        Number of sweeps from one draw to the next.
    alpha_s : float, default=0.95
        Probability that the root splits; less than one.
    beta_s : float, default=2.0
        How fast the probability of a split falls with depth.
    sparse : bool or float, default=False
        Whether to learn the probability of splitting on each feature, for data with few relevant
        features (Linero 2018). The prior is ``Dirichlet(alpha / n_features)``. A number is
        ``alpha``; True samples it on a grid, with ``alpha / (alpha + n_features) ~ Beta(1/2, 1)``.
    k : float or "learned", default=2.0
        Shrinkage, from 0.0001 to 10000; greater values keep the sum closer to the middle of the
        targets' range. ``"learned"`` samples it: the prior variance of a leaf's value is then
        ``6 / chi2(6)`` times that of ``k=2``.
    nu : float, default=3.0
        Degrees of freedom of the prior of the noise variance.
    q : float, default=0.9
        Prior probability that the noise's standard deviation is below its over-estimate; less
        than one.
    sigma : float or None, default=None
        Standard deviation of the noise, in units of the targets, if it is known; None samples it.
        From 1e-9 to 1e9 times the range of the targets.
    sigma_estimate : float or None, default=None
        Over-estimate of the standard deviation of the noise, within the same bounds. None takes
        the standard deviation of the residuals of a least squares fit, or that of the targets if
        there are too many features for one.
    warm_start : bool, default=False
        Whether another ``fit`` with the same data and parameters but greater ``n_draws`` continues
        the chains. The draws are, bit for bit, those of a single fit. Files keep what is needed.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which features are categories: "from_dtype" means columns of tables (pandas, polars, Arrow)
        of a categorical, enumeration or text type. A list of names or numbers of features, or a
        mask of shape (n_features,), means these alone, in arrays too. None means none. Categories
        are text, booleans or numbers, at most 1024 of a feature. Those of the rows of `fit` are
        known; others that come later are handled as missing values.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same draws each time, in Python and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context; -1 means all
        processors.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    sigma_ : ndarray of shape (n_chains, n_draws)
        Standard deviation of the noise at each draw.
    trace_ : dict of ndarray of shape (n_chains, n_draws)
        ``sigma``, ``log_likelihood``, ``n_leaves``, ``k`` if it is learned, and with ``sparse``
        ``alpha``; `summary` tells whether the chains agree.
    trees_ : sequence of list of DrawnTree
        ``trees_[draw][tree]`` as arrays.
    centre_ : float or ndarray of shape (n_classes,)
        The constant that the sum of trees is added to.
    acceptance_ : dict of ndarray of shape (n_chains,)
        Share of steps of each kind that changed a tree.
    cut_counts_ : ndarray of shape (n_draws of all chains, n_features_in_)
        For each draw, the number of splits on each feature.
    inclusion_proportions_ : ndarray of shape (n_draws of all chains, n_features_in_)
        For each draw, the share of splits on each feature.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean of these shares.
    feature_importances_std_ : ndarray of shape (n_features_in_,)
        Their standard deviation.
    split_probabilities_ : ndarray of shape (n_draws of all chains, n_features_in_)
        With ``sparse``: for each draw, the prior probability of splitting on each feature.
    categories_ : list of lists or None
        For each feature the categories of its training rows, sorted, or None if it is one of
        numbers; None if no feature has categories.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `X` had column names that are all strings.

    See Also
    --------
    BARTClassifier : The same for classes.
    Kernels : How chains change trees.

    Notes
    -----
    Where values of a feature are missing in training, a split on it also has a side for them, left
    or right with probability 1/2 each. Where they are missing in the node, the split separates
    them from the present values with probability 1/3, or surely if these are all equal (after
    Twala, Jones and Hand 2008, and Kapelner and Bleich 2015). If no value of a feature was
    missing in training, a missing one goes with the larger number of training rows, or left if
    they are equal. A model from a file of an older version may not say this, and refuses it.

    Examples
    --------
    >>> import numpy as np
    >>> from boscage import BARTRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, 0.0, 1.0) + 0.1 * np.sin(50.0 * X[:, 0])
    >>> model = BARTRegressor(20, n_chains=2, n_draws=99, thin=10, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.2], [0.8]], return_std=True)
    >>> bool(mean[0] < 0.2 < 0.8 < mean[1])
    True
    """

    _model: _core.BartRegressor
    _drawn_name: ClassVar[str] = "f"

    def __init__(
        self,
        n_trees: int = 200,
        *,
        kernels: KernelName | Mapping[str, float] | Kernels = "auto",
        n_chains: int = 4,
        n_burn: int = 500,
        n_draws: int = 500,
        thin: int = 1,
        alpha_s: float = 0.95,
        beta_s: float = 2.0,
        sparse: bool | float = False,
        k: float | Literal["learned"] = 2.0,
        nu: float = 3.0,
        q: float = 0.9,
        sigma: float | None = None,
        sigma_estimate: float | None = None,
        warm_start: bool = False,
        categorical_features: Any = "from_dtype",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_trees = n_trees
        self.kernels = kernels
        self.n_chains = n_chains
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.thin = thin
        self.alpha_s = alpha_s
        self.beta_s = beta_s
        self.sparse = sparse
        self.k = k
        self.nu = nu
        self.q = q
        self.sigma = sigma
        self.sigma_estimate = sigma_estimate
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self: Self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callable[..., object] | None = None,
    ) -> Self:
        """Sample the posterior over sums of trees.

        Warns with a `sklearn.exceptions.ConvergenceWarning` if chains of at least 100 draws
        disagree, and with a `UserWarning` if all targets are equal and neither ``sigma`` nor
        ``sigma_estimate`` is given.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Training rows; finite numbers, or NaN for missing values. Row-major float32 and float64
            arrays are not copied.
        y : array-like of shape (n_samples,)
            Targets; finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Precision of each target: the noise of a row of weight ``w`` has the variance
            ``sigma**2 / w``, for example the number of measurements that a target is the mean of.
            Weights are divided by their mean, so that only their ratios matter, and ``sigma`` is
            the noise of a row of mean weight; so is that of predictions. Rows of weight 0 are left
            out. With unequal weights a sweep takes up to half as long again. None means equal ones.
        callback : callable, default=None
            Called after every sweep as ``callback(chain=, iteration=, sigma=, log_likelihood=)``.
            Iterations count from 1 and include the burn-in. Chains call it from their own threads:
            with ``n_jobs`` greater than one, two calls may run at once. An exception that it raises
            ends the fit.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range; if `X`, `y` or `sample_weight` holds values that are not
            finite numbers, has a wrong shape, or is empty; if a weight is negative or all are 0; or
            if ``warm_start`` continues with other data or parameters.
        TypeError
            If a parameter is of a wrong type, or `callback` cannot be called.
        KeyboardInterrupt
            If interrupted. After any error the estimator is as it was before the call.
        """
        return self._run_chains(X, y, callback, sample_weight)

    def _noise_prior(self) -> dict[str, Any]:
        prior: dict[str, Any] = {
            name: _validation.check_positive(name, getattr(self, name)) for name in ("nu", "q")
        }
        for name in ("sigma", "sigma_estimate"):
            value = getattr(self, name)
            prior[name] = None if value is None else _validation.check_positive(name, value)
        return prior

    def _sample(
        self, rows: Rows, target: AnyArray, settings: _core.BartSettings, options: dict[str, Any]
    ) -> _core.BartRegressor:
        weights = options.pop("weights")
        if weights is not None and weights.min() == weights.max():
            weights = None  # only ratios matter
        is_given = self.sigma is not None or self.sigma_estimate is not None
        if not is_given and np.ptp(target) == 0.0:
            remedy = "give sigma=... or sigma_estimate=..."
            self._warn_of_equal_targets(target, remedy)
        return _core.BartRegressor.fit(rows, target, settings, weights=weights, **options)

    # -- prediction -------------------------------------------------------------------------------

    def _predict_mean(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        return np.asarray(model.predict(rows, n_threads=n_threads))

    def _predict_mean_and_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        draws = self.predict_draws(X)
        noise_variance = np.mean(self.sigma_**2)
        return draws.mean(axis=0), np.sqrt(draws.var(axis=0) + noise_variance)

    def predict_draws(self, X: Any) -> FloatArray:
        """Predict the sum of trees in every draw.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_draws of all chains, n_samples)
            The draws of the first chain come first; reshape to ``(n_chains, n_draws, n_samples)``.
            In units of the targets, without noise.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        _, rows, _ = self._query(X)
        return self._predict_checked(rows)

    def _predict_checked(self, rows: Rows) -> FloatArray:
        return np.asarray(self._model.predict_draws(rows, n_threads=self._n_threads()))

    def _predictive(
        self, drawn: dict[str, FloatArray], y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        return of_normals(self, drawn["f"], self.sigma_.reshape(-1, 1), y, rng)

    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predict the whole distribution of a new target: a mixture over the draws, with noise.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        GaussianMixture
            One mixture per row, with one Gaussian component per draw.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        draws = self.predict_draws(X)
        n_draws, n_rows = draws.shape
        return GaussianMixture(
            np.arange(n_rows + 1) * n_draws,
            np.full(draws.size, 1.0 / n_draws),
            draws.T.ravel(),
            np.tile(self.sigma_.ravel() ** 2, n_rows),
        )

    # -- what was learned -------------------------------------------------------------------------

    @property
    def sigma_(self) -> FloatArray:
        """Standard deviation of the noise at each draw, of shape (n_chains, n_draws)."""
        return self.trace_["sigma"]
