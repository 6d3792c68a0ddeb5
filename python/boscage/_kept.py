"""Estimators around a fitted compiled model: access to it, copies and files."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from typing import Any, BinaryIO, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boscage import _inputs
from boscage._types import AnyArray, Rows

Self = TypeVar("Self", bound="KeptModel")

_ANNOTATION = "boscage-python"


class KeptModel(BaseEstimator):  # type: ignore[misc]
    """Base of estimators whose compiled model holds draws of a posterior; not for direct use."""

    _model: Any

    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: AnyArray

    @classmethod
    @abstractmethod
    def _model_class(cls) -> Any:
        """The compiled class of the model."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _require_model(self) -> Any:
        check_is_fitted(self)
        return self._model

    def _query(self, X: Any) -> tuple[Any, Rows, int]:
        """The model, checked rows to predict for, and the threads to do it with."""
        model = self._require_model()
        rows = _inputs.check_rows(self, X, reset=False)
        return model, rows, _inputs.n_threads(self.n_jobs)

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the model with all draws to a file, which Rust and Python can read.

        Parameters
        ----------
        file : path-like or binary file
            A file of that name is replaced when all is written, and left as it was if that fails.
        """
        model = self._require_model()
        model.annotation = self._annotation()
        if isinstance(file, (str, os.PathLike)):
            model.save(os.fspath(file))
        else:
            file.write(model.to_bytes())

    @classmethod
    def load(cls: type[Self], file: str | os.PathLike[str] | BinaryIO) -> Self:
        """Read a model from a file.

        Parameters
        ----------
        file : path-like or binary file

        Returns
        -------
        estimator of this class
        """
        from boscage._io import load

        model = load(file)
        if not isinstance(model, cls):
            raise ValueError(f"the file holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = state["_model"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_model" in state:
            state = state | {"_model": self._model_class().from_bytes(state["_model"])}
        super().__setstate__(state)

    def _annotation(self) -> str:
        """What only Python knows of the model, as JSON: no code, and readable anywhere."""
        params = self.get_params(deep=False)
        notes: dict[str, Any] = {"params": {name: _plain(params[name]) for name in params}}
        if hasattr(self, "feature_names_in_"):
            notes["feature_names_in_"] = self.feature_names_in_.tolist()
        return json.dumps({_ANNOTATION: notes})

    @classmethod
    def _from_model(cls: type[Self], model: Any, n_jobs: int | None) -> Self:
        """The estimator around a model read from a file."""
        try:
            notes = json.loads(model.annotation)[_ANNOTATION]
            params = {name: notes["params"][name] for name in cls._get_param_names()}
        except (KeyError, TypeError, ValueError, RecursionError):
            notes, params = {}, {"n_trees": model.n_trees}
        estimator = cls(**(params | {"n_jobs": n_jobs}))
        estimator._model = model
        estimator.n_features_in_ = int(model.n_features)
        names = notes.get("feature_names_in_")
        if (
            isinstance(names, list)
            and len(names) == model.n_features
            and all(isinstance(name, str) for name in names)
        ):
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        return estimator


def _plain(value: Any) -> Any:
    """A parameter as JSON knows it; None for what it does not know."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value if isinstance(value, (bool, int, float, str)) else None
