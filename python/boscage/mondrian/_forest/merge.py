"""Merging of Mondrian forests, in their warm-up and after it."""

from __future__ import annotations

from typing import Any, TypeVar

from boscage._validation import is_integer
from boscage.mondrian._categories import Table, Tables, different, extend, to_core
from boscage.mondrian._forest.files import StoredForest
from boscage.mondrian._forest.growth import GrowthPlan
from boscage.mondrian._forest.warm_up import same_value

Self = TypeVar("Self", bound="MergingForest")

# Parameters that two forests must share if one of them is in its warm-up.
_LEARNED = (
    "feature_range",
    "feature_weights",
    "feature_maps",
    "min_samples_split",
    "trend",
    "substitutes",
    "categories",
)


class MergingForest(StoredForest):
    """A forest that can be merged with another one."""

    def _choices_of(self, model: Any) -> dict[str, Any]:
        """The settings of a model that were chosen when its rates were learned."""
        return {"min_samples_split": model.min_samples_split} if self._chooses_leaves else {}

    def _check_labels_of(self, model: Any) -> None:
        """Refuse to merge a model with labels that have no equal of this forest's type."""

    def merge(self: Self, other: Self) -> Self:
        """Add the rows of another forest.

        The result is, bit for bit, the forest fitted to both sets of rows, so training can be
        distributed over machines. Both forests need the same ``random_state`` (an integer),
        parameters, reference ranges (``feature_range``), feature weights, feature maps,
        ``categories`` and, where values are missing, ``substitutes``. If weights or maps are to be
        learned, start all shards from copies of one fitted forest that has forgotten its rows, or
        pass one forest's ``feature_weights_``, ``feature_maps_`` and ``min_samples_split_`` to all
        shards. ``one + other`` and ``sum(shards)`` are new forests, and leave all operands as they
        are. A forest in its warm-up (``warm_up_left_``) takes over what the other has learned; if
        both are, all is learned anew from the rows of both. Labels become those of this forest: 1.0
        and True are its class 1.

        Parameters
        ----------
        other : forest of the same class
            The other forest; it does not change. The two have no row number in common.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `other` is of another class.
        ValueError
            If the forests differ in what must be the same, or share a row number. This forest does
            not change then.
        sklearn.exceptions.NotFittedError
            If either forest is not fitted.
        """
        self._require_model()
        if type(other) is not type(self):
            raise TypeError(
                f"expected another {type(self).__name__} to merge, found {type(other).__name__}"
            )
        first, second = self._lock.writing, other._lock.reading
        if id(self._lock) > id(other._lock):
            # All threads take locks in the same order, so that no two wait for each other.
            first, second = second, first
        with first, second:
            self._merge(other)
        return self

    def _merge(self: Self, other: Self) -> None:
        model, theirs = self._require_model(), other._require_model()
        if theirs is model:
            raise ValueError("a forest cannot be merged with itself: its ids would occur twice")
        names = [forest._names() for forest in (self, other)]
        if names[0] is not None and names[1] is not None and list(names[0]) != list(names[1]):
            raise ValueError(
                f"the forests have different features: {list(names[0])} and {list(names[1])}"
            )
        self._check_same_categories(other)
        self._check_labels_of(theirs)
        window = self._window()
        if self._warming is None and other._warming is None:
            try:
                model.merge(theirs)
            finally:
                self._enforce_window(window)
        else:
            with self._unchanged_on_error():
                self._merge_warming(other, window)

    def __add__(self: Self, other: Self) -> Self:
        """The merged forest; neither operand changes."""
        if type(other) is not type(self):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self: Self, other: int) -> Self:
        """A copy, if the other operand is 0, with which Python's ``sum`` starts."""
        if not is_integer(other) or other != 0:
            return NotImplemented
        return self.copy()

    def _check_same_categories(self, other: MergingForest) -> None:
        """Refuse to merge forests with different categories."""
        ours, theirs = self._tables, other._tables
        if self._warming is not None or other._warming is not None:
            # These are learned anew, or taken over.
            nothing: Table = {}
            ours, theirs = (dict.fromkeys(each, nothing) for each in (ours, theirs))
        if features := different(ours, theirs):
            names = self._names()
            name = features[0] if names is None else repr(names[features[0]])
            raise ValueError(
                f"the forests have different categories of feature {name}: give one forest's "
                "categories_ to both as categories, or start both from copies of one fitted forest"
            )

    def _merge_warming(self: Self, other: Self, window: int | None) -> None:
        """Merge forests of which one at least is in its warm-up."""
        for name in _LEARNED:
            ours, theirs = (one._grown_with.get(name) for one in (self, other))
            if not same_value(ours, theirs):
                raise ValueError(
                    f"the forests cannot be merged: {name} is {ours!r} in one of them and "
                    f"{theirs!r} in the other"
                )
        final = other if self._warming is not None and other._warming is None else self
        tables = dict(final._tables)
        if self._warming is not None and other._warming is not None and self.categories is None:
            tables = {k: extend(table, list(other._tables[k])) for k, table in tables.items()}
        mine, theirs = (one._as_learned_by(final, tables) for one in (self, other))
        mine.merge(theirs)
        self._model, self._learned, self._tables = mine, final._learned, tables
        self._enforce_window(window)
        if self._warming is None or other._warming is None:
            self._warming = None
        elif mine.n_rows > 0:
            self._learn_again(self._warming.n_rows + other._warming.n_rows, self._warm_up())

    def _as_learned_by(self, other: MergingForest, tables: Tables) -> Any:
        """A copy of the model with the ranges, rates and discount of another forest.

        `tables` are the other's, or hold more categories.
        """
        own, theirs = self._model, other._model
        if own is theirs:
            model = own.copy()
            model.set_categories(to_core(tables))
            return model
        settings = self._settings_of(theirs) | self._kept(own) | self._choices_of(theirs)
        substitutes = own.substitutes if theirs.substitutes is None else theirs.substitutes
        domain = theirs.low, theirs.high, theirs.weights, theirs.maps
        plan = GrowthPlan(settings, own.seed, *domain, tables, substitutes, other._learned)
        model = self._draw(plan, self._stored_rows(), n_threads=self._n_threads())
        if hasattr(theirs, "discount"):
            model.set_discount(theirs.discount)
        model.set_annotation(own.annotation)
        return model
