"""Names for the array types that the package passes around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Numbers that the package computes: always double precision."""

IntArray: TypeAlias = NDArray[np.int64]

Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
"""Checked feature rows: two-dimensional, row-major, finite."""

Maps: TypeAlias = list[tuple[FloatArray, FloatArray]]
"""For each feature, knots and the share of its rate below each; none if it is linear."""

Ids: TypeAlias = NDArray[np.uint64]

Label: TypeAlias = bool | int | float | str

AnyArray: TypeAlias = NDArray[Any]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) now and then while a long call runs."""
