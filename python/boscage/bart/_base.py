"""Base of BART: priors, chains, and summaries of the draws."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse, vstack
from sklearn.exceptions import ConvergenceWarning

from boscage import _core, _validation
from boscage._bases.arviz_data import Groups
from boscage._bases.sampler import PosteriorSampler
from boscage._bases.settings import Settings
from boscage._input.columns import dense
from boscage._types import AnyArray, FloatArray, IntArray, Label, Rows
from boscage.bart._explain import BartExplanations
from boscage.bart.kernels import Kernels, as_kernels
from boscage.trees.drawn import DrawnSums

Self = TypeVar("Self", bound="Bart")

_TRACED = ("sigma", "log_likelihood", "n_leaves")
# With fewer draws per chain R-hat is too uncertain for a warning.
_MIN_DRAWS_TO_WARN = 100
_MAX_R_HAT = 1.1


class Bart(BartExplanations, PosteriorSampler):
    """Base of BART. Not for direct use."""

    _settings_param: ClassVar[str] = "kernels"
    _settings_classes: ClassVar[tuple[type[Settings], ...]] = (Kernels,)

    n_trees: int
    kernels: str | Mapping[str, float] | Kernels
    n_chains: int
    n_burn: int
    n_draws: int
    thin: int
    alpha_s: float
    beta_s: float
    sparse: bool | float
    k: float | Literal["learned"]
    warm_start: bool

    #: The name of what `predict_draws` draws in ArviZ's data.
    _drawn_name: ClassVar[str]

    # -- to be implemented by subclasses ----------------------------------------------------------

    def _noise_prior(self) -> dict[str, Any]:
        """Checked settings of the prior of the noise."""
        return {}

    @abstractmethod
    def predict_draws(self, X: Any) -> FloatArray:
        """What every draw predicts."""

    # -- learning ---------------------------------------------------------------------------------

    def _run_chains(
        self: Self,
        X: Any,
        y: Any,
        callback: Callable[..., object] | None,
        sample_weight: ArrayLike | None,
    ) -> Self:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, found {callback!r}")
        start = self._model if self._continues() else None
        self._fit(X, y, start=start, callback=callback, sample_weight=sample_weight)
        self._warn_if_doubtful(stacklevel=4)
        return self

    def _fit_part(self, X: Any, y: Any, part: int | None, **more: Any) -> None:
        start = self._model if self._continues() else None
        super()._fit_part(X, y, part, start=start, callback=None, **more)

    def _parts(self) -> Sequence[int | None]:
        return range(self.n_chains)

    def _join(self, models: list[Any]) -> Any:
        return type(models[0]).join(models)

    def _continues(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "_model")

    @classmethod
    def _as_settings(cls, value: Any) -> Kernels:
        return as_kernels(value)

    def _compile_settings(self, seed: int, n_features: int) -> _core.BartSettings:
        if self._continues():
            # A chain continues with its own random numbers.
            seed = self._model.seed
        has_concentration = not isinstance(self.sparse, (bool, np.bool_))
        counts: dict[str, Any] = {
            name: _validation.check_count(name, getattr(self, name), 0 if name == "n_burn" else 1)
            for name in ("n_trees", "n_chains", "n_burn", "n_draws", "thin")
        }
        return _core.BartSettings(
            **counts,
            **as_kernels(self.kernels)._compile(),
            alpha_s=_validation.check_positive("alpha_s", self.alpha_s),
            beta_s=_validation.check_positive("beta_s", self.beta_s, zero=True),
            sparse=has_concentration or bool(self.sparse),
            concentration=(
                _validation.check_positive("sparse", self.sparse) if has_concentration else None
            ),
            **self._shrinkage(),
            seed=seed,
            **self._noise_prior(),
        )

    def _shrinkage(self) -> dict[str, Any]:
        if isinstance(self.k, str):
            if self.k == "learned":
                return {"learn_k": True}
            raise ValueError(f"k must be a positive number or 'learned', found {self.k!r}")
        return {"k": _validation.check_positive("k", self.k)}

    def _warn_if_doubtful(self, *, stacklevel: int) -> None:
        if self.n_chains == 1 or self.n_draws < _MIN_DRAWS_TO_WARN:
            return
        off = {name: row.r_hat for name, row in self.summary().items() if row.r_hat > _MAX_R_HAT}
        if off:
            found = ", ".join(f"{name} {value:.2f}" for name, value in off.items())
            warnings.warn(
                f"the chains disagree (R-hat of {found}; expected at most {_MAX_R_HAT}): run more "
                "sweeps (a greater n_burn or n_draws, or thin=2), or use other kernels",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    # -- the posterior ----------------------------------------------------------------------------

    @property
    def trace_(self) -> dict[str, FloatArray]:
        """Statistics of each draw, of shape (n_chains, n_draws).

        ``sigma``; the ``log_likelihood`` given trees and noise; ``n_leaves`` of all trees; ``k`` if
        it is learned; and with ``sparse`` the concentration ``alpha`` of the split probabilities.
        """
        chains = self._require_model().traces()
        names = _TRACED + tuple(name for name in ("k", "alpha") if chains[0][name].size)
        return {name: np.stack([chain[name] for chain in chains]) for name in names}

    @property
    def split_probabilities_(self) -> FloatArray:
        """For each draw, the prior probability of splitting on each feature; with ``sparse`` only.

        Of shape (n_draws of all chains, n_features).
        """
        chains = self._require_model().traces()
        drawn = np.concatenate([chain["split_probabilities"] for chain in chains])
        if not drawn.size:
            raise AttributeError(
                "split_probabilities_ exists only with sparse=True or a concentration, found "
                f"sparse={self.sparse!r}"
            )
        return drawn.reshape(-1, self.n_features_in_)

    @property
    def acceptance_(self) -> dict[str, FloatArray]:
        """For each kind of step, the share that changed a tree, by chain; NaN if none was tried."""
        chains = [chain["acceptance"] for chain in self._require_model().traces()]
        shares = {}
        for name in chains[0]:
            tried, made = np.array([chain[name] for chain in chains], dtype=np.float64).T
            shares[name] = np.where(tried > 0, made / np.maximum(tried, 1), np.nan)
        return shares

    @property
    def trees_(self) -> DrawnSums:
        """``trees_[draw][tree]`` as arrays, the draws of the first chain first; see `DrawnTree`.

        A draw's prediction is ``centre_`` plus the sum of its trees' values. With more than two
        classes the first ``n_trees`` trees are those of the first class, and so on.
        """
        return DrawnSums(self._require_model(), self._names(), self.categories_)

    @property
    def centre_(self) -> float | FloatArray:
        """The constant that the sum of trees is added to; one per class if there are over two."""
        centres: FloatArray = self._require_model().centres
        return float(centres[0]) if centres.size == 1 else centres

    @property
    def cut_counts_(self) -> IntArray:
        """For each draw, the number of splits on each feature.

        Of shape (n_draws of all chains, n_features).
        """
        counts: IntArray = self._require_model().cuts().astype(np.int64)
        return counts

    @property
    def inclusion_proportions_(self) -> FloatArray:
        """For each draw, the share of splits on each feature; zeros for a draw without splits.

        Of shape (n_draws of all chains, n_features).
        """
        return self._cut_shares()

    @property
    def feature_importances_(self) -> FloatArray:
        """Posterior mean of the share of splits on each feature."""
        means: FloatArray = self.inclusion_proportions_.mean(axis=0)
        return means

    @property
    def feature_importances_std_(self) -> FloatArray:
        """Posterior standard deviation of the share of splits on each feature."""
        stds: FloatArray = self.inclusion_proportions_.std(axis=0)
        return stds

    def effect(
        self, X: Any, feature: int | str, *, grid: Any = None, n_points: int = 20
    ) -> tuple[AnyArray, FloatArray]:
        """Predict with one feature set to each of several values: ICE curves of every draw.

        The mean over rows is the partial dependence; quantiles over draws are credible bands.
        `boscage.plots.plot_effect` draws both. All draws of all curves are in memory at once, so
        about 100 rows are enough.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Rows whose other features keep their values.
        feature : int or str
            Number or name of the feature to vary.
        grid : array-like of shape (n_points,), default=None
            Values of the feature, or categories. None takes ``n_points`` evenly spaced values from
            its 5 % to its 95 % quantile in `X`, or all its categories.
        n_points : int, default=20
            Number of values if `grid` is None and the feature is one of numbers.

        Returns
        -------
        grid : ndarray of shape (n_points,)
            Values of the feature, or categories.
        draws : ndarray of shape (n_draws of all chains, n_points, n_samples)
            What `predict_draws` predicts, with a last axis of classes if there are more than two.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If `X` is refused (see `predict`), there is no such feature, `grid` is empty, not finite
            or has an unknown category, or it is None and `X` has no value of the feature.
        """
        self._require_model()
        rows = self._check_rows(X)
        column = self._column(feature)
        if column in self._labels:
            shown, values = _categories_and_codes(self._labels[column], grid, feature)
        else:
            own = np.asarray(dense(rows[:, [column]])).ravel()
            shown = values = _grid_of_numbers(own, grid, n_points, feature)
        at_values = _at_each_value(rows, column, values)
        self._require_known(at_values[: rows.shape[0]])
        draws = self._predict_checked(at_values)
        return shown, draws.reshape(len(draws), values.size, rows.shape[0], *draws.shape[2:])

    @abstractmethod
    def _predict_checked(self, rows: Rows) -> FloatArray:
        """What every draw predicts for checked rows."""

    def _column(self, feature: int | str) -> int:
        return _validation.check_feature("feature", feature, self._names(), self.n_features_in_)

    def _chain_groups(self) -> Groups:
        trace = self.trace_
        shape = trace["sigma"].shape
        # Noise of a given sigma is not part of the posterior.
        posterior = {
            name: draws
            for name, draws in trace.items()
            if name != "log_likelihood" and (name != "sigma" or np.ptp(draws) > 0.0)
        }
        posterior["inclusion"] = self.inclusion_proportions_.reshape(*shape, -1)
        if "alpha" in trace:
            posterior["split_probabilities"] = self.split_probabilities_.reshape(*shape, -1)
        return {
            "posterior": posterior,
            "sample_stats": {"log_likelihood": trace["log_likelihood"]},
        }

    def _draw_rows(self, X: Any, rng: np.random.Generator) -> dict[str, FloatArray]:
        return {self._drawn_name: self.predict_draws(X)}

    @classmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        return {"n_trees": model.n_trees}

    @classmethod
    def _nested(cls, saved: dict[str, Any]) -> dict[str, Any]:
        if "n_particles" not in saved:
            return saved
        own = {name: saved[name] for name in ("n_particles", "proposal") if name in saved}
        return saved | {"kernels": Kernels(saved.get("sampler", "auto"), **own)}


def _at_each_value(rows: Any, column: int, values: FloatArray) -> Rows:
    """All rows with one value of a feature, then all with the next."""
    many: Rows
    if issparse(rows):
        with_values = [rows.tolil() for _ in values]
        for some, value in zip(with_values, values, strict=True):
            some[:, [column]] = value
        many = vstack(with_values, format="csr")
    else:
        many = np.tile(rows.astype(np.float64), (values.size, 1))
        many[:, column] = np.repeat(values, len(rows))
    return many


def _grid_of_numbers(
    column: FloatArray, grid: Any, n_points: int, feature: int | str
) -> FloatArray:
    """The values that a feature of numbers is set to."""
    if grid is None:
        n_points = _validation.check_count("n_points", n_points, 1)
        present = column[~np.isnan(column)]
        if not present.size:
            raise ValueError(f"X has no value of feature {feature!r}; give a grid")
        low, high = np.quantile(present, [0.05, 0.95])
        grid = np.linspace(low, high, n_points)
    values = np.asarray(grid, dtype=np.float64).ravel()
    if not values.size or not np.isfinite(values).all():
        raise ValueError("grid must hold finite numbers, and at least one")
    return values


def _categories_and_codes(
    labels: list[Label], grid: Any, feature: int | str
) -> tuple[AnyArray, FloatArray]:
    """The categories that a feature is set to, and their codes."""
    shown = labels if grid is None else np.ravel(np.asarray(grid, dtype=object)).tolist()
    unknown = [label for label in shown if label not in labels]
    if unknown or not shown:
        found = repr(unknown[0]) if unknown else "none"
        raise ValueError(
            f"grid must hold categories of feature {feature!r}, {labels}, found {found}"
        )
    return np.array(shown), np.array([labels.index(label) for label in shown], dtype=np.float64)
