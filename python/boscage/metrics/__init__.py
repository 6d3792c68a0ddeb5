"""Scores of probabilistic predictions that scikit-learn lacks.

The functions for regression take the observed targets and a prediction: any
`PredictiveDistribution`, such as ``model.predict_dist(X)`` of every regressor, or a pair
``(mean, std)`` of Gaussians, such as ``model.predict(X, return_std=True)``.
"""

from boscage.metrics._classification import (
    ReliabilityBins,
    expected_calibration_error,
    reliability_bins,
)
from boscage.metrics._regression import (
    CalibrationTable,
    calibration_table,
    crps,
    interval_coverage,
    nlpd,
)

__all__ = [
    "CalibrationTable",
    "ReliabilityBins",
    "calibration_table",
    "crps",
    "expected_calibration_error",
    "interval_coverage",
    "nlpd",
    "reliability_bins",
]
