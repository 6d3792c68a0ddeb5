"""The features of a trend that is given as a list: their numbers, or the names of their columns."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeGuard

import numpy as np

from boscage import _validation
from boscage._input.columns import by_name

# Numbers of features have 32 bits.
_MAX_FEATURE_NUMBER = 2**32 - 1
ANY_NAMES: Final = "any"
"""In place of the columns' names before rows were seen."""

__all__: list[str] = []


def features_of_trend(trend: Any) -> list[Any]:
    """The features, checked and sorted."""
    expected = (
        "trend must be 'auto', 'linear', None or a list of the numbers, or of the names, of at "
        f"least one feature, each once and none negative; found {trend!r}"
    )
    is_list = isinstance(trend, Collection) and not isinstance(trend, (bytes, Mapping))
    if isinstance(trend, np.ndarray):
        is_list = trend.ndim == 1
    are_names = is_list and has_names(trend)
    if not is_list or not (are_names or all(map(_validation.is_integer, trend))):
        raise TypeError(expected)
    features = sorted(set(trend) if are_names else {operator.index(feature) for feature in trend})
    if len(features) < max(len(trend), 1):
        raise ValueError(expected)
    if not are_names and (features[0] < 0 or features[-1] > _MAX_FEATURE_NUMBER):
        raise ValueError(expected)
    return features


def has_names(trend: Any) -> TypeGuard[Collection[str]]:
    """Whether a trend is a list of names."""
    is_list = isinstance(trend, Collection) and not isinstance(trend, (str, bytes, Mapping))
    return is_list and len(trend) > 0 and all(isinstance(feature, str) for feature in trend)


def numbers_of_trend(features: list[Any], names: Iterable[Any] | None) -> list[int]:
    """The numbers of checked features, given the columns' names: None if they have none."""
    if not has_names(features):
        return features
    # Settings are checked before rows are seen, too: then any numbers do.
    if names is ANY_NAMES:
        return list(range(len(features)))
    return by_name("trend", list(features), names)


def stored_features(numbers: list[int], names: Any) -> list[Any]:
    """The features of a trend in a file: by name if they were given so."""
    return list(names) if has_names(names) and len(names) == len(numbers) else numbers
