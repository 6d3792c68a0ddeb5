"""Boscage in other libraries. Each of them is an optional dependency of its own."""

from boscage.integration.optuna import MondrianSampler

__all__ = ["MondrianSampler"]
