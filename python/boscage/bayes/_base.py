"""Base of the Bayesian decision trees: priors, samplers, and summaries of the posterior."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from boscage import _validation
from boscage._bases.arviz_data import Groups
from boscage._bases.sampler import PosteriorSampler
from boscage._bases.settings import Settings
from boscage._input.row_weights import check_repeats
from boscage._types import AnyArray, FloatArray, IntArray
from boscage.bayes.samplers import MCMC, SMC, Sampler, as_sampler
from boscage.explain.contributions import Contributions, of_parts
from boscage.trees import PosteriorTree
from boscage.trees._together import decision_paths, same_leaf

Self = TypeVar("Self", bound="BayesianTree")

_MOVES = ("grow", "prune", "change", "swap")


class BayesianTree(PosteriorSampler):
    """Base of the Bayesian decision trees. Not for direct use."""

    _settings_param: ClassVar[str] = "sampler"
    _settings_classes: ClassVar[tuple[type[Settings], ...]] = (SMC, MCMC)

    _check_weights = staticmethod(check_repeats)

    sampler: Literal["smc", "mcmc"] | SMC | MCMC
    alpha_s: float
    beta_s: float

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _node_values(self, values: FloatArray) -> dict[str, AnyArray]:
        """The arrays of a tree's nodes by name, from the compiled module's table."""

    @abstractmethod
    def _draw_nodes(self, tree: PosteriorTree, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Parameters of each node's targets, drawn from their posterior."""

    @abstractmethod
    def _finish_contributions(self, found: Contributions) -> Contributions:
        """Contributions to what the estimator predicts, given those to the mean of the trees."""

    # -- learning ---------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample the posterior over trees.

        Warns with a `sklearn.exceptions.ConvergenceWarning` if SMC's ``max_stages`` cut trees
        short, and with a `UserWarning` if all targets of a regression are equal and neither
        ``scale`` nor ``prior_mean`` is given.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Training rows; finite numbers, or NaN for missing values. Row-major float32 and float64
            arrays are not copied.
        y : array-like of shape (n_samples,)
            Targets: for a classifier labels (integers, strings, booleans or whole floats), for a
            regressor finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts as: the likelihood of its target is raised to this power.
            A row of weight 2 is a row that occurs twice, and one of weight 0 is left out; other
            weights are from 1e-100 to 1e15. None means 1 for all.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, `X` holds infinity, `y` or `sample_weight` holds values
            that are not finite numbers, or one of them has a wrong shape or is empty; if a weight
            is negative, or all are 0.
        TypeError
            If a parameter or a label is of a wrong type.
        KeyboardInterrupt
            If interrupted. After any error the estimator is as it was before the call.
        """
        self._fit(X, y, sample_weight=sample_weight)
        self._warn_if_doubtful(stacklevel=3)
        return self

    def _parts(self) -> Sequence[int | None]:
        return as_sampler(self.sampler)._parts()

    def _join(self, models: list[Any]) -> Any:
        return type(models[0]).join(models, self._compile_settings(0, models[0].n_features))

    def _warn_if_doubtful(self, *, stacklevel: int) -> None:
        if not self._used_mcmc() and self.n_unfinished_.any():
            islands = self._report("smc")
            warnings.warn(
                f"max_stages cut the trees of {self.n_unfinished_.sum()} particles short (of "
                f"{islands[0]['n_particles']} particles on each of {len(islands)} islands): "
                "log_marginal_likelihood_ is that of trees which are cut short in this way; "
                "raise max_stages",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    @classmethod
    def _as_settings(cls, value: Any) -> Sampler:
        return as_sampler(value)

    def _compile_settings(self, seed: int, n_features: int) -> Any:
        return as_sampler(self.sampler)._compile(seed, n_features)

    def _tree_prior(self) -> dict[str, Any]:
        return {
            "alpha_s": _validation.check_positive("alpha_s", self.alpha_s),
            "beta_s": _validation.check_positive("beta_s", self.beta_s, zero=True),
        }

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        # A model from Rust may have a prior over trees that Python does not know.
        numbers = {"alpha_s": model.alpha_s, "beta_s": model.beta_s}
        return {name: value for name, value in numbers.items() if value is not None}

    @classmethod
    def _nested(cls, saved: dict[str, Any]) -> dict[str, Any]:
        if "n_particles" not in saved:
            return saved
        today = {"n_dimensions": "max_features", "n_burn_in": "n_burn", "noise": "noise_share"}
        saved = {today.get(name, name): value for name, value in saved.items()}
        settings = MCMC if saved.get("sampler") == "mcmc" else SMC
        own = {name: saved[name] for name in settings._get_param_names() if name in saved}
        return saved | {"sampler": settings(**own)}

    # -- the posterior ----------------------------------------------------------------------------

    def apply(self, X: Any) -> IntArray:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Node numbers.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` has another number of features, other feature names, infinity, or NaN although
            the model is from a file of an older version, which does not say where it goes.
        """
        model, rows, n_threads = self._query(X)
        leaves: IntArray = model.apply(rows, n_threads=n_threads).astype(np.int64)
        return leaves

    def decision_path(self, X: Any) -> tuple[csr_matrix, IntArray]:
        """Return the nodes that each row passes in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes of all trees), in CSR format
            1 where the row passes the node.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            The columns from ``n_nodes_ptr[i]`` to ``n_nodes_ptr[i + 1]`` are the nodes of tree i.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `apply`.
        """
        _, rows, _ = self._query(X)
        return decision_paths(self.trees_, rows)

    def kernel(self, X: Any, Y: Any = None) -> FloatArray:
        """Compute the posterior probability that two rows are in the same leaf.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples_X, n_features)
            Rows.
        Y : array-like, sparse matrix or table of shape (n_samples_Y, n_features), default=None
            Other rows; None takes `X`.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Sums of the weights of the trees in which the two rows reach the same leaf.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` or `Y` is refused; see `apply`.
        """
        leaves = self.apply(X)
        return same_leaf(leaves, leaves if Y is None else self.apply(Y), self.weights_)

    def contributions(self, X: Any) -> Contributions:
        """Compute how much each feature adds to each prediction: Shapley values.

        A Shapley value is the mean, over all orders in which features may become known, of what one
        adds then. Where a tree splits on a feature that is not known, it goes both ways, in
        proportion to the weight of its training rows (the path-dependent game of Lundberg et al.
        2020). Values are those of the posterior mean: of the mean of a regressor, or of the
        probabilities of a classifier. Where ``class_weight`` changes these, the values are carried
        over by logarithmic means: they add up to `predict_proba`, but are no Shapley values of it.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        Contributions
            The base is the same for all rows: the mean over the training rows of every tree.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `apply`.
        """
        model, rows, n_threads = self._query(X)
        found = of_parts(model.shapley(rows, n_threads=n_threads), self._shown(rows), self._names())
        return self._finish_contributions(found)

    def explain(self, X: Any) -> Any:
        """Explain predictions for the plots of the package shap.

        Needs the package ``shap`` (``pip install "boscage[shap]"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        shap.Explanation
            What `contributions` returns as plain arrays.

        Raises
        ------
        ImportError
            If shap is not installed.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused; see `apply`.
        """
        return self.contributions(X).to_shap()

    @property
    def trees_(self) -> list[PosteriorTree]:
        """All trees as arrays; see `PosteriorTree`. They are built anew at each access."""
        return [self._tree(arrays) for arrays in self._require_model().trees()]

    @property
    def weights_(self) -> FloatArray:
        """The weight of each tree. Weights sum to one; after MCMC they are equal."""
        weights: FloatArray = self._require_model().weights
        return weights

    @property
    def best_tree_(self) -> PosteriorTree:
        """The most probable of the trees found: the one with the greatest `log_posterior_`.

        It need not have the greatest weight, which says how much a tree counts in predictions.
        """
        return self._tree(self._require_model().best_tree())

    @property
    def log_posterior_(self) -> FloatArray:
        """Logarithm of the unnormalised posterior probability of each tree.

        This is the prior of the tree times the likelihood of the targets, with the leaves
        integrated out. Trees that partition the training rows alike count as the same tree: all
        thresholds in a gap between rows are one split, whose prior probability is the share of the
        gap in the range of the node's rows. The values do not depend on the units of the features,
        and trees from both samplers can be compared. (``trace_`` holds densities of thresholds
        instead.) Subtract `log_marginal_likelihood_` to normalise. A node that `max_stages` left
        undecided counts as a leaf.
        """
        logs: FloatArray = self._require_model().log_posteriors
        return logs

    @property
    def log_marginal_likelihood_(self) -> float:
        """Logarithm of the marginal likelihood of the targets; after SMC only.

        Trees and leaves are integrated out. The exponential of this value is an unbiased estimate.
        If `max_stages` cut trees short (``n_unfinished_``), the prior is that of trees cut short in
        the same way: a node that no stage reached is a leaf.
        """
        return self._log_evidence()[0]

    @property
    def log_marginal_likelihood_error_(self) -> float:
        """Standard error of ``log_marginal_likelihood_`` over islands; NaN for a single island.

        It is a jackknife estimate. An error above one means that a few islands hold most of the
        evidence; the estimate is then probably too low. The error does not account for trees that
        no particle found: with few particles the estimate can be too low by several times its
        error.
        """
        return self._log_evidence()[1]

    @property
    def island_log_marginal_likelihood_(self) -> FloatArray:
        """Each island's estimate of the logarithm of the marginal likelihood; after SMC only."""
        return np.array([island["log_evidence"] for island in self._report("smc")])

    @property
    def n_unfinished_(self) -> IntArray:
        """For each island, the number of particles that `max_stages` cut short; after SMC only."""
        return np.array([island["n_unfinished"] for island in self._report("smc")], dtype=np.int64)

    @property
    def ess_(self) -> list[FloatArray]:
        """For each island, the effective sample size at each stage; after SMC only."""
        return [island["ess"] for island in self._report("smc")]

    @property
    def ancestry_(self) -> list[list[IntArray]]:
        """Each particle's ancestor in the resampling at the end of each stage; after SMC only.

        For each island a list with one array of shape (n_particles,) per stage. In a stage without
        resampling each particle is its own ancestor; all such stages share one read-only array.
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
        """Statistics of each draw, of shape (n_chains, n_draws); after MCMC only.

        ``log_prior``, ``log_likelihood``, their sum ``log_posterior``, ``n_leaves`` and ``depth``.
        """
        chains = self._report("mcmc")
        names = ("log_prior", "log_likelihood", "n_leaves", "depth")
        trace = {name: np.stack([chain[name] for chain in chains]) for name in names}
        trace["log_posterior"] = trace["log_prior"] + trace["log_likelihood"]
        return trace

    @property
    def acceptance_(self) -> dict[str, FloatArray]:
        """For each kind of move, the share that was accepted in each chain; after MCMC only."""
        chains = self._report("mcmc")
        tried, made = (np.stack([chain[name] for chain in chains]) for name in ("tried", "made"))
        shares = made / np.maximum(tried, 1)
        return {name: shares[:, i] for i, name in enumerate(_MOVES)}

    @property
    def feature_importances_(self) -> FloatArray:
        """Posterior mean of the share of a tree's splits that use each feature."""
        return self._mean(self._cut_shares())

    @property
    def feature_importances_std_(self) -> FloatArray:
        """Posterior standard deviation of the share of a tree's splits that use each feature."""
        shares = self._cut_shares()
        return np.sqrt(self._mean((shares - self._mean(shares)) ** 2))

    @property
    def inclusion_probabilities_(self) -> FloatArray:
        """Posterior probability that a tree splits each feature at least once."""
        return self._mean(self._cut_shares() > 0.0)

    def _chain_groups(self) -> Groups:
        trace = self.trace_
        shares = self._cut_shares().reshape(*trace["depth"].shape, self.n_features_in_)
        return {
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
        }

    def _draw_rows(self, X: Any, rng: np.random.Generator) -> dict[str, FloatArray]:
        leaves = self.apply(X)
        by_tree = [
            {name: of_nodes[own] for name, of_nodes in self._draw_nodes(tree, rng).items()}
            for tree, own in zip(self.trees_, leaves.T, strict=True)
        ]
        return {name: np.stack([drawn[name] for drawn in by_tree]) for name in by_tree[0]}

    def _tree(self, arrays: dict[str, Any]) -> PosteriorTree:
        values: dict[str, Any] = dict(self._node_values(arrays.pop("values")))
        return PosteriorTree(
            **arrays,
            **values,
            has_missing=self._model.has_missing,
            feature_names=self._names(),
            category_names=self.categories_,
            class_names=getattr(self, "classes_", None),
        )

    def _mean(self, of_trees: AnyArray) -> FloatArray:
        """The posterior mean of an array with one row per tree."""
        mean: FloatArray = self.weights_ @ of_trees
        return mean

    def _report(self, kind: str) -> list[dict[str, Any]]:
        self._require_sampler(kind)
        report: list[dict[str, Any]] = self._model.report()
        return report

    def _require_sampler(self, kind: str) -> None:
        if self._used_mcmc() != (kind == "mcmc"):
            raise AttributeError(
                f"this model was not sampled by {kind.upper()}; fit it with sampler={kind!r}"
            )

    def _used_mcmc(self) -> bool:
        return self._require_model().log_evidence() is None

    def _log_evidence(self) -> tuple[float, float]:
        self._require_sampler("smc")
        evidence: tuple[float, float] = self._model.log_evidence()
        return evidence
