"""The rows that rates are learned from are the same wherever the rows are."""

from __future__ import annotations

import numpy as np
import pytest

from boscage.mondrian.feature_rates._samples import (
    DistinctRows,
    KeyCounts,
    Places,
    Sample,
    learning_order,
)
from boscage.mondrian.feature_rates._shared import LEARNING_ROWS


@pytest.mark.parametrize("n_values", [2, 40, 10**6])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("has_classes", [False, True])
def test_a_sample_of_parts_is_that_of_all_rows(
    n_values: int, is_weighted: bool, has_classes: bool
) -> None:
    rng = np.random.default_rng(n_values)
    for n_rows in (1, 50, LEARNING_ROWS + 2000):
        X = rng.integers(0, n_values, (n_rows, 2)).astype(rng.choice(["f4", "f8"]))
        X[X == 1] = rng.choice([0.0, -0.0], (X == 1).sum())
        y = rng.integers(0, 3, n_rows) if has_classes else rng.normal(size=n_rows).round(1)
        weights = rng.choice([0.5, 1.0, 3.0], n_rows) if is_weighted else None
        expected = Sample.of(X, y, weights, 7)
        order, n_parts, n_groups = (
            learning_order(7),
            int(rng.integers(1, 9)),
            int(rng.integers(1, 5)),
        )
        parts = [own for own in np.array_split(rng.permutation(n_rows), n_parts) if len(own)]
        counts = [KeyCounts.of(X[own], order) for own in parts]
        groups = [
            KeyCounts.sum([own.in_group(group, n_groups) for own in counts]).first_places()
            for group in range(n_groups)
        ]
        places = Places.first(groups)
        distinct = [
            DistinctRows.of(
                places, X[own], y[own], None if weights is None else weights[own], order
            )
            for own in parts
        ]
        found = places.sample(distinct, n_rows, is_weighted=is_weighted)
        assert found.X.dtype == expected.X.dtype == np.float64
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.y, expected.y)
        np.testing.assert_array_equal(found.weights, expected.weights)
        assert found.n_rows == expected.n_rows == n_rows
        assert len(found.X) == min(n_rows, LEARNING_ROWS)


def test_equal_rows_are_collected_once() -> None:
    X, y = np.zeros((1000, 1)), np.arange(1000) % 2
    places = KeyCounts.of(X, 0).first_places()
    distinct = DistinctRows.of(places, X, y, None, 0)
    assert distinct.n_equal.tolist() == [500, 500]
