"""Scores of probabilistic predictions that scikit-learn lacks.

The functions for regression take the observed targets and a prediction: any
`PredictiveDistribution`, such as ``model.predict_dist(X)`` of every regressor, or a pair
``(mean, std)`` of Gaussians, such as ``model.predict(X, return_std=True)``. Scorers are for
scikit-learn's parameter ``scoring``.
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
from boscage.metrics._scorers import neg_crps_scorer, neg_nlpd_scorer

__all__ = [
    "CalibrationTable",
    "ReliabilityBins",
    "calibration_table",
    "crps",
    "expected_calibration_error",
    "interval_coverage",
    "neg_crps_scorer",
    "neg_nlpd_scorer",
    "nlpd",
    "reliability_bins",
]
