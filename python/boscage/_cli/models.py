"""Model files, and how a model's columns are found in a table."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli.errors import UserError, blaming
from boscage._cli.sources import Source
from boscage._cli.tables import Chunk

Model: TypeAlias = "MondrianForestClassifier | MondrianForestRegressor"


def load(path: str, n_jobs: int | None) -> Model:
    """Load whatever model a file holds."""
    with blaming(path):
        model: Any = boscage.load(path)
    if not isinstance(model, (MondrianForestClassifier, MondrianForestRegressor)):
        raise UserError(f"{path}: holds a {type(model).__name__}; the commands are for forests")
    model.set_params(n_jobs=n_jobs)
    return model


def feature_columns(
    model: Model, source: Source, chosen: list[str] | None, others: list[str]
) -> list[str]:
    """Choose the table's columns that are the model's features, in the model's order.

    They are those `chosen`, or else found by their names; a model that was trained on an array
    has no names and takes every column that is not among `others`, in the table's order.
    """
    names = getattr(model, "feature_names_in_", None)
    if chosen:
        source.require(*chosen, why="a feature")
        columns = chosen
    elif names is not None:
        columns = [str(name) for name in names]
        source.require(*columns, why="the model was trained on it")
    else:
        columns = [column for column in source.columns if column not in others]
    if len(columns) != model.n_features_in_:
        raise UserError(
            f"{source.name}: found {len(columns)} columns for features, expected"
            f" {model.n_features_in_}, as the model was trained on"
        )
    return columns


def learn(model: Model, chunk: Chunk, X: Any, y: Any, id_column: str | None) -> None:
    """Add a chunk's rows to a model, which may be new."""
    ids = chunk.ids(id_column) if id_column else None
    is_new = not hasattr(model, "n_features_in_")
    with blaming(chunk.rows):
        try:
            (model.fit if is_new else model.partial_fit)(X, y, ids=ids)
        except ValueError:
            if id_column and ids is not None and not is_new:
                chunk.refuse_held(id_column, ids, model.ids_)
            raise


def features(model: Model, chunk: Chunk, columns: list[str]) -> Any:
    """Read a chunk's features as the model takes them: with names if it knows names."""
    table = chunk.features(columns)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return table.rename_columns([str(name) for name in names])
    return np.column_stack([column.to_numpy() for column in table.columns])
