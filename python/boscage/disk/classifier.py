"""Mondrian forests for classification from rows on disk."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from boscage import _core, persistence
from boscage._bases.prediction import ProbabilisticClassifier
from boscage._types import AnyArray, FloatArray, Maps
from boscage.disk._base import DiskForest
from boscage.mondrian._classification import DEFAULT_DISCOUNT
from boscage.mondrian.classifier import MondrianForestClassifier as OneMachine


@persistence.register(_core.FrozenClassifier)
class MondrianForestClassifier(ProbabilisticClassifier, DiskForest):
    """A Mondrian forest for classification, grown from rows on disk within a bound on memory.

    It predicts what `boscage.MondrianForestClassifier` with ``predictive="realised"``,
    ``calibration=None`` and the same parameters does, bit for bit, whatever the bound is. It keeps
    no rows: of each leaf it has the number of rows of each class and the least box around them. So
    it learns no more, and forgets nothing.

    Parameters
    ----------
    memory_limit : int or str
        The most memory that `fit` takes beside what the process held before, in bytes or as a text
        such as "2GB" (10^9 bytes each) or "500MiB". The trees must fit. A smaller bound takes more
        passes over the files.
    n_estimators : int, default=100
        Number of trees.
    lifetime : float, default=inf
        No cut comes at this time or later.
    min_samples_split : int, default=2
        A node of fewer rows is not split. Trees with large leaves take little memory.
    discount : float, default=10.0
        How fast a node's probabilities leave its parent's; see the forest with rows.
    feature_range : pair of array-like, default=None
        The reference ranges, low and high, of all features. None takes the rows' own.
    feature_weights : array-like of shape (n_features,), "learned" or None, default="learned"
        The rates of the features relative to each other. "learned" learns them from a sample of
        the rows, as the forest with rows does, which must fit in ``memory_limit``. None means equal
        rates in units of the ranges.
    feature_maps : list of (knots, shares), default=None
        How the rate of each feature is distributed along its range; see the forest with rows.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same forest each time, for any ``n_jobs`` and ``memory_limit``.
    n_jobs : int, default=None
        Number of threads; see the forest with rows.
    verbose : int, default=0
        If positive, show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_classes_ : int
        Number of classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the rows came from Parquet.
    feature_range_ : tuple of two ndarray of shape (n_features_in_,)
        The reference ranges in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The rates of cuts in use.
    feature_maps_ : list of (knots, shares) or None
        How each feature's rate is distributed along its range; None means evenly.
    n_rows_ : int
        Number of training rows.
    nbytes_ : int
        Memory of the trees in bytes.

    See Also
    --------
    boscage.MondrianForestClassifier : The forest with rows, which goes on to learn.
    boscage.dask.MondrianForestClassifier : The same on several machines.

    Examples
    --------
    >>> import numpy as np
    >>> from boscage.disk import MondrianForestClassifier
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> forest = MondrianForestClassifier("64MB", n_estimators=10, random_state=0)
    >>> forest.fit(X, X[:, 0] > 0).predict([[2.0, 0.0], [-2.0, 0.0]])
    array([ True, False])
    """

    # Give weights of classes to predictions yourself.
    class_weight: ClassVar[None] = None  # type: ignore[misc]

    def __init__(
        self,
        memory_limit: int | str,
        *,
        n_estimators: int = 100,
        lifetime: float = math.inf,
        min_samples_split: int = 2,
        discount: float = DEFAULT_DISCOUNT,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        feature_weights: ArrayLike | Literal["learned"] | None = "learned",
        feature_maps: Maps | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.memory_limit = memory_limit
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.discount = discount
        self.feature_range = feature_range
        self.feature_weights = feature_weights
        self.feature_maps = feature_maps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _template(self) -> OneMachine:
        same = {name: getattr(self, name) for name in (*self._SAME, "discount")}
        return OneMachine(predictive="realised", calibration=None, **same)

    def _predict_proba(self, X: Any) -> FloatArray:
        model, rows, n_threads = self._query(X)
        proba: FloatArray = model.predict_proba(rows, n_threads=n_threads)
        return proba

    def _class_counts(self) -> AnyArray:
        raise NotImplementedError("class_weight is None")

    @classmethod
    def _own_params(cls, model: Any) -> dict[str, Any]:
        return {"discount": model.discount}
