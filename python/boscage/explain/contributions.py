"""Contributions of features to predictions, as arrays and for the package shap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from boscage._types import AnyArray, FloatArray

__all__ = ["Contributions"]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What each feature adds to the predictions of some rows.

    ``base_values + values.sum(axis=1)`` are the predictions.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
        The contributions. Outputs are classes; a regressor has no last axis.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        What the contributions are added to.
    data : ndarray of shape (n_samples, n_features)
        The rows, as they were given: categories by name, of dtype object, with None for missing.
    feature_names, output_names : list of str or None
        Names of the features and of the outputs.
    lower, upper, std : ndarray of the shape of `values`, or None
        Of a posterior of many draws (BART): the ends of a credible band, and the posterior standard
        deviation.
    """

    values: FloatArray
    base_values: FloatArray
    data: AnyArray
    feature_names: list[str] | None = None
    output_names: list[str] | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    std: FloatArray | None = None

    def predictions(self) -> FloatArray:
        """Add up base and contributions.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        total: FloatArray = self.base_values + self.values.sum(axis=1)
        return total

    def to_shap(self) -> Any:
        """Convert to an explanation of the package shap, for its plots.

        Needs the package ``shap`` (``pip install "boscage[shap]"``).

        Returns
        -------
        shap.Explanation

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                'explain needs shap, which is not installed: pip install "boscage[shap]"; '
                "contributions returns plain arrays"
            ) from error
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names,
            lower_bounds=self.lower,
            upper_bounds=self.upper,
            error_std=self.std,
        )

    def __repr__(self) -> str:
        return f"Contributions(values of shape {self.values.shape})"


def of_parts(
    found: tuple[FloatArray, FloatArray], rows: AnyArray, names: Iterable[str] | None
) -> Contributions:
    """Contributions from the compiled module's flat arrays, with an axis of outputs."""
    base, values = found
    n_rows, n_features = rows.shape
    n_outputs = values.size // (n_rows * n_features)
    bases = np.broadcast_to(base.reshape(-1, n_outputs), (n_rows, n_outputs)).copy()
    return Contributions(
        values.reshape(n_rows, n_features, n_outputs),
        bases,
        rows,
        None if names is None else [str(name) for name in names],
    )
