"""Draws of chains as data of ArviZ, current or classic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boscage import _validation
from boscage._types import AnyArray, FloatArray

Groups = dict[str, dict[str, AnyArray]]


def to_data(groups: Groups, dims: Mapping[str, Sequence[str]], coords: Mapping[str, Any]) -> Any:
    """Groups of arrays of shape (n_chains, n_draws, ...) as ArviZ holds them.

    `dims` names the dimensions of an array after the first two, and `coords` the places along them.

    Raises
    ------
    ImportError
        If no ArviZ is installed that this can serve.
    """
    dims = {name: list(names) for name, names in dims.items()}
    try:
        import arviz_base
    except ImportError:
        return _to_classic(groups, dims, coords)
    return arviz_base.from_dict(groups, dims=dims, coords=coords)


def _to_classic(groups: Groups, dims: Mapping[str, Any], coords: Mapping[str, Any]) -> Any:
    try:
        import arviz
    except ImportError as error:
        raise ImportError(
            "to_arviz needs arviz-base 0.6 or later (for Python 3.11 or later) or classic ArviZ "
            '0.17 or later, and neither is installed: pip install "boscage[arviz]"'
        ) from error
    return arviz.from_dict(**groups, dims=dims, coords=coords)


def of_normals(
    model: Any, mean: FloatArray, sigma: FloatArray, y: Any, rng: np.random.Generator
) -> dict[str, AnyArray]:
    """New targets, and log likelihoods of `y` unless None; of shape (n_draws, n_rows)."""
    found: dict[str, AnyArray] = {
        "posterior_predictive": mean + sigma * rng.standard_normal(mean.shape)
    }
    if y is not None:
        from scipy.stats import norm  # takes long to load

        target = _validation.check_numbers(model, y, mean.shape[1])
        found["observed_data"] = target
        found["log_likelihood"] = norm.logpdf(target, mean, sigma)
    return found


def of_classes(
    model: Any, proba: FloatArray, y: Any, rng: np.random.Generator
) -> dict[str, AnyArray]:
    """New classes, and log likelihoods of `y` unless None.

    `proba` has shape (n_draws, n_rows, n_classes), or is of the second of two classes.
    """
    if proba.ndim == 2:
        proba = np.stack([1.0 - proba, proba], axis=2)
    below = proba.cumsum(axis=2)[:, :, :-1] <= rng.random((*proba.shape[:2], 1))
    found: dict[str, AnyArray] = {"posterior_predictive": below.sum(axis=2)}
    if y is not None:
        target = _validation.check_labels(model, y, proba.shape[1])
        is_class = np.asarray(target)[:, np.newaxis] == model.classes_
        if not is_class.any(axis=1).all():
            raise ValueError("y holds labels that are not in classes_")
        codes = is_class.argmax(axis=1)
        found["observed_data"] = codes
        own = np.take_along_axis(proba, codes[np.newaxis, :, np.newaxis], axis=2)[:, :, 0]
        found["log_likelihood"] = np.log(np.maximum(own, np.finfo(np.float64).tiny))
    return found
