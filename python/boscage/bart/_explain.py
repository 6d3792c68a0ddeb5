"""Shapley values of BART, with credible bands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from boscage import _validation
from boscage._types import AnyArray, FloatArray, Rows
from boscage.explain.contributions import Contributions

# How many numbers of all draws together are in memory at once.
_MAX_NUMBERS = 20_000_000


class BartExplanations:
    """Mixin of BART. Not for direct use."""

    if TYPE_CHECKING:  # methods of the estimator that this is a part of

        def _query(self, X: Any) -> tuple[Any, Rows, int]: ...
        def _names(self) -> AnyArray | None: ...
        def _shown(self, rows: Rows) -> AnyArray: ...

    def contributions(self, X: Any, background: Any, *, level: float = 0.9) -> Contributions:
        """Compute how much each feature adds to the sum of trees: Shapley values of every draw.

        A Shapley value is the mean, over all orders in which features may become known, of what one
        adds then. Where a tree splits on a feature that is not known, it goes both ways, in
        proportion to the rows of `background` (the path-dependent game of Lundberg et al. 2020).
        Values are means over draws, with credible bands.

        For regression they are contributions to the prediction. A classifier's are on the scale
        of the sum of trees: for two classes, the probability of the second is the standard normal
        distribution function of base and contributions; for more classes, probabilities are
        the exponentials of the classes' sums, divided by their total. These are the probabilities
        before ``class_weight`` changes them.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.
        background : array-like, sparse matrix or table of shape (n_background, n_features)
            Rows whose shares stand for features that are not known, such as the training rows, or
            some hundred of them. The model does not hold its training rows.
        level : float, default=0.9
            Posterior probability of the band between ``lower`` and ``upper``, in equal tails.

        Returns
        -------
        Contributions
            With ``lower``, ``upper`` and ``std``. The base is the same for all rows.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` or `background` is refused (see `predict`), or `level` is not between 0 and 1.
        KeyboardInterrupt
            If interrupted. The model does not change.
        """
        level = _validation.check_positive("level", level)
        if level >= 1.0:
            raise ValueError(f"level must be below 1, found {level}")
        _, rows, _ = self._query(X)
        parts = list(self._summaries(rows, background, level))
        base, names = parts[0][0], self._names()
        values, lower, upper, std = (
            np.concatenate([part[i] for part in parts]) for i in range(1, 5)
        )
        classes = getattr(self, "classes_", None)
        return Contributions(
            values,
            np.repeat(base[np.newaxis], rows.shape[0], axis=0),
            self._shown(rows),
            None if names is None else [str(name) for name in names],
            None if values.ndim == 2 or classes is None else [str(name) for name in classes],
            lower,
            upper,
            std,
        )

    def explain(self, X: Any, background: Any, *, level: float = 0.9) -> Any:
        """Explain predictions for the plots of the package shap.

        Needs the package ``shap`` (``pip install "boscage[shap]"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.
        background : array-like, sparse matrix or table of shape (n_background, n_features)
            Rows whose shares stand for features that are not known.
        level : float, default=0.9
            Posterior probability of the credible band.

        Returns
        -------
        shap.Explanation
            What `contributions` returns as plain arrays. The ends of the band are its
            ``lower_bounds`` and ``upper_bounds``.

        Raises
        ------
        ImportError
            If shap is not installed.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` or `background` is refused (see `predict`), or `level` is not between 0 and 1.
        """
        return self.contributions(X, background, level=level).to_shap()

    def _summaries(
        self, rows: Rows, background: Any, level: float
    ) -> Iterator[tuple[FloatArray, ...]]:
        """Base, means, ends of the bands and standard deviations, for some rows after the other."""
        model, known, n_threads = self._query(background)
        n_sums = model.centres.size
        per_row = model.n_draws * rows.shape[1] * n_sums
        step = max(1, _MAX_NUMBERS // per_row)
        for start in range(0, rows.shape[0], step):
            some = rows[start : start + step]
            draws = model.shapley_draws(some, known, n_threads=n_threads)
            base = np.mean([base for base, _ in draws], axis=0)
            drawn = np.stack([values for _, values in draws])
            drawn = drawn.reshape(len(draws), *some.shape, n_sums)
            if n_sums == 1:
                base, drawn = base[0], drawn[..., 0]
            ends = np.quantile(drawn, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
            yield np.asarray(base), drawn.mean(axis=0), ends[0], ends[1], drawn.std(axis=0)
