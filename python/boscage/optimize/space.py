"""Search spaces: named parameters, and the rows of numbers that stand for their values.

A setting of all parameters is first a vector of positions, one number in [0, 1] for each parameter,
and then a row of features for a forest. A numeric parameter is one feature, its position. A
categorical one is a feature for each choice, 1 for the one that is taken and 0 for the others, and
each of them is cut at half the rate: two different choices are then as likely to be separated as
the two ends of a numeric parameter, whatever their number. Nothing here looks at objective values,
so that rows never change.

A parameter with a condition that is not met is inactive. It then takes a place of its own,
`INACTIVE`, outside the range of its values, so that all rows have the same features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from boscage._types import FloatArray
from boscage.optimize._parameters import KINDS, Categorical, Choice, Integer, Parameter, Real

INACTIVE = -0.25
"""The feature of an inactive numeric parameter. Its active values lie in [0, 1]."""

# Neighbouring positions are farther apart, unless there are more than 10^13 of them.
_SAME = 1e-13


class Space:
    """A search space: parameters by name.

    Parameters
    ----------
    parameters : dict of str to Real, Integer or Categorical
        The parameters. One with a condition (``when``) is active only if all parameters that the
        condition names are active and have one of the values given there, as ``b`` here:
        ``{"a": Categorical(["x", "y"]), "b": Real(0, 1, when={"a": "y"})}``.

    Attributes
    ----------
    parameters : dict
        As given.
    names : list of str
        The names, in order.
    n_values : float
        Number of different settings; infinite if a parameter is continuous.

    Raises
    ------
    ValueError
        If there is no parameter, or a condition names an unknown parameter, a value that it does
        not have, or the parameter itself, directly or by way of others.
    TypeError
        If something is not a parameter, or a name is not a string.
    """

    def __init__(self, parameters: Mapping[str, Real | Integer | Categorical]) -> None:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"a space is a dict of parameters by name, found {parameters!r}")
        if not parameters:
            raise ValueError("a space needs at least one parameter")
        for name, parameter in parameters.items():
            if not isinstance(name, str):
                raise TypeError(f"the name of a parameter must be a string, found {name!r}")
            if not isinstance(parameter, Parameter):
                raise TypeError(
                    f"{name} must be a Real, an Integer or a Categorical, found {parameter!r}"
                )
        self.parameters = dict(parameters)
        self.names = list(self.parameters)
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._conditions = {
            name: self._check_condition(name, parameter.when)
            for name, parameter in self.parameters.items()
            if parameter.when is not None
        }
        self._order = self._parents_first()
        self._columns = self._place_columns()

    def __repr__(self) -> str:
        return f"Space({self.parameters!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """The space as a dict that JSON can hold."""
        return {name: parameter.to_dict() for name, parameter in self.parameters.items()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Space:
        """Make a space from what `to_dict` returned.

        Parameters
        ----------
        given : dict
            The parameters.

        Returns
        -------
        Space

        Raises
        ------
        ValueError
            If a parameter is of an unknown kind, or its arguments are not those of its kind.
        """
        parameters = {}
        for name, entry in given.items():
            arguments = dict(entry)
            kind = KINDS.get(arguments.pop("kind", ""))
            if kind is None:
                raise ValueError(f"{name}: expected one of the kinds {[*KINDS]}, found {entry!r}")
            try:
                parameters[name] = kind(**arguments)
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from error
        return cls(parameters)

    # -- conditions -------------------------------------------------------------------------------

    def _check_condition(
        self, name: str, when: Mapping[str, Iterable[Choice]]
    ) -> dict[str, FloatArray]:
        """The condition of a parameter, as the positions that each of its parents may have."""
        condition = {}
        for parent, values in when.items():
            if parent not in self.parameters:
                raise ValueError(
                    f"{name} depends on {parent!r}, which is no parameter of the space"
                )
            if self.parameters[parent].n_values == math.inf:
                raise ValueError(f"{name} cannot depend on {parent}, which is continuous")
            try:
                allowed = [self.parameters[parent].position(value) for value in values]
            except ValueError as error:
                raise ValueError(f"{name} depends on {parent}: {error}") from error
            condition[parent] = np.asarray(allowed)
        return condition

    def _parents_first(self) -> list[str]:
        """The conditional parameters in an order in which each follows those it depends on."""
        order: list[str] = []
        left = list(self._conditions)
        while left:
            ready = [name for name in left if not any(p in left for p in self._conditions[name])]
            if not ready:
                raise ValueError(f"the conditions of {', '.join(left)} depend on each other")
            order += ready
            left = [name for name in left if name not in ready]
        return order

    # -- settings, positions and rows -------------------------------------------------------------

    @property
    def n_values(self) -> float:
        """Number of different settings, those that differ in inactive parameters included."""
        # As floats, which become infinite where integers would be too large.
        return math.prod(float(parameter.n_values) for parameter in self.parameters.values())

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self._columns[-1].stop)

    def snap(self, positions: FloatArray) -> FloatArray:
        """Move positions to those of values, and those of inactive parameters to NaN.

        Parameters
        ----------
        positions : ndarray of shape (n, n_parameters)
            Numbers in [0, 1].

        Returns
        -------
        ndarray of shape (n, n_parameters)
        """
        out = np.empty_like(positions)
        for number, parameter in enumerate(self.parameters.values()):
            out[:, number] = parameter.snap(positions[:, number])
        for name in self._order:
            active = np.ones(len(out), dtype=np.bool_)
            for parent, allowed in self._conditions[name].items():
                active &= _is_among(out[:, self._numbers[parent]], allowed)
            out[~active, self._numbers[name]] = np.nan
        return out

    def rows(self, positions: FloatArray) -> FloatArray:
        """The rows of features that stand for positions.

        Parameters
        ----------
        positions : ndarray of shape (n, n_parameters)
            What `snap` returned.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        out = np.zeros((len(positions), self.n_features))
        for number, parameter in enumerate(self.parameters.values()):
            columns, own = self._columns[number], positions[:, number]
            active = ~np.isnan(own)
            if isinstance(parameter, Categorical):
                places = columns.start + parameter.codes(own[active])
                out[np.flatnonzero(active), places] = 1.0
            else:
                out[:, columns.start] = np.where(active, own, INACTIVE)
        return out

    def params(self, positions: FloatArray) -> dict[str, Any]:
        """The values of active parameters at the positions of one setting.

        Parameters
        ----------
        positions : ndarray of shape (n_parameters,)
            A row of what `snap` returned.

        Returns
        -------
        dict
            Values by name.
        """
        return {
            name: parameter.value(float(position))
            for (name, parameter), position in zip(self.parameters.items(), positions, strict=True)
            if not np.isnan(position)
        }

    def positions(self, params: Mapping[str, Any]) -> FloatArray:
        """The positions of a setting.

        Parameters
        ----------
        params : dict
            A value for each active parameter. Values of inactive ones are ignored.

        Returns
        -------
        ndarray of shape (n_parameters,)
            NaN for inactive parameters.

        Raises
        ------
        ValueError
            If a value is missing, is not one of its parameter, or a name is unknown.
        """
        unknown = [name for name in params if name not in self.parameters]
        if unknown:
            raise ValueError(f"unknown parameters: {', '.join(map(repr, unknown))}")
        out = np.full(len(self.names), np.nan)
        for name in [n for n in self.names if n not in self._conditions] + self._order:
            number, condition = self._numbers[name], self._conditions.get(name, {})
            if not all(
                _is_among(out[self._numbers[parent]], allowed)
                for parent, allowed in condition.items()
            ):
                continue
            if name not in params:
                raise ValueError(f"no value for {name}")
            try:
                out[number] = self.parameters[name].position(params[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return out

    def all_positions(self) -> FloatArray:
        """The positions of all settings of a finite space.

        Returns
        -------
        ndarray of shape (n, n_parameters)
            Settings that differ only in inactive parameters occur once.
        """
        axes = [
            (np.arange(int(parameter.n_values)) + 0.5) / parameter.n_values
            if not (isinstance(parameter, Integer) and parameter.log)
            else parameter._place(np.arange(parameter.n_values))
            for parameter in self.parameters.values()
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        snapped = self.snap(np.stack([axis.ravel() for axis in mesh], axis=1))
        # NaN is not equal to itself.
        _, first = np.unique(np.nan_to_num(snapped, nan=-1.0), axis=0, return_index=True)
        return np.asarray(snapped[np.sort(first)])

    # -- what a forest needs to know --------------------------------------------------------------

    def _place_columns(self) -> list[slice]:
        columns, start = [], 0
        for parameter in self.parameters.values():
            width = len(parameter.choices) if isinstance(parameter, Categorical) else 1
            columns.append(slice(start, start + width))
            start += width
        return columns

    @property
    def feature_range(self) -> tuple[FloatArray, FloatArray]:
        """The reference ranges (low, high) of the features."""
        low = np.zeros(self.n_features)
        for name in self._conditions:
            number = self._numbers[name]
            if not isinstance(self.parameters[name], Categorical):
                low[self._columns[number]] = INACTIVE
        return low, np.ones(self.n_features)

    @property
    def feature_weights(self) -> FloatArray:
        """The rates of cuts in the features, in units of one over their ranges.

        Rates are one for the distance between the ends of a numeric parameter, and for that of any
        two choices of a categorical one, which differ in two features.
        """
        low, high = self.feature_range
        weights = high - low
        for columns, parameter in zip(self._columns, self.parameters.values(), strict=True):
            if isinstance(parameter, Categorical):
                weights[columns] = 0.5
        return weights


def _is_among(positions: Any, allowed: FloatArray) -> Any:
    """Whether each position is one of those allowed; NaN is none."""
    return (np.abs(np.asarray(positions)[..., None] - allowed) < _SAME).any(axis=-1)
