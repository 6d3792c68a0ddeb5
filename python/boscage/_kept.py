"""Estimators around a fitted compiled model: access to it, copies and files."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boscage import _inputs
from boscage._types import AnyArray

Self = TypeVar("Self", bound="KeptModel")

_ANNOTATION = "boscage-python"


class KeptModel(BaseEstimator):  # type: ignore[misc]
    """Base of estimators that keep a compiled model; not for direct use."""

    # The compiled model, once there is one. It holds all that was learned.
    _model: Any

    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: AnyArray

    # -- what the subclasses say ------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def _model_class(cls) -> Any:
        """The compiled class of the model."""

    @abstractmethod
    def _notes(self) -> dict[str, Any]:
        """What only Python knows of the model, as JSON knows it."""

    @classmethod
    @abstractmethod
    def _around(cls: type[Self], model: Any, notes: dict[str, Any], n_jobs: int | None) -> Self:
        """An estimator with the parameters of a model read from a file, and with the model.

        `notes` are what `_notes` gave, if the file comes from here; they may hold anything.
        """

    # -- access to the model ----------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _require_model(self) -> Any:
        check_is_fitted(self)
        return self._model

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Undo what a call did to the attributes if it does not come to its end."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # -- copies and files -------------------------------------------------------------------------

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the model to a file, which Rust and Python can read.

        Parameters
        ----------
        file : path-like or binary file
            A file of that name is replaced when all is written, and left as it was if that fails.
        """
        self._save_annotated(file, {})

    def _save_annotated(
        self, file: str | os.PathLike[str] | BinaryIO, sections: dict[str, Any]
    ) -> None:
        """Write a file with further sections beside our own; JSON knows what they hold."""
        model = self._require_model()
        notes = self._notes()
        if hasattr(self, "feature_names_in_"):
            notes["feature_names_in_"] = self.feature_names_in_.tolist()
        # JSON: no code, and readable anywhere. Sections that others wrote are kept.
        annotation = json.dumps(self._annotations() | sections | {_ANNOTATION: notes})
        if isinstance(file, (str, os.PathLike)):
            model.save(os.fspath(file), annotation=annotation)
        else:
            file.write(model.to_bytes(annotation=annotation))

    def _annotations(self) -> dict[str, Any]:
        """All sections of the annotation in the file that the model came from, if there was one."""
        return _read_annotations(self._require_model().annotation)

    @classmethod
    def load(
        cls: type[Self], file: str | os.PathLike[str] | BinaryIO, *, n_jobs: int | None = None
    ) -> Self:
        """Read a model from a file; a forest goes on learning as if it had never been saved.

        Parameters
        ----------
        file : path-like or binary file
        n_jobs : int, default=None
            Threads to load with; the model's ``n_jobs``.

        Returns
        -------
        estimator of this class
        """
        from boscage._io import load

        model = load(file, n_jobs=n_jobs)
        if not isinstance(model, cls):
            name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else "the file"
            raise ValueError(f"{name} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = state["_model"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_model" in state:
            n_threads = _inputs.n_threads(state.get("n_jobs"))
            model = self._model_class().from_bytes(state["_model"], n_threads=n_threads)
            state = state | {"_model": model}
        super().__setstate__(state)

    @classmethod
    def _from_bytes(cls: type[Self], data: bytes, n_jobs: int | None) -> Self:
        """The estimator around a model that was read from a file."""
        model = cls._model_class().from_bytes(data, n_threads=_inputs.n_threads(n_jobs))
        found = _read_annotations(model.annotation).get(_ANNOTATION)
        notes = found if isinstance(found, dict) else {}
        estimator = cls._around(model, notes, n_jobs)
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


def _read_annotations(text: str) -> dict[str, Any]:
    """The sections of an annotation; a file from elsewhere may hold any text."""
    try:
        sections = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return sections if isinstance(sections, dict) else {}
