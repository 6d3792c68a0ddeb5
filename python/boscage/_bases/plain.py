"""Values of parameters as JSON holds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np

__all__: list[str] = []


def plain(value: Any) -> Any:
    """A value as JSON gives it back; NotImplemented if it cannot."""
    if hasattr(value, "__array__"):  # of NumPy, or a column of a table
        value = np.asarray(value).tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Real):  # such as a fraction
        return float(value)
    if isinstance(value, Mapping):
        keys, values = list(value), [plain(own) for own in value.values()]
        found: Any = dict(zip(keys, values, strict=True))
        holds = all(isinstance(key, str) for key in keys)
    elif isinstance(value, Collection):
        found = values = [plain(own) for own in value]
        holds = True
    else:
        return NotImplemented
    return found if holds and all(own is not NotImplemented for own in values) else NotImplemented
