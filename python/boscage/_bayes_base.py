"""What Bayesian decision trees for classes and for numbers share: samplers and their results."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boscage import _boscage, _inputs
from boscage._posterior_tree import PosteriorTree
from boscage._sampled import SampledModel
from boscage._types import AnyArray, FloatArray, IntArray

_COUNTS = {
    "smc": ("n_particles", "n_islands", "max_stages"),
    "mcmc": ("n_chains", "n_draws", "thin"),
}
_WORDS = ("proposal", "expansion", "candidate_order", "resampling", "island_weights")
_MOVES = ("grow", "prune", "change", "swap")


class BayesianTree(SampledModel):
    """Base of the Bayesian decision trees; not for direct use."""

    sampler: str
    n_particles: int
    n_islands: int
    proposal: str
    n_dimensions: int | None
    expansion: str
    candidate_order: str
    resampling: str
    ess_threshold: float
    max_stages: int
    island_weights: str
    n_chains: int
    n_draws: int
    thin: int
    n_burn_in: int
    moves: tuple[float, float, float, float]
    alpha_s: float
    beta_s: float

    # -- what the subclasses say ------------------------------------------------------------------

    @abstractmethod
    def _values(self, values: FloatArray) -> dict[str, AnyArray]:
        """The numbers of a tree's nodes by name."""

    # -- learning ---------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, **more: Any) -> None:
        super()._fit(X, y, **more)
        if not self._by_chain() and self.n_unfinished_.any():
            warnings.warn(
                f"max_stages={self.max_stages} cut the trees of {self.n_unfinished_.sum()} "
                f"particles short (of {self.n_particles} on each of {self.n_islands} islands): "
                "the marginal likelihood is that of trees cut short so",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _settings(self, seed: int) -> Any:
        kind = _inputs.check_choice("sampler", self.sampler, ("smc", "mcmc"))
        counts: dict[str, Any] = {
            name: _inputs.check_count(name, getattr(self, name), 1) for name in _COUNTS[kind]
        }
        if kind == "mcmc":
            return _boscage.McmcSettings(
                **counts,
                n_burn=_inputs.check_count("n_burn_in", self.n_burn_in, 0),
                moves=_check_moves(self.moves),
                seed=seed,
            )
        words: dict[str, Any] = {
            name: _inputs.check_word(name, getattr(self, name)) for name in _WORDS
        }
        n_dimensions = self.n_dimensions
        if n_dimensions is not None:
            n_dimensions = _inputs.check_count("n_dimensions", n_dimensions, 1)
        return _boscage.SmcSettings(
            **counts,
            **words,
            n_dimensions=n_dimensions,
            ess_threshold=_inputs.check_positive("ess_threshold", self.ess_threshold, zero=True),
            seed=seed,
        )

    def _prior(self) -> dict[str, Any]:
        return {
            "alpha_s": _inputs.check_positive("alpha_s", self.alpha_s),
            "beta_s": _inputs.check_positive("beta_s", self.beta_s, zero=True),
        }

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        # A model from Rust may have a prior of trees that Python does not know.
        numbers = {"alpha_s": model.alpha_s, "beta_s": model.beta_s}
        return {name: value for name, value in numbers.items() if value is not None}

    # -- the posterior ----------------------------------------------------------------------------

    def apply(self, X: Any) -> IntArray:
        """The leaf of each row in each tree.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Numbers of nodes.
        """
        model, rows, n_threads = self._query(X)
        leaves: IntArray = model.apply(rows, n_threads=n_threads).astype(np.int64)
        return leaves

    @property
    def trees_(self) -> list[PosteriorTree]:
        """Every tree as arrays; see `PosteriorTree`. They are built anew at each access."""
        return [self._tree(arrays) for arrays in self._require_model().trees()]

    @property
    def weights_(self) -> FloatArray:
        """The weight of each tree; they sum to one, and are equal for MCMC."""
        weights: FloatArray = self._require_model().weights
        return weights

    @property
    def best_tree_(self) -> PosteriorTree:
        """The most probable tree of those that were found: that of the greatest `log_posterior_`.

        Its weight need not be the greatest: that says what a tree counts for beside the others.
        """
        return self._tree(self._require_model().best_tree())

    @property
    def log_posterior_(self) -> FloatArray:
        """Logarithm of the posterior probability of each tree, but for the marginal likelihood.

        Prior times likelihood, leaves being integrated out. A tree is what it makes of the training
        rows: all thresholds in a gap between rows are the same cut, whose prior probability is the
        share of the gap in the extent of the node's rows. So features may be in any units, and
        trees of both samplers can be compared (``trace_`` has densities of thresholds instead).
        With `log_marginal_likelihood_` subtracted these are logarithms of probabilities.
        A node that `max_stages` left undecided counts as one that stopped.
        """
        logs: FloatArray = self._require_model().log_posteriors
        return logs

    @property
    def log_marginal_likelihood_(self) -> float:
        """Logarithm of the probability of the targets given the features; from SMC only.

        Its exponential is an unbiased estimate, trees and leaves being integrated out. Where
        `max_stages` cut trees short (``n_unfinished_``), so does the prior of the trees meant: a
        node that no stage came to is a leaf.
        """
        return self._log_evidence()[0]

    @property
    def log_marginal_likelihood_error_(self) -> float:
        """Standard error of ``log_marginal_likelihood_`` over islands; NaN for a single one.

        By the jackknife. Where it is more than about one, few islands have most of the evidence,
        and the estimate is probably too low. It knows only of trees that were found: from few
        particles the estimate can be too low by several times its error.
        """
        return self._log_evidence()[1]

    @property
    def island_log_marginal_likelihood_(self) -> FloatArray:
        """Each island's own estimate of the logarithm of the marginal likelihood."""
        return np.array([island["log_evidence"] for island in self._report("smc")])

    @property
    def n_unfinished_(self) -> IntArray:
        """For each island, how many particles have trees that `max_stages` cut short."""
        return np.array([island["n_unfinished"] for island in self._report("smc")], dtype=np.int64)

    @property
    def ess_(self) -> list[FloatArray]:
        """The effective sample size of the weights at each stage, for each island."""
        return [island["ess"] for island in self._report("smc")]

    @property
    def ancestry_(self) -> list[list[IntArray]]:
        """Each particle's ancestor before the resampling at the end of each stage.

        For each island a list of arrays of shape (n_particles,), one for each stage. Where
        particles were not resampled, each is its own ancestor; one array, which cannot be written
        to, stands for all these stages.
        """
        out = []
        for island in self._report("smc"):
            own = np.arange(island["n_particles"])
            own.flags.writeable = False
            steps = island["ancestors"]
            out.append([own if step is None else step.astype(np.int64) for step in steps])
        return out

    @property
    def trace_(self) -> dict[str, FloatArray]:
        """Where the chains were at each draw, of shape (n_chains, n_draws); from MCMC only.

        ``log_prior``, ``log_likelihood``, their sum ``log_posterior``, ``n_leaves`` and ``depth``.
        """
        chains = self._report("mcmc")
        names = ("log_prior", "log_likelihood", "n_leaves", "depth")
        trace = {name: np.stack([chain[name] for chain in chains]) for name in names}
        trace["log_posterior"] = trace["log_prior"] + trace["log_likelihood"]
        return trace

    @property
    def acceptance_(self) -> dict[str, FloatArray]:
        """The share of steps of each kind that changed the tree, by chain; from MCMC only."""
        chains = self._report("mcmc")
        tried, made = (np.stack([chain[name] for chain in chains]) for name in ("tried", "made"))
        shares = made / np.maximum(tried, 1)
        return {name: shares[:, i] for i, name in enumerate(_MOVES)}

    @property
    def feature_importances_(self) -> FloatArray:
        """The probability that a cut of a tree is along each feature: the posterior's mean."""
        return self._mean(self._cut_shares())

    @property
    def feature_importances_std_(self) -> FloatArray:
        """How much that share differs between trees: the posterior's standard deviation."""
        shares = self._cut_shares()
        return np.sqrt(self._mean((shares - self._mean(shares)) ** 2))

    @property
    def inclusion_probabilities_(self) -> FloatArray:
        """The probability that a tree cuts each feature at all."""
        return self._mean(self._cut_shares() > 0.0)

    def to_arviz(self) -> Any:
        """The chains as ArviZ's data tree, for its plots and diagnostics; from MCMC only.

        Needs the package ``arviz-base`` (``pip install "boscage[arviz]"``).

        Returns
        -------
        xarray.DataTree
            Group ``posterior`` with ``n_leaves``, ``depth`` and ``cut_share`` (by feature), group
            ``sample_stats`` with ``lp``, ``log_prior`` and ``log_likelihood``.
        """
        trace = self.trace_
        shares = self._cut_shares().reshape(*trace["depth"].shape, self.n_features_in_)
        return self._to_arviz(
            {
                "posterior": {
                    "n_leaves": trace["n_leaves"],
                    "depth": trace["depth"],
                    "cut_share": shares,
                },
                "sample_stats": {
                    "lp": trace["log_posterior"],
                    "log_prior": trace["log_prior"],
                    "log_likelihood": trace["log_likelihood"],
                },
            },
            by_feature=["cut_share"],
        )

    def _tree(self, arrays: dict[str, AnyArray]) -> PosteriorTree:
        values = self._values(arrays.pop("values"))
        return PosteriorTree(**arrays, **values)

    def _mean(self, of_trees: AnyArray) -> FloatArray:
        """The posterior's mean of what each tree has a row of."""
        mean: FloatArray = self.weights_ @ of_trees
        return mean

    def _cut_shares(self) -> FloatArray:
        """By tree, the share of its cuts that each feature has; all zero for a tree of none."""
        cuts = self._require_model().cuts()
        shares: FloatArray = cuts / np.maximum(cuts.sum(axis=1, keepdims=True), 1)
        return shares

    def _report(self, kind: str) -> list[dict[str, Any]]:
        self._require_sampler(kind)
        report: list[dict[str, Any]] = self._model.report()
        return report

    def _require_sampler(self, kind: str) -> None:
        if self._by_chain() != (kind == "mcmc"):
            raise AttributeError(
                f"this model was not sampled by {kind.upper()}; fit it with sampler={kind!r}"
            )

    def _by_chain(self) -> bool:
        return self._require_model().log_evidence() is None

    def _log_evidence(self) -> tuple[float, float]:
        self._require_sampler("smc")
        evidence: tuple[float, float] = self._model.log_evidence()
        return evidence


def _check_moves(moves: Any) -> list[float]:
    try:
        chances = [float(p) for p in moves]
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves must be four probabilities, found {moves!r}") from error
    if len(chances) != 4:
        raise ValueError(f"moves must be four probabilities, found {moves!r}")
    return chances
