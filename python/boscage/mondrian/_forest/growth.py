"""How a forest is grown from rows: what is learned from them comes first, then the trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from boscage import _validation
from boscage._bases.estimator import Estimator
from boscage._bases.lock import OwnLock
from boscage._bases.progress import progress_bar
from boscage._input.columns import Column, column_name, n_columns
from boscage._input.per_feature import MAX_END, check_maps, check_range, check_weights
from boscage._types import (
    AnyArray,
    BoolArray,
    FloatArray,
    Ids,
    IntArray,
    Label,
    Maps,
    Progress,
    Rows,
)
from boscage.mondrian._categories import (
    Singles,
    Tables,
    as_if_new,
    check_tables,
    learn_table,
    put,
    singles_of,
    to_core,
)
from boscage.mondrian._missing import (
    Substitutes,
    check_substitutes,
    fill,
    has_missing,
    learn_substitutes,
    reference_range,
)
from boscage.mondrian.feature_rates._samples import Sample
from boscage.mondrian.feature_rates._shared import MOST_FEATURES, LearnedRates
from boscage.mondrian.feature_rates.wide_tables import SomeFeatures

# Of a feature: a rate per unit of a narrower range might overflow.
_NARROW_RANGE = 1e-200
# In reference ranges, the width of the largest box of the keyed process.
_LARGEST_BOX = 2.0**64


@dataclass(frozen=True)
class NewRows:
    """Checked rows of a new forest."""

    rows: Rows
    columns: dict[int, Column]
    """The categories of the rows, whose places `put` puts into them."""
    encoded: tuple[Any, ...]
    """The targets as positional arguments of the compiled ``fit``."""
    extra: dict[str, Any]
    """Keyword arguments that belong to the targets, such as the classes."""
    ids: Ids | None
    weights: FloatArray | None
    """As how many rows each row counts; None if all count as one."""


@dataclass(frozen=True)
class GrowthPlan:
    """All that determines a new forest's trees, beside rows and targets."""

    settings: dict[str, Any]
    seed: int
    low: FloatArray
    high: FloatArray
    weights: FloatArray | None
    maps: Maps | None
    tables: Tables
    substitutes: Substitutes | None
    learned: LearnedRates | None

    @property
    def cut_features(self) -> IntArray | None:
        """The features of positive weight, by number; None if all are."""
        if self.weights is None or self.weights.all():
            return None
        return np.flatnonzero(self.weights)


class GrowingForest(Estimator):
    """A forest that learns ranges, rates and settings from rows, and draws their trees."""

    _lock = OwnLock()
    _learned: LearnedRates | None
    # The categories of features, as the model has them.
    _tables: Tables
    # The parameters with which the trees were grown.
    _grown_with: dict[str, Any]

    min_samples_split: int | str
    categorical_features: Any
    categories: Sequence[Any] | None
    feature_range: Any
    feature_weights: Any
    feature_maps: Any
    substitutes: Sequence[Any] | None
    window_size: int | None
    verbose: int | bool

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Checked keyword arguments of the compiled model, without the seed."""

    def _settings_of(self, model: Any) -> dict[str, Any]:
        """The same for a model that is to go on with what was chosen for another one."""
        return self._settings()

    @abstractmethod
    def _new_model(self, settings: dict[str, Any], seed: int) -> Any:
        """An empty compiled model."""

    @abstractmethod
    def _with_stored(self, model: Any, encoded: tuple[Any, ...]) -> AnyArray:
        """The targets of a model's rows, followed by others, as codes of classes or numbers."""

    def _n_trees_to_choose(self, settings: dict[str, Any]) -> int:
        """How many of the first trees choose what all trees are to know."""
        return int(self._new_model(settings, 0).n_trees_to_choose)

    @abstractmethod
    def _learn_rates(
        self, sample: Sample, *, settings: dict[str, Any], **options: Any
    ) -> LearnedRates:
        """Feature rates learned from a sample of rows, for a forest with these settings."""

    def _sample(self, X: Rows, y: AnyArray, weights: FloatArray | None, seed: int) -> Sample:
        """The rows that rates are learned from, given all rows and their encoded targets."""
        return Sample.of(X, y, weights, seed)

    def _kept(self, model: Any) -> dict[str, Any]:
        """Settings of a model that no parameter of the estimator sets."""
        return {}

    @property
    def _chooses_leaves(self) -> bool:
        """Whether the least number of rows of a split is chosen before the first cut."""
        return isinstance(self.min_samples_split, str)

    def _choose_settings(
        self,
        sample: Sample,
        learned: LearnedRates,
        is_number: BoolArray,
        *,
        settings: dict[str, Any],
        **options: Any,
    ) -> dict[str, Any]:
        """The settings with those that are chosen by left-out rows, after rates were learned."""
        return settings

    def _select_discount(self, model: Any, n_threads: int) -> None:
        """Choose the discount of a new classification forest from its trees."""

    # -- rows -------------------------------------------------------------------------------------

    def _known_categories(self) -> Mapping[int, Collection[Label | None]]:
        return self._tables

    def _categorical(self, X: Any) -> list[int]:
        found = super()._categorical(X)
        given = check_tables(self.categories, n_columns(X))
        if given is None:
            return found
        if others := sorted({*found} - {*given}):
            raise ValueError(f"categories must hold those of feature {others[0]}, found None")
        return sorted(given)

    def _check_rows(self, X: Any) -> Rows:
        rows, columns = self._read(X, reset=False)
        return put(rows, columns, self._tables)

    def _guess_substitutes(self, model: Any, rows: Rows) -> None:
        """Tell the model what stands for missing values of checked rows, if it does not know."""
        if model.takes_missing or not has_missing(rows):
            return
        # No row of the forest lacks a value. It stays as it is.
        targets = self._with_stored(model, ())
        model.guess_substitutes(learn_substitutes(rows_of(model), targets, seed=model.seed))

    def _keeps_sparse(self, X: Any, *, reset: bool) -> bool:
        if not self._is_sparse_of_numbers(X, reset=reset):
            return False
        if reset and not self._leaves_features_out(X.shape[1]):
            return False  # all rows have coordinates along all features: a dense table
        return not np.isnan(_validation.stored_values(X)).any()

    def _leaves_features_out(self, n_features: int) -> bool:
        """Whether some features of a wide table are not going to have rates."""
        if n_features <= MOST_FEATURES:
            return False
        if self._learns_rates():
            return True
        return self.feature_weights is not None and not np.all(self.feature_weights)

    # -- growing ----------------------------------------------------------------------------------

    def _learns_rates(self) -> bool:
        return _validation.is_word(self.feature_weights, "learned")

    def _grow(self, new: NewRows, *, settings: dict[str, Any], seed: int, n_threads: int) -> None:
        """Learn what is to be learned from checked rows, and draw their trees."""
        plan = self._plan(new, settings=settings, seed=seed, n_threads=n_threads)
        model = self._draw(plan, new, n_threads=n_threads)
        self._select_discount(model, n_threads)
        self._adopt(model, plan)

    def _plan(
        self,
        new: NewRows,
        *,
        settings: dict[str, Any],
        seed: int,
        n_threads: int,
        sample: Sample | None = None,
        substitutes: Substitutes | None = None,
        tables: Tables | None = None,
        singles: Singles | None = None,
    ) -> GrowthPlan:
        """Learn what is to be learned from checked rows before the first cut is drawn.

        Rates are learned from the sample if it is given, and else from that of the rows. Places of
        categories and substitutes, unless they are parameters, may have been learned elsewhere.
        """
        encoded = new.encoded
        if self.categories is not None:
            tables = check_tables(self.categories, new.rows.shape[1])
        if tables is None:
            tables = {
                feature: learn_table(each, encoded[0]) for feature, each in new.columns.items()
            }
            singles = singles_of(new.columns, tables)
        rows = put(new.rows, new.columns, tables)
        low, high = self._range(rows, tables)
        complete: Rows = rows
        if self.substitutes is not None:
            substitutes = check_substitutes(self.substitutes, rows.shape[1])
        if has_missing(rows):
            if substitutes is None:
                substitutes = learn_substitutes(rows, encoded[0], seed=seed)
            complete = fill(rows, substitutes, low, high)
        learned, weights, maps = None, None, self._given_maps(rows.shape[1])
        if self._learns_rates():
            if sample is None:
                sample = self._sample(complete, encoded[0], new.weights, seed)
            if singles:
                X = as_if_new(sample.X, tables, singles)
                sample = replace(sample, X=X, in_forest=sample.X)
            learned, settings = self._learn(
                sample, tables, settings, low=low, high=high, seed=seed, n_threads=n_threads
            )
            weights, maps = learned.weights, learned.maps
        elif self.feature_weights is not None:
            weights = check_weights(self.feature_weights, rows.shape[1], self._names())
        if maps is None:
            maps = _maps_of_narrow(low, high, weights)
        return GrowthPlan(settings, seed, low, high, weights, maps, tables, substitutes, learned)

    def _given_maps(self, n_features: int) -> Maps | None:
        """The parameter ``feature_maps``, checked."""
        if self.feature_maps is None:
            return None
        if isinstance(self.feature_weights, str):
            raise ValueError(
                "feature_maps cannot be given with feature_weights='learned', which learns maps; "
                "give the weights as well, or None for equal ones"
            )
        return check_maps(self.feature_maps, n_features)

    def _learn(
        self,
        sample: Sample,
        tables: Tables,
        settings: dict[str, Any],
        *,
        low: FloatArray,
        high: FloatArray,
        seed: int,
        n_threads: int,
    ) -> tuple[LearnedRates, dict[str, Any]]:
        """Rates, and the settings with those that left-out rows choose."""
        threads = {"seed": seed, "n_threads": n_threads}
        is_number = np.ones(sample.X.shape[1], bool)
        is_number[list(tables)] = False
        features = SomeFeatures.most_important(sample, settings, **threads)
        sample, settings = features.of_sample(sample), features.of_settings(settings)
        low, high = features.of(low), features.of(high)
        _require_near(sample.X, low, high, features.numbers, self._names())
        options = {"low": low, "high": high, **threads}
        learned = self._learn_rates(sample, settings=settings, **options)
        is_number = is_number[features.numbers]
        if sample.in_forest is not None:
            learned = _without_unknown(learned, sample.X, sample.in_forest)
        settings = self._choose_settings(sample, learned, is_number, settings=settings, **options)
        return features.in_all_rates(learned), features.in_all_settings(settings)

    def _range(self, rows: Rows, tables: Tables) -> tuple[FloatArray, FloatArray]:
        """The reference ranges: those given or those of the rows, and from 0 to 1 of categories."""
        low, high = check_range(self.feature_range, rows.shape[1], self._names())
        if low is None or high is None:
            low, high = reference_range(rows)
            _check_ends(low, high, self._names())
        if tables:
            low, high = np.array(low), np.array(high)
            low[list(tables)], high[list(tables)] = 0.0, 1.0
        return low, high

    def _draw(
        self,
        plan: GrowthPlan,
        new: NewRows,
        *,
        n_threads: int,
        share: tuple[int, int] | None = None,
    ) -> Any:
        """The model of some rows, with all trees or a share of them."""
        settings, extra = plan.settings, new.extra
        if share is not None:
            settings = settings | {"share": share}
        if plan.tables:
            extra = extra | {"categories": to_core(plan.tables)}
        if plan.substitutes is not None:
            extra = extra | {"substitutes": plan.substitutes}
        model = self._new_model(settings, plan.seed)
        with self._progress("growing") as progress:
            model.fit(
                put(new.rows, new.columns, plan.tables),
                *new.encoded,
                **extra,
                ids=new.ids,
                sample_weight=new.weights,
                low=plan.low,
                high=plan.high,
                weights=plan.weights,
                maps=plan.maps,
                n_threads=n_threads,
                progress=progress,
            )
        return model

    def _adopt(self, model: Any, plan: GrowthPlan) -> None:
        """Take a new model over."""
        self._model = model
        self._tables = plan.tables
        self._learned = plan.learned
        self._grown_with = self.get_params(deep=False)

    def _progress(self, description: str) -> AbstractContextManager[Progress | None]:
        return progress_bar(description, self.verbose)

    # -- the window -------------------------------------------------------------------------------

    def _window(self) -> int | None:
        if self.window_size is None:
            return None
        return _validation.check_count("window_size", self.window_size, 1)

    def _enforce_window(self, window: int | None) -> None:
        """Forget all rows but the newest ones."""
        if window is not None and self._model.n_rows > window:
            self._model.keep_newest(window)


def _check_ends(low: FloatArray, high: FloatArray, names: Any) -> None:
    """Refuse rows with ranges that are wider than a reference range may be."""
    for ends in (low, high):
        large = np.flatnonzero(np.abs(ends) > MAX_END)
        if large.size:
            raise ValueError(
                f"X holds {ends[large[0]]:g} in column {column_name(names, large[0])}; expected "
                f"numbers within +-{MAX_END:g}, from which reference ranges are "
                "learned: scale the column"
            )


def _require_near(
    X: FloatArray, low: FloatArray, high: FloatArray, features: IntArray, names: Any
) -> None:
    """Refuse rows to learn rates from that lie as far out as no forest takes them.

    The compiled module checks all rows of a forest, but only after rates were learned. Trials of
    rates would name places in the sample, which are not those in the user's rows; and in units of a
    very narrow range, rows overflow before.
    """
    # What overflows is compared rightly.
    with np.errstate(over="ignore"):
        half = 0.5 * _LARGEST_BOX * (high - low)
        is_far = np.abs(X - (low + 0.5 * (high - low))) > half
    is_far &= low < high
    if is_far.any():
        row, column = np.argwhere(is_far)[0]
        raise ValueError(
            f"X holds {X[row, column]:g} in column {column_name(names, features[column])}: more "
            f"than 2^64 reference ranges away from [{low[column]:g}, {high[column]:g}]; transform "
            "the feature or give a wider feature_range"
        )


def _without_unknown(learned: LearnedRates, new: FloatArray, held: FloatArray) -> LearnedRates:
    """Rates without those of features that are unknown in all new rows, if others have rates.

    Trees are not to be cut between the categories of such a feature.
    """
    is_unknown = (np.ptp(new, axis=0) == 0.0) & (np.ptp(held, axis=0) > 0.0)
    weights = np.where(is_unknown, 0.0, learned.weights)
    return replace(learned, weights=weights) if weights.any() else learned


def rows_of(model: Any) -> Rows:
    """The rows of a compiled model in order of arrival; sparse if they came so and are complete."""
    stored = model.sparse_rows()
    if stored is None or np.isnan(stored[0]).any():
        rows: Rows = model.rows()
        return rows
    sparse: Any = csr_array(stored, shape=(model.n_rows, model.n_features))
    return sparse  # type: ignore[no-any-return]


def _maps_of_narrow(low: FloatArray, high: FloatArray, weights: FloatArray | None) -> Maps | None:
    """Linear maps, if a range is so narrow that a rate per unit of the feature would overflow."""
    narrow = (low < high) & (high - low < _NARROW_RANGE)
    if weights is not None:
        narrow &= weights > 0.0
    if not narrow.any():
        return None
    linear = np.zeros(0)
    return [
        (np.array([low[d], high[d]]), np.array([0.0, 1.0])) if narrow[d] else (linear, linear)
        for d in range(len(low))
    ]
