"""Copies of a Mondrian forest, and what its file holds that only Python knows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import astuple
from typing import Any, TypeVar

import numpy as np

from boscage._bases.lock import reading, without_lock
from boscage._bases.plain import plain
from boscage.mondrian._categories import from_core
from boscage.mondrian._forest.warm_up import WarmingForest, same_value, warming_from
from boscage.mondrian.feature_rates._shared import LearnedRates

Self = TypeVar("Self", bound="StoredForest")

# Values of parameters that leave a choice to the forest. Files keep them.
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "discount": ("loo",),
    "categorical_features": (None, "from_dtype"),
    "categories": (None,),
    "feature_range": (None,),
    "feature_weights": (None, "learned"),
    "substitutes": (None,),
    "random_state": (None,),
    "trend": ("auto", None),
    "joint_kernel": ("trees", "limit"),
    "min_samples_split": ("auto",),
}
# Parameters that have a place of their own in files, or are of a process.
_APART = ("class_weight", "n_jobs", "verbose", "warm_up", "window_size")


class StoredForest(WarmingForest):
    """A forest that can be copied, saved and loaded."""

    @reading
    def copy(self: Self) -> Self:
        """Return an independent forest with the same rows, trees and parameters.

        Returns
        -------
        forest of the same class
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(without_lock(self.__dict__))
        if hasattr(self, "_model"):
            twin._model = self._model.copy()
            twin._tables = dict(self._tables)
        return twin

    @classmethod
    @abstractmethod
    def _params_of(cls, model: Any, metadata: dict[str, Any]) -> dict[str, Any]:
        """The parameters of this class alone, read off a compiled model and a file's metadata."""

    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            name: choice
            for name, choices in _CHOICES.items()
            for choice in choices
            if same_value(self._grown_with.get(name, ""), choice)
        }
        metadata["window_size"] = None if self.window_size is None else int(self.window_size)
        metadata["warm_up"] = int(self.warm_up)
        if self._warming is not None:
            metadata["warming"] = astuple(self._warming)
        if changed := self._changed_since():
            metadata["changed"] = changed
        if self._learned is not None:
            metadata["importances"] = self._learned.importances.tolist()
            metadata["power"] = self._learned.power
        return metadata

    def _changed_since(self) -> dict[str, Any]:
        """Parameters that were set after the last fit or update, as far as JSON can hold them."""
        now = self.get_params(deep=False)
        changed = {
            name: now[name]
            for name, before in self._grown_with.items()
            if name not in _APART and not same_value(before, now[name])
        }
        known = {name: plain(value) for name, value in changed.items()}
        return {name: value for name, value in known.items() if value is not NotImplemented}

    @classmethod
    def _from_model(
        cls: type[Self], model: Any, metadata: dict[str, Any], n_jobs: int | None
    ) -> Self:
        tables = from_core(model.categories)
        params = cls._params_of(model, metadata) | {
            "categorical_features": sorted(tables) or "from_dtype",
            "categories": [tables.get(k) for k in range(model.n_features)] if tables else None,
            "n_estimators": model.n_estimators,
            "lifetime": model.lifetime,
            "min_samples_split": model.min_samples_split,
            "predictive": model.predictive,
            "random_state": model.seed,
            "feature_range": (model.low, model.high),
            "feature_weights": model.weights,
            "feature_maps": model.maps,
            "substitutes": model.substitutes,
            "n_jobs": n_jobs,
        }
        # The next fit makes anew the choices that the user left to the forest.
        for name, choices in _CHOICES.items():
            if name in params and name in metadata and metadata[name] in choices:
                params[name] = metadata[name]
        if metadata.get("feature_weights") == "learned":
            params["feature_maps"] = None
        window = metadata.get("window_size")
        if isinstance(window, int) and window >= 1:
            params["window_size"] = window
        warm_up = metadata.get("warm_up")
        if isinstance(warm_up, int) and warm_up >= 0:
            params["warm_up"] = warm_up
        forest = cls(**params)
        forest._tables = tables
        forest._warming = warming_from(metadata)
        forest._learned = _learned_from(metadata, model)
        forest._grown_with = forest.get_params(deep=False)
        changed = metadata.get("changed")
        if isinstance(changed, dict):
            # Checked by the next fit or update, as if they had been set now.
            known = forest._grown_with.keys() - set(_APART)
            forest.set_params(**{name: changed[name] for name in known & changed.keys()})
        return forest


def _learned_from(metadata: dict[str, Any], model: Any) -> LearnedRates | None:
    """What was learned of the features, from a file's metadata, which is not to be trusted."""
    try:
        importances = np.asarray(metadata["importances"], dtype=np.float64)
        power = float(metadata["power"])
    except (KeyError, TypeError, ValueError):
        return None
    if importances.shape != (model.n_features,) or not np.isfinite(importances).all():
        return None
    return LearnedRates(importances, power, model.weights, model.maps)
