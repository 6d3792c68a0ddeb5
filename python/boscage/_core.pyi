"""The compiled module. It takes arrays that the facade has checked; see its classes for users."""

from collections.abc import Callable
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

__all__ = [
    "RULE_ROWS",
    "TREND_ROWS",
    "BartClassifier",
    "BartRegressor",
    "BartSettings",
    "BayesianTreeClassifier",
    "BayesianTreeRegressor",
    "CellPlan",
    "ClassifierCells",
    "ClassifierFreezer",
    "FrozenClassifier",
    "FrozenRegressor",
    "LockAccess",
    "McmcSettings",
    "MondrianClassifier",
    "MondrianRegressor",
    "ReadWriteLock",
    "RegressorCells",
    "RegressorFreezer",
    "SmcSettings",
    "__version__",
    "bart_kernels",
    "calibrating_rows",
    "candidate_rates",
    "distinct_rows",
    "extra_trees_rates",
    "fill_missing",
    "first_by_contents",
    "first_of_keys",
    "keys_of_contents",
    "model_kind",
    "model_kinds",
    "most_important_features",
]

__version__: str
TREND_ROWS: int
RULE_ROWS: int

_Rows = NDArray[np.float32] | NDArray[np.float64]
_Label = bool | int | float | str
_Contributions = tuple[NDArray[np.float64], NDArray[np.float64]]
_Progress = Callable[[int, int], None]
_Numbers = list[float]
# Weight, features, numbers of each of these, their slopes by class, factor, and variances.
_ClassTrend = tuple[float, list[int], list[_Numbers], _Numbers, _Numbers, tuple[float, float]]
# Power, noise, weight of the joint function, the shares of the classes, and the trend.
_Link = tuple[float, float, float, list[float], _ClassTrend | None]
_Maps = list[tuple[NDArray[np.float64], NDArray[np.float64]]]
_Substitutes = list[tuple[float, list[tuple[int, float, float]]]]
_Categories = list[tuple[int, list[_Label], list[float], float]]
_Mixture = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
_CellCounts = tuple[NDArray[np.uint64], list[NDArray[np.float64]], list[NDArray[np.uint64]]]

# What classes have alike; these bases are not there at run time.

class _Model:
    kind: ClassVar[str]
    def to_bytes(self, *, annotation: str | None = None) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: bytes, *, n_threads: int = 1) -> Self: ...
    def save(self, path: str, *, annotation: str | None = None) -> None: ...
    @property
    def annotation(self) -> str: ...
    @property
    def n_features(self) -> int: ...

class _Bart(_Model):
    @staticmethod
    def join(parts: list[Any]) -> Any: ...
    @property
    def n_categories(self) -> list[int]: ...
    @property
    def has_missing(self) -> bool: ...
    @property
    def takes_missing(self) -> bool: ...
    def shapley_draws(
        self,
        X: _Rows,
        background: _Rows,
        *,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> list[_Contributions]: ...
    def predict_draws(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def cuts(self) -> NDArray[np.uint32]: ...
    def trees(self, draw: int) -> list[dict[str, Any]]: ...
    def shared_trees(self) -> list[dict[str, Any]]: ...
    def traces(self) -> list[dict[str, Any]]: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_draws(self) -> int: ...
    @property
    def centres(self) -> NDArray[np.float64]: ...
    @property
    def seed(self) -> int: ...

class _BayesianTrees(_Model):
    @staticmethod
    def join(parts: list[Any], sampler: SmcSettings | McmcSettings) -> Any: ...
    @property
    def n_categories(self) -> list[int]: ...
    @property
    def has_missing(self) -> bool: ...
    @property
    def takes_missing(self) -> bool: ...
    def shapley(self, X: _Rows, *, n_threads: int = 1) -> _Contributions: ...
    def apply(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.uint32]: ...
    def leaf_trees(self) -> list[dict[str, NDArray[Any]]]: ...
    def trees(self) -> list[dict[str, Any]]: ...
    def cuts(self) -> NDArray[np.uint32]: ...
    def best_tree(self) -> dict[str, Any]: ...
    def report(self) -> list[dict[str, Any]]: ...
    def log_evidence(self) -> tuple[float, float] | None: ...
    @property
    def log_posteriors(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def alpha_s(self) -> float | None: ...
    @property
    def beta_s(self) -> float | None: ...

class _MondrianForest(_Model):
    def shapley(
        self, X: _Rows, *, n_threads: int = 1, progress: _Progress | None = None
    ) -> _Contributions: ...
    def path_contributions(self, X: _Rows, *, n_threads: int = 1) -> _Contributions: ...
    def leaf_trees(self, *, n_threads: int = 1) -> list[dict[str, NDArray[Any]]]: ...
    def split_gains(self, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def forget(self, ids: NDArray[np.uint64]) -> None: ...
    def flush(self, *, n_threads: int = 1, progress: _Progress | None = None) -> None: ...
    def score_samples(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def loo_score_samples(
        self,
        ids: NDArray[np.uint64] | None = None,
        *,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> NDArray[np.float64]: ...
    @property
    def is_flushed(self) -> bool: ...
    def merge(self, other: Self) -> None: ...
    def keep_newest(self, n: int) -> None: ...
    def set_predictive(self, predictive: str) -> None: ...
    def digest(self) -> str: ...
    @classmethod
    def share_from_bytes(
        cls, data: bytes, share: tuple[int, int], *, n_threads: int = 1
    ) -> Self: ...
    def tree_structures(self) -> list[dict[str, NDArray[Any]]]: ...
    def tree_hashes(self) -> bytes: ...
    def digest_of(self, trees: bytes) -> str: ...
    @property
    def share(self) -> tuple[int, int]: ...
    @property
    def n_trees_to_choose(self) -> int: ...
    def set_substitutes(self, substitutes: _Substitutes | None) -> None: ...
    @property
    def substitutes(self) -> _Substitutes | None: ...
    def guess_substitutes(self, substitutes: _Substitutes) -> None: ...
    @property
    def takes_missing(self) -> bool: ...
    def filled(self, X: _Rows) -> NDArray[np.float64] | None: ...
    def completions(
        self, X: _Rows, *, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None: ...
    def set_categories(self, categories: _Categories) -> None: ...
    @property
    def categories(self) -> _Categories: ...
    def set_annotation(self, text: str) -> None: ...
    def rows(self) -> NDArray[np.float64]: ...
    def sparse_rows(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]] | None: ...
    def sample_weight(self) -> NDArray[np.float64] | None: ...
    def copy(self) -> Self: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_estimators(self) -> int: ...
    @property
    def lifetime(self) -> float: ...
    @property
    def min_samples_split(self) -> int: ...
    @property
    def predictive(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def ids(self) -> NDArray[np.uint64]: ...
    @property
    def low(self) -> NDArray[np.float64]: ...
    @property
    def high(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def maps(self) -> _Maps | None: ...

@final
class BartSettings:
    def __new__(
        cls,
        *,
        n_trees: int = 200,
        n_chains: int = 4,
        n_burn: int = 500,
        n_draws: int = 500,
        thin: int = 1,
        kernels: dict[str, float] | None = ...,
        n_particles: int = 10,
        proposal: str = "prior",
        alpha_s: float = 0.95,
        beta_s: float = 2.0,
        sparse: bool = False,
        concentration: float | None = None,
        k: float = 2.0,
        learn_k: bool = False,
        nu: float = 3.0,
        q: float = 0.9,
        sigma: float | None = None,
        sigma_estimate: float | None = None,
        seed: int = 0,
    ) -> Self: ...
    def only(self, number: int) -> Self: ...

@final
class BartClassifier(_Bart):
    @staticmethod
    def fit(
        X: _Rows,
        codes: NDArray[np.uint32],
        labels: list[_Label],
        settings: BartSettings,
        *,
        weights: NDArray[np.float64] | None = None,
        start: BartClassifier | None = None,
        callback: Callable[..., object] | None = None,
        n_categories: list[int] = ...,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> BartClassifier: ...
    def predict_proba(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def classes(self) -> list[_Label]: ...

@final
class BartRegressor(_Bart):
    @staticmethod
    def fit(
        X: _Rows,
        y: NDArray[np.float64],
        settings: BartSettings,
        *,
        weights: NDArray[np.float64] | None = None,
        start: BartRegressor | None = None,
        callback: Callable[..., object] | None = None,
        n_categories: list[int] = ...,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> BartRegressor: ...
    def predict(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...

@final
class SmcSettings:
    def __new__(
        cls,
        *,
        n_particles: int = 10,
        n_islands: int = 5,
        proposal: str = "optimal",
        max_features: int | None = None,
        expansion: str = "node",
        candidate_order: str = "breadth_first",
        resampling: str = "systematic",
        ess_threshold: float = 0.5,
        max_stages: int = 5000,
        island_weights: str = "uniform",
        seed: int = 0,
    ) -> Self: ...
    def only(self, number: int) -> Self: ...

@final
class McmcSettings:
    def __new__(
        cls,
        *,
        n_chains: int = 4,
        n_draws: int = 250,
        thin: int = 20,
        n_burn: int = 5000,
        moves: list[float] = ...,
        seed: int = 0,
    ) -> Self: ...
    def only(self, number: int) -> Self: ...
    @property
    def moves(self) -> tuple[float, float, float, float]: ...

@final
class BayesianTreeClassifier(_BayesianTrees):
    @staticmethod
    def fit(
        X: _Rows,
        codes: NDArray[np.uint32],
        labels: list[_Label],
        sampler: SmcSettings | McmcSettings,
        *,
        alpha: float = 5.0,
        alpha_s: float = 0.95,
        beta_s: float = 0.5,
        n_categories: list[int] = ...,
        weights: NDArray[np.float64] | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> BayesianTreeClassifier: ...
    def predict_proba(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def classes(self) -> list[_Label]: ...
    @property
    def alpha(self) -> float: ...

@final
class BayesianTreeRegressor(_BayesianTrees):
    @staticmethod
    def fit(
        X: _Rows,
        y: NDArray[np.float64],
        sampler: SmcSettings | McmcSettings,
        *,
        kappa: float = 0.1,
        shape: float = 1.5,
        noise_share: float = 0.1,
        prior_mean: float | None = None,
        scale: float | None = None,
        alpha_s: float = 0.95,
        beta_s: float = 0.5,
        n_categories: list[int] = ...,
        weights: NDArray[np.float64] | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> BayesianTreeRegressor: ...
    def predict(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def predict_with_std(
        self, X: _Rows, *, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def predict_dist(
        self, X: _Rows, *, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def leaf_prior(self) -> tuple[float, float, float, float]: ...

@final
class CellPlan:
    def __new__(
        cls,
        *,
        n_estimators: int,
        lifetime: float,
        min_samples_split: int,
        predictive: str,
        seed: int,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        maps: _Maps | None = None,
        substitutes: _Substitutes | None = None,
        categories: _Categories | None = None,
        extent: tuple[int, bool] = ...,
        steps: list[bytes] | None = None,
        owners: list[int] | None = None,
    ) -> Self: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def extent_of(self, X: _Rows) -> tuple[int, bool]: ...
    def count(
        self, X: _Rows, targets: NDArray[np.float64], *, n_threads: int = 1
    ) -> _CellCounts: ...
    def condensed(
        self, counts: _CellCounts, least: int, *, one_less: bool = False
    ) -> tuple[CellPlan, NDArray[np.uint64], NDArray[np.bool_]]: ...
    def refined(self, is_cut: NDArray[np.bool_], depth: int) -> CellPlan: ...
    def owned(self, owners: list[int]) -> CellPlan: ...
    def rows_by_owner(
        self, X: _Rows, n_owners: int, *, n_threads: int = 1
    ) -> list[NDArray[np.uint32]]: ...
    def rows_of(self, X: _Rows, owner: int, *, n_threads: int = 1) -> NDArray[np.uint32]: ...
    def tree_hashes(self, cells: bytes) -> bytes: ...
    @property
    def owners(self) -> NDArray[np.uint32]: ...
    @property
    def n_cells(self) -> int: ...

class _Cells:
    def summaries(self) -> NDArray[np.uint64]: ...
    def grow(self, *, n_threads: int = 1) -> None: ...
    @property
    def is_grown(self) -> bool: ...
    @property
    def is_joined(self) -> bool: ...
    def join(self, summaries: list[NDArray[np.uint64]]) -> None: ...
    def hashes(self) -> tuple[bytes, bytes]: ...
    def digest(self, rows: bytes, trees: bytes) -> str: ...
    def lists(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.uint64]: ...
    def first_rows(self) -> NDArray[np.uint32]: ...
    def rows(self) -> NDArray[np.float64]: ...
    def sample_weight(self) -> NDArray[np.float64] | None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_pairs(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class ClassifierCells(_Cells):
    def __new__(
        cls,
        plan: CellPlan,
        owner: int,
        X: _Rows,
        codes: NDArray[np.uint32],
        labels: list[_Label],
        n_rows_of: list[int],
        *,
        discount: float = 10.0,
        calibration: str | None = None,
        trend: bool = False,
        declared: list[_Label] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self: ...
    def proba_of_votes(
        self,
        X: _Rows,
        votes: list[NDArray[np.uint64]],
        link: _Link | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[np.float64]: ...
    def left_out_votes(
        self, rows: NDArray[np.uint32], discounts: list[float], *, n_threads: int = 1
    ) -> NDArray[np.uint64]: ...
    def links_of_votes(
        self,
        rows: NDArray[np.uint32],
        copies: NDArray[np.uint8],
        of_trend: NDArray[np.uint32],
        discounts: list[float],
        votes: list[NDArray[np.uint64]],
    ) -> list[_Link]: ...
    def proba_of_left_out_votes(
        self,
        rows: NDArray[np.uint32],
        of_trend: NDArray[np.uint32],
        discounts: list[float],
        votes: list[NDArray[np.uint64]],
        links: list[_Link],
    ) -> NDArray[np.float64]: ...
    def set_discount(self, discount: float) -> None: ...
    def targets(self) -> NDArray[np.uint32]: ...

@final
class RegressorCells(_Cells):
    def __new__(
        cls,
        plan: CellPlan,
        owner: int,
        model: MondrianRegressor,
        X: _Rows,
        y: NDArray[np.float64],
        *,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self: ...
    def target_moments(self) -> tuple[float, float, float]: ...
    def given(self) -> list[float]: ...
    def messages(self, chosen: list[float], *, n_threads: int = 1) -> NDArray[np.uint64]: ...
    def set_messages(
        self, chosen: list[float], messages: list[NDArray[np.uint64]], *, n_threads: int = 1
    ) -> None: ...
    def sizes(self, *, n_threads: int = 1) -> NDArray[np.uint64]: ...
    def set_sizes(
        self, chosen: list[float], sizes: list[NDArray[np.uint64]], *, n_threads: int = 1
    ) -> None: ...
    def moments_of_components(
        self, X: _Rows, components: list[NDArray[np.uint64]], *, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def targets(self) -> NDArray[np.float64]: ...

class _FrozenForest(_Model):
    @property
    def n_features(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def settings(self) -> dict[str, Any]: ...

@final
class FrozenClassifier(_FrozenForest):
    def predict_proba(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def classes(self) -> list[_Label]: ...
    @property
    def discount(self) -> float: ...

@final
class FrozenRegressor(_FrozenForest):
    def predict(self, X: _Rows, *, n_threads: int = 1) -> list[NDArray[np.float64]]: ...
    def predict_dist(self, X: _Rows, *, n_threads: int = 1) -> _Mixture: ...
    def hyperparameters(self) -> dict[str, float]: ...

class _Freezer:
    def next_cells(self, n_cells: int) -> CellPlan: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_leaves(self) -> int: ...
    @property
    def n_open_leaves(self) -> int: ...
    @property
    def nbytes_of_trees(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class ClassifierFreezer(_Freezer):
    def __new__(
        cls,
        plan: CellPlan,
        labels: list[_Label],
        n_rows_of: list[int],
        *,
        discount: float = 10.0,
    ) -> Self: ...
    def grow(
        self, plan: CellPlan, X: _Rows, targets: NDArray[np.uint32], *, n_threads: int = 1
    ) -> None: ...
    def finish(self, *, n_threads: int = 1) -> FrozenClassifier: ...

@final
class RegressorFreezer(_Freezer):
    def __new__(cls, plan: CellPlan) -> Self: ...
    def target_moments(self) -> tuple[float, float, float]: ...
    def set_hyperparameters(self, given: dict[str, float]) -> None: ...
    def grow(
        self, plan: CellPlan, X: _Rows, targets: NDArray[np.float64], *, n_threads: int = 1
    ) -> None: ...
    def finish(self, *, n_threads: int = 1) -> FrozenRegressor: ...

@final
class MondrianClassifier(_MondrianForest):
    def __new__(
        cls,
        *,
        n_estimators: int = 100,
        lifetime: float = ...,
        min_samples_split: int = 2,
        discount: float = 10.0,
        posterior: str = "kneser-ney",
        calibration: str | None = ...,
        joint_kernel: str = "auto",
        trend: bool = True,
        predictive: str = "averaged",
        seed: int = 0,
        share: tuple[int, int] | None = None,
    ) -> Self: ...
    def fit(
        self,
        X: _Rows,
        codes: NDArray[np.uint32],
        labels: list[_Label],
        *,
        ids: NDArray[np.uint64] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        declared: list[_Label] | None = None,
        low: NDArray[np.float64] | None = None,
        high: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
        maps: _Maps | None = None,
        substitutes: _Substitutes | None = None,
        categories: _Categories | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> None: ...
    def partial_fit(
        self,
        X: _Rows,
        codes: NDArray[np.uint32],
        labels: list[_Label],
        *,
        ids: NDArray[np.uint64] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> None: ...
    def predict_proba(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def predict_uncertainty(
        self,
        X: _Rows,
        class_weights: NDArray[np.float64] | None = None,
        *,
        n_threads: int = 1,
    ) -> list[NDArray[np.float64]]: ...
    def loo_proba(
        self,
        ids: NDArray[np.uint64] | None = None,
        discounts: list[float] | None = None,
        *,
        calibration: str | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> NDArray[np.float64]: ...
    def classes(self) -> list[_Label]: ...
    def targets(self) -> NDArray[np.uint32]: ...
    def declared(self) -> list[_Label]: ...
    def set_discount(self, discount: float) -> None: ...
    def set_posterior(
        self, posterior: str, calibration: str | None, joint_kernel: str, trend: bool
    ) -> None: ...
    @property
    def joint_kernel(self) -> str: ...
    def takes_limit(self, n_rows: int) -> bool: ...
    @property
    def may_have_limit(self) -> bool: ...
    def calibration_link(self, *, n_threads: int = 1) -> _Link: ...
    def add_votes(
        self, X: _Rows, before: NDArray[np.float64] | None = None, *, n_threads: int = 1
    ) -> NDArray[np.float64]: ...
    def proba_of_votes(
        self, X: _Rows, votes: NDArray[np.float64], link: _Link, *, n_threads: int = 1
    ) -> NDArray[np.float64]: ...
    def calibrating_ids(self) -> NDArray[np.uint64]: ...
    def add_left_out_votes(
        self,
        ids: NDArray[np.uint64],
        discounts: list[float],
        before: NDArray[np.float64] | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[np.float64]: ...
    def links_of_votes(self, discounts: list[float], votes: NDArray[np.float64]) -> list[_Link]: ...
    def proba_of_left_out_votes(
        self,
        ids: NDArray[np.uint64],
        votes: NDArray[np.float64],
        links: list[_Link],
    ) -> NDArray[np.float64]: ...
    def trees(self) -> list[dict[str, NDArray[Any]]]: ...
    @property
    def discount(self) -> float: ...
    @property
    def posterior(self) -> str: ...
    @property
    def calibration(self) -> str | None: ...
    @property
    def trend(self) -> bool: ...

@final
class MondrianRegressor(_MondrianForest):
    def __new__(
        cls,
        *,
        n_estimators: int = 100,
        lifetime: float = ...,
        min_samples_split: int = 2,
        predictive: str = "averaged",
        seed: int = 0,
        posterior: str = "joint",
        hyperparameters: str = "loo",
        noise: str = "local",
        given: dict[str, float] | None = None,
        noise_variance: float | None = None,
        prior_scale: float | None = ...,
        prior_rate: float | None = ...,
        trend: str | None = None,
        trend_features: list[int] | None = None,
        joint_kernel: str = "auto",
        share: tuple[int, int] | None = None,
    ) -> Self: ...
    def fit(
        self,
        X: _Rows,
        y: NDArray[np.float64],
        *,
        ids: NDArray[np.uint64] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        low: NDArray[np.float64] | None = None,
        high: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
        maps: _Maps | None = None,
        substitutes: _Substitutes | None = None,
        categories: _Categories | None = None,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> None: ...
    def set_regression(self, other: Self) -> None: ...
    def partial_fit(
        self,
        X: _Rows,
        y: NDArray[np.float64],
        *,
        ids: NDArray[np.uint64] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> None: ...
    def predict(
        self, X: _Rows, *, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def predict_mean(self, X: _Rows, *, n_threads: int = 1) -> NDArray[np.float64]: ...
    def predict_uncertainty(self, X: _Rows, *, n_threads: int = 1) -> list[NDArray[np.float64]]: ...
    def predict_dist(self, X: _Rows, *, n_threads: int = 1) -> _Mixture: ...
    def loo_dist(
        self,
        ids: NDArray[np.uint64] | None = None,
        *,
        n_threads: int = 1,
        progress: _Progress | None = None,
    ) -> tuple[
        NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]
    ]: ...
    def hyperparameters(self, *, n_threads: int = 1) -> dict[str, float]: ...
    def choose(
        self, moments: tuple[float, float, float] | None = None, *, n_threads: int = 1
    ) -> list[float]: ...
    def complete(self, chosen: list[float], *, n_threads: int = 1) -> None: ...
    def add_components(
        self, X: _Rows, before: NDArray[np.float64] | None = None, *, n_threads: int = 1
    ) -> NDArray[np.float64]: ...
    def moments_of_components(
        self, components: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def given_hyperparameters(self) -> dict[str, float] | None: ...
    @property
    def trend(self) -> str | None: ...
    @property
    def joint_kernel(self) -> str: ...
    def takes_limit(self, n_rows: int) -> bool: ...
    @property
    def trend_features(self) -> list[int] | None: ...
    def trend_coefficients(
        self, *, n_threads: int = 1
    ) -> tuple[float, NDArray[np.float64]] | None: ...
    def trend_parts(
        self, *, n_threads: int = 1
    ) -> tuple[float, list[tuple[int, float, float, float, float, float]]] | None: ...
    @property
    def prior_scale(self) -> float | None: ...
    @property
    def prior_rate(self) -> float | None: ...
    def log_marginal_likelihood(self, *, n_threads: int = 1) -> float: ...
    def targets(self) -> NDArray[np.float64]: ...
    def trees(self, *, n_threads: int = 1) -> list[dict[str, NDArray[Any]]]: ...
    @property
    def posterior(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def noise(self) -> str: ...
    @property
    def noise_variance(self) -> float | None: ...

def calibrating_rows(n_rows_of: list[int]) -> int: ...
def candidate_rates(
    X: _Rows,
    y: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    n_estimators: int = 50,
    seed: int = 0,
    n_threads: int = 1,
) -> dict[str, tuple[NDArray[np.float64], _Maps]]: ...
def fill_missing(
    X: _Rows, substitutes: _Substitutes, low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64] | None: ...
def distinct_rows(
    X: _Rows,
    y: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.uint32] | None: ...
def first_by_contents(
    X: _Rows,
    y: NDArray[np.float64],
    n: int,
    seed: int,
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.uint32]: ...
def first_of_keys(
    keys: NDArray[np.uint64], n_rows_of: NDArray[np.uint64], n: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]: ...
def most_important_features(
    X: _Rows,
    y: NDArray[np.float64],
    n: int,
    *,
    classification: bool,
    seed: int = 0,
    n_threads: int = 1,
) -> NDArray[np.uint32]: ...
def keys_of_contents(X: _Rows, seed: int) -> NDArray[np.uint64]: ...
def bart_kernels(n_trees: int) -> dict[str, float]: ...
def model_kind(data: bytes) -> str: ...
def model_kinds() -> dict[str, tuple[str, type[Any]]]: ...
def extra_trees_rates(
    X: _Rows,
    y: NDArray[np.float64],
    *,
    classification: bool,
    n_estimators: int = 50,
    seed: int = 0,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class LockAccess:
    def __enter__(self) -> None: ...
    def __exit__(self, _kind: object, _value: object, _trace: object, /) -> None: ...

@final
class ReadWriteLock:
    def __new__(cls) -> Self: ...
    @property
    def reading(self) -> LockAccess: ...
    @property
    def writing(self) -> LockAccess: ...
