"""Parameters that have a number for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boscage._types import AnyArray, FloatArray, Maps

MAX_END = 4e307
"""The greatest absolute value that the end of a reference range may have."""
# The greatest rate of cuts in a feature.
_MAX_RATE = 1e100


def check_range(
    value: Any, n_features: int, names: AnyArray | None
) -> tuple[FloatArray | None, FloatArray | None]:
    """``feature_range`` as two vectors; `names` are those of the features, if they have any."""
    if value is None:
        return None, None
    try:
        low, high = value
    except (TypeError, ValueError) as error:
        raise ValueError(f"feature_range must be a pair (low, high), found {value!r}") from error
    low = _per_feature("feature_range's low", low, n_features, names)
    high = _per_feature("feature_range's high", high, n_features, names)
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        d = crossed[0]
        raise ValueError(
            f"feature_range must have low <= high, found {low[d]} and {high[d]} for feature {d}"
        )
    large = np.flatnonzero(np.maximum(-low, high) > MAX_END)
    if large.size:
        d = large[0]
        raise ValueError(
            f"feature_range must lie within +-{MAX_END:g}, found {low[d]:g} and {high[d]:g} for "
            f"feature {d}"
        )
    return low, high


def check_weights(value: ArrayLike, n_features: int, names: AnyArray | None) -> FloatArray:
    """``feature_weights`` as a vector of rates."""
    if isinstance(value, str):
        raise ValueError(
            f"feature_weights must be None, 'learned' or one number per feature, found {value!r}"
        )
    weights = _per_feature("feature_weights", value, n_features, names)
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        d = negative[0]
        raise ValueError(f"feature_weights must be >= 0, found {weights[d]} for feature {d}")
    large = np.flatnonzero(weights > _MAX_RATE)
    if large.size:
        d = large[0]
        raise ValueError(
            f"feature_weights must be at most {_MAX_RATE:g}, found {weights[d]:g} for feature {d}"
        )
    if not weights.any():
        raise ValueError("feature_weights are all zero; expected a positive one")
    return weights


def check_maps(value: Any, n_features: int) -> Maps:
    """``feature_maps`` as a pair of vectors per feature; the compiled module checks the values."""
    try:
        maps = [
            (np.asarray(knots, dtype=np.float64), np.asarray(shares, dtype=np.float64))
            for knots, shares in value
        ]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"feature_maps must be a pair (knots, shares) for each feature, found {value!r}"
        ) from error
    if len(maps) != n_features or any(a.ndim != 1 or b.ndim != 1 for a, b in maps):
        raise ValueError(
            f"feature_maps must hold two vectors for each of the {n_features} features"
        )
    return maps


def _per_feature(name: str, value: Any, n_features: int, names: AnyArray | None) -> FloatArray:
    if hasattr(value, "iloc") and hasattr(value, "index") and names is not None:
        value = _by_name(name, value, names)
    try:
        vector = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, found {value!r}") from error
    if vector.shape not in ((), (n_features,)):
        raise ValueError(
            f"{name} has shape {vector.shape}; expected a number or one for each of the "
            f"{n_features} features"
        )
    full = np.array(np.broadcast_to(vector, n_features))
    bad = np.flatnonzero(~np.isfinite(full))
    if bad.size:
        raise ValueError(f"{name} must be finite, found {full[bad[0]]} for feature {bad[0]}")
    return full


def _by_name(name: str, series: Any, names: AnyArray) -> Any:
    """A series of pandas in the order of the features, if its index has their names."""
    index = list(series.index)
    if index == list(range(len(index))):
        return series
    if len(index) != len(set(index)) or set(index) != set(names):
        odd = [label for label in index if label not in set(names)]
        odd += [label for label in names if label not in set(index)]
        raise ValueError(
            f"{name} is a series whose index is not the names of the features, each once"
            f"{f' ({odd[0]!r} is only in one of them)' if odd else ''}; give an array to go by "
            "their order"
        )
    return series.loc[list(names)]
