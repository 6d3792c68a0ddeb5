"""What forests say of the limits of their predictions: scores of rows, parts of uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import ArrayLike

from boscage._bases.lock import reading
from boscage._types import FloatArray, Ids, Rows


class Uncertainty(NamedTuple):
    """Parts of the uncertainty of predictions, from ``predict_uncertainty``.

    Attributes
    ----------
    total : ndarray of shape (n_samples,)
        The whole: for classes the entropy of the predicted probabilities in nats, for numbers the
        variance of the predictive distribution.
    aleatoric : ndarray of shape (n_samples,)
        What more training rows would not lessen: classes that overlap, noise.
    epistemic : ndarray of shape (n_samples,)
        What they would lessen; ``total - aleatoric``, not negative.
    """

    total: FloatArray
    aleatoric: FloatArray
    epistemic: FloatArray

    @classmethod
    def of(cls, total: FloatArray, aleatoric: FloatArray) -> Uncertainty:
        """The parts, given the whole and one of them."""
        return cls(total, aleatoric, total - aleatoric)


class ScoringForest:
    """Mixin of the Mondrian forests, which say how usual rows are. Not for direct use."""

    if TYPE_CHECKING:  # the forest, which comes later in the order of bases, has them

        def _query(self, X: Any) -> tuple[Any, Rows, int]: ...
        def _held(self, ids: Any) -> Ids | None: ...
        def _require_rows(self) -> Any: ...
        def _n_threads(self) -> int: ...
        def _progress(self, what: str) -> Any: ...

    @reading
    def score_samples(self, X: Any) -> FloatArray:
        """Score how usual rows are: the larger, the closer a row is to the training rows.

        A tree separates a row from all its rows at the time ``T`` at which the row branches off
        (section 5.5.3 of the thesis): the farther it lies outside the boxes of the nodes on its
        path, the sooner. The score is the mean over trees of ``E[1 - exp(-g * T)]``, where ``g`` is
        a twentieth of the sum of ``feature_weights_``. It is the probability that a tree has not
        separated the row from all its rows at an exponential time of rate ``g``.

        The score is 1 where a row lies in the boxes of the leaves of all trees (and ``lifetime`` is
        infinite), and falls to 0 as it moves away. Distances are those of the forest: a feature of
        small weight counts little, and none of weight 0. In a classifier a leaf may hold many rows
        of one class; so rows between classes count as unusual, too. ``posterior`` and
        ``calibration`` do not matter. The score costs about as much as a prediction.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores in [0, 1].

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.

        See Also
        --------
        loo_score_samples : Scores of training rows, for a threshold.
        """
        model, rows, n_threads = self._query(X)
        scores: FloatArray = model.score_samples(rows, n_threads=n_threads)
        return scores

    @reading
    def loo_score_samples(self, ids: ArrayLike | None = None) -> FloatArray:
        """Score training rows by leave-one-out: each by the forest without that row.

        They are what scores of usual rows look like: a low quantile of them is a threshold for
        `score_samples`. Each costs about as much as a prediction, and the forest does not change.

        Parameters
        ----------
        ids : array-like of int, str or UUID, default=None
            Ids of the rows to score. None scores all, in the order of ``ids_``.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores in [0, 1].

        Raises
        ------
        KeyError
            If there is no row of that number.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        KeyboardInterrupt
            If interrupted. The forest does not change.
        """
        model = self._require_rows()
        rows = self._held(ids)
        n_threads = self._n_threads()
        with self._progress("leave-one-out") as progress:
            scores: FloatArray = model.loo_score_samples(
                rows, n_threads=n_threads, progress=progress
            )
        return scores

    @reading
    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Divide the uncertainty of predictions by its source.

        For classes the total is the entropy of `predict_proba`. Its epistemic part is the mutual
        information between the label and the tree, together with the label that would be drawn
        where a tree falls back to what it says of all its rows, or to the prior; so the farther a
        row is from all others, the more of the uncertainty is epistemic, although all trees agree
        there. The aleatoric part is the entropy that remains. Calibration, ``posterior="joint"``
        and ``class_weight`` change the probabilities of the labels, but not what a label says of
        the trees (Jeffrey's rule), and ``calibration_noise_`` is aleatoric.

        For numbers the total is the variance of `predict_dist`. Its aleatoric part is the variance
        of the noise, its mean over the places where the row may branch off the trees if noise is
        local; the epistemic part is what is not known of the function (law of total variance).

        How far the predictions of a row that lacks values differ between the values that it may
        have is aleatoric: more training rows would not tell these.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Uncertainty
            The arrays ``total``, ``aleatoric`` and ``epistemic``, of shape (n_samples,): nats for
            classes, squared units of the target for numbers.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted, or has no rows.
        ValueError
            If `X` is refused, or of a classifier ``class_weight``; see `predict`.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        model, rows, n_threads = self._query(X)
        return self._uncertainty(model, rows, n_threads)

    def _uncertainty(self, model: Any, rows: Rows, n_threads: int) -> Uncertainty:
        """The uncertainty of checked rows."""
        return Uncertainty.of(*model.predict_uncertainty(rows, n_threads=n_threads))
