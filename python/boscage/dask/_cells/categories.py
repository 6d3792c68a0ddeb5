"""Categories of rows whose cells are apart: where they lie is learned from counts by target.

Each piece counts its rows by category and target. One worker learns the places from these counts,
and then all pieces put them into their rows, so that what owners hold are numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from boscage._input.columns import Column, distinct_labels
from boscage._types import AnyArray, IntArray, Label
from boscage.dask._cells.rows import Arrived, Labels, Piece, coded
from boscage.mondrian._categories import (
    Singles,
    Tables,
    extend,
    learn_table,
    put,
    read_back,
    singles_of,
)
from boscage.mondrian.feature_rates._samples import equal_runs


@dataclass(frozen=True)
class TargetCounts:
    """How many rows there are of each category of a feature and each target."""

    column: Column
    """Each pair's category."""
    targets: AnyArray
    n_rows: IntArray


def labels_of(came: Sequence[Arrived]) -> dict[int, list[Label]]:
    """The categories of each feature that has any in new partitions."""
    features = sorted({feature for own in came for feature in own.categories})
    return {
        feature: distinct_labels(label for own in came for label in own.categories.get(feature, ()))
        for feature in features
    }


def extended(tables: Tables, labels: dict[int, list[Label]]) -> Tables:
    """Tables with places for all labels."""
    return tables | {feature: extend(tables[feature], own) for feature, own in labels.items()}


def with_columns(own: Piece, features: Sequence[int]) -> Piece:
    """A piece of a new partition in which these features are categories.

    Columns that hold no values look like numbers where others hold text.
    """
    columns, rows = dict(own.columns), own.rows
    for feature in features:
        if feature in columns:
            continue
        if not np.isnan(rows[:, feature]).all():
            raise ValueError(
                f"partition {own.partition}: feature {feature} holds numbers, and categories in "
                "other partitions; give the column one type, or name it in categorical_features"
            )
        columns[feature] = Column(np.full(len(rows), -1), [])
        # As in other pieces, it lacks no number: a missing category has a place as others have.
        rows = rows.copy()
        rows[:, feature] = 0.0
    return replace(own, columns=columns, rows=rows)


def placed(own: Piece, tables: Tables) -> Piece:
    """A piece whose rows have the places of their categories."""
    return replace(own, rows=put(own.rows, own.columns, tables), columns={})


def unplaced(own: Piece, tables: Tables) -> Piece:
    """A piece whose rows have the categories that lie at their places."""
    return replace(own, columns=read_back(own.rows, tables))


def target_counts(own: Piece, labels: Labels) -> dict[int, TargetCounts]:
    """The counts of the features of a piece that are categories."""
    targets = coded(own, labels)
    return {feature: _counted(column, targets) for feature, column in own.columns.items()}


def learned_tables(parts: Sequence[dict[int, TargetCounts]]) -> tuple[Tables, Singles]:
    """The places of all categories, given the counts of all pieces, and of those of one row."""
    found = {feature: _joined([part[feature] for part in parts]) for feature in parts[0]}
    tables = {feature: learn_table(*counts) for feature, counts in found.items()}
    columns = {feature: column for feature, (column, _, _) in found.items()}
    n_rows = {feature: n for feature, (_, _, n) in found.items()}
    return tables, singles_of(columns, tables, n_rows)


def _joined(parts: Sequence[TargetCounts]) -> tuple[Column, AnyArray, IntArray]:
    """The categories of all pieces, their targets and how many rows have each pair."""
    columns = [part.column for part in parts]
    labels = distinct_labels(label for column in columns for label in column.labels)
    numbers = {label: i for i, label in enumerate(labels)}
    codes = [column.mapped(map(numbers.get, column.labels), -1) for column in columns]
    targets = np.concatenate([part.targets for part in parts])
    n_rows = np.concatenate([part.n_rows for part in parts])
    return Column(np.concatenate(codes), labels), targets, n_rows


def _counted(column: Column, targets: AnyArray) -> TargetCounts:
    """The pairs of a category and a target that occur, and how many rows have each."""
    order = np.lexsort([targets, column.codes])
    codes, targets = column.codes[order], targets[order]
    starts, n_rows = equal_runs(codes, targets)
    return TargetCounts(Column(codes[starts], column.labels), targets[starts], n_rows)
