"""Bayesian additive regression trees: chapter 4 of the thesis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import RegressorMixin

from boscage import _boscage, _validation
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bart._base import Bart
from boscage.distributions.gaussian import GaussianMixture


class BARTRegressor(RegressorMixin, Bart):  # type: ignore[misc]
    """The posterior over sums of trees for regression, by Markov chains (Algorithm 4.1).

    Targets are the sum of ``n_trees`` small trees and normal noise. A priori a node splits with
    probability ``alpha_s / (1 + depth) ** beta_s``, along a feature drawn uniformly among those
    that vary in it (but see ``sparse``), anywhere in its rows' range; the range of the targets is
    ``2 k`` standard deviations of the sum; and ``sigma ** 2 ~ nu lambda / chi2(nu)``, with
    ``lambda`` such that ``sigma`` is below an over-estimate with probability ``q``.

    Parameters
    ----------
    n_trees : int, default=200
        Trees in the sum.
    sampler : {"auto", "local", "growprune", "cgm", "pg", "regrow", "edit"} or dict, default="auto"
        How a tree is changed given the others. ``"local"``: growing or pruning, then small shifts
        of cuts; ``"growprune"``: the first alone; ``"cgm"``: Chipman et al.'s moves, which also
        change and swap rules; ``"pg"``: Particle Gibbs (Algorithm 4.2); ``"regrow"``: particles
        below random nodes, which see the targets; ``"edit"``: cuts inserted, changed and deleted
        anywhere, those below staying as far as they still part rows. A dictionary gives each the
        share of its value: ``{"local": 0.9, "pg": 0.1}``. ``"auto"`` mixes ``"local"``,
        ``"regrow"`` and ``"edit"`` by the number of trees.
    n_chains : int, default=4
        Independent chains, the first starting from trees without cuts, each other from a draw of
        the prior.
    n_burn : int, default=500
        Sweeps of a chain before the first draw that is kept.
    n_draws : int, default=500
        Draws kept of each chain.
    thin : int, default=1
        Sweeps from one draw that is kept to the next.
    n_particles : int, default=10
        Particles of Particle Gibbs, the retained tree among them; at least 2, unless the sampler
        draws none.
    proposal : {"prior", "empirical", "optimal"}, default="prior"
        How particles decide at a node: by the prior, by the prior with cuts spread evenly over the
        gaps between rows, or by prior times likelihood.
    alpha_s : float, default=0.95
        The root's probability to split; less than one.
    beta_s : float, default=2.0
        How fast this probability falls with depth.
    sparse : bool or float, default=False
        Whether probabilities of features to be split along are learnt, so that of many features
        few are: ``Dirichlet(alpha / n_features)`` a priori (Linero 2018). A number is ``alpha``;
        with True it is sampled, ``alpha / (alpha + n_features) ~ Beta(1/2, 1)`` on a grid.
    k : float or "learned", default=2.0
        Shrinkage: greater values keep the sum nearer to the middle of the targets' range. From
        0.0001 to 10000. ``"learned"`` draws it along: the variance of a leaf's value is a priori
        ``6 / chi2(6)`` times that of ``k=2``.
    nu : float, default=3.0
        Degrees of freedom of the prior of the noise variance.
    q : float, default=0.9
        The prior probability that the noise is less than its over-estimate.
    sigma : float or None, default=None
        The noise's standard deviation in the targets' units, if it is known; sampled otherwise.
        From 1e-9 to 1e9 times the targets' range.
    sigma_estimate : float or None, default=None
        The over-estimate of it. By default the standard deviation about a least squares fit, or
        about the mean where features are too many for one. Within the same bounds.
    warm_start : bool, default=False
        Whether a further ``fit`` with the same data and parameters goes on with the chains until
        there are ``n_draws``, to the bits that a single fit would have given. Files keep what is
        needed.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same draws each time, here and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Threads; None means 1 unless in a `joblib.parallel_config`, -1 means all processors.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    trace_ : dict of ndarray of shape (n_chains, n_draws)
        ``sigma``, ``log_likelihood``, ``n_leaves``, ``k`` where it is learned, with ``sparse`` also
        ``alpha``; `summary` tells how chains mixed.
    trees_ : sequence of list of DrawnTree
        ``trees_[draw][tree]`` as arrays.
    acceptance_ : dict
        The share of steps of each kind that changed a tree, by chain.
    inclusion_proportions_ : ndarray of shape (n_draws of all chains, n_features_in_)
        Of each draw the share of cuts along each feature.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Their mean.
    split_probabilities_ : ndarray of shape (n_draws of all chains, n_features_in_)
        With ``sparse``, of each draw the prior probability to split along each feature.
    sigma_ : ndarray of shape (n_chains, n_draws)
        Standard deviation of the noise.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they came with names that are all strings.

    See Also
    --------
    BARTClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, 0.0, 1.0) + 0.1 * np.sin(50.0 * X[:, 0])
    >>> model = BARTRegressor(20, n_chains=2, n_draws=99, thin=10, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.2], [0.8]], return_std=True)
    >>> bool(mean[0] < 0.2 < 0.8 < mean[1])
    True
    """

    _model: _boscage.BartRegressor
    _drawn = "f"

    def __init__(
        self,
        n_trees: int = 200,
        *,
        sampler: Literal["auto", "local", "growprune", "cgm", "pg", "regrow", "edit"]
        | Mapping[str, float] = "auto",
        n_chains: int = 4,
        n_burn: int = 500,
        n_draws: int = 500,
        thin: int = 1,
        n_particles: int = 10,
        proposal: Literal["prior", "empirical", "optimal"] = "prior",
        alpha_s: float = 0.95,
        beta_s: float = 2.0,
        sparse: bool | float = False,
        k: float | Literal["learned"] = 2.0,
        nu: float = 3.0,
        q: float = 0.9,
        sigma: float | None = None,
        sigma_estimate: float | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_trees = n_trees
        self.sampler = sampler
        self.n_chains = n_chains
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.thin = thin
        self.n_particles = n_particles
        self.proposal = proposal
        self.alpha_s = alpha_s
        self.beta_s = beta_s
        self.sparse = sparse
        self.k = k
        self.nu = nu
        self.q = q
        self.sigma = sigma
        self.sigma_estimate = sigma_estimate
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, *, callback: Callable[..., object] | None = None
    ) -> BARTRegressor:
        """Sample the posterior.

        Warns with a `ConvergenceWarning` when chains of at least 100 draws disagree, and with a
        `UserWarning` when all of `y` is one value and ``sigma`` is left to be found.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Finite numbers. Row-major float32 and float64 arrays are not copied.
        y : array-like of shape (n_samples,)
            Numbers.
        callback : callable, default=None
            Called after every sweep as ``callback(chain=, iteration=, sigma=, log_likelihood=)``,
            from the threads of the chains, which do not wait for each other: with ``n_jobs``
            it must bear two calls at once. Iterations count from 1, burn-in included. What it
            raises ends the fit, which leaves the estimator as it was.

        Returns
        -------
        self
        """
        self._fit(X, y, callback=callback)
        return self

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        return _validation.check_numbers(self, y, n_rows)

    def _noise(self) -> dict[str, Any]:
        noise: dict[str, Any] = {
            name: _validation.check_positive(name, getattr(self, name)) for name in ("nu", "q")
        }
        for name in ("sigma", "sigma_estimate"):
            value = getattr(self, name)
            noise[name] = None if value is None else _validation.check_positive(name, value)
        return noise

    def _sample(
        self, rows: Rows, target: AnyArray, settings: _boscage.BartSettings, options: dict[str, Any]
    ) -> _boscage.BartRegressor:
        if self.sigma is None and self.sigma_estimate is None and np.ptp(target) == 0.0:
            warnings.warn(
                f"y has no other value than {target[0]!s}: nothing tells how much it varies, so "
                "that intervals have hardly any width; pass sigma or sigma_estimate if you know",
                UserWarning,
                stacklevel=5,
            )
        return _boscage.BartRegressor.fit(rows, target, settings, **options)

    @classmethod
    def _model_class(cls) -> type[_boscage.BartRegressor]:
        return _boscage.BartRegressor

    # -- prediction -------------------------------------------------------------------------------

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """The posterior mean, and the standard deviation of a new target if wanted.

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
        if return_std:
            draws = self.predict_draws(X)
            noise = np.mean(self.sigma_**2)
            return draws.mean(axis=0), np.sqrt(draws.var(axis=0) + noise)
        model, rows, n_threads = self._query(X)
        return np.asarray(model.predict(rows, n_threads=n_threads))

    def predict_draws(self, X: Any) -> FloatArray:
        """The sum of trees in every draw.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_draws of all chains, n_samples)
            The draws of the first chain first; reshape to ``(n_chains, n_draws, n_samples)``.
        """
        self._require_model()
        return self._predict_checked(_validation.check_rows(self, X, reset=False))

    def _predict_checked(self, rows: Rows) -> FloatArray:
        n_threads = _validation.n_threads(self.n_jobs)
        return np.asarray(self._model.predict_draws(rows, n_threads=n_threads))

    def _predictive(
        self, draws: FloatArray, y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        sigma = self.sigma_.reshape(-1, 1)
        groups = {"posterior_predictive": draws + sigma * rng.standard_normal(draws.shape)}
        if y is not None:
            target = _validation.check_numbers(self, y, draws.shape[1])
            groups["observed_data"] = target
            groups["log_likelihood"] = norm.logpdf(target, draws, sigma)
        return groups

    def predict_dist(self, X: Any) -> GaussianMixture:
        """The whole predictive distribution: a mixture of the draws' normal distributions.

        Its ``interval``, ``quantile``, ``logpdf``, ``crps`` and ``sample`` are those of a new
        target, noise included.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        GaussianMixture
            One mixture for each row, with a component for every draw.
        """
        draws = self.predict_draws(X)
        n_draws, n_rows = draws.shape
        return GaussianMixture(
            np.arange(n_rows + 1) * n_draws,
            np.full(draws.size, 1.0 / n_draws),
            draws.T.ravel(),
            np.tile(self.sigma_.ravel() ** 2, n_rows),
        )

    @property
    def sigma_(self) -> FloatArray:
        """Standard deviation of the noise at each draw, of shape (n_chains, n_draws)."""
        return self.trace_["sigma"]
