"""What the two Mondrian forests share: everything but labels and their distributions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from boscage import _validation
from boscage._estimator import KeptModel
from boscage._progress import progress_bar
from boscage._types import AnyArray, FloatArray, Ids, Progress, Rows
from boscage.mondrian.feature_rates.classification import LearnedWeights
from boscage.trees.mondrian import MondrianTree

Self = TypeVar("Self", bound="MondrianForest")

# Values of parameters that leave a choice to the forest.
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "discount": ("loo",),
    "feature_range": (None,),
    "feature_weights": (None, "learned"),
    "random_state": (None,),
}


class MondrianForest(KeptModel):
    """Base of the Mondrian forests; not for direct use."""

    _learned: LearnedWeights | None
    # The parameters the trees were grown with.
    _grown_with: dict[str, Any]

    # Parameters that may change between calls of partial_fit; all others need a new fit.
    _FREE: ClassVar[frozenset[str]] = frozenset(
        {"predictive", "window_size", "n_jobs", "verbose", "random_state"}
    )

    n_estimators: int
    lifetime: float
    min_samples_split: int
    predictive: str
    feature_range: Any
    feature_weights: Any
    window_size: int | None
    random_state: Any
    verbose: int | bool

    # -- what the subclasses say ------------------------------------------------------------------

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Checked keyword arguments of the model, but for the seed."""

    @abstractmethod
    def _new_model(self, settings: dict[str, Any], seed: int) -> Any:
        """An empty model."""

    @abstractmethod
    def _check_target(self, y: Any, n_rows: int) -> AnyArray:
        """``y`` as a checked vector."""

    @abstractmethod
    def _encode(
        self, y: AnyArray, classes: Any, model: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A checked target as positional and keyword arguments of the model's ``fit``.

        `model` is the one that is to take it in, None for a new one.
        """

    @abstractmethod
    def _learn_weights(self, X: Rows, y: AnyArray, **options: Any) -> LearnedWeights:
        """What the labels say of the features' rates; `y` is encoded."""

    def _tune(self, model: Any, encoded: tuple[Any, ...], n_threads: int) -> None:
        """Choose what is chosen when the trees are there."""

    def _adjust(self, model: Any) -> None:
        """Follow parameters that were changed since and do not shape the trees.

        They are checked already. What the model has decides: an earlier change may have been
        interrupted.
        """
        if model.predictive != self.predictive:
            model.set_predictive(self.predictive)

    def _export(self, model: Any) -> list[dict[str, Any]]:
        """The model's trees."""
        trees: list[dict[str, Any]] = model.trees()
        return trees

    # -- learning ---------------------------------------------------------------------------------

    def forget(self: Self, ids: ArrayLike) -> Self:
        """Remove rows, as if they had never been seen.

        For given reference ranges and rates the forest is then, bit for bit, the one that
        was never shown these rows. Ranges, rates and maps that were learned from the data at the
        first fit stay as they are: pass ``feature_range`` if deletion must be provable. Trees let
        the rows go when they are next asked for, or by `settle`.

        Parameters
        ----------
        ids : int or array-like of int
            Numbers of rows, see ``ids_``.

        Returns
        -------
        self

        Raises
        ------
        KeyError
            If there is no row of that number; nothing is forgotten then.
        """
        model = self._require_model()
        model.forget(_validation.check_ids(ids))
        return self

    def merge(self: Self, other: Self) -> Self:
        """Take in another forest's rows.

        The result is the forest of both sets of rows, bit for bit, so that training can be split
        between machines. Both forests need the same ``random_state`` (an integer), the same
        parameters and reference ranges (``feature_range``) and the same feature weights and maps:
        where these are learned, shards start from copies of one forest that has forgotten its rows,
        or are given what one forest has learned (``feature_weights_``, ``feature_maps_``).

        Parameters
        ----------
        other : forest of the same class
            It is not changed. None of its row numbers may occur here.

        Returns
        -------
        self
        """
        model = self._require_model()
        if type(other) is not type(self):
            raise TypeError(
                f"expected another {type(self).__name__} to merge, found {type(other).__name__}"
            )
        theirs = other._require_model()
        if theirs is model:
            raise ValueError("a forest cannot be merged with itself: its ids would occur twice")
        names = [getattr(forest, "feature_names_in_", None) for forest in (self, other)]
        if names[0] is not None and names[1] is not None and list(names[0]) != list(names[1]):
            raise ValueError(
                f"the forests have different features: {list(names[0])} and {list(names[1])}"
            )
        window = self._window()
        try:
            model.merge(theirs)
        finally:
            self._slide(window)
        return self

    def settle(self: Self) -> Self:
        """Let the trees take in the rows that wait for them, and let go those that left.

        `partial_fit`, `merge` and `forget` only take note of rows, and the next prediction would
        have to wait for the trees: call this first where predictions have to be quick. Nothing
        else depends on it.

        Returns
        -------
        self

        Raises
        ------
        KeyboardInterrupt
            If interrupted; some rows go on waiting then, and none is lost.
        """
        self._settled()
        return self

    def __add__(self: Self, other: Self) -> Self:
        """The merged forest; both operands stay as they are."""
        if type(other) is not type(self):
            return NotImplemented
        return self.copy().merge(other)

    def _start(self, X: Any, y: Any, ids: Any, classes: Any = None) -> None:
        """Grow a new forest."""
        settings = self._settings()
        window = self._window()
        n_threads = self._n_threads()
        rows = _validation.check_rows(self, X, reset=True)
        target = self._check_target(y, len(rows))
        numbers = None if ids is None else _validation.check_ids(ids, len(rows))
        low, high = _validation.check_range(self.feature_range, rows.shape[1])
        seed = _validation.draw_seed(self.random_state)
        if window is not None and len(rows) > window:
            # Ranges and rates are those of the rows that stay: the others leave no trace.
            if numbers is None:
                numbers = np.arange(len(rows), dtype=np.uint64)
            rows, target, numbers = rows[-window:], target[-window:], numbers[-window:]
        encoded, extra = self._encode(target, classes, None)
        learned, weights = None, None
        if isinstance(self.feature_weights, str) and self.feature_weights == "learned":
            learned = self._learn_weights(
                rows,
                encoded[0],
                min_samples_split=settings["min_samples_split"],
                low=low,
                high=high,
                seed=seed,
                n_threads=n_threads,
            )
            weights = learned.weights
            if learned.maps is not None:
                extra = extra | {"maps": learned.maps}
        elif self.feature_weights is not None:
            weights = _validation.check_weights(self.feature_weights, rows.shape[1])
        model = self._new_model(settings, seed)
        with self._progress("growing") as progress:
            model.fit(
                rows,
                *encoded,
                **extra,
                ids=numbers,
                low=low,
                high=high,
                weights=weights,
                n_threads=n_threads,
                progress=progress,
            )
        self._tune(model, encoded, n_threads)
        self._model = model
        self._learned = learned
        self._grown_with = self.get_params(deep=False)

    def _extend(self, X: Any, y: Any, ids: Any, classes: Any = None) -> None:
        """Add rows to the forest there is."""
        model = self._model
        changed = self._changed()
        if changed:
            self._settings()  # refuses what is out of its domain
        window = self._window()
        self._n_threads()  # as does this
        rows = _validation.check_rows(self, X, reset=False)
        target = self._check_target(y, len(rows))
        numbers = None if ids is None else _validation.check_ids(ids, len(rows))
        encoded, _ = self._encode(target, classes, model)
        try:
            model.partial_fit(rows, *encoded, ids=numbers)
        finally:  # an interrupt that came meanwhile is raised when all rows are in
            self._slide(window)
        self._adjust(model)
        if changed:
            self._grown_with = self.get_params(deep=False)

    def _changed(self) -> bool:
        """Whether parameters are others than those that the trees have been grown with.

        Those that shape the trees must not be.
        """
        changed = False
        for name, before in self._grown_with.items():
            now = getattr(self, name)
            if now is before:
                continue
            changed = True
            if name not in self._FREE and not _same(before, now):
                raise ValueError(
                    f"{name} was {before!r} when the forest was grown and is {now!r} now; "
                    "call fit to grow a new forest, or set it back to go on with this one"
                )
        return changed

    def _window(self) -> int | None:
        if self.window_size is None:
            return None
        return _validation.check_count("window_size", self.window_size, 1)

    def _slide(self, window: int | None) -> None:
        if window is not None and self._model.n_rows > window:
            self._model.keep_newest(window)

    # -- access to the model ----------------------------------------------------------------------

    def _require_rows(self) -> Any:
        model = self._require_model()
        if model.n_rows == 0:
            raise NotFittedError(
                f"This {type(self).__name__} has forgotten all its rows; "
                "call partial_fit with new ones before predicting"
            )
        return model

    def _settled(self) -> Any:
        """The model, its trees with all rows."""
        model = self._require_model()
        self._settle(model)
        return model

    def _settle(self, model: Any) -> None:
        if not model.is_settled:
            with self._progress("settling") as progress:
                model.settle(n_threads=self._n_threads(), progress=progress)

    def _query(self, X: Any) -> tuple[Any, Rows]:
        """The model and checked rows to predict for."""
        model = self._require_rows()
        rows = _validation.check_rows(self, X, reset=False)
        self._settle(model)
        return model, rows

    def _n_threads(self) -> int:
        return _validation.n_threads(self.n_jobs)

    @contextmanager
    def _progress(self, description: str) -> Iterator[Progress | None]:
        with progress_bar(description, self.verbose) as progress:
            yield progress

    # -- what has been learned --------------------------------------------------------------------

    @property
    def n_rows_(self) -> int:
        """The number of training rows in the forest."""
        return int(self._require_model().n_rows)

    @property
    def ids_(self) -> Ids:
        """The numbers of the training rows, in order of arrival."""
        ids: Ids = self._require_model().ids
        return ids

    @property
    def trees_(self) -> list[MondrianTree]:
        """Every tree as arrays; see `MondrianTree`. They are built anew at each access."""
        return [MondrianTree(**arrays) for arrays in self._export(self._settled())]

    @property
    def feature_range_(self) -> tuple[FloatArray, FloatArray]:
        """The reference ranges (low, high), given or those of the rows at the first fit."""
        model = self._require_model()
        return model.low, model.high

    @property
    def feature_weights_(self) -> FloatArray:
        """The rate of each feature in units of one over its reference range."""
        weights: FloatArray = self._require_model().weights
        return weights

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each feature matters, summing to one; with ``feature_weights="learned"``."""
        self._require_model()
        if self._learned is None:
            raise AttributeError(
                "feature_importances_ is there for feature_weights='learned' only: the cuts of a "
                "Mondrian forest do not look at labels, so that they say nothing about importance"
            )
        importances: FloatArray = self._learned.importances.copy()
        return importances

    def digest(self) -> str:
        """A hexadecimal hash of the settings, the rows' contents and the trees.

        Two forests have the same digest exactly when they predict alike everywhere and will go on
        to, whatever the order in which they saw their rows, whichever rows they forgot since, and
        whatever the rows' numbers.

        Returns
        -------
        str
        """
        return str(self._settled().digest())

    # -- copies and files -------------------------------------------------------------------------

    def copy(self: Self) -> Self:
        """An independent forest with the same rows, trees and parameters.

        Returns
        -------
        forest of the same class
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        if hasattr(self, "_model"):
            twin._model = self._model.copy()
        return twin

    @classmethod
    @abstractmethod
    def _params_of(cls, model: Any) -> dict[str, Any]:
        """Those parameters of a model that only this class has."""

    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = {
            name: choice
            for name, choices in _CHOICES.items()
            for choice in choices
            if _same(self._grown_with.get(name, ""), choice)
        }
        notes["window_size"] = None if self.window_size is None else int(self.window_size)
        if self._learned is not None:
            notes["importances"] = self._learned.importances.tolist()
            notes["power"] = self._learned.power
        return notes

    @classmethod
    def _around(cls: type[Self], model: Any, notes: dict[str, Any], n_jobs: int | None) -> Self:
        params = cls._params_of(model) | {
            "n_estimators": model.n_estimators,
            "lifetime": model.lifetime,
            "min_samples_split": model.min_samples_split,
            "predictive": model.predictive,
            "random_state": model.seed,
            "feature_range": (model.low, model.high),
            "feature_weights": model.weights,
            "n_jobs": n_jobs,
        }
        # What the user left to the forest to choose, it chooses again at the next fit.
        for name, choices in _CHOICES.items():
            if name in params and name in notes and notes[name] in choices:
                params[name] = notes[name]
        if "feature_maps" in params and notes.get("feature_weights") == "learned":
            params["feature_maps"] = None
        window = notes.get("window_size")
        if isinstance(window, int) and window >= 1:
            params["window_size"] = window
        forest = cls(**params)
        forest._learned = _learned_from(notes, model)
        forest._grown_with = forest.get_params(deep=False)
        return forest


def _same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    if isinstance(before, (str, type(None))) or isinstance(now, (str, type(None))):
        return bool(type(before) is type(now) and before == now)
    try:
        return bool(np.array_equal(np.asarray(before), np.asarray(now)))
    except ValueError:  # ragged, such as (0.0, [1.0, 2.0])
        return bool(
            len(before) == len(now) and all(_same(a, b) for a, b in zip(before, now, strict=True))
        )


def _learned_from(notes: dict[str, Any], model: Any) -> LearnedWeights | None:
    try:
        importances = np.asarray(notes["importances"], dtype=np.float64)
        power = float(notes["power"])
    except (KeyError, TypeError, ValueError):
        return None
    if importances.shape != (model.n_features,) or not np.isfinite(importances).all():
        return None
    return LearnedWeights(importances, power, model.weights, getattr(model, "maps", None))
