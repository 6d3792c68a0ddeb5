"""Helpers that build forests and read their trees."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import boscage
from reference.arrays import Array, Tree, as_dict


def trees_of(model: Any) -> list[Tree]:
    """Return every tree as a dict of arrays, from an estimator or from the lower level's models."""
    trees = model.trees_ if hasattr(model, "trees_") else model.trees()
    return [as_dict(tree) for tree in trees]


def rates_of(low: Any, high: Any, n_features: int, weights: Any = None) -> Array:
    """Return the process' rate in each dimension: the weight over the reference range."""
    span = np.broadcast_to(np.asarray(high, float) - np.asarray(low, float), n_features)
    weight = np.ones(n_features) if weights is None else np.asarray(weights, float)
    return np.asarray(weight / span)


def assert_same_trees(a: list[Tree], b: list[Tree]) -> None:
    """Equal node by node and number by number (0.0 and -0.0 are one number)."""
    assert len(a) == len(b)
    for m, (one, other) in enumerate(zip(a, b, strict=True)):
        assert one.keys() == other.keys()
        for key in one:
            np.testing.assert_array_equal(one[key], other[key], f"{key} of tree {m}")


def assert_equal_models(model: Any, once: Any, at: Array) -> None:
    """Equal digests, trees and predictions, bit for bit."""
    assert model.digest() == once.digest()
    assert model.n_rows_ == once.n_rows_
    assert_same_trees(trees_of(model), trees_of(once))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.classes_, once.classes_)
        np.testing.assert_array_equal(model.predict_proba(at), once.predict_proba(at))
    else:
        for a, b in zip(
            model.predict(at, return_std=True), once.predict(at, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        # also what mean and variance do not show
        dist, expected = model.predict_dist(at), once.predict_dist(at)
        for name in ("offsets", "weights", "means", "variances"):
            np.testing.assert_array_equal(getattr(dist, name), getattr(expected, name))


def through_file(model: Any) -> Any:
    """Save a model and load it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.boscage"
        model.save(path)
        return boscage.load(path)
