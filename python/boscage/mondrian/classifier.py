"""Mondrian forests for classification, chapter 5 of the thesis."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from boscage import _boscage, _validation
from boscage._types import AnyArray, FloatArray, Rows
from boscage.mondrian._base import MondrianForest
from boscage.mondrian.feature_rates.classification import LearnedWeights, learn_weights

_DISCOUNTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""What ``discount="loo"`` chooses from."""
_DEFAULT_DISCOUNT = 10.0
_LEFT_OUT = 1000
"""Rows (at most) that ``discount="loo"`` leaves out, one at a time."""


class MondrianForestClassifier(ClassifierMixin, MondrianForest):  # type: ignore[misc]
    """A Mondrian forest for classification, in batch and online.

    The trees are restrictions of Mondrian processes to the training rows, with a hierarchy of
    normalised stable processes over the labels (chapter 5 of the thesis). They do not depend on
    the order in which rows come, nor on their grouping into calls: `fit` and any sequence of
    `partial_fit`, `forget` and `merge` that ends with the same rows give the same forest, bit for
    bit, for the same seed, reference ranges and feature weights.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        Cuts after this time are not made; smaller means smaller trees.
    min_samples_split : int, default=2
        A node with fewer rows is not split. Nodes with equal labels never are.
    discount : float or "loo", default=10.0
        How fast a node's distribution forgets its parent's with time: gamma is ``discount`` times
        the number of features. "loo" chooses it by the leave-one-out log loss on up to 1000 rows
        at the first fit; ``discount_`` is the choice.
    predictive : {"averaged", "realised"}, default="averaged"
        "averaged" takes the mean over all the places where a new row might branch off
        (Algorithm 5.8); "realised" follows each tree's own cuts, in much less memory.
    feature_range : (low, high), default=None
        Reference ranges: two numbers, or two arrays with one value a feature. By default those of
        the rows at the first fit. They set the scale of the features; rows outside are welcome.
        Give them where forests are to be merged or deletion is to be provable.
    feature_weights : array-like of shape (n_features,), "learned" or None, default=None
        Rate of cuts in each feature, in units of one over its range; 0 switches a feature off.
        "learned" estimates them from the labels at the first fit and then keeps them.
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
    classes_ : ndarray of shape (n_classes,)
        The labels that were declared or of which there are rows, sorted.
    discount_ : float
        The discount in use.
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
    n_rows_ : int
        Number of rows in the forest.
    ids_ : ndarray of shape (n_rows_,)
        Their numbers, in order of arrival.
    trees_ : list of MondrianTree
        The trees as arrays.

    See Also
    --------
    MondrianForestRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(forest.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> forest.partial_fit(X[1::2], y[1::2]).n_rows_
    150
    >>> forest.forget([3, 4]).n_rows_
    148
    """

    _FREE: ClassVar[frozenset[str]] = MondrianForest._FREE | {"discount"}

    _model: _boscage.MondrianClassifier

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float = math.inf,
        min_samples_split: int = 2,
        discount: float | Literal["loo"] = _DEFAULT_DISCOUNT,
        predictive: Literal["averaged", "realised"] = "averaged",
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        feature_weights: ArrayLike | Literal["learned"] | None = None,
        window_size: int | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.discount = discount
        self.predictive = predictive
        self.feature_range = feature_range
        self.feature_weights = feature_weights
        self.window_size = window_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning ---------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, *, ids: ArrayLike | None = None
    ) -> MondrianForestClassifier:
        """Grow a new forest.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Finite numbers. Row-major float32 and float64 arrays are not copied.
        y : array-like of shape (n_samples,)
            Labels: integers, strings, booleans, or whole floats.
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
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> MondrianForestClassifier:
        """Add rows to the forest, one or many; the first call grows it.

        The first call fixes the reference ranges from its rows unless ``feature_range`` is given.
        Rows of later calls wait for the next prediction, or whatever else asks for the trees:
        these are the same whenever they take rows in, and many at once cost less. `settle` does it
        when you choose.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; new ones may come at any call.
        classes : array-like, default=None
            Labels known in advance, at the first call. They have columns in `predict_proba` from
            the start.
        ids : array-like of int of shape (n_samples,), default=None
            Numbers by which rows can be forgotten. By default the count goes on.

        Returns
        -------
        self
        """
        with self._unchanged_on_error():
            if self.__sklearn_is_fitted__():
                self._extend(X, y, ids, classes)
            else:
                self._start(X, y, ids, classes)
        return self

    def _settings(self) -> dict[str, Any]:
        discount = self.discount
        if isinstance(discount, str):
            _validation.check_choice("discount, unless a number,", discount, ("loo",))
        else:
            discount = _validation.check_positive("discount", discount)
        return {
            "n_estimators": _validation.check_count("n_estimators", self.n_estimators, 1),
            "lifetime": _validation.check_positive("lifetime", self.lifetime, finite=False),
            "min_samples_split": _validation.check_count(
                "min_samples_split", self.min_samples_split, 2
            ),
            "discount": _DEFAULT_DISCOUNT if isinstance(discount, str) else discount,
            "predictive": _validation.check_choice(
                "predictive", self.predictive, ("averaged", "realised")
            ),
        }

    def _new_model(self, settings: dict[str, Any], seed: int) -> _boscage.MondrianClassifier:
        return _boscage.MondrianClassifier(**settings, seed=seed)

    @classmethod
    def _model_class(cls) -> type[_boscage.MondrianClassifier]:
        return _boscage.MondrianClassifier

    @classmethod
    def _params_of(cls, model: _boscage.MondrianClassifier) -> dict[str, Any]:
        return {"discount": model.discount}

    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        return _validation.check_labels(self, y, n_rows)

    def _encode(
        self, y: AnyArray, classes: Any, model: _boscage.MondrianClassifier | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        known = [] if model is None else model.classes()
        declared = None
        if classes is not None:
            declared = _validation.check_classes(classes, known)
            if model is not None and not set(declared) <= set(known):
                new = [label for label in declared if label not in known]
                raise ValueError(
                    f"classes holds {new}, which were not declared at the first call; labels "
                    "may appear in y at any call, but can be declared at the first one only"
                )
        return _validation.encode(y, known or declared or []), {"declared": declared}

    def _learn_weights(self, X: Rows, y: AnyArray, **options: Any) -> LearnedWeights:
        return learn_weights(X, y, **options)

    def _tune(
        self, model: _boscage.MondrianClassifier, encoded: tuple[Any, ...], n_threads: int
    ) -> None:
        """``discount="loo"``: the candidate with the least leave-one-out log loss."""
        if self.discount != "loo" or model.n_rows < 2:
            return
        codes, labels = encoded
        ids = model.ids
        rng = np.random.Generator(np.random.PCG64(0))
        rows = np.sort(rng.permutation(len(ids))[:_LEFT_OUT])
        classes = model.classes()
        column = np.array([classes.index(label) for label in labels])[codes[rows]]
        with self._progress("choosing the discount") as progress:
            proba = model.loo_proba(
                ids[rows], list(_DISCOUNTS), n_threads=n_threads, progress=progress
            )
        chosen = proba[:, np.arange(len(rows)), column]
        score = np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean(axis=1)
        model.set_discount(_DISCOUNTS[int(np.argmax(score))])

    def _adjust(self, model: _boscage.MondrianClassifier) -> None:
        super()._adjust(model)
        if not isinstance(self.discount, str) and model.discount != self.discount:
            model.set_discount(self.discount)

    def _changed(self) -> bool:
        changed = super()._changed()
        if self.discount == "loo" != self._grown_with["discount"]:
            raise ValueError(
                "discount='loo' is chosen when the forest is grown; call fit, or give a number"
            )
        return changed

    # -- prediction -------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; each row sums to one.
        """
        model, rows = self._query(X)
        proba: FloatArray = model.predict_proba(rows, n_threads=self._n_threads())
        return proba

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> AnyArray:
        """The most probable class; of equals the first.

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

    def loo_predict_proba(
        self, ids: ArrayLike | None = None, *, discounts: ArrayLike | None = None
    ) -> FloatArray:
        """Leave-one-out predictions: for each training row by the forest that never saw it.

        They take the place of a validation set. Each costs about as much as a prediction; the
        forest does not change.

        Parameters
        ----------
        ids : array-like of int, default=None
            Numbers of the rows to predict. By default all, in the order of ``ids_``.
        discounts : array-like of float of shape (n_discounts,), default=None
            Other discounts to predict with, all from the same trees.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_discounts, n_rows, n_classes)
        """
        model = self._require_rows()
        rows = None if ids is None else _validation.check_ids(ids)
        candidates = None
        if discounts is not None:
            candidates = [
                _validation.check_positive("discounts", value)
                for value in np.atleast_1d(np.asarray(discounts)).tolist()
            ]
        with self._progress("leaving out") as progress:
            proba = model.loo_proba(
                rows, candidates, n_threads=self._n_threads(), progress=progress
            )
        return np.asarray(proba if discounts is not None else proba[0])

    # -- what has been learned --------------------------------------------------------------------

    @property
    def classes_(self) -> AnyArray:
        """The labels that were declared or of which there are rows, sorted."""
        return np.array(self._require_model().classes())

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self._require_model().classes())

    @property
    def discount_(self) -> float:
        """The discount in use."""
        return float(self._require_model().discount)
