"""Model files, and the table of model kinds.

Each estimator class registers the kind of model that it wraps. The table of kinds serves `load`,
copies and pickles of estimators, and the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from boscage import _core

if TYPE_CHECKING:
    from boscage._bases.estimator import Estimator

    E = TypeVar("E", bound=Estimator)

__all__ = ["load"]


@dataclass(frozen=True)
class ModelKind:
    """One kind of model.

    Attributes
    ----------
    name : str
        The kind's name, such as ``"bart_regressor"``.
    description : str
        The kind in words, as messages say it.
    model : type
        The compiled class.
    estimator : type
        The estimator class that wraps it.
    """

    name: str
    description: str
    model: Any
    estimator: type[Estimator]


_kinds: dict[str, ModelKind] = {}

MODEL_KINDS: Mapping[str, ModelKind] = MappingProxyType(_kinds)
"""All kinds of model by name."""


def register(model: Any) -> Callable[[type[E]], type[E]]:
    """Register an estimator class as the one that wraps a compiled class: a class decorator.

    Parameters
    ----------
    model : type
        The compiled class. It knows the name of its kind.

    Returns
    -------
    callable
        The decorator.
    """
    description, _ = _core.model_kinds()[model.kind]

    def decorate(estimator: type[E]) -> type[E]:
        kind = ModelKind(model.kind, description, model, estimator)
        estimator._kind = _kinds[kind.name] = kind
        return estimator

    return decorate


def load(file: str | os.PathLike[str] | BinaryIO, *, n_jobs: int | None = None) -> Estimator:
    """Load a model of any kind from a file.

    A loaded forest continues to learn exactly as if it had never been saved.

    Parameters
    ----------
    file : path-like or binary file
        What ``save`` wrote, in Python or in Rust. Loading never runs code from the file.
    n_jobs : int, default=None
        Number of threads to load with. It becomes the estimator's ``n_jobs``.

    Returns
    -------
    estimator
        Of the class that was saved: a Mondrian forest, a Bayesian decision tree, or BART.

    Raises
    ------
    ValueError
        If the file is damaged or is not a model file.
    TypeError
        If `file` is neither a path nor a file opened in binary mode.
    OSError
        If the file cannot be read.
    """
    if isinstance(file, (str, os.PathLike)):
        path = Path(file)
        try:
            return _read(path.read_bytes(), n_jobs)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    data: bytes | None = file.read() if hasattr(file, "read") else None
    if not isinstance(data, bytes):
        raise TypeError(
            f"file must be a path, or a file opened in binary mode, found {type(file).__name__}"
        )
    return _read(data, n_jobs)


def _read(data: bytes, n_jobs: int | None) -> Estimator:
    return MODEL_KINDS[_core.model_kind(data)].estimator._from_bytes(data, n_jobs)
