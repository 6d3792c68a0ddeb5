"""Every invariant of exported trees, checked in Python (`reference.checks`)."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from boscage import MondrianForestClassifier, MondrianForestRegressor
from forests import rates_of, trees_of
from reference.arrays import Array, as_dict, path
from reference.checks import check
from reference.mondrian_boxes import Pausing

RANGE = (0.0, 1.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "lifetime": {"lifetime": 1.0},
    "size": {"min_samples_split": 7},
    "weights": {"feature_weights": np.array([0.0, 1.0, 4.0])},
    "no lifetime to speak of": {"lifetime": 1e-9},
}


def data(kind: str) -> Array:
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(60, 3))
    if kind == "duplicates":
        x = np.round(x, 1)
        x[20:40] = x[:20]
    elif kind == "constant":
        x[:, 1] = 0.25
    elif kind == "far":
        x[::7] *= -1e4
    elif kind == "one row":
        x = x[:1]
    elif kind == "one place":
        x[:] = x[0]
    elif kind == "float32":
        x = x.astype(np.float32)
    return x


KINDS = ["plain", "duplicates", "constant", "far", "one row", "one place", "float32"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_exported_trees_are_sound(task: str, kind: str, name: str) -> None:
    x, settings = data(kind), {"min_samples_split": 2, "lifetime": inf} | SETTINGS[name]
    rng = np.random.default_rng(6)
    if task == "classes":
        y = rng.integers(0, 3, size=len(x))
        model: Any = MondrianForestClassifier(
            4, feature_range=RANGE, random_state=1, **{"feature_weights": None} | settings
        )
        labels: Array = np.searchsorted(np.unique(y), y)
    else:
        labels = y = np.round(rng.normal(size=len(x)), 1)
        model = MondrianForestRegressor(
            4, feature_range=RANGE, random_state=1, **{"feature_weights": None} | settings
        )
    model.fit(x, y)
    trees = trees_of(model)
    assert len(trees) == 4
    for tree in trees:
        check(
            tree,
            x,
            labels,
            rates=rates_of(*RANGE, 3, settings.get("feature_weights")),
            pausing=Pausing(equal_labels=True, min_samples_split=settings["min_samples_split"]),
            lifetime=settings["lifetime"],
        )


def test_trees_stay_sound_through_a_history() -> None:
    """Invariants after online updates, with rows that raise the level, and after their removal."""
    x = data("far")
    y = np.random.default_rng(7).integers(0, 3, size=len(x))
    pausing = Pausing(equal_labels=True, min_samples_split=2)
    model = MondrianForestClassifier(3, feature_range=RANGE, feature_weights=None, random_state=2)
    for end in range(10, len(x) + 1, 10):
        part = slice(end - 10, end)
        model.partial_fit(x[part], y[part], classes=[0, 1, 2])
        for tree in trees_of(model):
            check(tree, x[:end], y[:end], rates=rates_of(*RANGE, 3), pausing=pausing)
    gone = np.arange(0, len(x), 7)
    model.forget(gone)
    kept = np.setdiff1d(np.arange(len(x)), gone)
    for tree in trees_of(model):
        check(tree, x[kept], y[kept], rates=rates_of(*RANGE, 3), pausing=pausing)


def test_a_tree_is_enough_to_route_rows_and_exports_are_copies() -> None:
    """Changing an exported array changes nothing in the forest."""
    x = data("plain")
    y = (x[:, 0] > 0.5).astype(int)
    model = MondrianForestClassifier(2, random_state=3).fit(x, y)
    before = model.digest(), model.predict_proba(x)
    for tree in model.trees_:
        arrays = as_dict(tree)
        for row, label in zip(x, y, strict=True):
            leaf = path(arrays, row)[-1]
            assert arrays["counts"][leaf, label] > 0
        for array in arrays.values():
            if array.flags.writeable:
                array[...] = 0
    assert model.digest() == before[0]
    np.testing.assert_array_equal(model.predict_proba(x), before[1])
