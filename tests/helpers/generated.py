"""Small data sets from a fixed generator, which does not depend on releases of other libraries.

Values are multiples of 1/4096, which are exact in float32, unless stated otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference.arrays import Array

N_LEVELS = 4096


def integers(seed: int, n: int) -> list[int]:
    """Return `n` integers from 0 to 4095 by a linear congruential generator (Knuth's MMIX)."""
    state, found = seed, []
    for _ in range(n + 8):  # the first few numbers of small seeds are similar
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        found.append(state >> 52)
    return found[8:]


def uniform(seed: int, *shape: int) -> Array:
    """Return multiples of 1/4096 in [0, 1)."""
    return np.array(integers(seed, int(np.prod(shape))), dtype=float).reshape(shape) / N_LEVELS


def rows_and_numbers(n: int, n_features: int, seed: int, dtype: Any = np.float32) -> Any:
    """Return `n` rows and their numeric targets, in which the first two features matter.

    Rows of type float64 are not exact in float32.
    """
    x = uniform(seed, n, n_features)
    noise = uniform(seed + 1, n) - 0.5
    y = 2.0 * x[:, 0] - 3.0 * (x[:, 1] - 0.5) * (x[:, 1] - 0.5) + 0.5 * noise
    if np.dtype(dtype) == np.float64:
        x = x / 3.0
    return np.ascontiguousarray(x, dtype=dtype), y


def as_labels(y: Array, kind: str) -> Array:
    """Return labels: of two classes if they are Boolean, else of three."""
    if kind == "bool":
        return np.asarray(y > 0.75)
    codes = (y > 0.5).astype(int) + (y > 1.0)
    values = {
        "int": [-7, 2, 1000],
        "str": ["green", "rosé", "amber"],
        "float": [0.0, 1.0, 3.0],
    }
    return np.array(values[kind])[codes]
