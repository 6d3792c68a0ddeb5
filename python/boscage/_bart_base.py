"""What BART for numbers and for classes share: priors, chains and their results."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boscage import _boscage, _inputs
from boscage._drawn import DrawnSums, MixingRow, MixingSummary
from boscage._kept import KeptModel
from boscage._mixing import effective_size, r_hat
from boscage._progress import progress_bar
from boscage._types import AnyArray, FloatArray, IntArray, Rows

_KERNELS = ("local", "growprune", "cgm", "pg", "regrow")
_TRACED = ("sigma", "log_likelihood", "n_leaves")
_MOVES = ("grow", "prune", "change_or_swap", "particle_gibbs", "shift", "regrow")
# Chains of draws fewer than this say too little about each other for a warning.
_FEW_DRAWS = 100
_DISAGREE = 1.1


class Bart(KeptModel):
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
    k: float
    random_state: Any
    verbose: int | bool

    # -- what the subclasses say ------------------------------------------------------------------

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    @abstractmethod
    def _sample(
        self, rows: Rows, target: AnyArray, settings: _boscage.BartSettings, options: dict[str, Any]
    ) -> Any:
        """A compiled model of the rows."""

    def _noise(self) -> dict[str, Any]:
        """Settings of the noise."""
        return {}

    # -- learning ---------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any) -> None:
        settings = self._settings(_inputs.draw_seed(self.random_state))
        n_threads = _inputs.n_threads(self.n_jobs)
        before = self.__dict__.copy()
        try:
            rows = _inputs.check_rows(self, X, reset=True)
            target = self._check_target(y, len(rows))
            with progress_bar("sampling", self.verbose) as progress:
                options = {"n_threads": n_threads, "progress": progress}
                self._model = self._sample(rows, target, settings, options)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self._warn_if_chains_disagree()

    def _settings(self, seed: int) -> _boscage.BartSettings:
        counts = {
            name: _inputs.check_count(name, getattr(self, name), 0 if name == "n_burn" else 1)
            for name in ("n_trees", "n_chains", "n_burn", "n_draws", "thin", "n_particles")
        }
        return _boscage.BartSettings(
            **counts,
            kernels=_kernels(self.sampler),
            proposal=self.proposal,
            alpha_s=_inputs.check_positive("alpha_s", self.alpha_s),
            beta_s=_inputs.check_positive("beta_s", self.beta_s, zero=True),
            k=_inputs.check_positive("k", self.k),
            seed=seed,
            **self._noise(),
        )

    def _warn_if_chains_disagree(self) -> None:
        n_chains, n_draws = self.trace_["sigma"].shape
        if n_chains == 1 or n_draws < _FEW_DRAWS:
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

        ``sigma``, the ``log_likelihood`` given trees and noise, and ``n_leaves`` of all trees.
        """
        chains = self._require_model().traces()
        return {name: np.stack([chain[name] for chain in chains]) for name in _TRACED}

    @property
    def acceptance_(self) -> dict[str, FloatArray]:
        """The share of steps of each kind that changed a tree, by chain; NaN if none was tried."""
        chains = self._require_model().traces()
        tried, made = (np.stack([chain[name] for chain in chains]) for name in ("tried", "made"))
        shares = np.where(tried > 0, made / np.maximum(tried, 1), np.nan)
        return {name: shares[:, i] for i, name in enumerate(_MOVES)}

    @property
    def trees_(self) -> DrawnSums:
        """``trees_[draw][tree]`` as arrays, the draws of the first chain first; see `DrawnTree`.

        The values of a draw's trees add up, on top of ``centre_``.
        """
        return DrawnSums(self._require_model())

    @property
    def centre_(self) -> float:
        """What the sum of trees is added to."""
        return float(self._require_model().centre)

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

    def to_arviz(self) -> Any:
        """The chains as ArviZ's data tree, for its plots and diagnostics.

        Needs the package ``arviz-base`` (``pip install "boscage[arviz]"``).

        Returns
        -------
        xarray.DataTree
            Group ``posterior`` with ``sigma``, ``n_leaves`` and ``inclusion`` (by feature), group
            ``sample_stats`` with ``log_likelihood``.
        """
        trace = self.trace_
        try:
            import arviz_base
        except ImportError as error:
            raise ImportError(
                'to_arviz needs arviz-base, which is not installed: pip install "boscage[arviz]"'
            ) from error
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        shares = self.inclusion_proportions_.reshape(*trace["sigma"].shape, self.n_features_in_)
        return arviz_base.from_dict(
            {
                "posterior": {
                    "sigma": trace["sigma"],
                    "n_leaves": trace["n_leaves"],
                    "inclusion": shares,
                },
                "sample_stats": {"log_likelihood": trace["log_likelihood"]},
            },
            dims={"inclusion": ["feature"]},
            coords={"feature": list(names)},
        )


def _kernels(sampler: Any) -> list[float] | None:
    """Probabilities of the kernels; None where the number of trees decides."""
    if isinstance(sampler, Mapping):
        if not sampler or not set(sampler) <= set(_KERNELS):
            words = ", ".join(map(repr, _KERNELS))
            raise ValueError(f"sampler must name some of {words}, found {dict(sampler)!r}")
        shares = [
            _inputs.check_positive(f"sampler's {name!r}", sampler.get(name, 0.0), zero=True)
            for name in _KERNELS
        ]
        if sum(shares) == 0.0:
            raise ValueError("sampler's probabilities are all zero; expected a positive one")
        return [share / sum(shares) for share in shares]
    name = _inputs.check_choice("sampler", sampler, ("auto", *_KERNELS))
    if name == "auto":
        return None
    return [float(name == kernel) for kernel in _KERNELS]
