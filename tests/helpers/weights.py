"""Weights of rows that no model takes."""

from __future__ import annotations

from typing import Any

import numpy as np


def impossible(n: int) -> list[tuple[Any, str]]:
    """Weights of `n` rows, and a part of the message that refuses them."""
    return [
        (np.ones(n - 1), f"expected one weight for each of {n} rows"),
        (np.ones((n, 2)), "shape"),
        (np.r_[np.ones(n - 1), -1.0], f"holds -1.0 for row {n - 1}; expected 0, or "),
        (np.r_[np.ones(n - 1), np.nan], f"holds nan for row {n - 1}"),
        (np.zeros(n), "zero for all rows"),
    ]
