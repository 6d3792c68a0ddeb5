"""Model files: reading and writing them, with what they keep of the table."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import boscage
from boscage._cli.errors import UserError
from boscage._cli.notes import Notes
from boscage._cli.reading import formats

#: Any of the estimators.
Model: TypeAlias = Any


def load(path: str, n_jobs: int | None) -> Model:
    """Load whatever model a file holds."""
    if os.path.isdir(path):
        raise UserError(f"{path}: found a folder, expected a model file")
    with open(path, "rb") as file:
        start = file.read(formats.ENOUGH)
    found = formats.words(start)
    if found != formats.MODEL:
        raise UserError(f"{path}: found {found}, expected a model file, such as boscage fit writes")
    try:
        model: Any = boscage.load(path)
    except ValueError as error:
        raise UserError(str(error)) from error
    model.set_params(n_jobs=n_jobs)
    return model


def load_online(path: str, n_jobs: int | None, command: str) -> Model:
    """Load a model to which rows can be added and from which they can be removed."""
    model = load(path, n_jobs)
    if not hasattr(model, "partial_fit"):
        raise UserError(
            f"{path}: a {kind_of(model)} cannot {command} rows, only a Mondrian forest that keeps"
            " its rows can: fit a new model to the rows that you want"
        )
    return model


def kind_of(model: Model) -> str:
    """What to call a model."""
    return type(model).__name__ + " without rows" * hasattr(model, "memory_limit")


def load_with_rows(path: str, n_jobs: int | None) -> Model:
    """Load a model that can predict: a forest may have forgotten all its rows."""
    model = load(path, n_jobs)
    if getattr(model, "n_rows_", None) == 0:
        raise UserError(f"{path}: the forest has no rows left; add some by boscage update first")
    return model


def save(model: Model, path: str, notes: Notes | None = None) -> None:
    """Write a model file, whole or not at all; without `notes` it keeps those that it had."""
    sections = {} if notes is None else notes.as_annotation
    try:
        model._save_annotated(path, sections)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def is_classifier(model: Model) -> bool:
    """Whether a model predicts classes."""
    return hasattr(model, "predict_proba")
