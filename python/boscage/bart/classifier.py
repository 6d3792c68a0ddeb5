"""Bayesian additive regression trees for classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from boscage import _boscage, _validation
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bart._base import Bart


class BARTClassifier(ClassifierMixin, Bart):  # type: ignore[misc]
    """The posterior over sums of trees for classes, by Markov chains (Algorithm 4.1).

    Of two classes, the probability of the second is the normal distribution function of a constant
    and the sum of ``n_trees`` small trees; latent normal numbers, whose sign is the class, are
    drawn along (Albert and Chib 1993). Of more, each class has a sum of ``n_trees`` trees, and
    probabilities are proportional to the exponentials of these (Murray 2021). The prior of trees
    is that of `BARTRegressor`.

    Parameters
    ----------
    n_trees : int, default=200
        Trees in the sum; of more than two classes, in that of each.
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
        Shrinkage: ``k`` standard deviations of the sum of trees are 3 units of probit; of more
        than two classes, those of the log odds of any two are 5. From 0.0001 to 10000. Of two
        classes ``"learned"`` draws it along: the variance of a leaf's value is a priori
        ``6 / chi2(6)`` times that of ``k=2``.
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
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they came with names that are all strings.

    See Also
    --------
    BARTRegressor : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, "low", "high")
    >>> model = BARTClassifier(20, n_chains=2, n_draws=99, thin=10, random_state=0).fit(X, y)
    >>> model.predict([[0.2], [0.8]]).tolist()
    ['low', 'high']
    """

    _model: _boscage.BartClassifier
    _drawn = "proba"

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
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, *, callback: Callable[..., object] | None = None
    ) -> BARTClassifier:
        """Sample the posterior.

        Warns with a `ConvergenceWarning` when chains of at least 100 draws disagree.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Finite numbers. Row-major float32 and float64 arrays are not copied.
        y : array-like of shape (n_samples,)
            Labels of two or more kinds: integers, strings, booleans, or whole floats.
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
        return _validation.check_labels(self, y, n_rows)

    def _sample(
        self, rows: Rows, target: AnyArray, settings: _boscage.BartSettings, options: dict[str, Any]
    ) -> _boscage.BartClassifier:
        codes, labels = _validation.encode(target, [])
        if len(labels) < 2:
            raise ValueError("y must have more than one class, found one class")
        start = options["start"]
        if start is not None and labels != start.classes():
            raise ValueError(
                f"a fit that goes on must be of the same classes, {start.classes()}, found {labels}"
            )
        return _boscage.BartClassifier.fit(rows, codes, labels, settings, **options)

    @classmethod
    def _model_class(cls) -> type[_boscage.BartClassifier]:
        return _boscage.BartClassifier

    # -- prediction -------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class: the mean over draws.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; each row sums to one.
        """
        model, rows, n_threads = self._query(X)
        proba = np.asarray(model.predict_proba(rows, n_threads=n_threads))
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - proba, proba])
        return proba.reshape(len(rows), -1)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        proba: FloatArray = np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)
        return np.asarray(np.log(proba))

    def predict(self, X: Any) -> AnyArray:
        """The more probable class; of equals the first.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        labels: AnyArray = self.classes_[proba.argmax(axis=1)]
        return labels

    def predict_draws(self, X: Any) -> FloatArray:
        """The probability of the second class in every draw, or of each of more than two.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_draws of all chains, n_samples) or (..., n_samples, n_classes)
            The draws of the first chain first; reshape to ``(n_chains, n_draws, n_samples)``.
        """
        self._require_model()
        return self._predict_checked(_validation.check_rows(self, X, reset=False))

    def _predict_checked(self, rows: Rows) -> FloatArray:
        n_threads = _validation.n_threads(self.n_jobs)
        draws = np.asarray(self._model.predict_draws(rows, n_threads=n_threads))
        if len(self.classes_) == 2:
            return draws
        return draws.reshape(len(draws), len(rows), -1)

    def _predictive(
        self, draws: FloatArray, y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        proba = np.stack([1.0 - draws, draws], axis=2) if draws.ndim == 2 else draws
        below = proba.cumsum(axis=2)[:, :, :-1] <= rng.random((*proba.shape[:2], 1))
        groups: dict[str, AnyArray] = {"posterior_predictive": below.sum(axis=2)}
        if y is not None:
            target = _validation.check_labels(self, y, proba.shape[1])
            is_class = np.asarray(target)[:, np.newaxis] == self.classes_
            if not is_class.any(axis=1).all():
                raise ValueError("y has labels that are not among classes_")
            codes = is_class.argmax(axis=1)
            groups["observed_data"] = codes
            own = np.take_along_axis(proba, codes[np.newaxis, :, np.newaxis], axis=2)[:, :, 0]
            groups["log_likelihood"] = np.log(np.maximum(own, np.finfo(np.float64).tiny))
        return groups

    @property
    def classes_(self) -> AnyArray:
        """The labels, sorted."""
        return np.array(self._require_model().classes())
