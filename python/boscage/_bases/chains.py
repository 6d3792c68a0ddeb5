"""What models from Markov chains share: summaries of the chains, and their way to ArviZ."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from boscage import _validation
from boscage._bases import arviz_data
from boscage._bases.estimator import Estimator
from boscage._types import AnyArray, FloatArray
from boscage.diagnostics import ChainSummary, SummaryRow, effective_size, r_hat


class Chains(Estimator):
    """Base of estimators whose draws come from Markov chains. Not for direct use."""

    # -- to be implemented by subclasses ----------------------------------------------------------

    @property
    @abstractmethod
    def trace_(self) -> dict[str, FloatArray]:
        """Statistics of each draw, of shape (n_chains, n_draws)."""

    @abstractmethod
    def _chain_groups(self) -> arviz_data.Groups:
        """ArviZ's groups ``posterior`` and ``sample_stats`` without any rows.

        Arrays have shape (n_chains, n_draws) or (n_chains, n_draws, n_features).
        """

    @abstractmethod
    def _draw_rows(self, X: Any, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Parameters of rows' targets in every draw, of shape (n_draws of all chains, n_rows, ...).

        A fourth axis is that of the classes.
        """

    @abstractmethod
    def _predictive(
        self, drawn: dict[str, FloatArray], y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        """New targets given `_draw_rows`, and the log likelihoods of `y`, by ArviZ's groups."""

    # -- the chains -------------------------------------------------------------------------------

    def summary(self) -> ChainSummary:
        """Summarise the chains: mean, standard deviation, R-hat and effective sample size.

        Returns
        -------
        ChainSummary
            A dictionary from the names in ``trace_`` to `boscage.diagnostics.SummaryRow`; prints as
            a table. Statistics that never change are left out.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        AttributeError
            If a Bayesian tree was sampled by SMC, which has no chains.
        """
        rows = ChainSummary()
        for name, draws in self.trace_.items():
            if np.ptp(draws) > 0.0:
                mean, std = float(draws.mean()), float(draws.std())
                rows[name] = SummaryRow(mean, std, r_hat(draws), effective_size(draws))
        return rows

    def to_arviz(self, X: Any = None, y: Any = None, *, random_state: Any = None) -> Any:
        """Export the chains to ArviZ, for its plots and diagnostics.

        Needs ``arviz-base`` or, for classic ArviZ, ``arviz`` from 0.17 to 0.23
        (``pip install "boscage[arviz]"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features), default=None
            Rows to predict as well.
        y : array-like of shape (n_samples,), default=None
            Their targets, for the log likelihood of each row.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws of new targets and, for Bayesian trees, of the parameters of leaves.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            A data tree if arviz-base is installed, otherwise what classic ArviZ takes.

            BART: group ``posterior`` holds ``sigma`` if it is sampled, ``n_leaves``, ``inclusion``
            (by feature), ``k`` if it is learned, and with ``sparse`` ``alpha`` and
            ``split_probabilities``; group ``sample_stats`` holds ``log_likelihood``.

            Bayesian trees: group ``posterior`` holds ``n_leaves``, ``depth`` and ``cut_share`` (by
            feature), group ``sample_stats`` ``lp``, ``log_prior`` and ``log_likelihood``, which is
            that of the tree, with the leaves integrated out.

            With `X`, ``posterior`` also holds parameters of the rows' targets: for regression the
            mean ``f``, which of BART is `predict_draws`, and of Bayesian trees ``sigma``; for
            classification ``proba``, of the second class if there are two. Those of Bayesian trees
            are drawn from the posterior of the row's leaf. Group ``posterior_predictive`` holds new
            targets ``y`` (for classes their positions in ``classes_``). With `y`, groups
            ``observed_data`` and ``log_likelihood`` hold each row's target and its log likelihood,
            given these parameters.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        AttributeError
            If a Bayesian tree was sampled by SMC, which has no chains.
        ImportError
            If no ArviZ is installed.
        ValueError
            If `y` is given without `X`, or either is refused; see `fit`.
        """
        groups = self._chain_groups()
        posterior = groups["posterior"].items()
        dims = {name: ["feature"] for name, draws in posterior if draws.ndim == 3}
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        coords: dict[str, Any] = {"feature": list(names)}
        if X is not None:
            rng = np.random.default_rng(_validation.draw_seed(random_state))
            dims |= self._add_rows(groups, X, y, rng)
            if hasattr(self, "classes_"):
                coords["class"] = self.classes_.tolist()
        elif y is not None:
            raise ValueError("y was given without X")
        return arviz_data.to_data(groups, dims, coords)

    def _add_rows(
        self, groups: arviz_data.Groups, X: Any, y: Any, rng: np.random.Generator
    ) -> dict[str, list[str]]:
        """Add to the groups what is drawn for rows, and return its dimensions by name."""
        shape = next(iter(groups["sample_stats"].values())).shape
        drawn = self._draw_rows(X, rng)
        for group, of_rows in self._predictive(drawn, y, rng).items():
            is_data = group == "observed_data"
            groups[group] = {"y": of_rows if is_data else of_rows.reshape(*shape, -1)}
        for name, draws in drawn.items():
            groups["posterior"][name] = draws.reshape(*shape, *draws.shape[1:])
        dims = {name: ["row", "class"][: draws.ndim - 1] for name, draws in drawn.items()}
        return dims | {"y": ["row"]}
