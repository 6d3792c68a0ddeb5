"""Mondrian forests for regression: chapter 6 of the thesis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from boscage import _core, persistence
from boscage._bases.lock import reading
from boscage._bases.prediction import DistributionalRegressor
from boscage._types import FloatArray, Maps
from boscage.distributions import GaussianMixture
from boscage.explain.contributions import Contributions
from boscage.mondrian._forest.base import Given
from boscage.mondrian._regression import RegressionForest


@persistence.register(_core.MondrianRegressor)
class MondrianForestRegressor(DistributionalRegressor, RegressionForest):
    """A Mondrian forest for regression, in batch and online, that predicts distributions.

    Each tree is the restriction of a Mondrian process to the training rows, with a Gaussian
    hierarchy over the means of its nodes (chapter 6 of the thesis). The forest is a function of its
    set of rows: `fit` and any sequence of `partial_fit`, `forget` and `merge` that ends with the
    same rows give the same forest, bit for bit, for the same seed, reference ranges and feature
    weights.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Time at which the Mondrian processes end. A shorter lifetime gives smaller trees.
    min_samples_split : int or "auto", default="auto"
        A node with fewer rows is not split. "auto" is 5 for forests that begin with more than
        20,000 rows, if ``posterior="joint"`` and ``feature_weights="learned"``, and if at most a
        tenth of the rows that weights are learned from have the same target: this takes about half
        of the memory, and predictions are as good. Else it is 2. ``min_samples_split_`` is the
        number, which is kept when rows come or go.
    posterior : {"exact", "fast", "joint"}, default="joint"
        "joint" fits the sum of all trees to the targets and takes the variance within trees from
        "exact", which is Gaussian belief propagation in each tree (section 6.3.1). "joint" is more
        accurate, especially for smooth targets and few rows; "exact" is the model of the thesis,
        and faster to fit. "fast" takes each node's empirical mean and variance instead (section
        6.3.3); its noise is global, and it uses neither ``hyperparameters`` nor ``prior_scale``,
        which must keep their defaults.
    hyperparameters : {"loo", "ml", "heuristic"} or dict, default="loo"
        How to choose the scales of the hierarchy: "loo" by the forest's leave-one-out predictions,
        "ml" by the trees' marginal likelihood, "heuristic" by the heuristic of section 6.3.2. "loo"
        judges all trees together, as they predict, and is the most accurate. Of more than 20,000
        rows "loo" and "ml" look at 20,000, which the rows' contents choose. They choose again
        whenever rows have changed. A dict gives the scales themselves: ``mu``, ``gamma1``,
        ``gamma2``, ``noise_variance``, and what else of ``hyperparameters_`` is not to be left out
        (such as ``delay`` and ``coarse_variance``, which are 0 then). A forest of the same rows
        that is given all of another one's ``hyperparameters_``, its ``feature_weights_``,
        ``feature_maps_``, and its ``trend_`` as ``trend`` ("auto" chooses none beside a dict), has
        its predictions. After a fit, ``forest.set_params(hyperparameters=forest.hyperparameters_)``
        keeps what was chosen, from the next `partial_fit` on. Predictions after updates are then
        several times as fast.
    noise : {"global", "local"}, default="local"
        Whether the noise variance is one number for all rows, or one for each node, smoothed down
        the tree like the means. "local" scales a node's variances, those of its mean, too, and
        does not change means. With ``hyperparameters="loo"`` it also has heavier tails, of which
        one may be longer: a share of the rows has a greater noise variance and lies to one side.
        Leave-one-out predictions choose the share, the variance and the side; means and standard
        deviations stay.
    noise_variance : float, default=None
        Variance of the noise if it is known; None estimates it. It is then the same everywhere, as
        with ``noise="global"``. Give it where all targets may be equal; see the notes.
    prior_scale : float or None, default=1.0
        Standard deviation of predictions far from all rows, in units of the standard deviation of
        the targets; at least 1. What a rule for ``hyperparameters`` finds inside the data says
        little about how far targets range elsewhere. So a second, coarse part of the prior adds
        what its choice lacks, and a prior that is wider is delayed, so that less of it is spent
        near the root. (Noise of a given
        ``noise_variance`` comes on top if it alone is greater.) None leaves the prior to the rule,
        as in the thesis. Without effect if ``hyperparameters`` is a dict.
    trend : {"auto", "linear"}, list of int, list of str or None, default="auto"
        Whether the mean has a linear part beside the trees, so that it goes on beyond the rows:
        with ``posterior="joint"``, targets are a linear function of all features ("linear") or of
        those with these numbers, or names of columns, plus the sum of the trees, plus noise. The
        coefficients have a normal prior, whose variance maximises the likelihood of the targets,
        and are learned together with the trees. What is not known of them, and that a slope may
        change where the reference range ends, widens predictions beyond the rows, the more the
        farther. At most 14 features have slopes: those with the greatest weights. "auto" chooses
        features: each for which small forests predict rows beyond its lower and its upper third,
        and in its tails, clearly better with a slope, unless they then predict rows left out at
        random worse. It does so where ``feature_weights="learned"`` with the joint posterior and a
        rule for ``hyperparameters``, and else is None.
    joint_kernel : {"auto", "trees", "limit"}, default="auto"
        Which trees ``posterior="joint"`` adds up: "trees" those of the forest, "limit" infinitely
        many, of which the forest's are a sample. The limit is a Gaussian process whose covariance
        is a known function of the distance of two rows. Its mean has no noise from the sample:
        where targets are smooth, errors are smaller by up to a seventh. Nodes are never kept from
        being split (`min_samples_split`, equal targets). Its equations take memory and time that
        grow with the square of the number of rows (100 MB at 5,000 rows), and a prediction time
        that grows with that number. "auto", if ``predictive="averaged"``, takes the limit with at
        most 5,000 rows. With more, it takes the limit as 1,536 of the rows know it, in a time that
        grows with the number of rows (Nystroem's method), or the trees, which know details better:
        whichever predicts left-out rows better (``hyperparameters="loo"``; else the trees). Only
        the mean differs; the spread about it is that of the forest's trees. ``contributions`` and
        exports, which need sums over trees, are of the same forest with "trees".
    predictive : {"averaged", "realised"}, default="averaged"
        "averaged" averages over all places where a new row might branch off a tree (Algorithm 6.5).
        "realised" follows each tree's own cuts and needs much less memory.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which features are categories: "from_dtype" means columns of tables (pandas, polars, Arrow)
        of a categorical, enumeration or text type. A list of names or numbers of features, or a
        mask of shape (n_features,), means these alone, in arrays too. None means none. Categories
        are text, booleans or numbers. Those of the rows of `fit`, or of the warm-up, are known;
        others that come later are handled as missing values.
    categories : list of dict or None, default=None
        For each feature None, or the place of each category between 0 and 1, and with the key None
        that of missing values; for example another forest's ``categories_``. None learns them from
        the targets. Give them if forests with categories are to be merged or deletion must be
        provable.
    feature_range : (low, high), default=None
        Reference ranges, which set the scale of the features: two numbers, or two arrays with one
        value per feature. None takes the ranges of the rows of `fit`, or of those of the warm-up.
        Later rows may lie outside. Give ranges if forests are to be merged or deletion must be
        provable.
    feature_weights : array-like of shape (n_features,), "learned" or None, default="learned"
        Rate of cuts in each feature, in units of one over its range; 0 ignores a feature. None
        means equal rates, as in the papers.
        "learned" estimates the rates, with feature maps (``feature_maps_``) or without, from the
        targets, and keeps them. Several proposals are tried by small forests with the same
        ``posterior`` and settings, which predict rows that the proposals were not learned from (up
        to 600): "joint" is judged by the scale of its errors, the others also by their
        leave-one-out density. The rates stay equal unless a proposal does better by 2.5 standard
        errors of the difference (with the joint posterior of infinitely many trees, by one and
        by 3 nats of all these rows), and always with fewer than 10 rows. All this looks at
        3,000 rows at most, chosen by their contents, so that the choice is a function of the set of
        rows and of ``random_state``. With the choice of slopes it takes two to three times as long
        as the rest of the fit of 100 trees. Of more than 1,024 features, those that matter most for
        boosted trees (on 10,000 rows, chosen alike) get rates; the others are ignored.
    feature_maps : list of (knots, shares), default=None
        How the rate of each feature is distributed along its range, for example another forest's
        ``feature_maps_`` together with its ``feature_weights_``, ``feature_range_`` and
        ``min_samples_split_``. None means evenly. Not possible with ``feature_weights="learned"``.
    substitutes : list of float or of (float, terms), default=None
        What stands for a missing value (NaN) of each feature: a number, or a number and the terms
        ``(feature, slope, origin)`` of a linear function of the other features that the row has,
        for example another forest's ``substitutes_``. None learns them from the first training rows
        with missing values (3,000 rows at most), and keeps them; until then each prediction with
        missing values learns its own: a linear function where other features
        explain at least 2 % of the feature's variance, else the median, or a place among the
        feature's values where rows have targets like those of the rows without a value. Give them
        if forests with missing values are to be merged or deletion must be provable. Predictions
        of rows that lack a value which hardly any training row lacks are averages over values that
        training rows like them have.
    warm_up : int, default=1000
        Number of rows before ranges, weights and maps that are learned are final, if rows come
        by `partial_fit`. Until then they are learned anew, from all rows in the forest, each
        time the number of rows that came has doubled, and at last by the call that reaches
        ``warm_up``. The forest is then the one that `fit` grows from these rows. 0 keeps what the
        first call finds. Without effect on `fit`, and if nothing is to be learned.
    window_size : int, default=None
        Keep this many of the newest rows and forget the others; None keeps all.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same forest each time, in Python and in Rust, for any ``n_jobs``.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context; -1 means all
        processors.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    hyperparameters_ : dict
        ``mu``, ``gamma1``, ``gamma2``, ``noise_variance`` and all else that is given or was chosen,
        by name.
    min_samples_split_ : int
        The least number of rows of a split.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `X` had column names that are all strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each feature; they sum to one, or are all 0 if nothing is explained. Learned
        with ``feature_weights="learned"``, else what the feature's splits explain.
    feature_range_ : tuple of two ndarray of shape (n_features_in_,)
        The reference ranges in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The rates of cuts in use.
    feature_maps_ : list of (knots, shares) or None
        How the rate of each feature is distributed along its range, if learned or given. None means
        evenly, also if ``feature_weights="learned"`` chose rates without maps, or equal rates.
    categories_ : list of dict or None
        For each feature None, or the place of each category; None if no feature is categorical.
    is_categorical_ : ndarray of bool of shape (n_features_in_,) or None
        Which features are categories; None if none is.
    substitutes_ : list of (float, terms) or None
        What stands for missing values; None before the first ones came.
    n_rows_ : int
        Number of training rows.
    warm_up_left_ : int
        Number of rows until what is learned from the first rows is final; 0 once it is.
    ids_ : ndarray of shape (n_rows_,)
        Row numbers of the training rows, in order of arrival.
    trees_ : list of MondrianTree
        The trees as arrays. With a trend, their values are about what it leaves of the targets.
    trend_ : {"linear"}, list of int or None
        The features that may have a slope, as given or chosen: "linear" for all, or their numbers.
        At most 14 have one, those with the greatest weights.
    trend_slopes_ : ndarray of shape (n_features_in_,) or None
        The slopes, per unit of each feature; 0 for features without one.

    Notes
    -----
    The defaults are those that predict best. The model and the settings of the papers are
    ``MondrianForestRegressor(10, min_samples_split=10, posterior="exact",
    hyperparameters="heuristic", noise="global", prior_scale=None, feature_weights=None)``.

    One row, or rows whose targets are all equal, show no scale on which targets differ, and no rule
    for ``hyperparameters`` can find one: units of the targets would decide. The predicted variance
    is then that of rounding, about ``1e-32`` times the square of the target, so that any other
    target seems impossible. Give ``noise_variance``, which is then the variance everywhere, or
    wait for the first different target: the forest is that of all rows.

    With ``joint_kernel="trees"``, equations for the mean are solved in steps. With hardly any noise
    (``noise_variance`` or ``hyperparameters`` that say so) or with sample weights over many
    decades, a thousand steps can be too few. A `sklearn.exceptions.ConvergenceWarning` then says
    how far predictions are off.

    See Also
    --------
    MondrianForestClassifier : The same for classes.
    GaussianMixture : What `predict_dist` returns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from boscage import MondrianForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = MondrianForestRegressor(random_state=0).fit(X[::2], y[::2])
    >>> mean, std = forest.predict(X[1::2], return_std=True)
    >>> lower, upper = forest.predict_dist(X[1::2]).interval(0.9)
    >>> bool(((lower < mean) & (mean < upper)).all())
    True
    """

    _model: _core.MondrianRegressor

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        min_samples_split: int | Literal["auto"] = "auto",
        posterior: Literal["exact", "fast", "joint"] = "joint",
        hyperparameters: Literal["loo", "ml", "heuristic"] | Mapping[str, float] = "loo",
        noise: Literal["global", "local"] = "local",
        noise_variance: float | None = None,
        prior_scale: float | None = 1.0,
        trend: Literal["auto", "linear"] | Sequence[int] | Sequence[str] | None = "auto",
        joint_kernel: Literal["auto", "trees", "limit"] = "auto",
        predictive: Literal["averaged", "realised"] = "averaged",
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        categories: Sequence[Any] | None = None,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        feature_weights: ArrayLike | Literal["learned"] | None = "learned",
        feature_maps: Maps | None = None,
        substitutes: Sequence[Any] | None = None,
        warm_up: int = 1000,
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
        self.prior_scale = prior_scale
        self.trend = trend
        self.joint_kernel = joint_kernel
        self.predictive = predictive
        self.categorical_features = categorical_features
        self.categories = categories
        self.feature_range = feature_range
        self.feature_weights = feature_weights
        self.feature_maps = feature_maps
        self.substitutes = substitutes
        self.warm_up = warm_up
        self.window_size = window_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning ---------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> MondrianForestRegressor:
        """Add one or more rows to the forest; the first call grows it.

        Ranges, feature weights and whatever else is learned from the first rows are final once
        ``warm_up`` rows have come; until then some calls learn them anew and grow all trees again.
        Updates are lazy: calls only record rows, and the next read, or `flush`, applies them to the
        trees. The forest does not depend on when this happens, and many rows at once cost less than
        one by one.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            New rows; finite numbers, or NaN for missing values.
        y : array-like of shape (n_samples,)
            Targets; finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            As how many rows each row counts; see `fit`.
        ids : array-like of int, str or UUID of shape (n_samples,), default=None
            Names of rows, which `forget` takes; see `row_numbers`. None continues after the
            greatest number so far.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `X`, `y`, `sample_weight` or `ids` is refused (see `fit`), a row number is in use, or
            a parameter changed that needs a new `fit`.
        TypeError
            If a parameter or a row number is of a wrong type.
        KeyboardInterrupt
            If interrupted. The first call, and one that waits for another thread, then leave the
            estimator as it was; any other call has recorded all rows.
        """
        self._partial_fit(Given(X, y, ids, sample_weight))
        return self

    # -- prediction -------------------------------------------------------------------------------

    def _finish_contributions(self, model: Any, found: Contributions) -> Contributions:
        return replace(found, values=found.values[:, :, 0], base_values=found.base_values[:, 0])

    def _predict_mean(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        return np.asarray(model.predict_mean(rows, n_threads=n_threads))

    def _predict_mean_and_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        model, rows, n_threads = self._query(X)
        mean, variance = model.predict(rows, n_threads=n_threads)
        return mean, np.sqrt(variance)

    @reading
    def predict_dist(self, X: Any) -> GaussianMixture:
        """Predict the whole distribution of the target: a mixture over the trees (equation 6.5).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        GaussianMixture
            One mixture per row, with one Gaussian component for every place in every tree where the
            row may branch off. These are thousands per row, and eight times as many for a row that
            lacks values; predict many rows in parts.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        model, rows, n_threads = self._query(X)
        return GaussianMixture(*model.predict_dist(rows, n_threads=n_threads))

    @reading
    def loo_predict_dist(self, ids: ArrayLike | None = None) -> GaussianMixture:
        """Predict training rows by leave-one-out: each by the forest without that row.

        The predictions replace a validation set. Each costs about as much as a prediction, or with
        ``posterior="joint"`` as much as fitting the trees together, and the forest does not change.
        The trees are those without the row. Hyperparameters and learned rates are those of all
        rows, although a forest without the row might choose others. The noise is global and
        Gaussian, also with ``noise="local"``.

        Parameters
        ----------
        ids : array-like of int, str or UUID, default=None
            Ids of the rows to predict. None predicts all, in the order of ``ids_``.

        Returns
        -------
        GaussianMixture
            One mixture per row.

        Raises
        ------
        KeyError
            If there is no row of that number.
        ValueError
            If the forest has a single row, and no ``hyperparameters`` that give the prior, which is
            all that is left then.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        KeyboardInterrupt
            If interrupted. The forest does not change.
        """
        is_prior_given = isinstance(self._grown_with.get("hyperparameters"), Mapping)
        model = self._require_rows(others=not is_prior_given)
        rows = self._held(ids)
        with self._progress("leave-one-out") as progress:
            parts = model.loo_dist(rows, n_threads=self._n_threads(), progress=progress)
        return GaussianMixture(*parts)

    # -- what was learned -------------------------------------------------------------------------

    @property
    @reading
    def trend_(self) -> Literal["linear"] | list[int] | None:
        """The features that may have a slope: "linear" for all, their numbers, or None.

        At most 14 of them have one, those with the greatest weights; see `trend_slopes_`.
        """
        model = self._require_model()
        features: list[int] | None = model.trend_features
        return model.trend if features is None else features

    @property
    @reading
    def trend_slopes_(self) -> FloatArray | None:
        """The posterior means of the slopes of the linear part; None if there is none.

        For each feature what the mean gains per unit of the feature, beside what the trees know; 0
        for features that the linear part does not have: those that `trend_` does not mean, those of
        weight 0 or without a range, and all but 14 of the others, those with the greatest weights.
        """
        found = self._flushed().trend_coefficients(n_threads=self._n_threads())
        return None if found is None else np.asarray(found[1])

    @property
    @reading
    def hyperparameters_(self) -> dict[str, float]:
        """The scales of the hierarchy in use (section 6.3).

        ``mu``, ``gamma1``, ``gamma2`` and ``noise_variance``, and what ``prior_scale`` adds to the
        thesis' prior: ``delay``, ``coarse_variance`` and ``coarse_rate``. With the logistic
        function ``s``, the prior variance between times 0 and ``t`` is ``gamma1 * (s(gamma2 * (t -
        delay)) - s(-gamma2 * delay)) + coarse_variance * tanh(coarse_rate * t / 2)``.

        With a trend, ``trend_variance`` is the prior variance of its value at the middle of the
        reference ranges (less ``mu``), and of what it gains along the range of each feature, and
        ``trend_scale`` a factor on the variances that decide how uncertain it is.

        "loo" also fits what is here only then. With ``posterior="joint"``: ``joint_gamma1``,
        ``joint_gamma2`` and ``joint_noise_variance`` of the sum of all trees, the share
        ``joint_share`` of its mean in predictions, and ``tree_spread``, by which the distances of
        the trees' own means from it are multiplied; ``joint_limit``, which is 1, if they were
        fitted to infinitely many trees (``joint_kernel``). With ``noise="local"``: ``noise_rows``,
        for how many rows the noise of a node's parent counts, and the tails: a share
        ``tail_share`` of the rows has the mean ``tail_offset``, in predicted standard deviations,
        and the variance ``tail_variance``, the others ``core_variance``.
        """
        model = self._flushed()
        chosen: dict[str, float] = model.hyperparameters(n_threads=self._n_threads())
        return chosen

    @reading
    def log_marginal_likelihood(self) -> float:
        """Compute the logarithm of the marginal likelihood of the targets, averaged over trees.

        Returns
        -------
        float
            Natural logarithm.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        """
        return float(self._flushed().log_marginal_likelihood(n_threads=self._n_threads()))
