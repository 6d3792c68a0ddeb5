"""Categories of Bayesian trees and BART, as codes: the numbers of sorted labels.

These trees divide categories in two, so that no order of them is needed. Categories that are
missing, or that no training row has, are NaN in the rows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np

from boscage._input.columns import Column, as_label, sort_labels
from boscage._types import AnyArray, Label, Rows

Labels: TypeAlias = dict[int, list[Label]]
"""The categories of each feature that has any, by the feature's number; a code is a position."""


def put_codes(rows: Rows, columns: dict[int, Column], labels: Labels) -> Rows:
    """Rows with the codes of their categories."""
    if not columns:
        return rows
    coded: Any = np.array(rows, order="C")
    for feature, column in columns.items():
        numbers = {label: code for code, label in enumerate(labels[feature])}
        coded[:, feature] = column.mapped(map(numbers.get, column.labels), np.nan, np.float64)
    found: Rows = coded
    return found


def named(rows: Rows, labels: Labels) -> AnyArray:
    """Rows with the names of categories instead of their codes; None where a code is missing."""
    if not labels:
        return rows
    given = rows.astype(object)
    for feature, names in labels.items():
        codes = np.nan_to_num(rows[:, feature], nan=-1).astype(np.int64)
        given[:, feature] = Column(codes, names).named()
    return given


def counts(labels: Labels, n_features: int) -> list[int]:
    """By feature, how many categories it has; at least one if it is one of categories."""
    if not labels:
        return []
    return [max(1, len(labels[d])) if d in labels else 0 for d in range(n_features)]


def to_json(labels: Labels) -> list[list[Any]]:
    """Labels as JSON holds them."""
    return [[feature, labels[feature]] for feature in sorted(labels)]


def from_json(saved: Any, n_categories: Collection[int]) -> Labels:
    """The labels of a model that was read from a file; codes are the labels of a model from Rust.

    Raises
    ------
    ValueError
        If `saved` is not what `to_json` wrote for a model with these categories.
    """
    features = {feature: n for feature, n in enumerate(n_categories) if n > 0}
    if saved is None:
        return {feature: list(range(n)) for feature, n in features.items()}
    try:
        labels = {int(feature): list(names) for feature, names in saved}
        kinds = {as_label(name, "it holds", "") for names in labels.values() for name in names}
        is_sorted = all(names == sort_labels(set(names)) for names in labels.values())
    except (TypeError, ValueError) as error:
        raise ValueError(f"the file's names of categories are damaged: {error}") from error
    expected = {feature: max(1, len(names)) for feature, names in labels.items()}
    if None in kinds or not is_sorted or expected != features:
        raise ValueError(
            f"the file's names of categories are damaged: expected sorted names of {features} "
            f"categories by feature, found {saved!r:.200}"
        )
    return labels
