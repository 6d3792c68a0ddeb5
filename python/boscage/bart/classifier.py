"""BART for classification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from boscage import _core, persistence
from boscage._bases.arviz_data import of_classes
from boscage._bases.prediction import ProbabilisticClassifier
from boscage._input.labels import encode
from boscage._input.row_weights import check_row_weight
from boscage._types import AnyArray, FloatArray, Rows
from boscage.bart._base import Bart
from boscage.bart.kernels import KernelName, Kernels


@persistence.register(_core.BartClassifier)
class BARTClassifier(ProbabilisticClassifier, Bart):
    """The posterior over sums of trees for classification, by Markov chains (Algorithm 4.1).

    With two classes, the probability of the second one is the standard normal distribution function
    of a constant plus the sum of ``n_trees`` small trees; a latent normal variable per row (several
    for a row with a weight), whose sign is the class, is sampled along (Albert and Chib 1993). With
    more classes each has its own sum of ``n_trees`` trees, and probabilities are proportional to
    the exponentials of the sums (Murray 2021). The prior of the trees is that of `BARTRegressor`.

    Parameters
    ----------
    n_trees : int, default=200
        Number of trees in the sum; with more than two classes, in the sum of each class.
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
        Shrinkage, from 0.0001 to 10000; greater values shrink more. With two classes, ``k`` prior
        standard deviations of the sum of trees are 3 units of probit; with more, ``k`` standard
        deviations of the log odds of any two classes are 5. ``"learned"``, for two classes only,
        samples it: the prior variance of a leaf's value is then ``6 / chi2(6)`` times that of
        ``k=2``.
    warm_start : bool, default=False
        Whether another ``fit`` with the same data and parameters but greater ``n_draws`` continues
        the chains. The draws are, bit for bit, those of a single fit. Files keep what is needed.
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
        An integer gives the same draws each time, in Python and in Rust, for any ``n_jobs``.
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
    BARTRegressor : The same for numbers.
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
    >>> from boscage import BARTClassifier
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, "low", "high")
    >>> model = BARTClassifier(20, n_chains=2, n_draws=99, thin=10, random_state=0).fit(X, y)
    >>> model.predict([[0.2], [0.8]]).tolist()
    ['low', 'high']
    """

    _model: _core.BartClassifier
    _drawn_name: ClassVar[str] = "proba"

    # The number of training rows of each class, which the model does not hold.
    _counts: AnyArray | None

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
        warm_start: bool = False,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
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
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _check_weights = staticmethod(check_row_weight)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callable[..., object] | None = None,
    ) -> BARTClassifier:
        """Sample the posterior over sums of trees.

        Warns with a `sklearn.exceptions.ConvergenceWarning` if chains of at least 100 draws
        disagree.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Training rows; finite numbers, or NaN for missing values. Row-major float32 and float64
            arrays are not copied.
        y : array-like of shape (n_samples,)
            Labels of at least two classes: integers, strings, booleans or whole floats.
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts as: the likelihood of its label is raised to this power. A
            row of weight 2 is as two equal rows, and one of weight 0 is left out. With two classes
            weights are whole numbers up to 65536 (multiply others and round them), with more any
            numbers from 1e-12 to 1e9. None means 1 for all.
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
            If a parameter is out of range; if `X` holds infinity, `y` or `sample_weight` holds
            values that are not finite, or one of them has a wrong shape or is empty; if a weight is
            negative or all are 0; if there is one class alone; or if ``warm_start`` continues with
            other data or parameters.
        TypeError
            If a parameter or a label is of a wrong type, or `callback` cannot be called.
        KeyboardInterrupt
            If interrupted. After any error the estimator is as it was before the call.
        """
        return self._run_chains(X, y, callback, sample_weight)

    def _sample(
        self, rows: Rows, target: AnyArray, settings: _core.BartSettings, options: dict[str, Any]
    ) -> _core.BartClassifier:
        codes, labels = encode(target, [])
        if len(labels) < 2:
            raise ValueError(
                "y must have labels of at least two classes in rows whose weight is not 0, found "
                f"one class, {labels[0]!r}; Mondrian forests and Bayesian trees take a single class"
            )
        start = options["start"]
        if start is not None and labels != start.classes():
            raise ValueError(
                f"warm_start must continue with the same classes, {start.classes()}, found {labels}"
            )
        self._counts = np.bincount(codes, options["weights"], minlength=len(labels))
        return _core.BartClassifier.fit(rows, codes, labels, settings, **options)

    def _class_counts(self) -> AnyArray:
        if self._counts is None:
            raise ValueError(
                "class_weight='balanced' needs the number of training rows of each class, or their "
                "weight, which the file of this model does not hold; give a dictionary of weights"
            )
        return self._counts

    # -- files ------------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        counts = None if self._counts is None else self._counts.tolist()
        return super()._metadata() | {"class_counts": counts}

    @classmethod
    def _from_model(
        cls, model: _core.BartClassifier, metadata: dict[str, Any], n_jobs: int | None
    ) -> BARTClassifier:
        estimator: BARTClassifier = super()._from_model(model, metadata, n_jobs)
        counts = metadata.get("class_counts")
        is_known = (
            isinstance(counts, list)
            and len(counts) == len(model.classes())
            and all(type(count) in (int, float) and 0 < count < math.inf for count in counts)
        )
        estimator._counts = np.asarray(counts) if is_known else None
        return estimator

    # -- prediction -------------------------------------------------------------------------------

    def _predict_proba(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        proba = np.asarray(model.predict_proba(rows, n_threads=n_threads))
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - proba, proba])
        return proba.reshape(rows.shape[0], -1)

    def predict_draws(self, X: Any) -> FloatArray:
        """Predict the probability of the second class in every draw, or of each of several classes.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_draws of all chains, n_samples) or (..., n_samples, n_classes)
            The draws of the first chain come first; reshape to ``(n_chains, n_draws, n_samples)``.
            There is an axis of classes if there are more than two.

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
        draws = np.asarray(self._model.predict_draws(rows, n_threads=self._n_threads()))
        if len(self.classes_) == 2:
            return draws
        return draws.reshape(len(draws), rows.shape[0], -1)

    def _predictive(
        self, drawn: dict[str, FloatArray], y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        return of_classes(self, drawn["proba"], y, rng)
