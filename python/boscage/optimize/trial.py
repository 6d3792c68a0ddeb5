"""Trials: settings that were suggested or told, and what came of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from boscage import _validation

State = Literal["pending", "complete", "failed"]


@dataclass(frozen=True)
class Trial:
    """One trial of a study. `MondrianOptimizer.ask` makes them.

    Attributes
    ----------
    number : int
        Trials are counted from 0.
    params : dict
        The values of active parameters.
    state : {"pending", "complete", "failed"}
        Whether its value is awaited, was told, or could not be had.
    value : float or None
        The value of the objective, once complete.
    constraints : tuple of float
        Values of constraints, each of which is met if it is at most zero.
    """

    number: int
    params: Mapping[str, Any]
    state: State = "pending"
    value: float | None = None
    constraints: tuple[float, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether the trial is complete and all its constraints are met."""
        return self.state == "complete" and all(limit <= 0.0 for limit in self.constraints)

    def copy(self) -> Trial:
        """The trial with values of its own, which its owner may change.

        Returns
        -------
        Trial
        """
        return replace(self, params=dict(self.params))

    def told(self, value: Any, constraints: Any) -> Trial:
        """The trial with what came of it.

        Parameters
        ----------
        value : float or None
            The value. None and what is not finite mean that the trial failed.
        constraints : sequence of float or None
            Values of constraints.

        Returns
        -------
        Trial

        Raises
        ------
        TypeError
            If `value` is no number, or `constraints` is no sequence of numbers.
        ValueError
            If a constraint is not a finite number, or a number is too large for a float.
        """
        limits = () if constraints is None else _limits(constraints)
        if value is None:
            return replace(self, state="failed", constraints=limits)
        if not _validation.is_real(value):
            raise TypeError(f"value must be a number or None, found {value!r}")
        number = _validation.to_float("value", value)
        if not math.isfinite(number):
            return replace(self, state="failed", constraints=limits)
        return replace(self, state="complete", value=number, constraints=limits)


def _limits(constraints: Any) -> tuple[float, ...]:
    """Finite numbers, one for each constraint."""
    try:
        limits = np.asarray(constraints, dtype=float)
    except OverflowError:
        raise ValueError("constraints hold a number that is too large for a float") from None
    except (TypeError, ValueError):
        limits = np.empty(())
    if limits.ndim != 1:
        raise TypeError(
            "constraints must be a sequence with a number for each constraint, such as [0.5], "
            f"found {constraints!r}"
        )
    return tuple(_validation.check_real("a constraint", limit) for limit in limits.tolist())
