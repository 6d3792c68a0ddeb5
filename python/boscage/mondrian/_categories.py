"""Categories in Mondrian forests: where each lies along its feature.

A forest cuts features in two, so categories lie in an order. It is learned once from the targets
and then kept, as reference ranges are. Categories are sorted by the mean of their rows' targets,
shrunk towards the mean of all rows: the fewer rows a category has, and the less categories differ
beyond chance, the more. In classification with more than two classes they are sorted along the
first axis of a correspondence analysis of categories and classes. Where categories do not differ
beyond chance, they are in the order of their names.

Places are between 0 and 1. The distance between neighbours is half their share of the rows, so that
frequent categories are separated often, and half the difference of their shrunk means. So any two
categories can be separated by one cut, and one from all others by two. Missing values are a
category like others; unknown categories lie there, too.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from boscage import _validation
from boscage._input.columns import Column, as_label, sort_labels
from boscage._types import AnyArray, FloatArray, IntArray, Label, Rows

Table: TypeAlias = dict[Label | None, float]
"""The place of each category; that of None is for missing values and unknown categories."""
Tables: TypeAlias = dict[int, Table]
"""The categories of each feature that has any, by the feature's number."""
Singles: TypeAlias = dict[int, FloatArray]
"""The places of those that only one row has, for the features that have such."""
CoreTables: TypeAlias = list[tuple[int, list[Label], list[float], float]]
"""The same for the compiled module."""

MEAN_SHARE = 0.5
"""How much of the distance between categories is that of their means."""
STANDARD_ERRORS = 2.0
"""How far beyond chance categories must differ to be sorted by their targets."""
MAX_CLASSES = 50
"""Classes that are told apart; all less frequent ones count as one."""
MAX_CELLS = 20_000_000
"""Cells of the table of categories by classes, which limit the number of classes further."""
MIN_ROWS = 30
"""Of fewer rows none says that its category will not come again."""
UNSEEN_ROWS = 0.5
"""For how many rows missing values count where none is missing."""

__all__: list[str] = []


def by_feature(tables: Tables, n_features: int) -> list[Table | None] | None:
    """Copies of all tables, and None for features that have none; None if there are no tables."""
    if not tables:
        return None
    return [dict(tables[d]) if d in tables else None for d in range(n_features)]


# -- places of categories -------------------------------------------------------------------------


def learn_table(column: Column, y: AnyArray, n_rows: IntArray | None = None) -> Table:
    """The places of a column's categories; ``y`` holds class codes or numbers.

    A function of the set of rows: sums are over integers, or in the order of the targets. With
    `n_rows`, each entry of the column and its target are those of so many rows.
    """
    n = len(column.labels)
    codes = np.where(column.codes < 0, n, column.codes)
    counts = np.bincount(codes, n_rows, minlength=n + 1).astype(np.float64)
    seen = np.flatnonzero(counts)
    scores = np.zeros(n + 1)
    if len(seen) > 1:
        numbers = np.cumsum(counts > 0.0) - 1
        of_seen = _of_numbers if y.dtype.kind == "f" else _of_classes
        scores[seen] = of_seen(numbers[codes], counts[seen], y, n_rows)
    labels: list[Label | None] = [*column.labels, None]
    kept = np.union1d(seen, [n]).astype(np.int64)
    counts[n] = counts[n] or UNSEEN_ROWS
    # Without an order by targets, missing values are in the middle.
    ties = np.where(kept == n, (len(kept) - 2) / 2, np.arange(len(kept)))
    order = kept[np.lexsort((ties, scores[kept]))]
    places = _places(counts[order], scores[order])
    return {labels[k]: place for k, place in zip(order, places, strict=True)}


def _of_numbers(
    codes: IntArray, counts: FloatArray, y: AnyArray, n_rows: IntArray | None
) -> FloatArray:
    """Each category's shrunk mean of numeric targets, less that of all."""
    if n_rows is not None:
        # Equal terms are added one by one, as if each row had its own.
        codes, y = np.repeat(codes, n_rows), np.repeat(y, n_rows)
    order = np.lexsort((y, codes))
    unit = np.ldexp(1.0, int(np.frexp(np.abs(y).max())[1]) - 1)
    scaled = y[order] / unit
    starts = np.cumsum(counts).astype(np.int64) - counts.astype(np.int64)
    means = np.add.reduceat(scaled, starts) / counts
    # Differences from the means are summed by category, in the order of the targets.
    within = np.add.reduceat((scaled - means[codes[order]]) ** 2, starts).sum()
    effects = (means - np.average(means, weights=counts))[:, None]
    return _rounded(_shrink(effects, counts, float(within))[:, 0])


def _of_classes(
    codes: IntArray, counts: FloatArray, y: AnyArray, n_rows: IntArray | None
) -> FloatArray:
    """Each category's place on the first axis of a correspondence analysis, shrunk."""
    table = _counts_by_class(codes, len(counts), y, n_rows)
    of_class = table.sum(axis=0)
    shares, total = table / counts[:, None], counts.sum()
    scale = np.sqrt(of_class / total)
    effects = (shares - of_class / total) / scale
    within = ((of_class - (table * shares).sum(axis=0)) / (of_class / total)).sum()
    shrunk = _shrink(effects, counts, float(within))
    if not shrunk.any():
        return np.zeros(len(counts))
    # The first axis: the greatest eigenvector of a matrix of classes by classes.
    axis = np.linalg.eigh(shrunk.T @ (counts[:, None] * shrunk))[1][:, -1]
    scores = _rounded(shrunk @ axis)
    # Of the axis' two directions, that in which the farthest category lies high.
    return scores if scores[np.argmax(np.abs(scores))] > 0.0 else -scores


def _counts_by_class(codes: IntArray, n: int, y: AnyArray, n_rows: IntArray | None) -> FloatArray:
    """How many rows of each category are of each class."""
    sizes = np.bincount(y, n_rows)
    most = max(1, min(MAX_CLASSES, MAX_CELLS // n))
    frequent = np.argsort(-sizes, kind="stable")[:most]
    numbers = np.full(len(sizes), len(frequent))
    numbers[frequent] = np.arange(len(frequent))
    width = len(frequent) + 1
    pairs = codes * width + numbers[y]
    table = np.bincount(pairs, n_rows, minlength=n * width).reshape(n, width)
    return table[:, table.any(axis=0)].astype(np.float64)


def _shrink(effects: FloatArray, counts: FloatArray, within: float) -> FloatArray:
    """Effects of categories, each shrunk as its number of rows asks for.

    The variance between categories is that of an analysis of variance; none if chance explains it.
    """
    n_rows, n = counts.sum(), len(counts)
    between = float((counts[:, None] * effects**2).sum())
    if not (n_rows > n and between > 0.0):
        return np.zeros_like(effects)
    noise = within / (n_rows - n)
    spare = n_rows - (counts**2).sum() / n_rows
    variance = (between - (n - 1) * noise) / spare
    chance = STANDARD_ERRORS * np.sqrt(2.0 / (n - 1) + 2.0 / (n_rows - n))
    if not variance * spare > chance * (n - 1) * noise:
        return np.zeros_like(effects)
    return np.asarray(effects * (counts * variance / (counts * variance + noise))[:, None])


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores to six digits, since linear algebra differs in the last bits between machines."""
    largest = np.abs(scores).max()
    return np.round(scores / largest, 6) + 0.0 if largest > 0.0 else scores


def _places(counts: FloatArray, scores: FloatArray) -> list[float]:
    """Places of categories in their order."""
    middle = np.cumsum(counts) - counts / 2.0
    places = _to_unit(middle)
    if scores[-1] > scores[0]:
        places = (1.0 - MEAN_SHARE) * places + MEAN_SHARE * _to_unit(scores)
    return _narrow(places)


def _to_unit(values: FloatArray) -> FloatArray:
    span = values[-1] - values[0]
    return (values - values[0]) / span if span > 0.0 else np.zeros_like(values)


def _narrow(places: FloatArray) -> list[float]:
    """Places in single precision, so that tables of float32 stay so, where they stay apart."""
    narrow = places.astype(np.float32).astype(np.float64)
    if not (np.diff(narrow) > 0.0).all():
        narrow = places
    found: list[float] = narrow.tolist()
    return found


def extend(table: Table, labels: Iterable[Label | None]) -> Table:
    """The same places, and others for categories that are new: in the widest gap."""
    new = [label for label in labels if label not in table]
    if not new:
        return table
    taken = np.unique([*table.values(), 0.0, 1.0])
    widest = int(np.argmax(np.diff(taken)))
    inside = np.linspace(taken[widest], taken[widest + 1], len(new) + 2)
    return table | dict(zip(new, _narrow(inside)[1:-1], strict=True))


# -- rows and tables ------------------------------------------------------------------------------


def put(rows: Rows, columns: dict[int, Column], tables: Tables) -> Rows:
    """Rows with the places of their categories."""
    if not columns:
        return rows
    places = {}
    for feature, column in columns.items():
        table = tables[feature]
        unknown = table[None]
        of_label = (table.get(label, unknown) for label in column.labels)
        places[feature] = column.mapped(of_label, unknown)
    narrow = all((values.astype(np.float32) == values).all() for values in places.values())
    filled: Any = np.array(rows, dtype=rows.dtype if narrow else np.float64, order="C")
    for feature, values in places.items():
        filled[:, feature] = values
    found: Rows = filled
    return found


def singles_of(
    columns: Mapping[int, Column], tables: Tables, n_rows: Mapping[int, IntArray] | None = None
) -> Singles:
    """The places of categories that only one row has; `n_rows` as in `learn_table`, by column."""
    counts = n_rows or {}
    found = {
        feature: single_places(column, tables[feature], counts.get(feature))
        for feature, column in columns.items()
    }
    return {feature: places for feature, places in found.items() if places.size}


def single_places(column: Column, table: Table, n_rows: IntArray | None = None) -> FloatArray:
    """The same of one column."""
    known = column.codes >= 0
    of_known = None if n_rows is None else n_rows[known]
    counts = np.bincount(column.codes[known], of_known, minlength=len(column.labels))
    total = len(column.codes) if n_rows is None else n_rows.sum()
    places = np.array([table[label] for label in column.labels])
    return np.asarray(places[(counts == 1) & (total >= MIN_ROWS)])


def as_if_new(rows: FloatArray, tables: Tables, singles: Singles) -> FloatArray:
    """Rows whose categories, if no other row has them, lie where unknown ones do.

    So would the row lie if it were new. Rates must not be learned from where else it lies: names
    and dates, of which each is that of one row, would seem to explain everything.
    """
    found: FloatArray = rows.copy()
    for feature, places in singles.items():
        found[np.isin(rows[:, feature], places), feature] = tables[feature][None]
    return found


def read_back(rows: Rows, tables: Tables) -> dict[int, Column]:
    """The categories of rows that hold their places."""
    columns = {}
    for feature, table in tables.items():
        labels = _labels(table)
        places = np.array([table[label] for label in labels])
        order = np.argsort(places)
        at = np.searchsorted(places[order], rows[:, feature])
        found = np.append(order, -1)[at]
        found[rows[:, feature] == table[None]] = -1
        columns[feature] = Column(found, labels)
    return columns


def to_core(tables: Tables) -> CoreTables:
    """Tables as the compiled module takes them."""
    found: CoreTables = []
    for feature, table in sorted(tables.items()):
        known = _labels(table)
        found.append((feature, known, [table[label] for label in known], table[None]))
    return found


def from_core(tables: CoreTables) -> Tables:
    """Tables as the compiled module returns them."""
    found: Tables = {}
    for feature, labels, places, missing in tables:
        found[feature] = dict(zip(labels, places, strict=True)) | {None: missing}
    return found


def _labels(table: Table) -> list[Label]:
    return sort_labels([label for label in table if label is not None])


def check_tables(given: Sequence[Any] | None, n_features: int) -> Tables | None:
    """The parameter ``categories``; the compiled module checks the places."""
    if given is None:
        return None
    is_list = hasattr(given, "__len__") and not isinstance(given, Mapping)
    if not is_list or len(given) != n_features:
        raise ValueError(
            f"categories must be a list of a dictionary or None for each of the {n_features} "
            f"features, found {reprlib.repr(given)}"
        )
    tables: Tables = {}
    for feature, table in enumerate(given):
        if table is None:
            continue
        if not isinstance(table, dict) or None not in table:
            raise ValueError(
                "categories must hold, for each feature that has any, a dictionary of places, one "
                f"of them with the key None for missing values; found {table!r}"
            )
        tables[feature] = {
            as_label(label, "categories holds", f" for feature {feature}"): _validation.check_real(
                f"categories[{feature}][{label!r}]", place
            )
            for label, place in table.items()
        }
    return tables


def different(ours: Tables, theirs: Tables) -> list[int]:
    """The features whose categories, or their places, differ."""
    return [
        feature for feature in sorted({*ours, *theirs}) if ours.get(feature) != theirs.get(feature)
    ]
