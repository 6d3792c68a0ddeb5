"""Bayesian decision trees for classification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from boscage import _core, _validation, persistence
from boscage._bases.arviz_data import of_classes
from boscage._bases.prediction import ProbabilisticClassifier
from boscage._input.labels import encode
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bayes._base import BayesianTree
from boscage.bayes.samplers import MCMC, SMC
from boscage.explain.contributions import Contributions
from boscage.trees import PosteriorTree


@persistence.register(_core.BayesianTreeClassifier)
class BayesianTreeClassifier(ProbabilisticClassifier, BayesianTree):
    """The posterior over decision trees for classification.

    A priori, a node at depth ``depth`` splits with probability
    ``alpha_s / (1 + depth) ** beta_s``, on a feature drawn uniformly among those that vary in the
    node, at a threshold drawn uniformly from the range of the node's rows (equations 3.3 and 3.4 of
    the thesis). The classes in a leaf have a Dirichlet-multinomial distribution of concentration
    `alpha` (equation 3.2). The fitted model holds weighted trees and, from SMC, the marginal
    likelihood of the data.

    Parameters
    ----------
    sampler : {"smc", "mcmc"}, SMC or MCMC, default="smc"
        How to sample the posterior: by sequential Monte Carlo (Algorithm 3.1) or by the Markov
        chain of Chipman et al. (1998). A name stands for the sampler with its default settings;
        `SMC` and `MCMC` objects hold others. Nested parameters such as ``sampler__n_particles``
        work with ``set_params`` and in grid searches.
    alpha : float, default=5.0
        Concentration of the Dirichlet prior of the classes in a leaf; from 1e-100 to 1e100.
    alpha_s : float, default=0.95
        Probability that the root splits; less than one.
    beta_s : float, default=0.5
        How fast the probability of a split falls with depth.
    class_weight : dict, "balanced" or None, default=None
        How many times as much each class counts as in the training rows: a dictionary of weights
        by label, where others weigh 1. "balanced" lets all classes count the same: it divides by
        their numbers of rows. Predicted probabilities are multiplied by these weights and
        normalised (Bayes' rule, for a population with other shares of classes), so that `predict`
        prefers what is rare or dear to miss. Nothing that is learned depends on it: it may be set
        after the fit. `fit` refuses a dictionary without a label of `y`.
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
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_classes_ : int
        Number of classes.
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
    BayesianTreeRegressor : The same for numbers.
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
    >>> from sklearn.datasets import load_iris
    >>> from boscage import SMC, BayesianTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> many = BayesianTreeClassifier(SMC(n_particles=100), random_state=0).fit(X[::2], y[::2])
    >>> bool(many.log_marginal_likelihood_ < 0.0)
    True
    """

    _model: _core.BayesianTreeClassifier

    def __init__(
        self,
        sampler: Literal["smc", "mcmc"] | SMC | MCMC = "smc",
        *,
        alpha: float = 5.0,
        alpha_s: float = 0.95,
        beta_s: float = 0.5,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        categorical_features: Any = "from_dtype",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.sampler = sampler
        self.alpha = alpha
        self.alpha_s = alpha_s
        self.beta_s = beta_s
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _sample(
        self, rows: Rows, target: AnyArray, settings: Any, options: dict[str, Any]
    ) -> _core.BayesianTreeClassifier:
        alpha = _validation.check_positive("alpha", self.alpha)
        codes, labels = encode(target, [])
        return _core.BayesianTreeClassifier.fit(
            rows, codes, labels, settings, alpha=alpha, **self._tree_prior(), **options
        )

    def _node_values(self, values: FloatArray) -> dict[str, AnyArray]:
        counts = values.astype(np.int64)
        return {"counts": counts if (counts == values).all() else values}

    @classmethod
    def _params_of(cls, model: _core.BayesianTreeClassifier) -> dict[str, Any]:
        return super()._params_of(model) | {"alpha": model.alpha}

    def _predict_proba(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        return model.predict_proba(rows, n_threads=n_threads)  # type: ignore[no-any-return]

    def _finish_contributions(self, found: Contributions) -> Contributions:
        found = replace(found, output_names=[str(name) for name in self.classes_])
        return self._weighted_contributions(found, found.predictions())

    def _class_counts(self) -> AnyArray:
        counts: AnyArray | None = self.best_tree_.counts
        assert counts is not None
        root: AnyArray = counts[0]
        return root

    def _draw_nodes(self, tree: PosteriorTree, rng: np.random.Generator) -> dict[str, FloatArray]:
        assert tree.counts is not None
        # Gamma variables divided by their sum are a draw from a Dirichlet distribution.
        drawn = rng.standard_gamma(tree.counts + self._model.alpha / tree.counts.shape[1])
        proba = drawn / drawn.sum(axis=1, keepdims=True)
        return {"proba": proba[:, 1] if proba.shape[1] == 2 else proba}

    def _predictive(
        self, drawn: dict[str, FloatArray], y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        return of_classes(self, drawn["proba"], y, rng)
