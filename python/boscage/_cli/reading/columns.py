"""Finds the columns of a model in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boscage._cli.errors import UserError
from boscage._cli.reading.sources import Source
from boscage._cli.reading.tables import Chunk


def find(
    model: Any,
    source: Source,
    chosen: list[str] | None,
    others: dict[str, str],
    left_out: Sequence[str] = (),
) -> list[str]:
    """Choose the table's columns that are the model's features, in the model's order.

    They are those `chosen`, or else found by their names; a model that was trained on an array
    has no names and takes every column that is neither among `others` nor `left_out`, in the
    table's order. `others` says what columns are that cannot be features.
    """
    names = getattr(model, "feature_names_in_", None)
    if chosen:
        require_features(source, chosen, others)
        columns = chosen
    elif names is not None:
        columns = [str(name) for name in names]
        source.require(*columns, why="the model was trained on it")
    else:
        columns = [column for column in source.columns if column not in {*others, *left_out}]
    if len(columns) != model.n_features_in_:
        raise UserError(
            f"{source.name}: the number of columns for features is {len(columns)}, expected"
            f" {model.n_features_in_}, as in the table that the model was trained on"
        )
    return columns


def require_once(option: str, names: list[str]) -> None:
    """Refuse names of columns of which one comes twice."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{option}: column {name!r} is named twice")


def require_features(source: Source, chosen: list[str], others: dict[str, str]) -> None:
    """Refuse features that the table lacks, or that are something else already."""
    _require_others(source, "--features", chosen, others, ("a feature", "be a feature"))


def require_left_out(source: Source, left_out: list[str], others: dict[str, str]) -> None:
    """Refuse columns to be left out that the table lacks, or that are needed."""
    _require_others(source, "--drop", left_out, others, ("to be left out", "be left out"))


def _require_others(
    source: Source, option: str, names: list[str], others: dict[str, str], as_what: tuple[str, str]
) -> None:
    """Refuse an option's columns that are not there, come twice, or are among `others`."""
    why, be = as_what
    source.require(*names, why=why)
    require_once(option, names)
    for name in names:
        if name in others:
            raise UserError(f"{option}: {name!r} is {others[name]}, it cannot {be} too")


def not_features(
    source: Source, target: str, id_column: str | None = None, weight: str | None = None
) -> dict[str, str]:
    """What columns are that are no features, by their names; refuse those that are not there."""
    source.require(target, why="the target")
    others = {target: "the target"}
    for option, name, what in (
        ("--id-column", id_column, "the ids"),
        ("--weight", weight, "the weights"),
    ):
        if name is None:
            continue
        source.require(name, why=what)
        if name in others:
            raise UserError(f"{option}: {name!r} is {others[name]}, it cannot hold {what} too")
        others[name] = f"the column of {what.removeprefix('the ')}"
    return others


def learn(
    model: Any,
    chunk: Chunk,
    X: Any,
    y: Any,
    id_column: str | None,
    weight: str | None,
    *,
    is_all: bool = False,
) -> None:
    """Add a chunk's rows to a model, which may be new; `is_all` if there are no other rows.

    Ids that the model has are refused by their rows; the caller names what else is refused.
    """
    ids = chunk.ids(id_column) if id_column else None
    weights = chunk.weights(weight) if weight else None
    is_new = not hasattr(model, "n_features_in_")
    try:
        (model.fit if is_all else model.partial_fit)(X, y, ids=ids, sample_weight=weights)
    except ValueError:
        if id_column and ids is not None and not is_new:
            chunk.refuse_held(id_column, ids, model.ids_)
        raise


def features(model: Any, chunk: Chunk, columns: list[str]) -> Any:
    """Read a chunk's features as the model takes them: with names if it knows names."""
    table = chunk.features(columns, categorical=_categorical(model, columns))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return table.rename_columns([str(name) for name in names])
    return np.column_stack([column.to_numpy() for column in table.columns])


def _categorical(model: Any, columns: list[str]) -> list[str]:
    """The columns that are categories of text; categories that are numbers are read as such."""
    tables = getattr(model, "categories_", None) or [None] * len(columns)
    return [
        name
        for name, table in zip(columns, tables, strict=True)
        if table is not None and any(isinstance(label, str) for label in table)
    ]
