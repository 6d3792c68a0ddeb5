"""Names of the types that the package uses in annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Computed numbers, always in double precision."""

BoolArray: TypeAlias = NDArray[np.bool_]

IntArray: TypeAlias = NDArray[np.int64]

Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
"""Checked feature rows: two-dimensional, row-major, finite."""

Maps: TypeAlias = list[tuple[FloatArray, FloatArray]]
"""For each feature its knots, and the share of the feature's rate below each knot."""

Ids: TypeAlias = NDArray[np.uint64]

Label: TypeAlias = bool | int | float | str

AnyArray: TypeAlias = NDArray[Any]

Progress: TypeAlias = Callable[[int, int], None]
"""Called from time to time with (done, total) during a long call."""
