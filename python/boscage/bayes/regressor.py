"""Bayesian decision trees for regression: chapter 3 of the thesis with normal leaves."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from boscage import _boscage, _validation
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bayes._base import BayesianTree
from boscage.distributions.student import StudentMixture

_LEAF_PRIOR = ("prior_mean", "kappa", "shape", "scale")
_VALUES = ("df", "location", "scale", "target_mean", "target_variance")


class BayesianTreeRegressor(RegressorMixin, BayesianTree):  # type: ignore[misc]
    """The posterior over decision trees for regression, by SMC or MCMC.

    A priori a node splits with probability ``alpha_s / (1 + depth) ** beta_s``, along a feature
    drawn uniformly among those that vary in it, anywhere in its rows' range. Targets in a leaf are
    normal with unknown mean and variance: ``variance ~ InverseGamma(shape, scale)`` and
    ``mean ~ N(prior_mean, variance / kappa)``. What comes out are weighted trees and, by SMC, the
    marginal likelihood of the data.

    Parameters
    ----------
    n_particles : int, default=10
        Particles of each island (SMC).
    sampler : {"smc", "mcmc"}, default="smc"
        Sequential Monte Carlo (Algorithm 3.1), or the Markov chain of Chipman et al. (1998).
    n_islands : int, default=5
        Independent runs of SMC, averaged.
    proposal : {"optimal", "exploring", "prior", "empirical"}, default="optimal"
        How SMC decides at a node: by prior times likelihood; so seven times in ten and else by
        the prior; by the prior; or by the prior with cuts spread evenly over the gaps between rows.
    n_dimensions : int or None, default=None
        With the first two: consider only so many features, drawn anew at each node. Faster,
        and more diverse trees.
    expansion : {"node", "layer"}, default="node"
        Decide about one node or about all open nodes in a stage.
    candidate_order : {"breadth_first", "marginal_likelihood"}, default="breadth_first"
        Which node comes first: the oldest, or that of the lowest marginal likelihood.
    resampling : {"systematic", "multinomial", "stratified", "residual"}, default="systematic"
        How particles are drawn anew by their weights.
    ess_threshold : float, default=0.5
        Resample when the effective sample size is below this share of `n_particles`.
    max_stages : int, default=5000
        Trees that are not finished after so many stages stay as they are, with a warning.
    island_weights : {"uniform", "evidence"}, default="uniform"
        Whether islands count alike or by their estimates of the marginal likelihood.
    n_chains : int, default=4
        Chains of MCMC, which start from trees drawn from the prior.
    n_draws : int, default=250
        Trees kept of each chain.
    thin : int, default=20
        Steps of a chain from one tree that is kept to the next.
    n_burn_in : int, default=5000
        Steps of a chain before the first tree that is kept.
    moves : tuple of four float, default=(0.25, 0.25, 0.25, 0.25)
        Probabilities to try to grow, prune, change and swap; the first two are positive.
    kappa : float, default=0.1
        How many rows the prior of a leaf's mean is worth; from 1e-100 to 1e100.
    shape : float, default=1.5
        Shape of the prior of a leaf's variance; from 1e-9 to 1e9.
    noise : float, default=0.1
        Where `scale` is not given: the share of the targets' variance that a leaf's variance is
        expected to be of the order of, ``scale = shape * noise * var(y)``; from 1e-9 to 1e9.
    prior_mean : float or None, default=None
        The expected mean of a leaf; by default that of the targets.
    scale : float or None, default=None
        Scale of the prior of a leaf's variance, from 1e-290 to 1e290; by default it follows from
        `noise`.
    alpha_s : float, default=0.95
        The root's probability to split; less than one.
    beta_s : float, default=0.5
        How fast this probability falls with depth.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same trees each time, here and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Threads; None means 1 unless in a `joblib.parallel_config`, -1 means all processors.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    leaf_prior_ : dict
        ``prior_mean``, ``kappa``, ``shape`` and ``scale`` in use.
    trees_ : list of PosteriorTree
        The trees as arrays.
    weights_ : ndarray of shape (n_trees,)
        Their weights.
    best_tree_ : PosteriorTree
        The most probable of them.
    log_posterior_ : ndarray of shape (n_trees,)
        Logarithm of the posterior probability of each, but for the marginal likelihood.
    log_marginal_likelihood_ : float
        Logarithm of the marginal likelihood (SMC).
    log_marginal_likelihood_error_ : float
        Its standard error over islands (SMC).
    island_log_marginal_likelihood_ : ndarray of shape (n_islands,)
        Each island's own estimate (SMC).
    ess_ : list of ndarray of shape (n_stages,)
        Effective sample sizes at each stage, for each island (SMC).
    ancestry_ : list of lists of ndarray of shape (n_particles,)
        Each particle's ancestor at each stage, for each island (SMC).
    n_unfinished_ : ndarray of shape (n_islands,)
        How many particles have trees that ``max_stages`` cut short (SMC).
    trace_, acceptance_ : dicts of ndarray
        Where chains were at each draw, and how often moves were made (MCMC).
    feature_importances_ : ndarray of shape (n_features_in_,)
        The probability that a cut is along each feature; trees without cuts count as zeros.
    feature_importances_std_ : ndarray of shape (n_features_in_,)
        How much that differs between trees.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they came with names that are all strings.

    See Also
    --------
    BayesianTreeClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, 0.0, 1.0) + 0.1 * np.sin(50.0 * X[:, 0])
    >>> model = BayesianTreeRegressor(random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.2], [0.8]], return_std=True)
    >>> bool(mean[0] < 0.2 < 0.8 < mean[1])
    True
    """

    _model: _boscage.BayesianTreeRegressor

    def __init__(
        self,
        n_particles: int = 10,
        *,
        sampler: Literal["smc", "mcmc"] = "smc",
        n_islands: int = 5,
        proposal: Literal["optimal", "exploring", "prior", "empirical"] = "optimal",
        n_dimensions: int | None = None,
        expansion: Literal["node", "layer"] = "node",
        candidate_order: Literal["breadth_first", "marginal_likelihood"] = "breadth_first",
        resampling: Literal["systematic", "multinomial", "stratified", "residual"] = "systematic",
        ess_threshold: float = 0.5,
        max_stages: int = 5000,
        island_weights: Literal["uniform", "evidence"] = "uniform",
        n_chains: int = 4,
        n_draws: int = 250,
        thin: int = 20,
        n_burn_in: int = 5000,
        moves: tuple[float, float, float, float] = (0.25, 0.25, 0.25, 0.25),
        kappa: float = 0.1,
        shape: float = 1.5,
        noise: float = 0.1,
        prior_mean: float | None = None,
        scale: float | None = None,
        alpha_s: float = 0.95,
        beta_s: float = 0.5,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_particles = n_particles
        self.sampler = sampler
        self.n_islands = n_islands
        self.proposal = proposal
        self.n_dimensions = n_dimensions
        self.expansion = expansion
        self.candidate_order = candidate_order
        self.resampling = resampling
        self.ess_threshold = ess_threshold
        self.max_stages = max_stages
        self.island_weights = island_weights
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.thin = thin
        self.n_burn_in = n_burn_in
        self.moves = moves
        self.kappa = kappa
        self.shape = shape
        self.noise = noise
        self.prior_mean = prior_mean
        self.scale = scale
        self.alpha_s = alpha_s
        self.beta_s = beta_s
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike) -> BayesianTreeRegressor:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Finite numbers. Row-major float32 and float64 arrays are not copied.
        y : array-like of shape (n_samples,)
            Numbers.

        Returns
        -------
        self
        """
        self._fit(X, y)
        return self

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        return _validation.check_numbers(self, y, n_rows)

    def _sample(
        self, rows: Rows, target: AnyArray, settings: Any, options: dict[str, Any]
    ) -> _boscage.BayesianTreeRegressor:
        for name in ("kappa", "shape", "noise"):
            options[name] = _validation.check_positive(name, getattr(self, name))
        if self.scale is not None:
            options["scale"] = _validation.check_positive("scale", self.scale)
        if self.prior_mean is not None:
            options["prior_mean"] = _validation.check_real("prior_mean", self.prior_mean)
        return _boscage.BayesianTreeRegressor.fit(
            rows, target, settings, **self._prior(), **options
        )

    def _values(self, values: FloatArray) -> dict[str, AnyArray]:
        return dict(zip(_VALUES, values.T.copy(), strict=True))

    @classmethod
    def _model_class(cls) -> type[_boscage.BayesianTreeRegressor]:
        return _boscage.BayesianTreeRegressor

    @classmethod
    def _params_of(cls, model: _boscage.BayesianTreeRegressor) -> dict[str, Any]:
        leaf_prior = dict(zip(_LEAF_PRIOR, model.leaf_prior, strict=True))
        return super()._params_of(model) | leaf_prior

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
        model, rows, n_threads = self._query(X)
        if return_std:
            mean, std = model.predict_with_std(rows, n_threads=n_threads)
            return mean, std
        return np.asarray(model.predict(rows, n_threads=n_threads))

    def predict_dist(self, X: Any) -> StudentMixture:
        """The whole predictive distribution: a mixture of what the trees' leaves predict.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        StudentMixture
            One mixture for each row, with a component for every tree.
        """
        model, rows, n_threads = self._query(X)
        df, location, scale = model.predict_dist(rows, n_threads=n_threads)
        return StudentMixture(model.weights, df, location, scale)

    @property
    def leaf_prior_(self) -> dict[str, float]:
        """``prior_mean``, ``kappa``, ``shape`` and ``scale`` of the prior of a leaf, as used."""
        return dict(zip(_LEAF_PRIOR, self._require_model().leaf_prior, strict=True))
