"""Base of the Mondrian forests: everything but targets and their distributions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from boscage import _validation
from boscage._bases.lock import writing
from boscage._input.columns import Column
from boscage._input.ids import already, check_ids, unknown
from boscage._input.row_weights import check_row_weight
from boscage._types import AnyArray, BoolArray, FloatArray, Ids, Rows
from boscage.mondrian._categories import (
    Tables,
    extend,
    put,
    to_core,
)
from boscage.mondrian._forest.attributes import ForestAttributes
from boscage.mondrian._forest.explain import ForestExplanations
from boscage.mondrian._forest.growth import NewRows
from boscage.mondrian._forest.uncertainty import ScoringForest
from boscage.mondrian._forest.warm_up import same_value
from boscage.mondrian._min_samples_split import MIN_SPLIT
from boscage.mondrian._missing import has_missing, learn_substitutes

Self = TypeVar("Self", bound="MondrianForest")


@dataclass(frozen=True)
class Given:
    """Rows as a caller gives them."""

    X: Any
    y: Any
    ids: Any
    sample_weight: Any
    classes: Any = None
    is_whole: bool = False
    """Whether these are all rows of a `fit`."""


@dataclass(frozen=True)
class CheckedRows:
    """The same, checked."""

    rows: Rows
    columns: dict[int, Column]
    target: AnyArray
    ids: Ids | None
    weights: FloatArray | None

    def of(self, kept: BoolArray) -> CheckedRows:
        """Some of the rows."""
        return CheckedRows(
            self.rows[kept],
            {feature: column.of(kept) for feature, column in self.columns.items()},
            self.target[kept],
            None if self.ids is None else self.ids[kept],
            None if self.weights is None else self.weights[kept],
        )


class MondrianForest(ForestExplanations, ScoringForest, ForestAttributes):
    """Base of the Mondrian forests. Not for direct use."""

    # Parameters that may change between calls of partial_fit. All others need a new fit.
    _FREE: ClassVar[frozenset[str]] = frozenset(
        {"predictive", "warm_up", "window_size", "n_jobs", "verbose", "random_state"}
    )

    _check_weights = staticmethod(check_row_weight)

    n_estimators: int
    lifetime: float
    predictive: str
    random_state: Any

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    @abstractmethod
    def _encode(
        self, y: AnyArray, classes: Any, model: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A checked target as positional and keyword arguments of the compiled ``fit``.

        `model` is the one to add the rows to; None for a new one.
        """

    def _tree_settings(self) -> dict[str, Any]:
        """Checked settings that forests of classes and of numbers share."""
        self._warm_up()  # checks warm_up
        _validation.check_verbose(self.verbose)
        return {
            "n_estimators": _validation.check_count("n_estimators", self.n_estimators, 1),
            "lifetime": _validation.check_positive("lifetime", self.lifetime, finite=False),
            "min_samples_split": self._min_samples_split(),
            "predictive": _validation.check_choice(
                "predictive", self.predictive, ("averaged", "realised")
            ),
            "joint_kernel": self._joint_kernel(),
        }

    def _joint_kernel(self) -> str:
        """Which trees the joint posterior adds up, checked beside the parameters that it needs."""
        kernel = _validation.check_choice(
            "joint_kernel", self.joint_kernel, ("auto", "trees", "limit")
        )
        if kernel == "limit":
            needed = {"posterior": "joint", "predictive": "averaged"}
            for name, value in needed.items():
                if (found := getattr(self, name)) != value:
                    raise ValueError(
                        f"joint_kernel='limit' needs {name}={value!r} (found {found!r}); leave it "
                        "at 'auto'"
                    )
        return kernel

    def _min_samples_split(self) -> int:
        """The least number of rows of a split, before any is chosen."""
        if not self._chooses_leaves:
            return _validation.check_count("min_samples_split", self.min_samples_split, MIN_SPLIT)
        name = "min_samples_split, unless a number,"
        _validation.check_choice(name, self.min_samples_split, ("auto",))
        return MIN_SPLIT

    def _apply_changes(self, model: Any) -> None:
        """Pass changed parameters that do not shape the trees, already checked, to the model.

        Compares with the model and not with earlier parameters, since an earlier change may have
        been interrupted.
        """
        if model.predictive != self.predictive:
            model.set_predictive(self.predictive)

    # -- learning ---------------------------------------------------------------------------------

    @writing
    def fit(
        self: Self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Grow a new forest.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Training rows; finite numbers, or NaN for missing values; categories in columns that
            ``categorical_features`` means. Row-major float32 and float64 arrays of numbers are not
            copied.
        y : array-like of shape (n_samples,)
            Targets: for a classifier labels (integers, strings, booleans or whole floats), for a
            regressor finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            As how many rows each row counts: 0, or from 1e-12 to 1e9, and not all 0. None means 1.
            A row keeps its weight. Rows of weight 0 are left out, as if they were not in `X`: they
            have no number, and rows after them have smaller ones. Give `ids` to forget rows by.
        ids : array-like of int, str or UUID of shape (n_samples,), default=None
            Names of rows, which `forget` takes; see `row_numbers`. None numbers the rows from 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range; if `X` holds infinity or `y` a value that is not a
            finite number; if either has a wrong shape, or is empty; if a weight is refused; or if
            `ids` holds an id twice.
        TypeError
            If a parameter, a label or a row number is of a wrong type.
        KeyboardInterrupt
            If interrupted. After any error the estimator is as it was before the call.
        """
        with self._unchanged_on_error():
            self._fit_new(Given(X, y, ids, sample_weight, is_whole=True))
        return self

    @writing
    def _partial_fit(self, given: Given) -> None:
        if self.__sklearn_is_fitted__():
            self._grown_with = dict(self._grown_with)  # what changes in it stays after an interrupt
        with self._unchanged_on_error():
            warm_up = self._warm_up()
            if self.__sklearn_is_fitted__():
                self._update(given)
            else:
                self._warming = self._new_warm_up(self._fit_new(given), warm_up)
        warming = self._warming
        if warming is not None and self._is_to_learn_again(warm_up):
            # The rows are recorded, whatever happens here.
            with self._unchanged_on_error():
                self._learn_again(warming.n_rows, warm_up)

    @writing
    def forget(self: Self, ids: ArrayLike) -> Self:
        """Remove rows from the forest, as if it had never seen them.

        For the same reference ranges and feature rates the forest is then, bit for bit, the one
        fitted to the other rows. Ranges, rates, maps, substitutes and the size of leaves that were
        learned do not change: give ``feature_range``, ``feature_weights`` and
        ``substitutes`` if deletion must be provable (``min_samples_split="auto"`` is 2 with weights
        that are given). Removals are lazy: they are applied to the trees by the next read, or by
        `flush`.

        Parameters
        ----------
        ids : int, str, UUID or array-like of them
            The rows, by the ids that were given or by number; see ``ids_``.

        Returns
        -------
        self

        Raises
        ------
        KeyError
            If there is no row of that number. No row is removed then.
        TypeError
            If an id is neither an integer, nor text, nor a UUID.
        ValueError
            If an id occurs twice.
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        """
        model = self._require_model()
        try:
            model.forget(check_ids(ids))
        except KeyError:
            raise KeyError(f"{unknown(ids, model.ids)}; nothing was changed") from None
        return self

    def _fit_new(self, given: Given) -> int:
        """Grow a new forest. Returns the number of rows that came."""
        n_threads = self._n_threads()
        new, n_rows = self._new_rows(given)
        settings = self._settings()  # after the rows: a trend may name their columns
        seed = _validation.draw_seed(self.random_state)
        self._grow(new, settings=settings, seed=seed, n_threads=n_threads)
        self._warming = None
        return n_rows

    def _checked(self, given: Given, *, is_new: bool) -> CheckedRows:
        """The rows that count, with their targets, ids and weights."""
        rows, columns = self._read(given.X, reset=is_new)
        target = self._check_target(given.y, rows.shape[0])
        ids = None if given.ids is None else check_ids(given.ids, rows.shape[0])
        kept, weights = self._check_weights(given.sample_weight, rows.shape[0])
        checked = CheckedRows(rows, columns, target, ids, None)
        return replace(checked if kept is None else checked.of(kept), weights=weights)

    def _new_rows(self, given: Given) -> tuple[NewRows, int]:
        """The rows of a new forest, checked, and the number of rows that came."""
        window = self._window()
        checked = self._checked(given, is_new=True)
        if given.is_whole:
            self._check_whole_target(checked.target)
        n_rows = checked.rows.shape[0]
        if window is not None and n_rows > window:
            # Only rows inside the window determine ranges and rates.
            if checked.ids is None:
                checked = replace(checked, ids=np.arange(n_rows, dtype=np.uint64))
            checked = checked.of(np.arange(n_rows) >= n_rows - window)
        encoded = self._encode(checked.target, given.classes, None)
        new = NewRows(checked.rows, checked.columns, *encoded, checked.ids, checked.weights)
        return new, n_rows

    def _update(self, given: Given) -> None:
        """Add rows to the existing forest."""
        model = self._model
        changed = self._changed()
        if changed:
            self._new_model(self._settings_of(model), model.seed)  # checks the changed parameters
        window = self._window()
        self._n_threads()  # checks n_jobs
        checked = self._checked(given, is_new=False)
        rows, columns = checked.rows, checked.columns
        encoded, _ = self._encode(checked.target, given.classes, model)
        before = tables = dict(self._tables)
        if self._warming is not None and self.categories is None:
            # Until what is learned is final, new categories get places of their own.
            tables = {k: extend(before[k], each.labels) for k, each in columns.items()}
        rows = put(rows, columns, tables)
        substitutes = model.substitutes
        if substitutes is None and has_missing(rows):
            every = np.concatenate([model.rows(), rows]), self._with_stored(model, encoded)
            substitutes = learn_substitutes(*every, seed=model.seed)
        # Nothing has changed so far.
        first = model.substitutes is None and substitutes is not None
        try:
            self._set_tables(tables)
            if first:
                model.set_substitutes(substitutes)
            model.partial_fit(rows, *encoded, ids=checked.ids, sample_weight=checked.weights)
        except ValueError as error:
            if first:
                model.set_substitutes(None)
            self._set_tables(before)
            if checked.ids is not None:
                held = np.intersect1d(checked.ids, model.ids)
                if len(held) > 0:
                    raise ValueError(already(given.ids, held)) from error
            raise
        finally:  # an interrupt is raised only after all rows were recorded
            self._enforce_window(window)
        if self._warming is not None:
            self._warming = replace(self._warming, n_rows=self._warming.n_rows + rows.shape[0])
        self._apply_changes(model)
        if changed:
            self._grown_with = self.get_params(deep=False)

    def _set_tables(self, tables: Tables) -> None:
        """Set places of categories, of which rows of the forest keep theirs."""
        if any(self._tables[feature] is not table for feature, table in tables.items()):
            # In place, for the model keeps them after an interrupt.
            self._tables.update(tables)
            self._model.set_categories(to_core(self._tables))

    def _changed(self) -> bool:
        """Whether parameters changed since the trees were grown.

        Raises an error if one changed that shapes the trees.
        """
        changed = False
        for name, before in self._grown_with.items():
            now = getattr(self, name)
            if now is before:
                continue
            changed = True
            if name not in self._FREE and not same_value(before, now):
                raise ValueError(
                    f"{name} was {before!r} when the forest was grown and is {now!r} now; "
                    "call fit to grow a new forest, or set it back to continue with this one"
                )
        return changed

    # -- access to the model ----------------------------------------------------------------------

    def _held(self, ids: Any) -> Ids | None:
        """The numbers of rows of the forest, by their ids; None stands for all rows."""
        if ids is None:
            return None
        numbers = check_ids(ids)
        held = self.ids_
        if not np.isin(numbers, held).all():
            raise KeyError(unknown(ids, held))
        return numbers

    def _require_rows(self, *, others: bool = False) -> Any:
        """The fitted model, which must have at least one row, or two with `others`."""
        model = self._require_model()
        if model.n_rows == 0:
            raise NotFittedError(
                f"This {type(self).__name__} has forgotten all its rows; "
                "call partial_fit with new ones before you predict"
            )
        if others and model.n_rows == 1:
            raise ValueError("leave-one-out needs at least two rows, found a forest of one row")
        return model

    def _query(self, X: Any) -> tuple[Any, Rows, int]:
        self._require_rows()
        model, rows, n_threads = super()._query(X)
        self._prepare(model, rows)
        return model, rows, n_threads

    def _prepare(self, model: Any, rows: Rows) -> None:
        """Make the model ready to predict checked rows."""
        self._guess_substitutes(model, rows)
        self._flush(model)
