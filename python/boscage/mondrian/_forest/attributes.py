"""What a Mondrian forest says of itself: its rows, its trees, and what was learned from them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from boscage._bases.lock import reading
from boscage._types import BoolArray, FloatArray, Ids, Maps
from boscage.mondrian._categories import Table, by_feature
from boscage.mondrian._forest.merge import MergingForest
from boscage.mondrian._missing import Substitutes
from boscage.trees import MondrianTree

Self = TypeVar("Self", bound="ForestAttributes")


class ForestAttributes(MergingForest):
    """A forest that can be looked at."""

    def _export(self, model: Any) -> list[dict[str, Any]]:
        """The trees of the model as dictionaries of arrays."""
        trees: list[dict[str, Any]] = model.trees()
        return trees

    # -- pending rows -----------------------------------------------------------------------------

    @reading
    def flush(self: Self) -> Self:
        """Apply pending insertions and removals of rows to the trees.

        `partial_fit`, `merge` and `forget` only record rows; the next prediction applies them to
        the trees first. Call this method beforehand if predictions must be fast. Results do not
        depend on it.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        KeyboardInterrupt
            If interrupted. Some rows are then still pending; none is lost.
        """
        self._flushed()
        return self

    def _flushed(self) -> Any:
        """The model after its pending rows were applied to the trees."""
        model = self._require_model()
        self._flush(model)
        return model

    def _flush(self, model: Any) -> None:
        if not model.is_flushed:
            with self._progress("updating trees") as progress:
                model.flush(n_threads=self._n_threads(), progress=progress)

    # -- what was learned -------------------------------------------------------------------------

    @property
    @reading
    def n_rows_(self) -> int:
        """The number of training rows in the forest."""
        return int(self._require_model().n_rows)

    @property
    @reading
    def ids_(self) -> Ids:
        """The row numbers of the training rows, in order of arrival; see `row_numbers`."""
        ids: Ids = self._require_model().ids
        return ids

    @property
    @reading
    def trees_(self) -> list[MondrianTree]:
        """All trees as arrays; see `MondrianTree`. They are built anew at each access."""
        return self._named(self._export(self._flushed()))

    def _structures(self) -> list[MondrianTree]:
        """All trees without the boxes of nodes and the numbers of the posterior."""
        return self._named(self._flushed().tree_structures())

    def _named(self, trees: list[dict[str, Any]]) -> list[MondrianTree]:
        features, classes = self._names(), getattr(self, "classes_", None)
        return [
            MondrianTree(**arrays, feature_names=features, class_names=classes) for arrays in trees
        ]

    @property
    @reading
    def min_samples_split_(self) -> int:
        """The least number of rows of a split."""
        return int(self._require_model().min_samples_split)

    @property
    @reading
    def feature_range_(self) -> tuple[FloatArray, FloatArray]:
        """The reference ranges (low, high): given, or those of the rows at the last learning."""
        model = self._require_model()
        return model.low, model.high

    @property
    @reading
    def feature_weights_(self) -> FloatArray:
        """The rate of cuts in each feature, in units of one over its reference range."""
        weights: FloatArray = self._require_model().weights
        return weights

    @property
    @reading
    def feature_maps_(self) -> Maps | None:
        """How the rate of each feature is distributed along its range, if learned or given.

        For each feature the pair (knots, shares), where ``shares`` are the shares of the feature's
        rate below each knot, with linear interpolation in between. Without knots the rate is
        uniform over the feature's range; None means so for all features.
        """
        maps: Maps | None = self._require_model().maps
        return maps

    @property
    @reading
    def substitutes_(self) -> Substitutes | None:
        """What stands for missing values of each feature; None before the first ones came."""
        substitutes: Substitutes | None = self._require_model().substitutes
        return substitutes

    @property
    @reading
    def categories_(self) -> list[Table | None] | None:
        """The place of each category of each feature; None if no feature is categorical."""
        self._require_model()
        return by_feature(self._tables, self.n_features_in_)

    @property
    @reading
    def is_categorical_(self) -> BoolArray | None:
        """Whether each feature is categorical; None if none is."""
        tables = self.categories_
        return None if tables is None else np.array([table is not None for table in tables])

    @property
    @reading
    def feature_importances_(self) -> FloatArray:
        """Importance of each feature; they sum to one, or are all 0 if nothing is explained.

        With ``feature_weights="learned"`` it is that on which the learned rates are based. Else it
        is what the splits of the feature explain of the targets' sum of squares (of classes:
        of Gini's impurity), less what they would if the feature had nothing to do with the targets.
        """
        model = self._require_model()
        if self._learned is not None:
            learned: FloatArray = self._learned.importances.copy()
            return learned
        gains: FloatArray = np.maximum(model.split_gains(n_threads=self._n_threads()), 0.0)
        total = gains.sum()
        return gains / total if total > 0.0 else gains

    @reading
    def digest(self) -> str:
        """Return a hash of the settings, the rows' contents and the trees.

        Two forests have the same digest if and only if their predictions are equal everywhere, and
        remain equal after equal updates. The digest does not depend on the order in which rows
        arrived, on rows that were forgotten, nor on row numbers. Classes that were declared
        (``classes`` of ``partial_fit``) are a part of it, since they stay when their rows go.

        Returns
        -------
        str
            Hexadecimal digits.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the forest is not fitted.
        """
        return str(self._flushed().digest())
