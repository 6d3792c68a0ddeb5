"""What BART for numbers and for classes share: priors, chains and their results."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boscage import _boscage, _inputs
from boscage._drawn import DrawnSums, MixingRow, MixingSummary
from boscage._mixing import effective_size, r_hat
from boscage._sampled import SampledModel
from boscage._types import AnyArray, FloatArray, IntArray, Rows

_TRACED = ("sigma", "log_likelihood", "n_leaves")
# Chains of draws fewer than this say too little about each other for a warning.
_FEW_DRAWS = 100
_DISAGREE = 1.1


class Bart(SampledModel):
    """Base of BART; not for direct use."""

    n_trees: int
    sampler: str | Mapping[str, float]
    n_chains: int
    n_burn: int
    n_draws: int
    thin: int
    n_particles: int
    proposal: str
    alpha_s: float
    beta_s: float
    sparse: bool | float
    k: float | Literal["learned"]
    warm_start: bool

    #: What `predict_draws` draws, as ArviZ is told.
    _drawn: str

    # -- what the subclasses say ------------------------------------------------------------------

    def _noise(self) -> dict[str, Any]:
        """Settings of the noise."""
        return {}

    @abstractmethod
    def predict_draws(self, X: Any) -> FloatArray:
        """What every draw predicts."""

    @abstractmethod
    def _predictive(
        self, draws: FloatArray, y: Any, rng: np.random.Generator
    ) -> dict[str, AnyArray]:
        """Of `predict_draws`, targets by ArviZ's group, and log likelihoods of `y` if given."""

    # -- learning ---------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, **more: Any) -> None:
        if more["callback"] is not None and not callable(more["callback"]):
            raise TypeError(f"callback must be callable, found {more['callback']!r}")
        start = self._model if self._goes_on() else None
        super()._fit(X, y, start=start, **more)
        self._warn_if_chains_disagree()

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "_model")

    def _settings(self, seed: int) -> _boscage.BartSettings:
        if self._goes_on():
            # A chain goes on with its own random numbers.
            seed = self._model.seed
        sparse = not isinstance(self.sparse, (bool, np.bool_))
        counts: dict[str, Any] = {
            name: _inputs.check_count(name, getattr(self, name), 0 if name == "n_burn" else 1)
            for name in ("n_trees", "n_chains", "n_burn", "n_draws", "thin", "n_particles")
        }
        return _boscage.BartSettings(
            **counts,
            kernels=_kernels(self.sampler),
            proposal=_inputs.check_word("proposal", self.proposal),
            alpha_s=_inputs.check_positive("alpha_s", self.alpha_s),
            beta_s=_inputs.check_positive("beta_s", self.beta_s, zero=True),
            sparse=sparse or bool(self.sparse),
            concentration=_inputs.check_positive("sparse", self.sparse) if sparse else None,
            **self._shrinkage(),
            seed=seed,
            **self._noise(),
        )

    def _shrinkage(self) -> dict[str, Any]:
        if isinstance(self.k, str):
            if self.k == "learned":
                return {"learn_k": True}
            raise ValueError(f"k must be a positive number or 'learned', found {self.k!r}")
        return {"k": _inputs.check_positive("k", self.k)}

    def _warn_if_chains_disagree(self) -> None:
        if self.n_chains == 1 or self.n_draws < _FEW_DRAWS:
            return
        off = {name: row.r_hat for name, row in self.summary().items() if row.r_hat > _DISAGREE}
        if off:
            found = ", ".join(f"{name} {value:.2f}" for name, value in off.items())
            warnings.warn(
                f"the chains disagree (R-hat of {found}; near 1 where they agree): take more "
                "sweeps (n_burn, n_draws, thin), or another sampler",
                ConvergenceWarning,
                stacklevel=4,
            )

    # -- the posterior ----------------------------------------------------------------------------

    @property
    def trace_(self) -> dict[str, FloatArray]:
        """Where the chains were at each draw, of shape (n_chains, n_draws).

        ``sigma``, the ``log_likelihood`` given trees and noise, ``n_leaves`` of all trees, ``k``
        where it is learned, and with ``sparse`` the concentration ``alpha`` of the split
        probabilities.
        """
        chains = self._require_model().traces()
        names = _TRACED + tuple(name for name in ("k", "alpha") if chains[0][name].size)
        return {name: np.stack([chain[name] for chain in chains]) for name in names}

    @property
    def split_probabilities_(self) -> FloatArray:
        """With ``sparse``, of each draw the prior probability to split along each feature.

        Of shape (n_draws of all chains, n_features).
        """
        chains = self._require_model().traces()
        drawn = np.concatenate([chain["split_probabilities"] for chain in chains])
        if not drawn.size:
            raise AttributeError("split_probabilities_ is there only with sparse=True")
        return drawn.reshape(-1, self.n_features_in_)

    @property
    def acceptance_(self) -> dict[str, FloatArray]:
        """The share of steps of each kind that changed a tree, by chain; NaN if none was tried."""
        chains = [chain["acceptance"] for chain in self._require_model().traces()]
        shares = {}
        for name in chains[0]:
            tried, made = np.array([chain[name] for chain in chains], dtype=np.float64).T
            shares[name] = np.where(tried > 0, made / np.maximum(tried, 1), np.nan)
        return shares

    @property
    def trees_(self) -> DrawnSums:
        """``trees_[draw][tree]`` as arrays, the draws of the first chain first; see `DrawnTree`.

        The values of a draw's trees add up, on top of ``centre_``; of more than two classes the
        first ``n_trees`` are those of the first class, and so on.
        """
        return DrawnSums(self._require_model())

    @property
    def centre_(self) -> float | FloatArray:
        """What the sum of trees is added to; of more than two classes one for each."""
        centres: FloatArray = self._require_model().centres
        return float(centres[0]) if centres.size == 1 else centres

    @property
    def cut_counts_(self) -> IntArray:
        """How many cuts are along each feature, of shape (n_draws of all chains, n_features)."""
        counts: IntArray = self._require_model().cuts().astype(np.int64)
        return counts

    @property
    def inclusion_proportions_(self) -> FloatArray:
        """Of each draw the share of cuts along each feature; all zero for a draw of no cuts."""
        counts = self.cut_counts_
        shares: FloatArray = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return shares

    @property
    def feature_importances_(self) -> FloatArray:
        """The share of cuts along each feature: the posterior's mean."""
        means: FloatArray = self.inclusion_proportions_.mean(axis=0)
        return means

    @property
    def feature_importances_std_(self) -> FloatArray:
        """How much that share differs between draws: the posterior's standard deviation."""
        stds: FloatArray = self.inclusion_proportions_.std(axis=0)
        return stds

    def summary(self) -> MixingSummary:
        """Mean, standard deviation, R-hat and effective sample size of what was traced.

        Returns
        -------
        MixingSummary
            A dictionary by name, which prints as a table.
        """
        rows = MixingSummary()
        for name, draws in self.trace_.items():
            if np.ptp(draws) > 0.0:
                mean, std = float(draws.mean()), float(draws.std())
                rows[name] = MixingRow(mean, std, r_hat(draws), effective_size(draws))
        return rows

    def effect(
        self, X: Any, feature: int | str, *, grid: Any = None, n_points: int = 20
    ) -> tuple[FloatArray, FloatArray]:
        """What every draw predicts when one feature is set to other values: ICE curves.

        Their mean over rows is the partial dependence, quantiles over draws are credible bands.
        `boscage.plots.plot_effect` draws both. All draws of all curves are in memory at once:
        take some 100 rows.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
        feature : int or str
            Place or name.
        grid : array-like of shape (n_points,), default=None
            Values to set the feature to. By default ``n_points`` from the 5% to the 95% quantile.
        n_points : int, default=20

        Returns
        -------
        grid : ndarray of shape (n_points,)
        draws : ndarray of shape (n_draws of all chains, n_points, n_samples)
            With a last dimension of classes if these are more than two.
        """
        self._require_model()
        rows = np.array(_inputs.check_rows(self, X, reset=False), dtype=np.float64)
        place = self._place(feature)
        if grid is None:
            n_points = _inputs.check_count("n_points", n_points, 1)
            low, high = np.quantile(rows[:, place], [0.05, 0.95])
            grid = np.linspace(low, high, n_points)
        values = np.asarray(grid, dtype=np.float64).ravel()
        if not values.size or not np.isfinite(values).all():
            raise ValueError("grid must hold finite numbers, and at least one")
        many = np.repeat(rows[np.newaxis], values.size, axis=0)
        many[:, :, place] = values[:, np.newaxis]
        draws = self._predict_checked(many.reshape(-1, rows.shape[1]))
        return values, draws.reshape(len(draws), values.size, len(rows), *draws.shape[2:])

    @abstractmethod
    def _predict_checked(self, rows: Rows) -> FloatArray:
        """What every draw predicts of rows that were checked."""

    def _place(self, feature: int | str) -> int:
        names = getattr(self, "feature_names_in_", np.empty(0, dtype=object))
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(f"feature must be one of {list(names)}, found {feature!r}")
            return int(np.flatnonzero(names == feature)[0])
        place = _inputs.check_count("feature", feature, 0)
        if place >= self.n_features_in_:
            raise ValueError(f"feature must be below {self.n_features_in_}, found {place}")
        return place

    def to_arviz(self, X: Any = None, y: Any = None, *, random_state: Any = None) -> Any:
        """The chains as ArviZ's data tree, for its plots and diagnostics.

        Needs the package ``arviz-base`` (``pip install "boscage[arviz]"``).

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features), default=None
            Rows whose predictions are wanted too.
        y : array-like of shape (n_samples,), default=None
            Their targets, whose log likelihoods are wanted too.
        random_state : int, RandomState, Generator or None, default=None
            For the draws of new targets.

        Returns
        -------
        xarray.DataTree
            Group ``posterior`` with ``sigma`` where it is sampled, ``n_leaves``, ``inclusion`` (by
            feature), ``k`` where it is learned, and with ``sparse`` ``alpha`` and
            ``split_probabilities``; group
            ``sample_stats`` with ``log_likelihood``. With ``X``, moreover `predict_draws` in
            ``posterior``, as ``f`` of numbers and ``proba`` of classes, and group
            ``posterior_predictive`` with targets ``y`` (of classes their places in ``classes_``);
            with ``y``, groups ``observed_data`` and ``log_likelihood`` of each row's target.
        """
        trace = self.trace_
        shape = trace["sigma"].shape
        # Noise that is known is not drawn.
        posterior = {
            name: draws
            for name, draws in trace.items()
            if name != "log_likelihood" and (name != "sigma" or np.ptp(draws) > 0.0)
        }
        posterior["inclusion"] = self.inclusion_proportions_.reshape(*shape, -1)
        if "alpha" in trace:
            posterior["split_probabilities"] = self.split_probabilities_.reshape(*shape, -1)
        groups: dict[str, dict[str, AnyArray]] = {
            "posterior": posterior,
            "sample_stats": {"log_likelihood": trace["log_likelihood"]},
        }
        if X is not None:
            rng = np.random.default_rng(_inputs.draw_seed(random_state))
            drawn = self.predict_draws(X)
            posterior[self._drawn] = drawn.reshape(*shape, *drawn.shape[1:])
            for group, of_rows in self._predictive(drawn, y, rng).items():
                is_data = group == "observed_data"
                groups[group] = {"y": of_rows if is_data else of_rows.reshape(*shape, -1)}
        elif y is not None:
            raise ValueError("y was given without X")
        return self._to_arviz(groups, by_feature=["inclusion", "split_probabilities"])

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        return {"n_trees": model.n_trees}


def _kernels(sampler: Any) -> dict[str, float] | None:
    """Probabilities of the kernels; None where the number of trees decides."""
    names = tuple(_boscage.bart_kernels(1))
    if isinstance(sampler, Mapping):
        if not sampler or not set(sampler) <= set(names):
            words = ", ".join(map(repr, names))
            raise ValueError(f"sampler must name some of {words}, found {dict(sampler)!r}")
        shares = {
            name: _inputs.check_positive(f"sampler's {name!r}", sampler.get(name, 0.0), zero=True)
            for name in names
        }
        most = max(shares.values())
        if most == 0.0:
            raise ValueError("sampler's probabilities are all zero; expected a positive one")
        # Relative to the greatest, since the sum itself might not be finite.
        total = sum(share / most for share in shares.values())
        return {name: share / most / total for name, share in shares.items()}
    name = _inputs.check_choice("sampler", sampler, ("auto", *names))
    return None if name == "auto" else {name: 1.0}
