"""Mondrian forests for classification: chapter 5 of the thesis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from boscage import _core, _validation, persistence
from boscage._bases.lock import reading
from boscage._bases.prediction import ProbabilisticClassifier
from boscage._types import AnyArray, FloatArray, Maps, Rows
from boscage.explain._link import Link
from boscage.explain._through_link import close_gap, through_link
from boscage.explain.contributions import Contributions
from boscage.mondrian._classification import DEFAULT_DISCOUNT, ClassificationForest
from boscage.mondrian._forest.base import Given
from boscage.mondrian._forest.uncertainty import Uncertainty


@persistence.register(_core.MondrianClassifier)
class MondrianForestClassifier(ProbabilisticClassifier, ClassificationForest):
    """A Mondrian forest for classification, in batch and online.

    Each tree is the restriction of a Mondrian process to the training rows, with a hierarchy of
    normalised stable processes over the labels (chapter 5 of the thesis). The forest is a function
    of its set of rows: `fit` and any sequence of `partial_fit`, `forget` and `merge` that ends with
    the same rows give the same forest, bit for bit, for the same seed, reference ranges and feature
    weights.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Time at which the Mondrian processes end. A shorter lifetime gives smaller trees.
    min_samples_split : int or "auto", default="auto"
        A node with fewer rows is not split. A node whose labels are all equal is never split.
        "auto" is 2, unless labels are so noisy that small forests with larger leaves predict
        left-out rows better: then it is 5, 10, 20, 50 or 100. It is chosen when feature weights are
        learned, if ``posterior="kneser-ney"`` and ``calibration="loo"``, and then kept, also if
        these change; it is 2 otherwise, also with weights that are given. ``min_samples_split_`` is
        the choice.
    discount : float or "loo", default=10.0
        How fast the distributions of a node and its parent become independent with time: the
        parameter gamma of the thesis is ``discount`` times the sum of the feature weights, which is
        the number of features if rates are equal or learned. "loo" chooses it once, by the
        leave-one-out log loss on up to 1000 rows; ``discount_`` is the choice.
    posterior : {"kneser-ney", "joint"}, default="kneser-ney"
        "kneser-ney" lets every tree predict alone, by interpolated Kneser-Ney (section 5.4), and
        averages. "joint" multiplies that average by what all trees explain together: with
        ``f_k``, a Gaussian process on the codes of class k whose kernel is the forest's own,
        probabilities are proportional to ``p_k**a * exp(b * f_k)`` (and to what `calibration` and
        `trend` add). It mostly predicts better (see the notes), and the first read after rows came
        or left takes up to five times as long as a random forest's fit. It needs
        ``calibration="loo"``, which fits ``a`` and ``b``.
    calibration : "loo" or None, default="loo"
        "loo" raises the average of the trees' probabilities to a power, normalises it, and mixes it
        with a share of noise, which gives all classes the same probability. A power below 1, as
        where features tell little, draws to the shares of the classes. Power and noise are
        those that predict up to 300 training rows best by leave-one-out (up to 3,000 where classes
        are rare); they are fitted again at the first read after rows came or left. None predicts
        with the average itself, as in the thesis (equation 5.6).
    trend : {"auto"} or None, default="auto"
        "auto" lets calibrated probabilities follow a linear function of the features, where
        left-out rows are predicted better so: they are multiplied by ``exp(c * g_k)``. The ``g_k``
        are the ridge regression of the codes of class k on the features that are numbers (at most
        128, those with the greatest rates), on up to 3,000 rows that are chosen by their contents.
        ``c`` is fitted with the power and the noise. The function counts where there are rows, and
        far from all of them the prior stays. There is none with more than 100 classes, with fewer
        than 20 rows, or without calibration. None has no such function.
    joint_kernel : {"auto", "trees", "limit"}, default="auto"
        Which trees ``posterior="joint"`` adds up: "trees" those of the forest, "limit" infinitely
        many, of which the forest's are a sample. The limit is a Gaussian process whose covariance
        is a known function of the distance of two rows. Left-out rows choose the variance of its
        noise, and up to 1,000 of them calibrate. Nodes are never kept from being split
        (`min_samples_split`, equal labels). It takes memory that grows with the square of the
        number of rows (400 MB and some ten seconds of a processor at 10,000 rows), time that grows
        with the cube, and for each prediction time that grows with the number of rows. "auto" takes
        the limit with at most 10,000 rows. With more, left-out rows decide between the trees and
        the limit as 1,536 of the rows know it, which takes a time that grows with the number of
        rows. The latter is mostly better where labels are noisy, and not tried where they are not.
        With ``predictive="realised"`` it takes the trees. With these and 1,000 rows or more, the
        rows that calibrate are left out in groups, of a tenth of the rows at most.
        ``contributions`` need sums over trees, and are those of the same forest with "trees".
    predictive : {"averaged", "realised"}, default="averaged"
        "averaged" averages over all places where a new row might branch off a tree (Algorithm 5.8).
        "realised" follows each tree's own cuts and needs much less memory.
    class_weight : dict, "balanced" or None, default=None
        How many times as much each class counts as in the training rows: a dictionary of weights
        by label, where others weigh 1. "balanced" lets all classes count the same: it divides by
        their numbers of rows in the forest, and a class without rows (declared, or forgotten)
        weighs as the most frequent one. Predicted probabilities are multiplied by these weights and
        normalised (Bayes' rule, for a population with other shares of classes), so that `predict`
        prefers what is rare or dear to miss. Nothing that is learned depends on it: it may be set
        after the fit. Labels that are no classes do not count, since their rows may be to come, or
        may have gone; but `fit` refuses a dictionary without a label of `y`.
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
        "learned" estimates them from the labels, with feature maps (``feature_maps_``) or without,
        and keeps them. The maps bring features to their ranks, wholly or half, so that heavy tails
        do no harm. Proposals come from trees whose cuts depend on the labels and from automatic
        relevance determination. They are tried by small forests with the same settings, by the
        leave-one-out log loss on rows that the proposals were not learned from (up to 800). The
        rates stay equal and without maps unless a proposal does better by .005 and a standard error
        of the difference, and always with fewer than 10 rows. All this looks at 3,000 rows at most,
        chosen by their contents, so that the choice is a function of the set of rows and of
        ``random_state``. With few rows it takes some times as long as the rest of the fit of 100
        trees, at 10,000 rows about as long. Of more than 1,024 features, those that matter most for
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
        Number of rows before ranges, weights, maps, the size of leaves and a discount that are
        learned are final, if rows come by `partial_fit`. Until then they are learned anew, from all
        rows in the forest, each time the number of rows that came has doubled, and at last by the
        call that reaches ``warm_up``. The forest is then the one that `fit` grows from these rows.
        0 keeps what the first call finds. Without effect on `fit`, and if nothing is to be learned.
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
    classes_ : ndarray of shape (n_classes,)
        The class labels, declared or present in the training rows, sorted.
    n_classes_ : int
        Number of classes.
    discount_ : float
        The discount in use.
    min_samples_split_ : int
        The least number of rows of a split.
    calibration_power_ : float
        The power to which probabilities are raised; 1 for ``calibration=None``. One below 1 also
        draws them to the shares of the classes.
    calibration_noise_ : float
        The share of labels taken as drawn at random from all classes, which is mixed with the
        powered probabilities; 0 for ``calibration=None``.
    joint_weight_ : float
        The weight ``b`` of what all trees explain together; 0 unless ``posterior="joint"``.
    trend_slopes_ : ndarray of shape (n_features_in_, n_classes) or None
        What a unit of each feature adds to the logarithm of each class's probability among the
        rows, before these are normalised and mixed with noise; None without a trend.
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
        The trees as arrays.

    Notes
    -----
    The settings of the papers are ``calibration=None, feature_weights=None``. The defaults predict
    much better, and keep updates cheap. The best predictions from a batch come from
    ``posterior="joint"``, with the other defaults: on nine sets of up to 15,000 rows its log loss
    was on average 22 % below that of the defaults and its error 17 %, for 5 times the processor
    time of a fit. ``joint_kernel="limit"`` is better still with more than 10,000 rows whose labels
    have little noise, and takes much longer there.

    See Also
    --------
    MondrianForestRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boscage import MondrianForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(forest.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> forest.partial_fit(X[1::2], y[1::2]).n_rows_
    150
    >>> forest.forget([3, 4]).n_rows_
    148
    """

    _FREE: ClassVar[frozenset[str]] = ClassificationForest._FREE | {
        "calibration",
        "class_weight",
        "discount",
        "joint_kernel",
        "posterior",
        "trend",
    }

    _model: _core.MondrianClassifier

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        min_samples_split: int | Literal["auto"] = "auto",
        discount: float | Literal["loo"] = DEFAULT_DISCOUNT,
        posterior: Literal["kneser-ney", "joint"] = "kneser-ney",
        calibration: Literal["loo"] | None = "loo",
        trend: Literal["auto"] | None = "auto",
        joint_kernel: Literal["auto", "trees", "limit"] = "auto",
        predictive: Literal["averaged", "realised"] = "averaged",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
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
        self.discount = discount
        self.posterior = posterior
        self.calibration = calibration
        self.trend = trend
        self.joint_kernel = joint_kernel
        self.predictive = predictive
        self.class_weight = class_weight
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
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> MondrianForestClassifier:
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
            Labels; new classes may appear at any call.
        classes : array-like, default=None
            Labels known in advance, at the first call. They have columns in `predict_proba` from
            the start.
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
            If `X`, `y`, `classes`, `sample_weight` or `ids` is refused (see `fit`), a row number is
            in use, or a parameter changed that needs a new `fit`.
        TypeError
            If a parameter, a label or a row number is of a wrong type.
        KeyboardInterrupt
            If interrupted. The first call, and one that waits for another thread, then leave the
            estimator as it was; any other call has recorded all rows.
        """
        self._partial_fit(Given(X, y, ids, sample_weight, classes))
        return self

    # -- prediction -------------------------------------------------------------------------------

    def _predict_proba(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        proba: FloatArray = model.predict_proba(rows, n_threads=n_threads)
        return proba

    def _uncertainty(self, model: Any, rows: Rows, n_threads: int) -> Uncertainty:
        weights = self._class_weights()
        return Uncertainty.of(*model.predict_uncertainty(rows, weights, n_threads=n_threads))

    def _class_counts(self) -> AnyArray:
        codes: AnyArray = self._model.targets()
        weights = self._model.sample_weight()
        if weights is None:
            return np.bincount(codes, minlength=self.n_classes_)
        # Rounded once, whatever the order of the rows.
        return np.array([math.fsum(weights[codes == code]) for code in range(self.n_classes_)])

    def _as_sum(self, model: Any) -> Any:
        if not model.may_have_limit:
            return model
        of_trees = model.copy()
        of_trees.set_posterior(model.posterior, model.calibration, "trees", model.trend)
        return of_trees

    def _finish_contributions(self, model: Any, found: Contributions) -> Contributions:
        n_threads = self._n_threads()
        link = Link.of(model.calibration_link(n_threads=n_threads))
        base, values, rows = found.base_values, found.values, found.data
        predicted = proba = self._model.predict_proba(rows, n_threads=n_threads)
        if model is not self._model:
            proba = model.predict_proba(rows, n_threads=n_threads)
        if not link.changes_nothing:
            base, values = through_link(base, values, link, proba, rows)
        names = [str(name) for name in self.classes_]
        found = replace(found, values=values, base_values=base, output_names=names)
        found = self._weighted_contributions(found, proba)
        after, is_cut = self._weighted(predicted), np.asarray(self._model.weights) > 0.0
        closed = close_gap(found.base_values, found.values, after, is_cut)
        return replace(found, values=closed)

    @reading
    def loo_predict_proba(
        self,
        ids: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
        calibrated: bool = True,
    ) -> FloatArray:
        """Predict training rows by leave-one-out: each by the forest without that row.

        The predictions replace a validation set. Each costs about as much as a prediction, and the
        forest does not change. What ``calibration="loo"`` fits is that of the forest with the row:
        no single row matters to it. With ``posterior="joint"`` each costs the solution of a system
        of equations in all other rows.

        Parameters
        ----------
        ids : array-like of int, str or UUID, default=None
            Ids of the rows to predict. None predicts all, in the order of ``ids_``.
        discounts : array-like of float of shape (n_discounts,), default=None
            Discounts to predict with, instead of ``discount_``. Each is calibrated on its own.
        calibrated : bool, default=True
            Whether to calibrate, and weight classes, as `predict_proba` does. False returns the
            average over the trees, whatever ``calibration`` and ``class_weight`` are.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_discounts, n_rows, n_classes)
            Probabilities of the classes, in the order of ``classes_``.

        Raises
        ------
        KeyError
            If there is no row of that number.
        ValueError
            If a discount is not positive, or the forest has a single row: none is left then.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        KeyboardInterrupt
            If interrupted. The forest does not change.
        """
        model = self._require_rows(others=True)
        rows = self._held(ids)
        candidates = None
        if discounts is not None:
            candidates = [
                _validation.check_positive("discounts", value)
                for value in np.atleast_1d(np.asarray(discounts)).tolist()
            ]
        with self._progress("leave-one-out") as progress:
            proba = model.loo_proba(
                rows,
                candidates,
                calibration=model.calibration if calibrated else None,
                n_threads=self._n_threads(),
                progress=progress,
            )
        found = np.asarray(proba if discounts is not None else proba[0])
        return self._weighted(found) if calibrated else found

    # -- what was learned -------------------------------------------------------------------------

    @property
    @reading
    def discount_(self) -> float:
        """The discount in use."""
        return float(self._require_model().discount)

    @property
    @reading
    def calibration_power_(self) -> float:
        """The power to which probabilities are raised; 1 for ``calibration=None``."""
        return self._link().power

    @property
    @reading
    def calibration_noise_(self) -> float:
        """The share of labels taken as drawn at random from all classes."""
        return self._link().noise

    @property
    @reading
    def joint_weight_(self) -> float:
        """The weight of what all trees explain together; 0 unless ``posterior="joint"``."""
        return self._link().weight

    @property
    @reading
    def trend_slopes_(self) -> FloatArray | None:
        """What a unit of each feature adds to the logarithm of each class's probability."""
        trend = self._link().trend
        if trend is None:
            return None
        slopes = np.zeros((self.n_features_in_, self.n_classes_))
        slopes[trend.features] = trend.weight * trend.slopes / trend.width[:, np.newaxis]
        return slopes

    def _link(self) -> Link:
        return Link.of(self._flushed().calibration_link(n_threads=self._n_threads()))
