"""The exact results of a model, in a form that JSON can store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from reference.arrays import Array

TREE_ARRAYS = ("children_left", "children_right", "feature", "threshold")
NODE_VALUES = ("value", "counts", "location", "scale")


def exact(values: Any) -> Any:
    """Return numbers as nested lists of hexadecimal floats, other values as they are."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    return [exact(part) for part in array] if array.ndim else float(array).hex()


def hash_of(*arrays: Any) -> str:
    """Return a hash of the shapes and bits of arrays of numbers."""
    sha = hashlib.sha256()
    for each in arrays:
        array = np.array(each, dtype="<f8", order="C")
        array[np.isnan(array)] = np.nan  # one NaN for all
        sha.update(repr(array.shape).encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def hash_of_trees(trees: Iterable[Any]) -> str:
    """Return a hash of the structure and the values of trees."""
    arrays = []
    for tree in trees:
        found = (getattr(tree, name, None) for name in TREE_ARRAYS + NODE_VALUES)
        arrays += [array for array in found if array is not None]
    return hash_of(*arrays)


def describe(model: Any, rows: Array) -> dict[str, Any]:
    """Return the exact predictions of a model of any kind for `rows`, and its other results.

    Only what the compiled library computes: sums by NumPy may depend on its version.
    """
    of_kind = {"Mondrian": _mondrian, "Bayesian": _bayesian, "BART": _bart}
    (found,) = (
        describe_kind(model, rows)
        for prefix, describe_kind in of_kind.items()
        if type(model).__name__.startswith(prefix)
    )
    if hasattr(model, "predict_proba"):
        found["classes"] = np.asarray(model.classes_).tolist()
    return found


def _mondrian(model: Any, rows: Array) -> dict[str, Any]:
    found: dict[str, Any] = {
        "digest": model.digest(),
        "ids": [int(i) for i in model.ids_],
        "feature_range": exact(model.feature_range_),
        "feature_weights": exact(model.feature_weights_),
    }
    if model.n_rows_ == 0:
        return found
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = exact(model.predict_proba(rows))
        found["discount"] = model.discount_
    else:
        found["predict"] = exact(model.predict(rows, return_std=True))
        found["hyperparameters"] = {k: exact(v) for k, v in model.hyperparameters_.items()}
        maps = model.feature_maps_
        found["feature_maps"] = None if maps is None else [list(map(exact, pair)) for pair in maps]
    return found


def _bayesian(model: Any, rows: Array) -> dict[str, Any]:
    found: dict[str, Any] = {
        "weights": exact(model.weights_),
        "log_posterior": exact(model.log_posterior_),
        "trees": hash_of_trees(model.trees_),
        "leaves": hash_of(model.apply(rows)),
    }
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = exact(model.predict_proba(rows))
    else:
        found["predict"] = exact(model.predict(rows, return_std=True))
    if hasattr(model, "trace_"):
        for name in ("trace_", "acceptance_"):
            arrays = getattr(model, name)
            found[name] = {key: hash_of(array) for key, array in arrays.items()}
    else:
        found["log_marginal_likelihood"] = exact(model.log_marginal_likelihood_)
        found["log_marginal_likelihood_error"] = exact(model.log_marginal_likelihood_error_)
        found["ess"] = hash_of(*model.ess_)
        found["ancestry"] = hash_of(*(stage for island in model.ancestry_ for stage in island))
        found["n_unfinished"] = exact(model.n_unfinished_)
    return found


def _bart(model: Any, rows: Array) -> dict[str, Any]:
    found: dict[str, Any] = {
        "centre": exact(model.centre_),
        "predict_draws": hash_of(model.predict_draws(rows)),
        "trees": hash_of_trees(tree for draw in model.trees_ for tree in draw),
        "trace_": {name: exact(draws) for name, draws in model.trace_.items()},
        "acceptance_": {name: hash_of(share) for name, share in model.acceptance_.items()},
    }
    if hasattr(model, "split_probabilities_"):
        found["split_probabilities"] = hash_of(model.split_probabilities_)
    name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    found[name] = exact(getattr(model, name)(rows))
    return found
