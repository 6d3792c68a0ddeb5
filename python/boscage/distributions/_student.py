"""Student's t distribution, also where it is so far from its centre that SciPy's functions fail.

At ``z``, far from zero, the probability beyond ``z`` is ``(df / z**2) ** (df / 2) / (df * B)`` with
``B = Beta(df / 2, 1 / 2)``; the relative error is of the order of ``df / z**2``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, stdtr, stdtrit

from boscage._types import FloatArray

#: From here on squares may overflow.
_FAR = 1e150
#: From so many times ``sqrt(df)`` on, the formula above is exact in floating point.
_OUTSKIRTS = 1e10


def log_growth(df: FloatArray, z: FloatArray) -> FloatArray:
    """Logarithm of ``1 + z**2 / df``."""
    near = np.clip(z, -_FAR, _FAR)
    logs: FloatArray = np.log1p(near * near / df)
    far = np.abs(z) > _FAR
    if far.any():
        logs[far] += 2.0 * np.log(np.abs(z[far]) / _FAR)
    return logs


def cdf(df: FloatArray, z: FloatArray) -> FloatArray:
    """Probability of at most ``z``."""
    found: FloatArray = stdtr(df, z)
    far = np.abs(z) > _FAR
    if far.any():
        df, z = np.broadcast_to(df, z.shape)[far], z[far]
        # For more degrees of freedom the probability is zero, too.
        df = np.minimum(df, _FAR)
        logs = 0.5 * df * (np.log(df) - 2.0 * np.log(np.abs(z))) - _log_scale(df)
        beyond = np.exp(logs)
        found[far] = np.where(z < 0.0, beyond, 1.0 - beyond)
    return found


def quantile(df: FloatArray, q: float) -> FloatArray:
    """The value that is not exceeded with probability ``q``, between 0 and 1.

    It is infinite where it is too large for a float.
    """
    beyond = min(q, 1.0 - q)
    logs = -(np.log(beyond) + _log_scale(df)) / df
    with np.errstate(over="ignore"):
        size = np.sqrt(df) * np.exp(logs)
    found = stdtrit(df, q)
    use = (logs > np.log(_OUTSKIRTS)) | ~np.isfinite(found)
    return np.asarray(np.where(use, np.copysign(size, q - 0.5), found))


def _log_scale(df: FloatArray) -> FloatArray:
    """Logarithm of ``df * B``."""
    scale: FloatArray = np.log(df) + betaln(0.5 * df, 0.5)
    return scale
