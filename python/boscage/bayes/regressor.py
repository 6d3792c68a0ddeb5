"""Bayesian decision trees for regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from boscage import _core, _validation, persistence
from boscage._bases.arviz_data import of_normals
from boscage._bases.prediction import DistributionalRegressor
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bayes._base import BayesianTree
from boscage.bayes.samplers import MCMC, SMC
from boscage.distributions import StudentMixture
from boscage.explain.contributions import Contributions
from boscage.trees import PosteriorTree

_LEAF_PRIOR = ("prior_mean", "kappa", "shape", "scale")
_VALUES = ("df", "location", "scale", "target_mean", "target_variance")


@persistence.register(_core.BayesianTreeRegressor)
class BayesianTreeRegressor(DistributionalRegressor, BayesianTree):
    """The posterior over decision trees for regression.

    A priori, a node at depth ``depth`` splits with probability
    ``alpha_s / (1 + depth) ** beta_s``, on a feature drawn uniformly among those that vary in the
    node, at a threshold drawn uniformly from the range of the node's rows (equations 3.3 and 3.4 of
    the thesis). The targets in a leaf are normal with unknown mean and variance, which have the
    conjugate prior ``variance ~ InverseGamma(shape, scale)`` and
    ``mean ~ N(prior_mean, variance / kappa)``. The fitted model holds weighted trees and, from SMC,
    the marginal likelihood of the data.

    Parameters
    ----------
    sampler : {"smc", "mcmc"}, SMC or MCMC, default="smc"
        How to sample the posterior: by sequential Monte Carlo (Algorithm 3.1) or by the Markov
        chain of Chipman et al. (1998). A name stands for the sampler with its default settings;
        `SMC` and `MCMC` objects hold others. Nested parameters such as ``sampler__n_particles``
        work with ``set_params`` and in grid searches.
    kappa : float, default=0.1
        Number of rows that the prior of a leaf's mean is worth; from 1e-100 to 1e100.
    shape : float, default=1.5
        Shape of the prior of a leaf's variance; from 1e-9 to 1e9.
    noise_share : float, default=0.1
        The share of the targets' variance that is expected to be noise, that is, to remain within
        leaves. It sets ``scale = shape * noise_share * var(y)`` unless `scale` is given. From 1e-9
        to 1e9.
    prior_mean : float or None, default=None
        Expected mean of a leaf; None takes the mean of the targets.
    scale : float or None, default=None
        Scale of the prior of a leaf's variance, from 1e-290 to 1e290; None derives it from
        `noise_share`.
    alpha_s : float, default=0.95
        Probability that the root splits; less than one.
    beta_s : float, default=0.5
        How fast the probability of a split falls with depth.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which features are categories: "from_dtype" means columns of tables (pandas, polars, Arrow)
        of a categorical, enumeration or text type. A list of names or numbers of features, or a
        mask of shape (n_features,), means these alone, in arrays too. None means none. Categories
        are text, booleans or numbers, at most 1024 of a feature. Those of the rows of `fit` are
        known; others that come later are handled as missing values.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same trees each time, in Python and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context; -1 means all
        processors.
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
        Logarithm of the unnormalised posterior probability of each tree.
    log_marginal_likelihood_ : float
        Logarithm of the marginal likelihood (SMC).
    log_marginal_likelihood_error_ : float
        Its standard error over islands (SMC).
    island_log_marginal_likelihood_ : ndarray of shape (n_islands,)
        Each island's own estimate (SMC).
    ess_ : list of ndarray of shape (n_stages,)
        Effective sample size at each stage, for each island (SMC).
    ancestry_ : list of lists of ndarray of shape (n_particles,)
        Each particle's ancestor at each stage, for each island (SMC).
    n_unfinished_ : ndarray of shape (n_islands,)
        Number of particles that ``max_stages`` cut short (SMC).
    trace_ : dict of ndarray of shape (n_chains, n_draws)
        Statistics of each draw (MCMC).
    acceptance_ : dict of ndarray of shape (n_chains,)
        Share of moves of each kind that were accepted (MCMC).
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of splits that use each feature; a tree without splits counts as zeros.
    feature_importances_std_ : ndarray of shape (n_features_in_,)
        Standard deviation of that share over the posterior.
    inclusion_probabilities_ : ndarray of shape (n_features_in_,)
        Probability that a tree splits each feature at least once.
    categories_ : list of lists or None
        For each feature the categories of its training rows, sorted, or None if it is one of
        numbers; None if no feature has categories.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `X` had column names that are all strings.

    See Also
    --------
    BayesianTreeClassifier : The same for classes.
    SMC, MCMC : The samplers and their settings.

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
    >>> from boscage import BayesianTreeRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, 0.0, 1.0) + 0.1 * np.sin(50.0 * X[:, 0])
    >>> model = BayesianTreeRegressor(random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.2], [0.8]], return_std=True)
    >>> bool(mean[0] < 0.2 < 0.8 < mean[1])
    True
    """

    _model: _core.BayesianTreeRegressor

    def __init__(
        self,
        sampler: Literal["smc", "mcmc"] | SMC | MCMC = "smc",
        *,
        kappa: float = 0.1,
        shape: float = 1.5,
        noise_share: float = 0.1,
        prior_mean: float | None = None,
        scale: float | None = None,
        alpha_s: float = 0.95,
        beta_s: float = 0.5,
        categorical_features: Any = "from_dtype",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.sampler = sampler
        self.kappa = kappa
        self.shape = shape
        self.noise_share = noise_share
        self.prior_mean = prior_mean
        self.scale = scale
        self.alpha_s = alpha_s
        self.beta_s = beta_s
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _sample(
        self, rows: Rows, target: AnyArray, settings: Any, options: dict[str, Any]
    ) -> _core.BayesianTreeRegressor:
        options["kappa"] = _validation.check_positive("kappa", self.kappa)
        options["shape"] = _validation.check_positive("shape", self.shape)
        options["noise_share"] = _validation.check_positive("noise_share", self.noise_share)
        if self.scale is not None:
            options["scale"] = _validation.check_positive("scale", self.scale)
        if self.prior_mean is not None:
            options["prior_mean"] = _validation.check_real("prior_mean", self.prior_mean)
        elif self.scale is None and (target == target[0]).all():
            self._warn_of_equal_targets(target, "give scale=...")
        return _core.BayesianTreeRegressor.fit(
            rows, target, settings, **self._tree_prior(), **options
        )

    def _node_values(self, values: FloatArray) -> dict[str, AnyArray]:
        return dict(zip(_VALUES, values.T.copy(), strict=True))

    @classmethod
    def _params_of(cls, model: _core.BayesianTreeRegressor) -> dict[str, Any]:
        leaf_prior = dict(zip(_LEAF_PRIOR, model.leaf_prior, strict=True))
        return super()._params_of(model) | leaf_prior

    # -- prediction -------------------------------------------------------------------------------

    def _predict_mean(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        return np.asarray(model.predict(rows, n_threads=n_threads))

    def _predict_mean_and_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        model, rows, n_threads = self._query(X)
        mean, std = model.predict_with_std(rows, n_threads=n_threads)
        return mean, std

    def predict_dist(self, X: Any) -> StudentMixture:
        """Predict the whole distribution of the target: a mixture over the trees' leaves.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        StudentMixture
            One mixture per row, with one Student component per tree.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        model, rows, n_threads = self._query(X)
        df, location, scale = model.predict_dist(rows, n_threads=n_threads)
        return StudentMixture(model.weights, df, location, scale)

    def _finish_contributions(self, found: Contributions) -> Contributions:
        return replace(found, values=found.values[:, :, 0], base_values=found.base_values[:, 0])

    # -- chains -----------------------------------------------------------------------------------

    def _draw_nodes(self, tree: PosteriorTree, rng: np.random.Generator) -> dict[str, FloatArray]:
        assert tree.df is not None
        assert tree.location is not None
        assert tree.scale is not None
        prior = self.leaf_prior_
        # The weight of a node's rows is their number, if they have none.
        shape, kappa = 0.5 * tree.df, prior["kappa"] + tree.df - 2.0 * prior["shape"]
        # The predictive variance is that of the noise times `1 + 1 / kappa`.
        sigma = tree.scale * np.sqrt(shape * kappa / (1.0 + kappa) / rng.standard_gamma(shape))
        mean = tree.location + sigma / np.sqrt(kappa) * rng.standard_normal(tree.n_nodes)
        return {"f": mean, "sigma": sigma}

    def _predictive(
        self, drawn: dict[str, FloatArray], y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        return of_normals(self, drawn["f"], drawn["sigma"], y, rng)

    # -- what was learned -------------------------------------------------------------------------

    @property
    def leaf_prior_(self) -> dict[str, float]:
        """``prior_mean``, ``kappa``, ``shape`` and ``scale`` of the prior of a leaf, as used."""
        return dict(zip(_LEAF_PRIOR, self._require_model().leaf_prior, strict=True))
