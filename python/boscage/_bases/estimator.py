"""Base of all estimators: access to the compiled model, copies and files."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boscage import _validation, persistence
from boscage._bases.lock import NO_LOCK, Lock, reading, without_lock
from boscage._input.columns import (
    Column,
    as_matrix,
    as_table,
    categorical_features,
    column_name,
    n_columns,
    take,
    warn_of_many,
    warn_of_types,
)
from boscage._types import AnyArray, Label, Rows

Self = TypeVar("Self", bound="Estimator")

# Of sparse rows: vectors of all features are dense.
_MOST_SPARSE_FEATURES = 2**24

# Files hold a JSON object whose entry of this name is what only Python knows of the model.
_ANNOTATION = "boscage-python"


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, each of which wraps a compiled model. Not for direct use."""

    # The kind of model; set by `persistence.register`.
    _kind: ClassVar[persistence.ModelKind]

    # What keeps calls of several threads apart.
    _lock: Lock = NO_LOCK

    # The compiled model, once fitted. It holds everything that was learned.
    _model: Any

    categorical_features: Any
    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: AnyArray

    # -- to be implemented by subclasses ----------------------------------------------------------

    @abstractmethod
    def _metadata(self) -> dict[str, Any]:
        """What only Python knows of the model, as values that JSON can hold."""

    @classmethod
    @abstractmethod
    def _from_model(
        cls: type[Self], model: Any, metadata: dict[str, Any], n_jobs: int | None
    ) -> Self:
        """An unfitted estimator with the parameters of a model that was read from a file.

        `metadata` is what `_metadata` returned if Python wrote the file. It is not to be trusted.
        """

    @abstractmethod
    def _check_rows(self, X: Any) -> Rows:
        """Rows to predict, checked against those of the fit, with numbers for categories."""

    @abstractmethod
    def _known_categories(self) -> Mapping[int, Collection[Label | None]]:
        """The categories of each feature of the fitted model that has any."""

    # -- checks -----------------------------------------------------------------------------------

    def _check_whole_target(self, target: AnyArray) -> None:
        """Refuse parameters that do not fit the checked targets of all rows of a `fit`."""

    # -- access to the model ----------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _require_model(self) -> Any:
        check_is_fitted(self)
        return self._model

    def _query(self, X: Any) -> tuple[Any, Rows, int]:
        """The fitted model, the checked rows to predict, and the number of threads."""
        model = self._require_model()
        return model, self._check_rows(X), self._n_threads()

    def _read(self, X: Any, *, reset: bool) -> tuple[Rows, dict[int, Column]]:
        """Checked rows, and their categories, for which numbers are still to be put into the rows.

        With `reset` these are the rows of a new fit.
        """
        columns: dict[int, Column] = {}
        if self._keeps_sparse(X, reset=reset):
            return _validation.check_sparse_rows(self, X, reset=reset), columns
        if reset or self._known_categories():
            X = as_table(X)
            if not hasattr(X, "shape") and not (
                reset and isinstance(self.categorical_features, str)
            ):
                X = as_matrix(X)
            features = self._categorical(X) if reset else sorted(self._known_categories())
            # Other shapes are refused below.
            if features and (reset or n_columns(X) == self.n_features_in_):
                table = X
                columns, X = take(X, features)
                if reset and isinstance(self.categorical_features, str):
                    warn_of_many(columns, table)
        if not reset:
            known, names = self._known_categories(), getattr(self, "feature_names_in_", None)
            for feature, column in columns.items():
                warn_of_types(column, known[feature], column_name(names, feature))
        return _validation.check_rows(self, X, reset=reset), columns

    def _keeps_sparse(self, X: Any, *, reset: bool) -> bool:
        """Whether the compiled model takes ``X`` as a sparse matrix; else it is made dense."""
        return False

    def _is_sparse_of_numbers(self, X: Any, *, reset: bool) -> bool:
        """Whether ``X`` is a sparse matrix of numbers alone, and not too wide."""
        if not issparse(X) or X.ndim != 2 or X.dtype.kind not in "biuf":
            return False
        if X.shape[1] > _MOST_SPARSE_FEATURES:
            return False
        return not (self._categorical(X) if reset else self._known_categories())

    def _categorical(self, X: Any) -> list[int]:
        """The features of a new fit that are categories."""
        return categorical_features(self.categorical_features, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # Text is taken in tables, not in arrays: so the tag `string` stays unset.
        of_categories = ("categorical_features", "categories")
        tags.input_tags.categorical = any(
            getattr(self, name, None) is not None for name in of_categories
        )
        return tags

    def _n_threads(self) -> int:
        return _validation.n_threads(self.n_jobs)

    def _names(self) -> AnyArray | None:
        """The names of the features, if the model was fitted on named columns."""
        return getattr(self, "feature_names_in_", None)

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Restore the estimator's attributes if the block raises."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            # No attribute that stays is missing meanwhile, since other threads take the lock.
            self.__dict__.update(before)
            for name in self.__dict__.keys() - before.keys():
                del self.__dict__[name]
            raise

    # -- copies and files -------------------------------------------------------------------------

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Save the model to a file that both Rust and Python can load.

        Parameters
        ----------
        file : path-like or binary file
            An existing file of that name is replaced once the new one is complete; if writing
            fails, it stays as it was.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        OSError
            If the file cannot be written.
        """
        self._save_annotated(file, {})

    def _save_annotated(
        self, file: str | os.PathLike[str] | BinaryIO, sections: dict[str, Any]
    ) -> None:
        """Save the model with further sections in its annotation, which JSON must be able to hold.

        Sections of the file that the model came from are kept.
        """
        with self._lock.reading:
            model, annotation = self._require_model(), self._annotation(sections)
            if isinstance(file, (str, os.PathLike)):
                model.save(os.fspath(file), annotation=annotation)
                return
            data = model.to_bytes(annotation=annotation)
        file.write(data)

    def _annotation(self, sections: dict[str, Any]) -> str:
        """The annotation of a file: JSON, which holds no code and can be read anywhere."""
        metadata = self._metadata()
        names = self._names()
        if names is not None:
            metadata["feature_names_in_"] = names.tolist()
        return json.dumps(self._annotations() | sections | {_ANNOTATION: metadata})

    def _annotations(self) -> dict[str, Any]:
        """All sections of the annotation of the file that the model came from, if any."""
        return _read_annotations(self._require_model().annotation)

    @classmethod
    def load(
        cls: type[Self], file: str | os.PathLike[str] | BinaryIO, *, n_jobs: int | None = None
    ) -> Self:
        """Load a model of this class from a file.

        A loaded forest continues to learn exactly as if it had never been saved.

        Parameters
        ----------
        file : path-like or binary file
            What ``save`` wrote.
        n_jobs : int, default=None
            Number of threads to load with. It becomes the estimator's ``n_jobs``.

        Returns
        -------
        estimator of this class

        Raises
        ------
        ValueError
            If the file is damaged, is not a model file, or holds a model of another class.
        OSError
            If the file cannot be read.
        """
        model = persistence.load(file, n_jobs=n_jobs)
        if not isinstance(model, cls):
            name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else "the file"
            raise ValueError(f"{name} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    @reading
    def __getstate__(self) -> dict[str, Any]:
        state = without_lock(super().__getstate__())
        if "_model" in state:
            state["_model"] = state["_model"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_model" in state:
            n_threads = _validation.n_threads(state.get("n_jobs"))
            model = self._kind.model.from_bytes(state["_model"], n_threads=n_threads)
            state = state | {"_model": model}
        super().__setstate__(state)

    @classmethod
    def _from_bytes(cls: type[Self], data: bytes, n_jobs: int | None) -> Self:
        """The fitted estimator that a file holds."""
        model = cls._kind.model.from_bytes(data, n_threads=_validation.n_threads(n_jobs))
        metadata = _read_annotations(model.annotation).get(_ANNOTATION)
        metadata = metadata if isinstance(metadata, dict) else {}
        estimator = cls._from_model(model, metadata, n_jobs)
        estimator._model = model
        estimator.n_features_in_ = int(model.n_features)
        names = metadata.get("feature_names_in_")
        if (
            isinstance(names, list)
            and len(names) == model.n_features
            and all(isinstance(name, str) for name in names)
        ):
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        return estimator


def _read_annotations(text: str) -> dict[str, Any]:
    """The sections of an annotation; empty if it is not a JSON object."""
    try:
        sections = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return sections if isinstance(sections, dict) else {}
