"""Checks of weights of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from boscage._input.columns import refuse_masked
from boscage._input.user_warnings import warn_user
from boscage._types import BoolArray, FloatArray

_NOT_TINY = "0, or at least 1e-100 times the greatest weight"
_KEPT = "0, or from 1e-12 to 1e9"
_REPEATS = "0, or from 1e-100 to 1e15"
# Fewer rows may have small weights, as those of a batch.
_MANY = 10
# The share of many rows as which their weights count, below which that is hardly meant.
_FEW_SHARE = 0.1


def check_sample_weight(
    sample_weight: Any, n_rows: int
) -> tuple[BoolArray | None, FloatArray | None]:
    """Which rows have a weight above 0, and their weights; None for all rows, and if all are 1."""
    # Those that are hardly above 0 might be 0 after they were divided by their mean.
    return _positive_weights(
        sample_weight, n_rows, lambda weights: weights >= 1e-100 * weights.max(), _NOT_TINY
    )


def check_row_weight(sample_weight: Any, n_rows: int) -> tuple[BoolArray | None, FloatArray | None]:
    """The same for rows that come and go, whose weights are kept with them."""
    kept, weights = _positive_weights(
        sample_weight, n_rows, lambda weights: (weights >= 1e-12) & (weights <= 1e9), _KEPT
    )
    _warn_of_few(weights)
    return kept, weights


def check_repeats(sample_weight: Any, n_rows: int) -> tuple[BoolArray | None, FloatArray | None]:
    """The same for weights that say how often rows count in a Bayesian tree."""
    kept, weights = _positive_weights(
        sample_weight, n_rows, lambda weights: (weights >= 1e-100) & (weights <= 1e15), _REPEATS
    )
    _warn_of_few(weights)
    return kept, weights


def _positive_weights(
    sample_weight: Any,
    n_rows: int,
    is_right: Callable[[FloatArray], BoolArray],
    expected: str,
) -> tuple[BoolArray | None, FloatArray | None]:
    if sample_weight is None:
        return None, None
    refuse_masked(sample_weight, "sample_weight")
    if not (hasattr(sample_weight, "__len__") or hasattr(sample_weight, "__array__")):
        raise TypeError(
            f"sample_weight must hold one weight for each of {n_rows} rows, found {sample_weight!r}"
        )
    try:
        weights: FloatArray = check_array(
            sample_weight,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            input_name="sample_weight",
        )
    except (TypeError, ValueError) as error:
        # Further lines may be all the weights.
        message = str(error).partition("\n")[0]
        raise type(error)(f"sample_weight must hold numbers: {message}") from error
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}; expected one weight for each of "
            f"{n_rows} rows"
        )
    _refuse_first(weights, ~np.isfinite(weights), expected)
    kept = weights > 0.0
    if not (kept | (weights < 0.0)).any():
        raise ValueError("sample_weight is zero for all rows; expected at least one above zero")
    _refuse_first(weights, (weights != 0.0) & ~is_right(weights), expected)
    weights = weights[kept]
    return None if kept.all() else kept, None if (weights == 1.0).all() else weights


def _warn_of_few(weights: FloatArray | None) -> None:
    """Warn of weights that make few rows of many, as those that sum to one do."""
    if weights is None or len(weights) < _MANY or weights.sum() >= _FEW_SHARE * len(weights):
        return
    warn_user(
        f"sample_weight sums to {weights.sum():.3g} over {len(weights)} rows. A row of weight w "
        f"counts as w rows, so these count as no more than {weights.sum():.3g}: multiply the "
        "weights by n / sum if all n rows are to count"
    )


def _refuse_first(weights: FloatArray, wrong: BoolArray, expected: str) -> None:
    """Refuse the first weight that is wrong, if one is."""
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"sample_weight holds {weights[row]} for row {row}; expected {expected}")
