"""Warnings that name the line of the user's code."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str) -> None:
    """Warn, as from the first caller that is not of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("boscage."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
