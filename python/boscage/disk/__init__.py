"""Mondrian forests from more rows than memory holds, on one machine.

A forest is grown from a Parquet folder or from NumPy files in passes over them, within a bound on
memory. It predicts what the forest of `boscage.MondrianForestClassifier` or
`boscage.MondrianForestRegressor` with ``predictive="realised"`` does, bit for bit. It keeps no
rows, so it can neither learn more rows nor forget any.
"""

from boscage.disk.classifier import MondrianForestClassifier
from boscage.disk.regressor import MondrianForestRegressor

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor"]
